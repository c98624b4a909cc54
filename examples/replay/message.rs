//! What is sent, each time.

use std::fmt;

use std::time::SystemTime;

use bytes::Bytes;
use idempotent_webhook::provider::Verified;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider as Preset, Secret};
use reqwest::header::HeaderValue;
use reqwest::{Request, Url};
use serde_json::Value;

use crate::capture::Capture;
use crate::provider::{Provider, has_place, pointer};

pub enum Message {
    /// Signed anew for each request.
    Signed(Box<Signed>),
    /// As it came.
    Captured(Capture),
}

pub struct Signed {
    provider: Provider,
    delivery: TestDelivery,
    id: Id,
}

enum Id {
    /// One for all requests.
    Same(String),
    /// What the body says in another way, such as its digest.
    OfBody,
    /// One for each.
    Fresh,
}

/// Makes of a delivery the same with something wrong.
pub type Fault = fn(&TestDelivery) -> TestDelivery;

/// What there is to sign.
pub struct Unsigned {
    pub provider: Provider,
    pub secret: Vec<u8>,
    /// `None` for that of the body, or a random one.
    pub id: Option<String>,
    pub fresh_ids: bool,
    pub event_type: Option<String>,
    pub body: Vec<u8>,
    /// Where it is sent.
    pub url: Url,
    /// What the provider calls, if that is another host.
    pub public_url: Option<Url>,
    /// It is to be signed long ago.
    pub expired: bool,
}

impl Signed {
    pub fn new(unsigned: Unsigned) -> Result<Self, String> {
        unsigned.check()?;
        let secret = Secret::exact(&*unsigned.secret).map_err(|error| error.to_string())?;
        let base = unsigned.public_base();
        let preset = unsigned
            .provider
            .preset(secret)
            .public_url(base.parse().map_err(|error| format!("{base}: {error}"))?);
        preset.check_secrets().map_err(|error| error.to_string())?;
        let said = unsigned.said_id(&preset);
        let is_asked_for = unsigned.fresh_ids || unsigned.id.is_some();
        let is_written =
            is_asked_for || said.is_none() && has_place(preset.description().delivery_id);
        unsigned.check_writable(&preset, is_written)?;

        let provider = unsigned.provider;
        let mut delivery = TestDelivery::new(&preset)
            .uri(&path_and_query(&unsigned.url))
            .body(unsigned.body);
        if let Some(event_type) = unsigned.event_type {
            delivery = delivery.event_type(event_type);
        }
        let id = if unsigned.fresh_ids {
            Id::Fresh
        } else if !is_written && said.is_none() {
            Id::OfBody
        } else {
            let id = unsigned.id.or(said).unwrap_or_else(random_id);
            if is_written {
                delivery = delivery.id(id.clone());
            }
            Id::Same(id)
        };
        let first = match id {
            Id::Fresh => delivery.clone().id(random_id()),
            Id::Same(_) | Id::OfBody => delivery.clone(),
        };
        let request = first
            .try_request::<Bytes>()
            .map_err(|error| error.to_string())?;
        if unsigned.expired && !signs_time(&preset, request) {
            return Err(format!(
                "{provider} signs no time, so nothing of it expires"
            ));
        }
        Ok(Self {
            provider,
            delivery,
            id,
        })
    }

    pub fn with(mut self, fault: Fault) -> Self {
        self.delivery = fault(&self.delivery);
        self
    }

    fn request(&self, url: &Url) -> Request {
        let (head, body) = match self.id {
            Id::Same(_) | Id::OfBody => self.delivery.request::<Bytes>(),
            Id::Fresh => self.delivery.clone().id(random_id()).request(),
        }
        .into_parts();
        let mut request = Request::new(head.method, url.clone());
        *request.headers_mut() = head.headers;
        *request.body_mut() = Some(body.into());
        request
    }
}

impl Unsigned {
    /// What would otherwise be a 401 that nobody understands, or a panic.
    fn check(&self) -> Result<(), String> {
        for (name, value) in [("id", &self.id), ("event type", &self.event_type)] {
            let is_usable =
                |value: &String| !value.is_empty() && HeaderValue::try_from(value).is_ok();
            if !value.as_ref().is_none_or(is_usable) {
                return Err(format!(
                    "the {name} cannot be sent: it would not fit in a header"
                ));
            }
        }
        Ok(())
    }

    /// The scheme and the host of the URL that is signed, where it is.
    fn public_base(&self) -> String {
        let url = self.public_url.as_ref().unwrap_or(&self.url);
        url.origin().ascii_serialization()
    }

    /// Whether what has to be written into the body can be.
    fn check_writable(&self, preset: &Preset, writes_id: bool) -> Result<(), String> {
        let provider = self.provider;
        let id_is_in_body = pointer(preset.description().delivery_id).is_some();
        let type_is_in_body = preset.description().event_type.and_then(pointer).is_some();
        let written = [
            ("id", writes_id && id_is_in_body),
            ("event type", self.event_type.is_some() && type_is_in_body),
        ];
        match written.into_iter().find(|(_, is_written)| *is_written) {
            Some((what, _)) if !self.json().is_object() => Err(format!(
                "{provider} says the {what} in the body, and this body is not a json object"
            )),
            _ => Ok(()),
        }
    }

    fn said_id(&self, preset: &Preset) -> Option<String> {
        match self
            .json()
            .pointer(&pointer(preset.description().delivery_id)?)?
        {
            Value::Null => None,
            Value::String(id) => Some(id.clone()),
            other => Some(other.to_string()),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Message {
    pub fn request(&self, url: &Url) -> Request {
        match self {
            Self::Signed(signed) => signed.request(url),
            Self::Captured(capture) => capture.request(url),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Captured(_) => f.write_str("a capture"),
            Self::Signed(signed) => {
                let provider = signed.provider;
                match &signed.id {
                    Id::Same(id) => write!(f, "{provider} delivery {id:?}"),
                    Id::OfBody => write!(f, "{provider} delivery"),
                    Id::Fresh => write!(f, "{provider} deliveries with fresh ids"),
                }
            }
        }
    }
}

fn path_and_query(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// Whether a signature of this preset grows old.
fn signs_time(preset: &Preset, request: http::Request<Bytes>) -> bool {
    let (head, body) = request.into_parts();
    let verified = preset.verify(&head, &body, SystemTime::now());
    let delivery = verified.as_ref().ok().and_then(Verified::delivery);
    delivery.is_some_and(|delivery| delivery.signed_at().is_some())
}

fn random_id() -> String {
    format!("replay_{:016x}", fastrand::u64(..))
}
