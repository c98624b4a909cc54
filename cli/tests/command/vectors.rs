//! The cases of `tests/vectors`, as captured requests.

use std::collections::BTreeMap;
use std::path::Path;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use crate::capture::Captured;

#[derive(Deserialize)]
struct Case {
    secret: String,
    public_key: Option<String>,
    keys: Option<String>,
    #[serde(default)]
    extra_secrets: Vec<String>,
    headers: BTreeMap<String, String>,
    body_base64: String,
    method: Option<String>,
    url: Option<String>,
    now: Option<u64>,
    expect: String,
    expect_delivery_id: Option<String>,
}

/// The first case with a single secret whose request the provider's preset accepts.
pub fn accepted(provider: &str) -> Option<Captured> {
    accepted_by(provider, |case| case.keys.is_none())
}

/// The first case whose key must be fetched.
pub fn with_fetched_key(provider: &str) -> Option<Captured> {
    accepted_by(provider, |case| case.keys.is_some())
}

fn accepted_by(provider: &str, is_wanted: fn(&Case) -> bool) -> Option<Captured> {
    let file = format!("../tests/vectors/{}.json", provider.replace('-', "_"));
    let read = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let cases: Vec<Case> = serde_json::from_slice(&read).unwrap();
    let is_plain = |case: &&Case| {
        case.expect == "accept"
            && is_wanted(case)
            && case.extra_secrets.is_empty()
            && case.headers.values().all(|value| value.is_ascii())
    };
    let mut plain: Vec<_> = cases.iter().filter(is_plain).collect();
    plain.sort_by_key(|case| case.expect_delivery_id.is_none());
    let case = *plain.first()?;
    let url = case.url.as_deref().unwrap_or("https://example.com/");
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    let path = url[host..]
        .find(['/', '?'])
        .map_or(url.len(), |at| at + host);
    let (base, path) = url.split_at(path);
    let mut headers = HeaderMap::new();
    for (name, value) in &case.headers {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    Some(Captured {
        provider: provider.to_owned(),
        secret: match &case.public_key {
            Some(key) if *key != case.secret => format!("{}:{}", case.secret, key.trim()),
            Some(_) | None => case.secret.clone(),
        },
        method: case.method.clone().unwrap_or_else(|| "POST".to_owned()),
        path: if path.is_empty() { "/" } else { path }.to_owned(),
        headers,
        body: BASE64.decode(&case.body_base64).unwrap(),
        public_url: case.url.is_some().then(|| base.to_owned()),
        at: case.now,
    })
}

/// Providers with different kinds of signatures: hex, hex with a time, base64, Standard Webhooks, signed URLs, forms, a
/// token, Slack's scheme, a public key, and a JSON Web Token.
pub const KINDS: [&str; 11] = [
    "github",
    "stripe",
    "shopify",
    "standard-webhooks",
    "twilio",
    "plivo",
    "mandrill",
    "gitlab",
    "slack",
    "discord",
    "livekit",
];
