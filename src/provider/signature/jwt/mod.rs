//! JSON Web Tokens (RFC 7519).

mod compact;
mod scheme;

#[cfg(any(feature = "p256", feature = "rsa"))]
pub(in crate::provider) use compact::encode;
pub(in crate::provider) use compact::{Claims, Compact, sign_hs256};
pub use scheme::Jwt;
