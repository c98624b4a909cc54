//! The pipeline of fraiseql-webhooks behind an axum handler.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use fraiseql_webhooks::serde_json::{Value, json};
use fraiseql_webhooks::signature::github::GitHubVerifier;
// fraiseql-webhooks uses an older version of sqlx, and exports it.
use fraiseql_webhooks::sqlx::postgres::PgPoolOptions;
use fraiseql_webhooks::sqlx::{self, Postgres, Transaction};
use fraiseql_webhooks::{
    Authenticated, Delivery, EventHandler, Handled, InboundRequest, PostgresIdempotencyStore,
    StaticSecretProvider, VerifiedEvent, WebhookError, WebhookPipeline,
};

use crate::SECRET;

struct Effects;

impl EventHandler for Effects {
    async fn handle(
        &self,
        _: &str,
        params: Value,
        tx: &mut Transaction<'_, Postgres>,
    ) -> Result<Handled, WebhookError> {
        sqlx::query("insert into effects (delivery_id) values ($1)")
            .bind(params["id"].as_str())
            .execute(&mut **tx)
            .await?;
        Ok(Handled::Recorded(Value::Null))
    }
}

type Pipeline = WebhookPipeline<StaticSecretProvider, PostgresIdempotencyStore, Effects>;

pub async fn router(database: &str) -> Router {
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .connect(database)
        .await
        .expect("a database");
    let store = PostgresIdempotencyStore::new(pool.clone());
    store.init().await.expect("its table");
    let secrets = StaticSecretProvider::new().with_secret("github", SECRET);
    let pipeline: Pipeline = WebhookPipeline::new(pool, secrets, store, Effects);
    Router::new()
        .route("/", post(handle))
        .with_state(Arc::new(pipeline))
}

async fn handle(
    State(pipeline): State<Arc<Pipeline>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let headers: BTreeMap<String, String> = headers
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let delivery = Delivery {
        route: "benchmark",
        function_name: "effects",
        request: InboundRequest::new(&headers, &body, None),
    };
    // GitHub's id is in a header, and this pipeline leaves headers to the caller.
    let event_of = |_: Authenticated<'_>| {
        let id = headers
            .get("x-github-delivery")
            .cloned()
            .unwrap_or_default();
        Ok(VerifiedEvent {
            params: json!({ "id": id }),
            event_type: "push".to_owned(),
            id,
        })
    };
    match pipeline
        .process(&GitHubVerifier, Some("github"), &delivery, event_of)
        .await
    {
        Ok(_) => StatusCode::OK,
        Err(WebhookError::SignatureInvalid(_)) => StatusCode::UNAUTHORIZED,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
