//! A kit to test webhook handlers with: requests signed as each provider signs them, and an
//! assertion that a handler is idempotent. Feature `testing`.
//!
//! A test of a handler:
//!
//! ```
//! use axum::Router;
//! use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
//! use sqlx::PgPool;
//!
//! /// With the application's router, whose secret is `whsec_test`, and an empty database with
//! /// its tables and `idempotent_webhook::migrate`.
//! async fn a_payment_is_booked_once(app: Router, pool: PgPool) {
//!     let paid = TestDelivery::stripe("whsec_test")
//!         .uri("/webhooks/stripe")
//!         .event_type("invoice.paid")
//!         .body(r#"{"data":{"object":{"id":"in_1","amount_paid":4200}}}"#);
//!
//!     assert_idempotent(&app, &paid, async || {
//!         let payments: i64 = sqlx::query_scalar("select count(*) from payments")
//!             .fetch_one(&pool)
//!             .await
//!             .unwrap();
//!         payments
//!     })
//!     .await;
//! }
//! ```

mod assertion;
mod signer;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use serde_json::Value;

use signer::Signer;

pub use assertion::assert_idempotent;

/// A delivery as a provider sends it, to be turned into any number of requests.
///
/// The id, the event type and the time are put where the provider has them: in a header, or
/// in the body. A [`body`](Self::body) of the test's own is sent to the byte, unless it is a
/// JSON object in which the provider would have said more: an id if there is none, an id or an
/// event type that was set, or the time.
///
/// ```
/// use idempotent_webhook::testing::TestDelivery;
///
/// let push = TestDelivery::github("a secret").event_type("push").body(r#"{"ref":"main"}"#);
/// let first: http::Request<http_body_util::Full<bytes::Bytes>> = push.request();
/// let forged: http::Request<http_body_util::Full<bytes::Bytes>> = push.tampered().request();
/// assert_eq!(first.headers()["x-github-event"], "push");
/// assert_eq!(first.headers()["x-github-delivery"], forged.headers()["x-github-delivery"]);
/// ```
#[derive(Clone, Debug)]
pub struct TestDelivery {
    signer: Signer,
    secret: Vec<u8>,
    uri: Uri,
    id: Option<String>,
    event_type: Option<String>,
    body: Option<Bytes>,
    /// The age at the moment of sending, or a fixed time.
    at: At,
    fault: Fault,
}

#[derive(Clone, Copy, Debug)]
enum At {
    Now,
    Ago(Duration),
    Time(SystemTime),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Tampered,
    Unsigned,
}

const ID: &str = "delivery-1";
const EVENT_TYPE: &str = "test";

/// Older than any preset tolerates.
const EXPIRED: Duration = Duration::from_secs(24 * 60 * 60);

impl TestDelivery {
    fn new(signer: Signer, secret: impl Into<Vec<u8>>) -> Self {
        Self {
            signer,
            secret: secret.into(),
            uri: Uri::from_static("/"),
            id: None,
            event_type: None,
            body: None,
            at: At::Now,
            fault: Fault::None,
        }
    }

    /// For [`Provider::stripe`](crate::Provider::stripe).
    pub fn stripe(secret: impl Into<Vec<u8>>) -> Self {
        Self::new(Signer::Stripe, secret)
    }

    /// For [`Provider::github`](crate::Provider::github).
    pub fn github(secret: impl Into<Vec<u8>>) -> Self {
        Self::new(Signer::Github, secret)
    }

    /// For [`Provider::shopify`](crate::Provider::shopify).
    pub fn shopify(secret: impl Into<Vec<u8>>) -> Self {
        Self::new(Signer::Shopify, secret)
    }

    /// For [`Provider::slack`](crate::Provider::slack).
    pub fn slack(secret: impl Into<Vec<u8>>) -> Self {
        Self::new(Signer::Slack, secret)
    }

    /// For [`Provider::linear`](crate::Provider::linear).
    pub fn linear(secret: impl Into<Vec<u8>>) -> Self {
        Self::new(Signer::Linear, secret)
    }

    /// For [`Provider::standard_webhooks`](crate::Provider::standard_webhooks), with a
    /// symmetric secret (`whsec_…`).
    pub fn standard_webhooks(secret: impl Into<Vec<u8>>) -> Self {
        Self::new(Signer::StandardWebhooks, secret)
    }

