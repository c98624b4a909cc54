//! A provider that sends a delivery until it is acknowledged.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Secret, presets};

use crate::application::{SECRET, WANTED};
use crate::history::Recorder;
use crate::operator::Order;

#[derive(Clone)]
pub struct Sender {
    client: reqwest::Client,
    recorder: Recorder,
}

/// A request of a provider.
pub struct Request<'a> {
    pub to: SocketAddr,
    pub path: &'a str,
    pub id: &'a str,
    pub event_type: &'a str,
    /// What the handler does, on routes that keep nothing.
    pub behaviour: &'a str,
    /// What the handler does at each attempt, on routes that keep deliveries. After these attempts,
    /// the handler succeeds.
    pub behaviours: &'a [&'a str],
    pub patience: Duration,
}

impl<'a> Request<'a> {
    pub fn new(to: SocketAddr, path: &'a str, id: &'a str) -> Self {
        Self {
            to,
            path,
            id,
            event_type: WANTED,
            behaviour: "",
            behaviours: &[],
            patience: DEADLINE,
        }
    }
}

/// The result of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    Answered {
        status: u16,
        outcome: String,
    },
    /// There was no answer, because the process is gone or this sender has hung up.
    Unanswered,
}

impl Attempt {
    pub fn is_acknowledged(&self) -> bool {
        matches!(self, Self::Answered { status, .. } if (200..300).contains(status))
    }

    /// The outcome in the answer. Empty if there is none.
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
    /// A sender whose requests and answers are part of a history.
    pub fn new(recorder: &Recorder) -> Self {
        Self {
            // If a process is killed, its connection is of no use with the next process.
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

    pub async fn send_to(
        &self,
        to: SocketAddr,
        path: &str,
        id: &str,
        behaviour: &str,
        patience: Duration,
    ) -> Attempt {
        self.deliver(&Request {
            behaviour,
            patience,
            ..Request::new(to, path, id)
        })
        .await
    }

    /// Sends a delivery whose handler does what `behaviours` says, one item for each attempt, and
    /// then succeeds.
    pub async fn send_once(
        &self,
        to: SocketAddr,
        path: &str,
        id: &str,
        behaviours: &[&str],
    ) -> Attempt {
        self.deliver(&Request {
            behaviours,
            ..Request::new(to, path, id)
        })
        .await
    }

    pub async fn deliver(&self, request: &Request<'_>) -> Attempt {
        let Request { to, path, id, .. } = request;
        let body = serde_json::json!({ "delivery": id, "behaviours": request.behaviours });
        let signed = TestDelivery::new(&presets::github(Secret::new(SECRET).unwrap()))
            .uri(&format!("http://{to}{path}"))
            .id(*id)
            .event_type(request.event_type)
            .body(body.to_string())
            .request::<reqwest::Body>();
        let mut signed: reqwest::Request = signed.try_into().unwrap();
        let behaviour = request.behaviour.parse().unwrap();
        signed.headers_mut().insert("x-behaviour", behaviour);
        *signed.timeout_mut() = Some(request.patience);
        self.execute(id, signed).await
    }

    /// Gives the application an order about a delivery of an endpoint.
    pub async fn order(&self, to: SocketAddr, order: Order, endpoint: &str, id: &str) -> Attempt {
        let path = order.path(endpoint, id);
        let request = self.client.post(format!("http://{to}{path}"));
        let request = request.timeout(DEADLINE).build().unwrap();
        self.execute(id, request).await
    }

    /// Sends a request, and records it and its answer in the history of the delivery.
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
