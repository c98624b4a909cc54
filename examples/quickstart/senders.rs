//! The providers of the demonstration. The application verifies their deliveries, and the tour
//! sends deliveries in their place.

use std::error::Error;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::{HeaderName, Request};
use idempotent_webhook::provider::signature::Hmac;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret, Source, presets};

/// A provider, and what it sends.
#[derive(Clone)]
pub struct Sender {
    provider: Provider,
    /// The environment variable with the secret.
    variable: &'static str,
    demo_secret: &'static str,
    is_demo_secret: bool,
    event_type: Option<&'static str>,
    /// The body, without an id.
    event: &'static str,
}

impl Sender {
    /// All four providers, with secrets from the environment or, if a secret is not set there, the
    /// secret of the demonstration.
    pub fn all() -> Result<Vec<Self>, Box<dyn Error>> {
        Ok(vec![
            Self::new(
                presets::stripe,
                "STRIPE_WEBHOOK_SECRET",
                "whsec_demo",
                Some("payment_intent.succeeded"),
                r#"{"object":"event","livemode":false,"data":{"object":{"id":"pi_3Pq","object":"payment_intent","amount":2000,"currency":"eur","status":"succeeded"}}}"#,
            )?,
            Self::new(
                presets::github,
                "GITHUB_WEBHOOK_SECRET",
                "github-demo",
                Some("push"),
                r#"{"ref":"refs/heads/main","repository":{"id":1296269,"full_name":"octocat/hello-world"},"pusher":{"name":"octocat"},"commits":[]}"#,
            )?,
            Self::new(
                presets::shopify,
                "SHOPIFY_WEBHOOK_SECRET",
                "shopify-demo",
                Some("orders/create"),
                r#"{"id":820982911946154508,"email":"jon@example.com","total_price":"398.00","currency":"USD","line_items":[]}"#,
            )?,
            Self::new(
                acme,
                "ACME_WEBHOOK_SECRET",
                "acme-demo",
                None,
                r#"{"kind":"parcel.delivered"}"#,
            )?,
        ])
    }

    fn new(
        provider: fn(Secret) -> Provider,
        variable: &'static str,
        demo_secret: &'static str,
        event_type: Option<&'static str>,
        event: &'static str,
    ) -> Result<Self, Box<dyn Error>> {
        let secret = std::env::var(variable).unwrap_or_else(|_| demo_secret.to_owned());
        let is_demo_secret = secret == demo_secret;
        let secret = Secret::new(secret).map_err(|error| format!("{variable}: {error}"))?;
        Ok(Self {
            provider: provider(secret),
            variable,
            demo_secret,
            is_demo_secret,
            event_type,
            event,
        })
    }

    pub fn name(&self) -> &str {
        self.provider.name()
    }

    pub fn provider(&self) -> Provider {
        self.provider.clone()
    }

    /// Describes where the secret comes from. Shows the secret itself only if it is the secret of
    /// the demonstration.
    pub fn describe_secret(&self) -> String {
        let variable = self.variable;
        if self.is_demo_secret {
            format!("{variable}={}", self.demo_secret)
        } else {
            format!("{variable} comes from the environment")
        }
    }

    /// A delivery of an event.
    pub fn delivery(&self, id: &str) -> TestDelivery {
        let delivery = TestDelivery::new(&self.provider)
            .uri(&format!("/webhooks/{}", self.name()))
            .id(id)
            .body(self.event);
        match self.event_type {
            Some(event_type) => delivery.event_type(event_type),
            None => delivery,
        }
    }

    /// An id that no earlier run has used.
    pub fn fresh_id(&self) -> String {
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        match self.name() {
            "stripe" => format!("evt_{nanos:x}"),
            name => format!("{name}-{nanos:x}"),
        }
    }

    /// A signed request, ready to paste.
    pub fn curl(&self, address: SocketAddr) -> String {
        let request: Request<Bytes> = self.delivery(&self.fresh_id()).request();
        let headers: String = request
            .headers()
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                format!(" \\\n  -H '{name}: {value}'")
            })
            .collect();
        let body = String::from_utf8_lossy(request.body());
        format!(
            "curl -i http://{address}{}{headers} \\\n  -d '{body}'",
            request.uri()
        )
    }
}

/// A provider without a preset.
fn acme(secret: Secret) -> Provider {
    Provider::custom("acme")
        .signature(
            Hmac::hex(HeaderName::from_static("x-acme-signature")).prefix("sha256="),
            secret,
        )
        .delivery_id(Source::header(HeaderName::from_static("x-acme-delivery")))
}
