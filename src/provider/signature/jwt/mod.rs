//! JSON Web Tokens (RFC 7519).

mod compact;
mod scheme;

pub(in crate::provider) use compact::{Claims, Compact, encode, sign_hs256};
pub use scheme::Jwt;
