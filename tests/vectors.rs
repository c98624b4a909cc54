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
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request};
use idempotent_webhook::presets::Preset;
use idempotent_webhook::provider::keys::KeySource;
use idempotent_webhook::provider::{Handshake, SecretError, Verified, VerifyError};
use idempotent_webhook::signature::Tolerance;
use idempotent_webhook::{Provider, Secret, Secrets, presets, testing};
use serde::Deserialize;

/// A request, and what is to come of it.
#[derive(Deserialize)]
struct Case {
    name: String,
    secret: String,
    /// As the provider shows it, where the scheme has one.
    public_key: Option<String>,
    /// What the address with the provider's keys answers, where they are fetched. Nothing usable, if it is
    /// an error.
    keys: Option<String>,
    /// Further secrets that are valid at the same time.
    #[serde(default)]
    extra_secrets: Vec<String>,
    /// A name in two spellings is a header that the request has twice.
    headers: BTreeMap<String, String>,
    body_base64: String,
    /// POST, if there is none.
    method: Option<String>,
    /// What the provider calls, where the scheme needs it.
    url: Option<String>,
    /// The clock at receipt in Unix seconds; none where the scheme has no clock.
    now: Option<u64>,
    /// In seconds; none where there is no check of the age.
    tolerance: Option<u64>,
    expect: Expect,
    /// Whether the MAC itself is right.
    signature_valid: bool,
    expect_delivery_id: Option<String>,
    expect_event_type: Option<String>,
    /// The case of the same file that has the same delivery id.
    duplicate_of: Option<String>,
    /// What the case is about. It names a handshake as such.
    #[serde(default)]
    why: String,
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

/// What the preset makes of a case.
enum Judgement {
    Agrees,
    Differs(String),
    /// It is no HTTP request.
    NoRequest(String),
}

impl Case {
    fn secrets(&self) -> Result<Secrets, SecretError> {
        // Where the scheme has a public key besides a secret, the preset takes both as one.
        let both = match &self.public_key {
            Some(key) if *key != self.secret => format!("{}:{}", self.secret, key.trim()),
            Some(_) | None => self.secret.clone(),
        };
        let mut secrets = Secrets::new(Secret::new(both)?);
        for secret in &self.extra_secrets {
            secrets = secrets.and(Secret::new(secret.as_str())?);
        }
        Ok(secrets)
    }

    /// The head of the request, as the server receives it.
    fn head(&self) -> Result<Parts, Box<dyn Error>> {
        let mut head = Request::new(()).into_parts().0;
        head.method = match &self.method {
            Some(method) => method.parse()?,
            None => Method::POST,
        };
        if let Some(url) = &self.url {
            head.uri = split_url(url).1.parse()?;
        }
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse()?;
            // From bytes, as from the wire: a value need not be ASCII.
            let value = HeaderValue::from_bytes(value.as_bytes())?;
            head.headers.append(name, value);
        }
        Ok(head)
    }

    fn now(&self) -> SystemTime {
        match self.now {
            Some(now) => SystemTime::UNIX_EPOCH + Duration::from_secs(now),
            None => SystemTime::now(),
        }
    }

    /// The preset with the settings of the case, or why the secrets are refused.
    fn provider(&self, preset: &Preset) -> Result<Provider, SecretError> {
        let mut provider = preset.provider(self.secrets()?);
        if let Some(Ok(keys)) = self.keys.as_deref().map(KeySource::given) {
            provider = provider.keys(keys);
        }
        let tolerance = match self.tolerance {
            None => Tolerance::unlimited(),
            Some(limit) => provider
                .get_tolerance()
                .with_limit(Duration::from_secs(limit)),
        };
        let provider = provider.tolerance(tolerance);
        match self.url.as_deref().map(|url| split_url(url).0.parse()) {
            Some(Ok(base)) => Ok(provider.public_url(base)),
            Some(Err(_)) | None => Ok(provider),
        }
    }

    fn verify(&self, preset: &Preset) -> Result<Outcome, Box<dyn Error>> {
        let head = self.head()?;
        let body = BASE64.decode(&self.body_base64)?;
        Ok(match self.provider(preset) {
            Err(error) => Outcome::SecretRefused(error),
            Ok(provider) => match provider.verify(&head, &body, self.now()) {
                Ok(Verified::Delivery(delivery)) => Outcome::Delivery {
                    id: delivery.id().to_string(),
                    event_type: delivery.event_type().map(str::to_owned),
                },
                Ok(Verified::Handshake(handshake)) => Outcome::Handshake(handshake),
                Ok(verified) => return Err(format!("taken for {verified:?}").into()),
                Err(error) => Outcome::Refused(error),
            },
        })
    }

