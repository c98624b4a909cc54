//! Signs the deliveries of the cases with the test kit, and compares the signatures.

use bytes::Bytes;
use http::Request;
use idempotent_webhook::presets::Preset;
use idempotent_webhook::provider::Verified;
use idempotent_webhook::{Secret, Secrets, testing};

use super::{folders, preset_of, say};
use crate::support::{Case, read_folder};

/// The kit's result for a case that it signs again.
enum Resigned {
    /// Exactly the headers of the case.
    Same,
    /// Other headers, which the preset accepts. For example, there is one signature instead of
    /// several.
    Verified(String),
    Refused(String),
    /// The kit cannot sign the case, for example because that takes a private key.
    Unable(String),
}

impl Case {
    /// Signs the body of an authentic delivery with the kit. `None` if the case is not an authentic
    /// delivery.
    fn sign(&self, preset: &Preset) -> Option<Resigned> {
        if !self.is_to_be_accepted() || self.why.contains("handshake") {
            return None;
        }
        let provider = self.provider(preset).ok()?;
        let (head, body) = (self.head().ok()?, self.body().ok()?);
        let Ok(Verified::Delivery(verified)) = provider.verify(&head, &body, self.now()) else {
            return None;
        };
        // If the case has several secrets, this finds the secret that signed it.
        let secrets = std::iter::once(&self.secret).chain(&self.extra_secrets);
        let mut secrets = secrets.filter_map(|secret| Secret::new(secret.as_str()).ok());
        let secret = secrets.find(|secret| {
            let secrets = Secrets::new(secret.clone());
            provider
                .verify_with(&secrets, &head, &body, self.now())
                .is_ok()
        })?;
        let time = verified.signed_at().unwrap_or_else(|| self.now());
        let request = Request::from_parts(head.clone(), Bytes::from(body));
        let (signed, body) = match testing::sign(&provider, &secret, request, time) {
            Ok(signed) => signed.into_parts(),
            Err(error) => return Some(Resigned::Unable(error.to_string())),
        };
        let other: Vec<&str> = signed
            .headers
            .iter()
            .filter(|(name, value)| head.headers.get(*name) != Some(value))
            .map(|(name, _)| name.as_str())
            .collect();
        Some(match provider.verify(&signed, &body, self.now()) {
            Err(error) => Resigned::Refused(format!("{error:?}")),
            Ok(_) if other.is_empty() => Resigned::Same,
            Ok(_) => Resigned::Verified(other.join(", ")),
        })
    }
}

/// The kit signs what the preset verifies, and signs it as the provider does.
#[test]
fn the_kit_signs_as_the_cases_are_signed() {
    for folder in folders() {
        for (name, cases) in read_folder(&folder) {
            let Some(preset) = preset_of(&name) else {
                continue;
            };
            let (mut same, mut verified, mut unable) = (0, 0, 0);
            for case in &cases {
                match case.sign(preset) {
                    None => {}
                    Some(Resigned::Same) => same += 1,
                    Some(Resigned::Verified(headers)) => {
                        say(format_args!("  {name} {}: other {headers}", case.name));
                        verified += 1;
                    }
                    Some(Resigned::Unable(reason)) => {
                        say(format_args!("  {name} {}: {reason}", case.name));
                        unable += 1;
                    }
                    Some(Resigned::Refused(reason)) => {
                        panic!("{name} {}: the kit signs otherwise: {reason}", case.name)
                    }
                }
            }
            say(format_args!(
                "{name}: {same} signed alike, {verified} otherwise, {unable} not signed"
            ));
        }
    }
}
