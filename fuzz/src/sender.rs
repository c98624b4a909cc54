//! Presets with secrets.

use std::sync::OnceLock;

use idempotent_webhook::presets::{self, Preset};
use idempotent_webhook::provider::Verified;
use idempotent_webhook::provider::signature::Tolerance;
use idempotent_webhook::{Provider, Secret, VerifiedWebhook};

use crate::support::{Case, cases_of, with_test_keys};

/// A preset with two secrets: one that its requests are signed with, and another one.
pub struct Sender {
    pub provider: Provider,
    pub secret: Secret,
    pub layer: VerifiedWebhook,
    /// No case is signed with the secret of this provider. The cases are the seeds.
    pub other: Provider,
}

/// All presets, in the order of their names.
pub fn senders() -> &'static [Sender] {
    static SENDERS: OnceLock<Vec<Sender>> = OnceLock::new();
    SENDERS.get_or_init(|| presets::ALL.iter().map(Sender::of).collect())
}

impl Sender {
    fn of(preset: &Preset) -> Self {
        let cases = cases_of(preset);
        // The secret of the case that is marked as signing, because public keys cannot sign, or else the secret of the
        // first case.
        let accepted = || cases.iter().filter(|case| case.is_to_be_accepted());
        let signs = |case: &&Case| ["key-pair", "private-key"].contains(&&*case.name);
        let case = accepted().find(signs).or_else(|| accepted().next());
        let text = &case.expect("a case of each preset").secret;
        let provider = |secret: &Secret| {
            with_test_keys(preset.provider(secret.clone()))
                .public_url("https://example.com".parse().expect("a URL"))
                // The layer uses the real clock.
                .tolerance(Tolerance::unlimited())
        };
        let secret = Secret::new(text.as_str()).expect("a secret");
        let others = others(text).filter_map(|text| Secret::new(text).ok());
        let mut others = others.map(|secret| provider(&secret));
        let is_other = |other: &Provider| {
            other.check_secrets().is_ok() && !cases.iter().any(|case| is_signed(case, other))
        };
        let signing = provider(&secret);
        Self {
            layer: VerifiedWebhook::new(preset.name(), signing.clone()),
            other: others
                .find(is_other)
                .unwrap_or_else(|| panic!("{}", preset.name())),
            provider: signing,
            secret,
        }
    }
}

fn is_signed(case: &Case, provider: &Provider) -> bool {
    let (Ok(head), Ok(body)) = (case.head(), case.body()) else {
        return false;
    };
    let verified = provider.verify(&head, &body, case.now());
    matches!(verified, Ok(Verified::Delivery(_)))
}

/// Texts that may be secrets of the same form: a key of another preset, or the text with one character changed,
/// starting in the middle.
fn others(secret: &str) -> Box<dyn Iterator<Item = String> + '_> {
    if secret.starts_with("-----BEGIN") {
        let names = ["circle", "sendgrid", "wise", "wix"];
        let presets = names
            .into_iter()
            .filter_map(|name| presets::by_name(name).ok());
        return Box::new(
            presets.filter_map(|preset| Some(cases_of(preset).first()?.secret.clone())),
        );
    }
    let places = secret.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
    let (before, after): (Vec<_>, Vec<_>) = places.partition(|(at, _)| *at < secret.len() / 2);
    let of = |(from, to): (usize, usize)| format!("{}1{}", &secret[..from], &secret[to..]);
    Box::new(after.into_iter().chain(before).map(of))
}