    fn judge(&self, preset: &Preset, cases: &[Self]) -> Judgement {
        let outcome = match self.verify(preset) {
            Ok(outcome) => outcome,
            Err(error) => return Judgement::NoRequest(format!("no HTTP request: {error}")),
        };
        if let (Some(first), Outcome::Delivery { id, .. }) = (&self.duplicate_of, &outcome) {
            let first = cases.iter().find(|case| case.name == *first);
            if let Some(Ok(Outcome::Delivery { id: first, .. })) =
                first.map(|case| case.verify(preset))
                && first != *id
            {
                return Judgement::Differs(format!("delivery id {id:?}, and not {first:?}"));
            }
        }
        match self.difference(&outcome) {
            None => Judgement::Agrees,
            Some(difference) => Judgement::Differs(difference),
        }
    }

    /// Why the outcome is not the expected one, if it is not.
    fn difference(&self, outcome: &Outcome) -> Option<String> {
        let type_differs = |event_type: Option<&str>| {
            self.expect_event_type.is_some() && self.expect_event_type.as_deref() != event_type
        };
        match (self.expect, outcome) {
            (Expect::Accept, Outcome::Delivery { id, event_type }) => {
                if self.expect_delivery_id.as_ref().is_some_and(|e| e != id) {
                    Some(format!("delivery id {id:?}"))
                } else if type_differs(event_type.as_deref()) {
                    Some(format!("event type {event_type:?}"))
                } else {
                    None
                }
            }
            // Authentic; that it has no id is not what the case is about.
            (Expect::Accept, Outcome::Refused(VerifyError::Identity(_)))
                if self.expect_delivery_id.is_none() && self.expect_event_type.is_none() =>
            {
                None
            }
            (Expect::Accept, Outcome::Handshake(handshake)) => {
                let is_expected = self.why.contains("handshake")
                    || self.expect_delivery_id.is_none()
                        && !type_differs(Some(handshake.event_type()));
                (!is_expected).then(|| format!("taken for a handshake: {handshake:?}"))
            }
            (Expect::Accept, Outcome::Refused(error)) => Some(format!("refused: {error:?}")),
            (Expect::Accept, Outcome::SecretRefused(error)) => Some(format!("refused: {error}")),
            (Expect::Reject, Outcome::Refused(VerifyError::Identity(error)))
                if !self.signature_valid =>
            {
                Some(format!("taken for authentic, and refused because {error}"))
            }
            (Expect::Reject, Outcome::Refused(_) | Outcome::SecretRefused(_)) => None,
            (Expect::Reject, Outcome::Delivery { .. }) => Some("accepted".into()),
            (Expect::Reject, Outcome::Handshake(_)) => Some("accepted as a handshake".into()),
        }
    }
}

/// What became of a request.
enum Outcome {
    Delivery {
        id: String,
        event_type: Option<String>,
    },
    Handshake(Handshake),
    Refused(VerifyError),
    SecretRefused(SecretError),
}

/// The scheme and host of a URL, and its path and query, exactly as written.
fn split_url(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    let path = url.get(host..).and_then(|rest| rest.find(['/', '?']));
    match path.map(|path| url.split_at(host + path)) {
        Some((base, path)) => (base, path),
        None => (url, "/"),
    }
}

/// Prints a line, also if the test succeeds.
fn say(line: std::fmt::Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
}

#[derive(Default)]
struct Tally {
    agree: usize,
    disagree: Vec<String>,
    no_preset: usize,
    reported: Vec<String>,
}

impl Tally {
    fn print(&self, name: &str) {
        say(format_args!(
            "{name}: {} agree, {} disagree, {} no preset, {} reported",
            self.agree,
            self.disagree.len(),
            self.no_preset,
            self.reported.len()
        ));
    }
}

