//! How each provider signs, written down apart from how it is verified.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use crate::crypto::hmac_sha256;

#[derive(Clone, Copy, Debug)]
pub(super) enum Signer {
    Stripe,
    Github,
    Shopify,
    Slack,
    Linear,
    StandardWebhooks,
    Svix,
    Awardee,
}

/// What goes out.
pub(super) struct Sent<'a> {
    pub(super) secret: &'a [u8],
    pub(super) id: &'a str,
    pub(super) event_type: &'a str,
    pub(super) body: &'a [u8],
    pub(super) time: SystemTime,
}

impl Signer {
    /// Says in the body what the provider says there.
    pub(super) fn fill(
        self,
        body: &mut Map<String, Value>,
        id: Option<&str>,
        event_type: Option<&str>,
        time: SystemTime,
    ) {
        let mut set = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), json!(value));
            }
        };
        match self {
            Self::Stripe => {
                set("id", id);
                set("type", event_type);
            }
            // A handshake has no id.
            Self::Slack if event_type == Some("url_verification") => set("type", event_type),
            Self::Slack => {
                set("event_id", id);
                if let Some(event_type) = event_type {
                    set("type", Some("event_callback"));
                    let event = body.entry("event").or_insert_with(|| json!({}));
                    if let Value::Object(event) = event {
                        event.insert("type".to_owned(), json!(event_type));
                    }
                }
            }
            Self::Linear => {
                let millis = u64::try_from(since_epoch(time).as_millis()).unwrap_or(u64::MAX);
                body.insert("webhookTimestamp".to_owned(), json!(millis));
            }
            Self::StandardWebhooks | Self::Svix => set("type", event_type),
            Self::Github | Self::Shopify | Self::Awardee => {}
        }
    }

    /// Whether the provider would have said an id in this body.
    pub(super) fn lacks_id(self, body: &Map<String, Value>) -> bool {
        match self {
            Self::Stripe => !body.contains_key("id"),
            // A handshake has no id.
            Self::Slack => {
                !body.contains_key("event_id")
                    && body.get("type") != Some(&json!("url_verification"))
            }
            Self::Github
            | Self::Shopify
            | Self::Linear
            | Self::StandardWebhooks
            | Self::Svix
            | Self::Awardee => false,
        }
    }

    /// The headers that the provider sets.
    pub(super) fn headers(self, sent: &Sent<'_>) -> Vec<(&'static str, String)> {
        let Sent { secret, body, .. } = *sent;
        let id = sent.id.to_owned();
        let event_type = sent.event_type.to_owned();
        let time = since_epoch(sent.time).as_secs().to_string();
        let timed = || {
            let mac = hmac_sha256(secret, [time.as_bytes(), b".", body]);
            format!("t={time},v1={}", hex::encode(mac))
        };
        let standard = || {
            let base64 = secret.strip_prefix(b"whsec_").unwrap_or(secret);
            // One that is not base64 signs nothing that anybody accepts.
            let key = BASE64.decode(base64).unwrap_or_default();
            let parts = [id.as_bytes(), b".", time.as_bytes(), b".", body];
            format!("v1,{}", BASE64.encode(hmac_sha256(&key, parts)))
        };
        match self {
            Self::Stripe => vec![("stripe-signature", timed())],
            Self::Github => vec![
                (
                    "x-hub-signature-256",
                    format!("sha256={}", hex::encode(hmac_sha256(secret, [body]))),
                ),
                ("x-github-delivery", id),
                ("x-github-event", event_type),
            ],
            Self::Shopify => vec![
                (
                    "x-shopify-hmac-sha256",
                    BASE64.encode(hmac_sha256(secret, [body])),
                ),
                ("x-shopify-webhook-id", id),
                ("x-shopify-topic", event_type),
            ],
            Self::Slack => {
                let mac = hmac_sha256(secret, [b"v0:", time.as_bytes(), b":", body]);
                vec![
                    ("x-slack-signature", format!("v0={}", hex::encode(mac))),
                    ("x-slack-request-timestamp", time),
                ]
            }
            Self::Linear => vec![
                ("linear-signature", hex::encode(hmac_sha256(secret, [body]))),
                ("linear-delivery", id),
                ("linear-event", event_type),
            ],
            Self::StandardWebhooks => vec![
                ("webhook-signature", standard()),
                ("webhook-id", id),
                ("webhook-timestamp", time),
            ],
            Self::Svix => vec![
                ("svix-signature", standard()),
                ("svix-id", id),
                ("svix-timestamp", time),
            ],
            Self::Awardee => vec![
                ("x-awardee-signature", timed()),
                ("x-awardee-timestamp", time),
                ("x-awardee-delivery", id),
                ("x-awardee-event", event_type),
            ],
        }
    }

    /// Whether a header is the one with the signature.
    pub(super) fn is_signature(self, header: &str) -> bool {
        header.contains("signature") || header.contains("hmac")
    }
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
