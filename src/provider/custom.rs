//! The steps that build a provider without a preset, and the defaults of every provider, presets included:
//! tolerance, body limit, response deadline and redelivery window.

use std::sync::Arc;
use std::time::Duration;

use http::Method;

use super::answers::Answers;
use super::event_types::NameForms;
use super::handshake::Handshakes;
use super::identity::Identity;
use super::secret_source::SecretSource;
use super::signature::{SignatureScheme, Tolerance};
use super::source::Source;
use super::{ASSUMED_DEADLINE, DAY, MIB, Provider};

/// A custom provider that still needs its signature scheme.
#[derive(Clone, Debug)]
#[must_use = "it is not a provider yet: it needs a signature scheme and a delivery id"]
pub struct CustomProvider {
    pub(super) name: Arc<str>,
}

impl CustomProvider {
    /// How the provider signs, and with which secrets.
    pub fn signature(
        self,
        scheme: impl SignatureScheme,
        secrets: impl Into<SecretSource>,
    ) -> SignedProvider {
        SignedProvider {
            name: self.name,
            scheme: Arc::new(scheme),
            secrets: secrets.into(),
        }
    }
}

/// A custom provider that still needs its delivery id.
#[derive(Clone, Debug)]
#[must_use = "it is not a provider yet: it needs a delivery id"]
pub struct SignedProvider {
    name: Arc<str>,
    scheme: Arc<dyn SignatureScheme>,
    secrets: SecretSource,
}

impl SignedProvider {
    /// Where to find the delivery id in a request. The id must be the same on every retry and different for every
    /// delivery.
    pub fn delivery_id(self, source: Source) -> Provider {
        let keys = self.secrets.keys().cloned();
        Provider {
            name: self.name,
            scheme: self.scheme,
            secrets: self.secrets,
            methods: vec![Method::POST],
            public_url: None,
            keys,
            tolerance: Tolerance::two_sided(Duration::from_secs(300)),
            identity: Identity::new(source),
            name_forms: NameForms::default(),
            handshakes: Handshakes::default(),
            answers: Answers::default(),
            body_limit: 2 * MIB,
            response_deadline: ASSUMED_DEADLINE,
            deadline_is_known: false,
            redelivery_window: 30 * DAY,
        }
    }
}
