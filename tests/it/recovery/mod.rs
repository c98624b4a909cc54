//! Recovery: what is kept, and how it ends.

mod archive;
mod handles;
mod takeover;
