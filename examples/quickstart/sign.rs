//! The providers' side: events, and requests signed as each provider signs them.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A provider as the sender of its webhooks.
#[derive(Clone)]
pub struct Sender {
    kind: Kind,
    secret: String,
}

#[derive(Clone, Copy)]
enum Kind {
    Stripe,
    GitHub,
    Shopify,
    Acme,
}

/// What goes over the wire, but for the address.
#[derive(Clone)]
pub struct Signed {
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Sender {
    /// All four, with the secrets of the environment or of the demonstration.
    pub fn all() -> Vec<Self> {
        [Kind::Stripe, Kind::GitHub, Kind::Shopify, Kind::Acme]
            .into_iter()
            .map(|kind| {
                let secret = std::env::var(kind.variable());
                Self {
                    kind,
                    secret: secret.unwrap_or_else(|_| kind.demo_secret().to_owned()),
                }
            })
            .collect()
    }

    pub fn provider(&self) -> &'static str {
        match self.kind {
            Kind::Stripe => "stripe",
            Kind::GitHub => "github",
            Kind::Shopify => "shopify",
            Kind::Acme => "acme",
        }
    }

    /// Shows the secret only if it is that of the demonstration.
    pub fn describe_secret(&self) -> String {
        let variable = self.kind.variable();
        if self.secret == self.kind.demo_secret() {
            format!("{variable}={}", self.secret)
        } else {
            format!("{variable} is that of the environment")
        }
    }

    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// An event of this provider; its id is in the body only where the provider has it
    /// there.
    pub fn event(&self, id: &str) -> String {
        match self.kind {
            Kind::Stripe => format!(
                r#"{{"id":"{id}","object":"event","type":"payment_intent.succeeded","livemode":false,"data":{{"object":{{"id":"pi_3Pq","object":"payment_intent","amount":2000,"currency":"eur","status":"succeeded"}}}}}}"#
            ),
            Kind::GitHub => {
                r#"{"ref":"refs/heads/main","repository":{"id":1296269,"full_name":"octocat/hello-world"},"pusher":{"name":"octocat"},"commits":[]}"#.to_owned()
            }
            Kind::Shopify => {
                r#"{"id":820982911946154508,"email":"jon@example.com","total_price":"398.00","currency":"USD","line_items":[]}"#.to_owned()
            }
            Kind::Acme => r#"{"kind":"parcel.delivered"}"#.to_owned(),
        }
    }

    /// Signs a delivery as of `age` ago.
    pub fn sign(&self, id: &str, body: String, age: Duration) -> Signed {
        let id = id.to_owned();
        let mut headers = match self.kind {
            Kind::Stripe => {
                let time = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
                    .saturating_sub(age)
                    .as_secs();
                let mac = hex::encode(self.mac(&format!("{time}.{body}")));
                vec![("Stripe-Signature", format!("t={time},v1={mac}"))]
            }
            Kind::GitHub => vec![
                (
                    "X-Hub-Signature-256",
                    format!("sha256={}", hex::encode(self.mac(&body))),
                ),
                ("X-GitHub-Delivery", id),
                ("X-GitHub-Event", "push".to_owned()),
            ],
            Kind::Shopify => vec![
                ("X-Shopify-Hmac-Sha256", BASE64.encode(self.mac(&body))),
                ("X-Shopify-Webhook-Id", id),
                ("X-Shopify-Topic", "orders/create".to_owned()),
            ],
            Kind::Acme => vec![
                (
                    "X-Acme-Signature",
                    format!("sha256={}", hex::encode(self.mac(&body))),
                ),
                ("X-Acme-Delivery", id),
            ],
        };
        headers.push(("Content-Type", "application/json".to_owned()));
        Signed {
            path: format!("/webhooks/{}", self.provider()),
            headers,
            body,
        }
    }

    fn mac(&self, signed: &str) -> Vec<u8> {
        // HMAC takes keys of any length.
        Hmac::<Sha256>::new_from_slice(self.secret.as_bytes())
            .map(|mut mac| {
                mac.update(signed.as_bytes());
                mac.finalize().into_bytes().to_vec()
            })
            .unwrap_or_default()
    }

    /// A signed request, ready to paste.
    pub fn curl(&self, address: SocketAddr) -> String {
        let id = fresh_id(self.provider());
        let signed = self.sign(&id, self.event(&id), Duration::ZERO);
        let headers: String = signed
            .headers
            .iter()
            .map(|(name, value)| format!(" \\\n  -H '{name}: {value}'"))
            .collect();
        format!(
            "curl -i http://{address}{}{headers} \\\n  -d '{}'",
            signed.path, signed.body
        )
    }
}

impl Kind {
    fn variable(self) -> &'static str {
        match self {
            Self::Stripe => "STRIPE_WEBHOOK_SECRET",
            Self::GitHub => "GITHUB_WEBHOOK_SECRET",
            Self::Shopify => "SHOPIFY_WEBHOOK_SECRET",
            Self::Acme => "ACME_WEBHOOK_SECRET",
        }
    }

    fn demo_secret(self) -> &'static str {
        match self {
            Self::Stripe => "whsec_demo",
            Self::GitHub => "github-demo",
            Self::Shopify => "shopify-demo",
            Self::Acme => "acme-demo",
        }
    }
}

/// An id that no run before this one has used.
pub fn fresh_id(provider: &str) -> String {
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    match provider {
        "stripe" => format!("evt_{nanos:x}"),
        _ => format!("{provider}-{nanos:x}"),
    }
}
