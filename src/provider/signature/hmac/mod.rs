//! A configurable scheme for an HMAC in a header.

mod builder;
mod presented;
mod time;
mod scheme;

pub use builder::Hmac;
