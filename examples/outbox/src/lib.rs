//! A transactional outbox: the webhook's handler enqueues a job in the transaction of the delivery,
//! and a worker does the slow work afterwards. `README.md` explains what this gives you.

pub mod carrier;
pub mod shipping;
pub mod stripe;
pub mod webhook;
