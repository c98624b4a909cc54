//! Stripe, as a program sees it.

use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Secret, presets};

use crate::SECRET;

/// The event of a payment.
pub fn delivery(id: &str) -> TestDelivery {
    let secret = Secret::new(SECRET).expect("a usable secret");
    TestDelivery::new(&presets::stripe(secret))
        .id(id)
        .event_type("payment_intent.succeeded")
        .body(r#"{"object":"event","data":{"object":{"amount":4200}}}"#)
}

#[derive(Clone, Default)]
pub struct Sender(reqwest::Client);

impl Sender {
    /// The status of the answer, or `None` if there is none.
    pub async fn send(&self, to: &str, delivery: &TestDelivery) -> Option<u16> {
        let (head, body) = delivery.request::<Vec<u8>>().into_parts();
        let request = self.0.post(format!("{to}/webhooks/stripe"));
        let sent = request.headers(head.headers).body(body).send().await;
        sent.ok().map(|response| response.status().as_u16())
    }
}
