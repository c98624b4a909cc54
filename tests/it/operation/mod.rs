//! What an operator can see and do without the dashboard.

mod activity;
mod erase;
mod failures;
mod forget;
mod log;
mod metrics;
mod reasons;
mod retention;
mod retention_task;
