//! What an operator learns and does, the dashboard aside.

mod activity;
mod erase;
mod failures;
mod forget;
mod log;
mod metrics;
mod reasons;
mod retention;
mod retention_task;
