//! Recovery: what is kept, and how it ends.

pub mod accept;
mod archive;
mod bad_input;
mod breaker;
mod event_types;
mod faults;
mod handles;
pub mod keep;
mod locks;
mod liveness;
mod load;
mod log;
mod months;
mod new_life;
mod one_handle;
mod operate;
mod problems;
mod quota;
mod races;
mod rehearsal;
mod replays;
mod schedule;
mod shared_settings;
mod shutdown;
mod takeover;
mod telling;
mod operations;
