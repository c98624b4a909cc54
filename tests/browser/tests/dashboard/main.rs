//! The dashboard in a real browser, and what hostile senders could make of it.

mod actions;
mod clock;
mod hostile;
mod looks;
mod prefixes;
mod readers;
mod stage;
