//! What is sent, each time.

use std::fmt;

use bytes::Bytes;
use idempotent_webhook::Secret;
use idempotent_webhook::testing::TestDelivery;
use reqwest::header::HeaderValue;
use reqwest::{Request, Url};
use serde_json::Value;

use crate::capture::Capture;
use crate::provider::Provider;

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
}

impl Signed {
    pub fn new(unsigned: Unsigned) -> Result<Self, String> {
        unsigned.check()?;
        let secret = Secret::exact(&*unsigned.secret).map_err(|error| error.to_string())?;
        let preset = unsigned.provider.preset(secret);
        preset.check_secrets().map_err(|error| error.to_string())?;
        let said = unsigned.said_id();
        let is_written = unsigned.fresh_ids || unsigned.id.is_some() || said.is_none();
        unsigned.check_writable(is_written)?;

        let provider = unsigned.provider;
        let mut delivery = TestDelivery::new(&preset).body(unsigned.body);
        if let Some(event_type) = unsigned.event_type {
            delivery = delivery.event_type(event_type);
        }
        let id = if unsigned.fresh_ids {
            Id::Fresh
        } else {
            let id = unsigned.id.or(said).unwrap_or_else(random_id);
            if is_written {
                delivery = delivery.id(id.clone());
            }
            Id::Same(id)
        };
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
            Id::Same(_) => self.delivery.request::<Bytes>(),
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

    /// Whether what has to be written into the body can be.
    fn check_writable(&self, writes_id: bool) -> Result<(), String> {
        let provider = self.provider;
        let written = [
            ("id", writes_id && provider.id_member().is_some()),
            (
                "event type",
                self.event_type.is_some() && provider.says_type_in_body(),
            ),
            ("time", provider.says_time_in_body()),
        ];
        match written.into_iter().find(|(_, is_written)| *is_written) {
            Some((what, _)) if !self.json().is_object() => Err(format!(
                "{provider} says the {what} in the body, and this body is not a json object"
            )),
            _ => Ok(()),
        }
    }

    fn said_id(&self) -> Option<String> {
        match self.json().get(self.provider.id_member()?)? {
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
                    Id::Fresh => write!(f, "{provider} deliveries with fresh ids"),
                }
            }
        }
    }
}

fn random_id() -> String {
    format!("replay_{:016x}", fastrand::u64(..))
}
