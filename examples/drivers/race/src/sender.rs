//! A sender that behaves like Stripe towards the program.

use std::time::Duration;

use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Secret, presets};

use crate::SECRET;

/// How long a request may take. This is longer than a program waits for another process. The
/// deadline also ends a request that the client has lost.
const DEADLINE: Duration = Duration::from_secs(20);

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
    /// Returns the status of the answer, or `None` if there is none.
    pub async fn send(&self, to: &str, delivery: &TestDelivery) -> Option<u16> {
        let (head, body) = delivery.request::<Vec<u8>>().into_parts();
        let request = self.0.post(format!("{to}/webhooks/stripe"));
        let sent = request
            .timeout(DEADLINE)
            .headers(head.headers)
            .body(body)
            .send()
            .await;
        sent.ok().map(|response| response.status().as_u16())
    }
}
