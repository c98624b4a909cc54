//! A request that was captured, to be sent as it is.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request, Url};
use serde::Deserialize;

pub struct Capture {
    method: Method,
    headers: HeaderMap,
    body: Bytes,
}

/// The form that `--help` describes. What else a capture says is passed over.
#[derive(Deserialize)]
struct Form {
    #[serde(default = "post")]
    method: String,
    #[serde(default)]
    headers: BTreeMap<String, Values>,
    body: Option<String>,
    body_base64: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a header is a text or a list of texts")]
enum Values {
    One(String),
    Several(Vec<String>),
}

fn post() -> String {
    Method::POST.to_string()
}

/// Those that belong to the connection it came on, and those that the client writes.
const NOT_SENT: [&str; 11] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Capture {
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let form: Form =
            serde_json::from_slice(json).map_err(|error| format!("not a capture: {error}"))?;
        let body = match (form.body, form.body_base64) {
            (Some(text), None) => text.into(),
            (None, Some(base64)) => BASE64
                .decode(base64)
                .map_err(|error| format!("its body_base64 is not base64: {error}"))?
                .into(),
            _ => return Err("it has to have either body or body_base64".to_owned()),
        };
        let method = Method::from_bytes(form.method.as_bytes())
            .map_err(|_| format!("{:?} is not a method", form.method))?;
        Ok(Self {
            method,
            headers: headers(form.headers)?,
            body,
        })
    }

    pub fn request(&self, url: &Url) -> Request {
        let mut request = Request::new(self.method.clone(), url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(self.body.clone().into());
        request
    }
}

fn headers(captured: BTreeMap<String, Values>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, values) in captured {
        let header = HeaderName::try_from(&name).map_err(|_| format!("{name:?} is no header"))?;
        let values = match values {
            Values::One(value) => vec![value],
            Values::Several(values) => values,
        };
        for value in values {
            let value = HeaderValue::try_from(value)
                .map_err(|_| format!("the value of the header {name:?} cannot be one"))?;
            headers.append(&header, value);
        }
    }
    // `Connection` names more of its kind.
    let named: Vec<HeaderName> = headers
        .get_all("connection")
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in NOT_SENT {
        headers.remove(name);
    }
    Ok(headers)
}
