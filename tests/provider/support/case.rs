use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::engine::general_purpose::STANDARD as BASE64;
use base64::{DecodeError, Engine};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request};
use idempotent_webhook::presets::Preset;
use idempotent_webhook::provider::SecretError;
use idempotent_webhook::provider::keys::KeySource;
use idempotent_webhook::provider::signature::Tolerance;
use idempotent_webhook::{Provider, Secret, Secrets};
use serde::Deserialize;

/// A request and its expected result.
#[derive(Deserialize)]
pub struct Case {
    pub name: String,
    pub secret: String,
    /// The public key as the provider shows it, if the scheme has one.
    public_key: Option<String>,
    /// The answer at the address of the provider's keys, if they are fetched. If this is an error, there is no usable
    /// answer.
    pub keys: Option<String>,
    /// Further secrets that are valid at the same time.
    #[serde(default)]
    pub extra_secrets: Vec<String>,
    /// If a name occurs in two spellings, the request has the header twice.
    pub headers: BTreeMap<String, String>,
    body_base64: String,
    /// POST if not set.
    method: Option<String>,
    /// The URL that the provider calls, if the scheme needs it.
    url: Option<String>,
    /// The time of receipt in Unix seconds. Not set if the scheme has no clock.
    now: Option<u64>,
    /// In seconds. Not set if the age is not checked.
    tolerance: Option<u64>,
    pub expect: Expect,
    /// Whether the MAC itself is right.
    pub signature_valid: bool,
    pub expect_delivery_id: Option<String>,
    pub expect_event_type: Option<String>,
    /// The event type with its action.
    pub expect_event_name: Option<String>,
    /// The case of the same file that has the same delivery id.
    pub duplicate_of: Option<String>,
    /// Not set if we have signed the case ourselves.
    pub origin: Option<String>,
    /// What the case is about. If the case is a handshake, the text says so.
    #[serde(default)]
    pub why: String,
    /// Whether official libraries disagree about this case.
    #[serde(default)]
    pub ambiguous: Remark,
    /// Whether a stricter or laxer verifier may have another result, for a stated reason.
    #[serde(default)]
    pub policy: Remark,
}

/// A flag that is set by `true`, or by a text with the reason.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Remark {
    Made(bool),
    Reason(String),
}

impl Default for Remark {
    fn default() -> Self {
        Self::Made(false)
    }
}

impl Remark {
    pub fn is_made(&self) -> bool {
        match self {
            Self::Made(made) => *made,
            Self::Reason(reason) => !reason.is_empty(),
        }
    }
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    Accept,
    Reject,
}

impl Case {
    fn secrets(&self) -> Result<Secrets, SecretError> {
        // If the scheme has a public key in addition to a secret, the preset takes both as one value.
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

    pub fn is_to_be_accepted(&self) -> bool {
        self.expect == Expect::Accept
    }

    /// The head of the request, as the server receives it.
    pub fn head(&self) -> Result<Parts, Box<dyn Error>> {
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
            // The value is made from bytes, as it comes over the network, because it need not be ASCII.
            let value = HeaderValue::from_bytes(value.as_bytes())?;
            head.headers.append(name, value);
        }
        Ok(head)
    }

    pub fn body(&self) -> Result<Vec<u8>, DecodeError> {
        BASE64.decode(&self.body_base64)
    }

    /// When the request is received.
    pub fn now(&self) -> SystemTime {
        match self.now {
            Some(now) => SystemTime::UNIX_EPOCH + Duration::from_secs(now),
            None => SystemTime::now(),
        }
    }

    /// The preset with the settings of the case, or why the secrets are refused.
    pub fn provider(&self, preset: &Preset) -> Result<Provider, SecretError> {
        let mut provider = preset.provider(self.secrets()?);
        if let Some(Ok(keys)) = self.keys.as_deref().map(KeySource::given) {
            provider = provider.keys(keys);
        }
        let tolerance = match self.tolerance {
            None => Tolerance::unlimited(),
            Some(limit) => provider
                .description()
                .tolerance
                .with_limit(Duration::from_secs(limit)),
        };
        let provider = provider.tolerance(tolerance);
        match self.url.as_deref().map(|url| split_url(url).0.parse()) {
            Some(Ok(base)) => Ok(provider.public_url(base)),
            Some(Err(_)) | None => Ok(provider),
        }
    }
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

/// The folder with the cases of this project. The crate `fuzz`, in a folder of this project, uses it too.
pub fn own_folder() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = crates.map(|folder| folder.join("tests/vectors"));
    folders.find(|folder| folder.is_dir()).unwrap()
}

/// The file with this project's cases of a preset.
pub fn file_of(preset: &Preset) -> PathBuf {
    own_folder().join(format!("{}.json", preset.name().replace('-', "_")))
}

/// This project's cases of a preset.
pub fn cases_of(preset: &Preset) -> Vec<Case> {
    read_file(&file_of(preset))
}

fn read_file(path: &Path) -> Vec<Case> {
    let read = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&read).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder: their names, and their cases.
pub fn read_folder(folder: &Path) -> Vec<(String, Vec<Case>)> {
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
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        (name.to_owned(), read_file(path))
    };
    files.iter().map(read).collect()
}