fn check_file(name: &str, cases: &[Case]) -> Tally {
    let mut tally = Tally::default();
    match presets::by_name(&name.replace('_', "-")) {
        None => tally.no_preset = cases.len(),
        Some(preset) => {
            for case in cases {
                let (difference, counts) = match case.judge(preset, cases) {
                    Judgement::Agrees => {
                        tally.agree += 1;
                        continue;
                    }
                    Judgement::Differs(difference) => (
                        difference,
                        !case.ambiguous.is_made() && !case.policy.is_made(),
                    ),
                    Judgement::NoRequest(reason) => (reason, false),
                };
                let difference = format!("{}: {difference}", case.name);
                if counts {
                    tally.disagree.push(difference);
                } else {
                    tally.reported.push(difference);
                }
            }
        }
    }
    tally.print(name);
    for reported in &tally.reported {
        say(format_args!("  reported  {reported}"));
    }
    for disagree in &tally.disagree {
        say(format_args!("  DISAGREE  {disagree}"));
    }
    tally
}

/// The files of a folder: their names, and their cases.
fn read_folder(folder: &Path) -> Vec<(String, Vec<Case>)> {
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
    let read = |path: PathBuf| {
        let cases = serde_json::from_slice(&fs::read(&path).unwrap());
        let cases = cases.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.file_stem().unwrap().to_str().unwrap().into(), cases)
    };
    files.into_iter().map(read).collect()
}

fn check_folder(folder: &Path) -> Tally {
    say(format_args!("{}", folder.display()));
    let mut total = Tally::default();
    for (name, cases) in read_folder(folder) {
        let tally = check_file(&name, &cases);
        total.agree += tally.agree;
        total.no_preset += tally.no_preset;
        total.disagree.extend(tally.disagree);
        total.reported.extend(tally.reported);
    }
    total.print("total");
    total
}

#[test]
fn presets_agree_with_all_cases() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let further = std::env::var_os("WEBHOOK_VECTORS").map(PathBuf::from);
    for folder in [Some(own), further].into_iter().flatten() {
        let total = check_folder(&folder);
        assert!(total.agree > 0);
        assert!(total.disagree.is_empty());
    }
}

/// Each preset is tested without any folder but the project's own.
#[test]
fn each_preset_has_cases_of_its_own() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    for preset in presets::ALL {
        let file = own.join(format!("{}.json", preset.name().replace('-', "_")));
        assert!(file.is_file(), "{} is missing", file.display());
    }
}

/// Otherwise its tolerance would be taken for one without an effect.
#[test]
fn a_preset_says_whether_it_signs_a_time() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    for (name, cases) in read_folder(&own) {
        let Some(preset) = presets::by_name(&name.replace('_', "-")) else {
            continue;
        };
        let signs_time = |case: &Case| {
            let (head, body) = (case.head().ok()?, BASE64.decode(&case.body_base64).ok()?);
            let verified = case.provider(preset).ok()?.verify(&head, &body, case.now());
            verified.ok()?.delivery()?.signed_at()
        };
        assert_eq!(
            preset
                .provider(Secret::new("a secret").unwrap())
                .signs_time(),
            cases.iter().any(|case| signs_time(case).is_some()),
            "{name}"
        );
    }
}

/// What the kit makes of a case that it signs anew.
enum Resigned {
    /// The very headers of the case.
    Same,
    /// Other headers, which the preset accepts: one signature instead of several, for example.
    Verified(String),
    Refused(String),
    /// It would take a private key, for example.
    Unable(String),
}

impl Case {
    /// Signs the body of an authentic delivery, as the kit does. `None` if the case is none.
    fn sign(&self, preset: &Preset) -> Option<Resigned> {
        if self.expect != Expect::Accept || self.why.contains("handshake") {
            return None;
        }
        let provider = self.provider(preset).ok()?;
        let (head, body) = (self.head().ok()?, BASE64.decode(&self.body_base64).ok()?);
        let Ok(Verified::Delivery(verified)) = provider.verify(&head, &body, self.now()) else {
            return None;
        };
        // The right one of several, and what was signed besides it.
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

/// The kit signs what the preset verifies, and as the provider does.
#[test]
fn the_kit_signs_as_the_cases_are_signed() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let further = std::env::var_os("WEBHOOK_VECTORS").map(PathBuf::from);
    for folder in [Some(own), further].into_iter().flatten() {
        for (name, cases) in read_folder(&folder) {
            let Some(preset) = presets::by_name(&name.replace('_', "-")) else {
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
