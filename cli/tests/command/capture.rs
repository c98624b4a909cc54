//! Captured requests.

use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use idempotent_webhook::presets;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret};

use crate::run::{Run, webhook};

/// The time at which the requests of the tests are signed.
pub const AT: u64 = 1_750_000_000;

/// A request, and the provider and secret that verify it.
#[derive(Clone)]
pub struct Captured {
    pub provider: String,
    pub secret: String,
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub public_url: Option<String>,
    pub at: Option<u64>,
}

pub fn preset(name: &str, secret: &str) -> Provider {
    let secret = Secret::exact(secret).unwrap();
    presets::by_name(name).unwrap().provider(secret)
}

impl Captured {
    /// A delivery with this body, as the provider sends it.
    pub fn of(provider: &str, secret: &str, body: &str) -> Self {
        Self::at_url(provider, secret, "https://example.com", "/hooks", body)
    }

    pub fn at_url(provider: &str, secret: &str, base: &str, path: &str, body: &str) -> Self {
        let preset = preset(provider, secret).public_url(base.parse().unwrap());
        let request = TestDelivery::new(&preset)
            .uri(path)
            .body(body)
            .at(SystemTime::UNIX_EPOCH + Duration::from_secs(AT))
            .request::<Bytes>();
        Self {
            provider: provider.to_owned(),
            secret: secret.to_owned(),
            method: request.method().to_string(),
            path: path.to_owned(),
            headers: request.headers().clone(),
            body: request.body().to_vec(),
            public_url: preset.signs_url().then(|| base.to_owned()),
            at: Some(AT),
        }
    }

    pub fn with_secret(&self, secret: &str) -> Self {
        let secret = secret.to_owned();
        Self {
            secret,
            ..self.clone()
        }
    }

    pub fn with_body(&self, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self {
            body,
            ..self.clone()
        }
    }

    pub fn with_path(&self, path: &str) -> Self {
        let path = path.to_owned();
        Self {
            path,
            ..self.clone()
        }
    }

    pub fn with_public_url(&self, url: Option<&str>) -> Self {
        Self {
            public_url: url.map(str::to_owned),
            ..self.clone()
        }
    }

    pub fn with_header(&self, name: &'static str, value: &str) -> Self {
        let mut captured = self.clone();
        let value = HeaderValue::from_str(value).unwrap();
        captured
            .headers
            .insert(HeaderName::from_static(name), value);
        captured
    }

    /// The capture file, as a proxy writes it.
    pub fn text(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        for (name, value) in &self.headers {
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(&self.body);
        text
    }

    #[track_caller]
    pub fn verify(&self) -> Run {
        let at = self.at.map(|at| at.to_string());
        let mut arguments = vec!["verify", &self.provider, "-"];
        if let Some(at) = &at {
            arguments.extend(["--at", at]);
        }
        if let Some(url) = &self.public_url {
            arguments.extend(["--public-url", url]);
        }
        webhook(&self.secret, &arguments, &self.text())
    }
}
