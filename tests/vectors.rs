//! Independent verification cases: those in `tests/vectors/`, and those of the folder
//! that `WEBHOOK_VECTORS` names.
//!
//! A file is a JSON list of cases for the provider that it is named after.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request};
use idempotent_webhook::provider::{SecretError, Verified, VerifyError};
use idempotent_webhook::signature::Tolerance;
use idempotent_webhook::{Provider, Secret, Secrets, presets};
use serde::Deserialize;

/// A request, and what is to come of it.
#[derive(Deserialize)]
struct Case {
    name: String,
    secret: String,
    /// Further secrets that are valid at the same time.
    #[serde(default)]
    extra_secrets: Vec<String>,
    headers: BTreeMap<String, String>,
    body_base64: String,
    /// The clock at receipt in Unix seconds; none where the scheme has no clock.
    now: Option<u64>,
    /// In seconds; none where there is no check of the age.
    tolerance: Option<u64>,
    expect: Expect,
    /// Whether the MAC itself is right.
    signature_valid: bool,
    expect_delivery_id: Option<String>,
    expect_event_type: Option<String>,
    /// Official libraries disagree.
    #[serde(default)]
    ambiguous: Remark,
    /// A stricter or laxer verifier may differ for a stated reason.
    #[serde(default)]
    policy: Remark,
}

/// Made by `true`, or by the reason itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Remark {
    Made(bool),
    Reason(String),
}

impl Default for Remark {
    fn default() -> Self {
        Self::Made(false)
    }
}

impl Remark {
    fn is_made(&self) -> bool {
        match self {
            Self::Made(made) => *made,
            Self::Reason(reason) => !reason.is_empty(),
        }
    }
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Accept,
    Reject,
}

/// The preset that a file of cases is for.
fn preset(name: &str) -> Option<fn(Secrets) -> Provider> {
    match name {
        "stripe" => Some(presets::stripe),
        "github" => Some(presets::github),
        "shopify" => Some(presets::shopify),
        "slack" => Some(presets::slack),
        "linear" => Some(presets::linear),
        "standard_webhooks" => Some(presets::standard_webhooks),
        "svix" => Some(presets::svix),
        "awardee" => Some(presets::awardee),
        _ => None,
    }
}

impl Case {
    fn secrets(&self) -> Result<Secrets, SecretError> {
        let mut secrets = Secrets::new(Secret::new(self.secret.as_str())?);
        for secret in &self.extra_secrets {
            secrets = secrets.and(Secret::new(secret.as_str())?);
        }
        Ok(secrets)
    }

    fn head(&self) -> Parts {
        let mut head = Request::new(()).into_parts().0;
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().unwrap();
            // From bytes, as from the wire: a value need not be ASCII.
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            head.headers.append(name, value);
        }
        head
    }

    /// The tolerance of the case, to the sides that the provider's SDKs check.
    fn tolerance(&self, provider: &str) -> Tolerance {
        match (self.tolerance.map(Duration::from_secs), provider) {
            (None, _) => Tolerance::unlimited(),
            (Some(limit), "stripe") => Tolerance::past_only(limit),
            (Some(limit), _) => Tolerance::two_sided(limit),
        }
    }

    fn verify(&self, provider: &str, preset: Provider) -> Result<Verified, VerifyError> {
        let now = match self.now {
            Some(now) => SystemTime::UNIX_EPOCH + Duration::from_secs(now),
            None => SystemTime::now(),
        };
        let body = BASE64.decode(&self.body_base64).unwrap();
        preset
            .tolerance(self.tolerance(provider))
            .verify(&self.head(), &body, now)
    }

    /// Why the outcome is not the expected one, if it is not.
    fn judge(&self, outcome: &Result<Verified, VerifyError>) -> Option<String> {
        match (self.expect, outcome) {
            (Expect::Accept, Ok(Verified::Delivery(verified))) => {
                let id = verified.id().as_str();
                let event_type = verified.event_type();
                if self.expect_delivery_id.as_deref().is_some_and(|e| e != id) {
                    Some(format!("delivery id {id:?}"))
                } else if self.expect_event_type.is_some()
                    && self.expect_event_type.as_deref() != event_type
                {
                    Some(format!("event type {event_type:?}"))
                } else {
                    None
                }
            }
            // Authentic; that it has no id is not what the case is about.
            (Expect::Accept, Err(VerifyError::Identity(_)))
                if self.expect_delivery_id.is_none() && self.expect_event_type.is_none() =>
            {
                None
            }
            (Expect::Accept, Ok(Verified::Handshake(handshake))) => {
                let is_expected = self.expect_delivery_id.is_none()
                    && self.expect_event_type.as_deref() == Some(handshake.event_type());
                (!is_expected).then(|| format!("taken for a handshake: {handshake:?}"))
            }
            (Expect::Accept, Ok(verified)) => Some(format!("taken for {verified:?}")),
            (Expect::Accept, Err(error)) => Some(format!("refused: {error:?}")),
            (Expect::Reject, Err(VerifyError::Identity(error))) if !self.signature_valid => {
                Some(format!("taken for authentic, and refused because {error}"))
            }
            (Expect::Reject, Err(_)) => None,
            (Expect::Reject, Ok(_)) => Some("accepted".into()),
        }
    }
}

#[derive(Default)]
struct Tally {
    agree: u32,
    disagree: Vec<String>,
    no_preset: u32,
    reported: Vec<String>,
}

fn check_file(path: &Path) -> Tally {
    let provider = path.file_stem().unwrap().to_str().unwrap();
    let cases: Vec<Case> = serde_json::from_slice(&fs::read(path).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut tally = Tally::default();
    for case in cases {
        let Some(preset) = preset(provider) else {
            tally.no_preset += 1;
            continue;
        };
        let Ok(secrets) = case.secrets() else {
            match case.expect {
                Expect::Reject => tally.agree += 1,
                Expect::Accept => tally.disagree.push(format!("{}: blank secret", case.name)),
            }
            continue;
        };
        match case.judge(&case.verify(provider, preset(secrets))) {
            None => tally.agree += 1,
            Some(why) => {
                let difference = format!("{}: {why}", case.name);
                if case.ambiguous.is_made() || case.policy.is_made() {
                    tally.reported.push(difference);
                } else {
                    tally.disagree.push(difference);
                }
            }
        }
    }
    println!(
        "{provider}: {} agree, {} disagree, {} no preset, {} reported",
        tally.agree,
        tally.disagree.len(),
        tally.no_preset,
        tally.reported.len()
    );
    for reported in &tally.reported {
        println!("  reported  {reported}");
    }
    for disagree in &tally.disagree {
        println!("  DISAGREE  {disagree}");
    }
    tally
}

fn check_folder(folder: &Path) -> Vec<Tally> {
    println!("{}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", folder.display());
    files.iter().map(|file| check_file(file)).collect()
}

#[test]
fn presets_agree_with_all_cases() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let further = std::env::var_os("WEBHOOK_VECTORS").map(PathBuf::from);
    for folder in [Some(own), further].into_iter().flatten() {
        let tallies = check_folder(&folder);
        assert!(tallies.iter().any(|tally| tally.agree > 0));
        assert!(tallies.iter().all(|tally| tally.disagree.is_empty()));
    }
}
