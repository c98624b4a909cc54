//! The event sources of `idempotent_webhook`, each pointed at its imitated API in this crate.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::HeaderName;
use idempotent_webhook::Secret;
use idempotent_webhook::reconcile::{
    ChargebeeEvents, EventPage, EventSource, GitHubDeliveries, Http, PaddleNotifications,
    PageQuery, SourceError, StripeEvents, WorkOsEvents,
};

/// The event source of any of the providers.
pub enum AnySource {
    Chargebee(ChargebeeEvents),
    GitHub(GitHubDeliveries),
    Paddle(PaddleNotifications),
    Stripe(StripeEvents),
    WorkOs(WorkOsEvents),
}

/// The event source of a provider at this address, with this API key.
pub fn source(provider: &str, address: SocketAddr, key: &str) -> AnySource {
    let http = Http::new().base(format!("http://{address}"));
    let key = Secret::new(key).unwrap();
    match provider {
        "chargebee" => AnySource::Chargebee(
            ChargebeeEvents::new("acme-test", key, ["invoice_generated"]).http(http),
        ),
        "github" => AnySource::GitHub(
            GitHubDeliveries::repository(key, "octocat/hello-world", 1)
                .http(http)
                .redelivery_pause(Duration::ZERO),
        ),
        "paddle" => AnySource::Paddle(PaddleNotifications::new(key, "ntfset_1").http(http)),
        "stripe" => AnySource::Stripe(StripeEvents::new(key, ["invoice.paid"]).http(http)),
        _ => AnySource::WorkOs(WorkOsEvents::new(key, ["user.created", "user.deleted"]).http(http)),
    }
}

impl EventSource for AnySource {
    fn name(&self) -> String {
        match self {
            Self::Chargebee(source) => source.name(),
            Self::GitHub(source) => source.name(),
            Self::Paddle(source) => source.name(),
            Self::Stripe(source) => source.name(),
            Self::WorkOs(source) => source.name(),
        }
    }

    fn headers(&self) -> Vec<HeaderName> {
        match self {
            Self::GitHub(source) => source.headers(),
            _ => Vec::new(),
        }
    }

    fn has_bodies(&self) -> bool {
        !matches!(self, Self::GitHub(_))
    }

    fn goes_back(&self) -> Option<Duration> {
        match self {
            Self::Chargebee(source) => source.goes_back(),
            Self::GitHub(source) => source.goes_back(),
            Self::Paddle(source) => source.goes_back(),
            Self::Stripe(source) => source.goes_back(),
            Self::WorkOs(source) => source.goes_back(),
        }
    }

    async fn page(&self, query: &PageQuery) -> Result<EventPage, SourceError> {
        match self {
            Self::Chargebee(source) => source.page(query).await,
            Self::GitHub(source) => source.page(query).await,
            Self::Paddle(source) => source.page(query).await,
            Self::Stripe(source) => source.page(query).await,
            Self::WorkOs(source) => source.page(query).await,
        }
    }

    async fn redeliver(&self, redelivery: &str) -> Result<(), SourceError> {
        match self {
            Self::GitHub(source) => source.redeliver(redelivery).await,
            _ => Err(SourceError::new("only GitHub delivers again")),
        }
    }
}