    /// For [`Provider::svix`](crate::Provider::svix), with a symmetric secret (`whsec_…`).
    pub fn svix(secret: impl Into<Vec<u8>>) -> Self {
        Self::new(Signer::Svix, secret)
    }

    /// For [`Provider::awardee`](crate::Provider::awardee).
    pub fn awardee(secret: impl Into<Vec<u8>>) -> Self {
        Self::new(Signer::Awardee, secret)
    }

    /// Where the request goes. Default: `/`.
    ///
    /// # Panics
    ///
    /// If it is not a URI.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test names it, and wants to know")]
    pub fn uri(mut self, uri: &str) -> Self {
        self.uri = uri.parse().expect("a URI");
        self
    }

    /// The delivery id. Default: what the body says, or `delivery-1`.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The event type. Default: what the body says, or `test`.
    #[must_use]
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = Some(event_type.into());
        self
    }

    /// The body. Default: a JSON object with what the provider puts there.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// When the provider signs it. Default: at the moment of [`request`](Self::request).
    #[must_use]
    pub fn at(mut self, time: SystemTime) -> Self {
        self.at = At::Time(time);
        self
    }

    /// Signed longer ago than the provider's tolerance, where it signs a time.
    #[must_use]
    pub fn expired(&self) -> Self {
        Self {
            at: At::Ago(EXPIRED),
            ..self.clone()
        }
    }

    /// Another body than the one that was signed.
    #[must_use]
    pub fn tampered(&self) -> Self {
        Self {
            fault: Fault::Tampered,
            ..self.clone()
        }
    }

    /// Without the signature.
    #[must_use]
    pub fn unsigned(&self) -> Self {
        Self {
            fault: Fault::Unsigned,
            ..self.clone()
        }
    }

    /// A POST request of this delivery, as axum's `Body` or any other body that can be made
    /// from bytes.
    ///
    /// Calling it again is a retry: the same delivery, signed anew.
    ///
    /// # Panics
    ///
    /// If the id or the event type belongs in a header and cannot stand there.
    #[expect(clippy::expect_used, reason = "a test names them, and wants to know")]
    pub fn request<B: From<Bytes>>(&self) -> Request<B> {
        let time = match self.at {
            At::Now => SystemTime::now(),
            At::Ago(age) => SystemTime::now() - age,
            At::Time(time) => time,
        };
        let mut body = self.body_at(time);
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static("content-type"),
            HeaderValue::from_static("application/json"),
        );
        let sent = signer::Sent {
            secret: &self.secret,
            id: self.sent_id(),
            event_type: self.event_type.as_deref().unwrap_or(EVENT_TYPE),
            body: &body,
            time,
        };
        for (name, value) in self.signer.headers(&sent) {
            if !(self.fault == Fault::Unsigned && self.signer.is_signature(name)) {
                let value = HeaderValue::try_from(value).expect("a header value");
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        if self.fault == Fault::Tampered {
            // White space, so that it is still JSON.
            body = [&*body, b" "].concat().into();
        }
        let mut request = Request::new(B::from(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        request
    }

    /// The id in a header, and in a body that does not say another.
    fn sent_id(&self) -> &str {
        self.id.as_deref().unwrap_or(ID)
    }

    /// The body, with what the provider puts there.
    fn body_at(&self, time: SystemTime) -> Bytes {
        let given = self.body.as_deref().unwrap_or(b"{}");
        let as_it_is = || Bytes::copy_from_slice(given);
        let Ok(Value::Object(object)) = serde_json::from_slice(given) else {
            return as_it_is();
        };
        let event_type = match (&self.event_type, &self.body) {
            (Some(set), _) => Some(&**set),
            (None, Some(_)) => None,
            (None, None) => Some(EVENT_TYPE),
        };
        let id = if self.signer.lacks_id(&object) {
            Some(self.sent_id())
        } else {
            self.id.as_deref()
        };
        let mut filled = object.clone();
        self.signer.fill(&mut filled, id, event_type, time);
        if filled == object {
            return as_it_is();
        }
        Value::Object(filled).to_string().into()
    }
}
