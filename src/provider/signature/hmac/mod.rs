//! An HMAC in a header, described by data.

mod builder;
mod presented;
mod time;
mod scheme;

pub use builder::Hmac;
