//! The cases of `tests/vectors/`, and private keys to sign with.

mod case;
mod keys;

use std::time::SystemTime;

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use idempotent_webhook::presets::Preset;
use idempotent_webhook::provider::{Verified, VerifyError};
use idempotent_webhook::{Provider, Secret};

pub use case::{Case, Expect, cases_of, file_of, own_folder, read_folder};
pub use keys::with_test_keys;

/// Verifies a request that is received now.
pub fn verify(provider: &Provider, request: Request<Bytes>) -> Result<Verified, VerifyError> {
    let (head, body) = request.into_parts();
    provider.verify(&head, &body, SystemTime::now())
}

/// A secret of the preset that can sign: from the case that is marked as signing, or else from the
/// first case.
pub fn a_secret_of(preset: &Preset) -> Secret {
    let cases = cases_of(preset);
    let accepted = || cases.iter().filter(|case| case.is_to_be_accepted());
    let signs = |case: &&Case| ["key-pair", "private-key"].contains(&&*case.name);
    let case = accepted().find(signs).or_else(|| accepted().next());
    Secret::new(case.unwrap().secret.as_str()).unwrap()
}

/// The action that qualifies the event type of a request, if the preset has one.
pub fn action_of(provider: &Provider, head: &Parts, body: &[u8]) -> Option<String> {
    let source = provider.description().event_action?.to_string();
    let text = match source.strip_prefix("$.") {
        Some(path) => {
            let body = serde_json::from_slice::<serde_json::Value>(body).ok()?;
            let mut members = path.split('.');
            let action = members.try_fold(&body, |value, member| value.get(member))?;
            action.as_str()?.to_owned()
        }
        None => {
            let name = source.strip_prefix("header ")?;
            head.headers.get(name)?.to_str().ok()?.to_owned()
        }
    };
    Some(text)
}
