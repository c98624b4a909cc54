//! A provider: sends a delivery until it is acknowledged.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Secret, presets};

use crate::application::{REPROCESS, SECRET};
use crate::history::Recorder;

#[derive(Clone)]
pub struct Sender {
    client: reqwest::Client,
    recorder: Recorder,
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

    /// Empty if there is none.
    pub fn outcome(&self) -> &str {
        match self {
            Self::Answered { outcome, .. } => outcome,
            Self::Unanswered => "",
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { status, outcome } => write!(f, "{status} {outcome}"),
            Self::Unanswered => f.write_str("nothing"),
        }
    }
}

/// How long a sender waits for an answer.
const DEADLINE: Duration = Duration::from_secs(20);

impl Sender {
    /// One whose requests and answers are part of a history.
    pub fn new(recorder: &Recorder) -> Self {
        Self {
            // Connections to processes that are killed are of no use to others.
            client: reqwest::Client::builder()
                .pool_max_idle_per_host(0)
                .build()
                .unwrap(),
            recorder: recorder.clone(),
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
        self.execute(id, request).await
    }

    /// Has the application run a processed delivery again.
    pub async fn reprocess(&self, to: SocketAddr, id: &str) -> Attempt {
        let request = self.client.post(format!("http://{to}{REPROCESS}/{id}"));
        let request = request.timeout(DEADLINE).build().unwrap();
        self.execute(id, request).await
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
        self.execute(id, request).await
    }

    /// Sends a request about a delivery.
    pub async fn execute(&self, id: &str, request: reqwest::Request) -> Attempt {
        let url = request.url();
        let number = self.recorder.sent(id, url.authority(), url.path());
        let attempt = match self.client.execute(request).await {
            Ok(response) => Attempt::Answered {
                status: response.status().as_u16(),
                outcome: response
                    .headers()
                    .get("x-webhook-outcome")
                    .map_or("", |outcome| outcome.to_str().unwrap())
                    .to_owned(),
            },
            Err(_) => Attempt::Unanswered,
        };
        self.recorder.answered(id, number, attempt.clone());
        attempt
    }
}
