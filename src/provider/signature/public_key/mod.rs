//! Signatures that are made with a private key: the public keys, and a configurable scheme.

#[cfg(feature = "p256")]
mod ecdsa;
#[cfg(feature = "ed25519")]
pub(super) mod ed25519;
mod key;
#[cfg(feature = "rsa")]
mod rsa;
#[cfg(any(feature = "ed25519", feature = "p256", feature = "rsa"))]
mod scheme;

pub use key::{PublicKey, SignatureAlgorithm};
#[cfg(any(feature = "ed25519", feature = "p256", feature = "rsa"))]
pub use scheme::PublicKeySignature;
