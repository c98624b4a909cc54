//! JSON Web Tokens (RFC 7519).

mod compact;
mod scheme;

#[cfg(any(feature = "p256", feature = "rsa"))]
pub(crate) use compact::encode;
pub(crate) use compact::{Claims, Compact, sign_hs256};
pub use scheme::Jwt;
