//! The cases of `tests/vectors/`, and private keys to sign with.

mod case;
mod keys;

use std::time::SystemTime;

use bytes::Bytes;
use http::Request;
use idempotent_webhook::Provider;
use idempotent_webhook::provider::{Verified, VerifyError};

pub use case::{Case, Expect, cases_of, file_of, own_folder, read_folder};
pub use keys::with_test_keys;

/// Verifies a request that is received now.
pub fn verify(provider: &Provider, request: Request<Bytes>) -> Result<Verified, VerifyError> {
    let (head, body) = request.into_parts();
    provider.verify(&head, &body, SystemTime::now())
}
