//! A provider: sends a delivery until it is acknowledged.

use std::net::SocketAddr;
use std::time::Duration;

use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Secret, presets};

use crate::application::SECRET;

#[derive(Clone)]
pub struct Sender {
    client: reqwest::Client,
}

/// What came of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    Answered {
        status: u16,
        outcome: String,
    },
    /// No answer: the process is gone, or this sender has hung up.
    Unanswered,
}

impl Attempt {
    pub fn is_acknowledged(&self) -> bool {
        matches!(self, Self::Answered { status, .. } if (200..300).contains(status))
    }
}

/// How long a sender waits for an answer.
const DEADLINE: Duration = Duration::from_secs(20);

impl Sender {
    pub fn new() -> Self {
        Self {
            // Connections to processes that are killed are of no use to others.
            client: reqwest::Client::builder()
                .pool_max_idle_per_host(0)
                .build()
                .unwrap(),
        }
    }

    pub async fn send(&self, to: SocketAddr, id: &str, behaviour: &str) -> Attempt {
        self.send_to(to, "/", id, behaviour, DEADLINE).await
    }

    /// Sends a delivery whose handler behaves like this at its attempts, and then succeeds.
    pub async fn send_once(
        &self,
        to: SocketAddr,
        path: &str,
        id: &str,
        behaviours: &[&str],
    ) -> Attempt {
        let body = serde_json::json!({ "delivery": id, "behaviours": behaviours });
        let request = TestDelivery::new(&presets::github(Secret::new(SECRET).unwrap()))
            .uri(&format!("http://{to}{path}"))
            .id(id)
            .event_type("push")
            .body(body.to_string())
            .request::<reqwest::Body>();
        let mut request: reqwest::Request = request.try_into().unwrap();
        *request.timeout_mut() = Some(DEADLINE);
        self.answer(request).await
    }

    /// Has the application run a processed delivery again.
    pub async fn reprocess(&self, to: SocketAddr, id: &str) -> Attempt {
        let request = self.client.post(format!("http://{to}/reprocess/{id}"));
        let request = request.timeout(DEADLINE).build().unwrap();
        self.answer(request).await
    }

    pub async fn send_to(
        &self,
        to: SocketAddr,
        path: &str,
        id: &str,
        behaviour: &str,
        patience: Duration,
    ) -> Attempt {
        let mut request: reqwest::Request =
            TestDelivery::new(&presets::github(Secret::new(SECRET).unwrap()))
                .uri(&format!("http://{to}{path}"))
                .id(id)
                .event_type("push")
                .body(format!(r#"{{"delivery":"{id}"}}"#))
                .request::<reqwest::Body>()
                .try_into()
                .unwrap();
        let behaviour = behaviour.parse().unwrap();
        request.headers_mut().insert("x-behaviour", behaviour);
        *request.timeout_mut() = Some(patience);
        self.answer(request).await
    }

    async fn answer(&self, request: reqwest::Request) -> Attempt {
        match self.client.execute(request).await {
            Ok(response) => Attempt::Answered {
                status: response.status().as_u16(),
                outcome: response
                    .headers()
                    .get("x-webhook-outcome")
                    .map_or("", |outcome| outcome.to_str().unwrap())
                    .to_owned(),
            },
            Err(_) => Attempt::Unanswered,
        }
    }
}
