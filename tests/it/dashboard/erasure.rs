//! Q2: no column has anything of a request after an erasure, from wherever it is asked for.

use std::collections::BTreeSet;

use axum::http::{HeaderName, request};
use idempotent_webhook::{IdempotentWebhook, Recovery, Retention, TenantSecrets};

use super::*;
use crate::guide::personal_data::{Holds, columns};
use crate::support::{SECRET, endpoint};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Of the person that is to be forgotten.
const NAME: &str = "lovelace";

const NOTE: HeaderName = HeaderName::from_static("x-note");

const TENANT: &str = "x-tenant";

/// Does what the event type says, and quotes the request.
async fn quote(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    insert_effect(&mut tx, &delivery).await?;
    let error = HandlerError::new(format_args!("no customer {NAME}"));
    match delivery.event_type() {
        Some("processed") => Ok(StatusCode::OK),
        Some("dead") => Err(error.dead()),
        _ => Err(error),
    }
}

/// Two deliveries of the tenant `acme`, `a` and `b`, that are kept in this state, with the name wherever the content of
/// a request can be.
async fn kept_as(state: &str) -> TestApp {
    let tenant = |head: &request::Parts| {
        let name = head.headers.get(TENANT)?.to_str();
        name.ok().map(str::to_owned)
    };
    let secrets = TenantSecrets::new(tenant, async |_| Ok(Some(Secret::new(SECRET)?)));
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        let keep = match state {
            // Larger than what is kept.
            "recorded" => Keep::failed(recovery).body_limit(1),
            _ => Keep::all(recovery),
        };
        let keep = keep.headers([NOTE]).processed_for(DAY).retry_delays([DAY]);
        layer.keep(keep).replay_guard()
    };
    let app = TestApp::recovered(presets::github(secrets), set, quote).await;
    for id in ["a", "b"] {
        let request = github_delivery()
            .id(id)
            .event_type(state)
            .uri(&format!("/?name={NAME}"))
            .header(NOTE, NAME)
            .header(HeaderName::from_static(TENANT), "acme")
            .body(format!(r#"{{"name":"{NAME}","id":"{id}"}}"#));
        // Twice, so that there is more than the last reason.
        app.send(request.request()).await;
        app.send(request.request()).await;
    }
    let all = format!(
        "2 = (select count(*) from idempotent_webhook.kept_deliveries where state = '{state}')"
    );
    app.database.until(&all).await;
    app
}

/// The columns that the guide says can have the content of a request.
fn with_content() -> BTreeSet<String> {
    let content = columns().into_iter();
    let content = content.filter(|(_, holds)| *holds == Holds::Content);
    content.map(|(column, _)| column).collect()
}

async fn assert_content(app: &TestApp) -> BTreeSet<String> {
    let found: BTreeSet<_> = app.database.columns_with(NAME).await.into_iter().collect();
    assert!(!found.is_empty());
    assert!(found.is_subset(&with_content()), "{found:?}");
    found
}

async fn assert_erased(app: &TestApp, by: &str) {
    let left = app.database.columns_with(NAME).await;
    assert!(left.is_empty(), "{by}: {left:?}");
}

const STATES: [&str; 4] = ["due", "dead", "recorded", "processed"];

#[tokio::test(flavor = "multi_thread")]
async fn q2_no_column_has_content_after_a_function_has_erased_it() {
    let mut found = BTreeSet::new();
    for state in STATES {
        let app = kept_as(state).await;
        found.extend(assert_content(&app).await);
        for id in ["a", "b"] {
            assert!(endpoint(&app).erase(id).await.unwrap(), "{state}");
        }
        assert_erased(&app, &format!("erase of {state}")).await;

        let mut filters = vec![Filter::new(), Filter::new().event_type(state)];
        if state != "processed" {
            filters.push(Filter::new().tenant("acme"));
            filters.push(Filter::new().reason_contains(NAME));
            filters.push(Filter::new().failed(..));
        }
        for filter in filters {
            let app = kept_as(state).await;
            assert_eq!(endpoint(&app).erase_all(&filter).await.unwrap(), 2);
            assert_erased(&app, &format!("{filter:?} of {state}")).await;
        }
    }
    // Each column that can have content was seen to have some.
    assert_eq!(found, with_content());
}

fn board(app: &TestApp) -> Board {
    let access = Access::operate().with_payloads().with_erasure();
    Board::of(&app.database.pool, access.named("ada"))
}

/// All ways to select deliveries in this state, as fields of a form.
async fn selections(app: &TestApp, state: &str) -> Vec<String> {
    let before = unix_now(&app.database).await;
    let of_endpoint = |fields: &str| format!("endpoint=test&{fields}&before={before}");
    let mut selections = vec![
        "endpoint=test&id=a".to_owned(),
        "key=endpoint%3Dtest%26id%3Da&key=endpoint%3Dtest%26id%3Db".to_owned(),
        of_endpoint(&format!("state={state}")),
        of_endpoint(&format!("state={state}&event_type={state}")),
        of_endpoint(&format!("state={state}&from=2000-01-01&until=2999-01-01")),
    ];
    if state != "processed" {
        let group: String = sqlx::query_scalar(
            "select reason_group::text from idempotent_webhook.kept_deliveries where delivery_id = 'a'",
        )
        .fetch_one(&app.database.pool)
        .await
        .unwrap();
        selections.push(of_endpoint("state=failing"));
        selections.push(of_endpoint(&format!("state={state}&tenant=acme")));
        // Also over all endpoints.
        selections.push(of_endpoint(&format!("state={state}&reason={group}")));
        selections.push(format!("state=failing&reason={group}&before={before}"));
    }
    selections
}

/// A form as an order of a program.
fn order(form: &str) -> Value {
    let mut order = serde_json::Map::new();
    let mut keys = Vec::new();
    for (name, value) in form_urlencoded::parse(form.as_bytes()) {
        match &*name {
            "key" => {
                let key = form_urlencoded::parse(value.as_bytes()).into_owned();
                keys.push(
                    key.map(|(name, value)| (name, Value::from(value)))
                        .collect(),
                );
            }
            _ => drop(order.insert(name.into_owned(), value.into_owned().into())),
        }
    }
    if !keys.is_empty() {
        order.insert("keys".to_owned(), Value::Array(keys));
    }
    order.into()
}

/// The record of what the operator did has nothing of it either.
#[tokio::test(flavor = "multi_thread")]
async fn q2_no_column_has_content_after_the_dashboard_has_erased_it() {
    for state in STATES {
        let selections = selections(&kept_as(state).await, state).await.len();
        for selection in 0..selections {
            for is_program in [false, true] {
                let app = kept_as(state).await;
                let of = self::selections(&app, state).await.swap_remove(selection);
                let form = format!("action=erase&{of}");
                let board = board(&app);
                let answer = match is_program {
                    false => board.post("act", &form).await,
                    true => board.order("act", &order(&form), &JSON).await,
                };
                let expected = if is_program { 200 } else { 303 };
                assert_eq!(answer.status, expected, "{form}: {}", answer.text());
                app.database.until(ALL_ENDED).await;
                if of.ends_with("id=a") {
                    endpoint(&app).erase("b").await.unwrap();
                }
                assert_erased(&app, &form).await;
            }
        }
    }
}

/// Nor has what an operator did with them before.
#[tokio::test(flavor = "multi_thread")]
async fn q2_no_column_has_content_that_an_operator_has_seen_before_it_was_erased() {
    let app = kept_as("dead").await;
    let board = board(&app);
    for of in selections(&app, "dead").await {
        for action in ["retry", "discard"] {
            board.page(&format!("confirm?action={action}&{of}")).await;
        }
        let retried = board.post("act", &format!("action=retry&{of}")).await;
        assert_eq!(retried.status, 303, "{of}");
        app.database.until(ALL_ENDED).await;
        app.database
            .run(
                "update idempotent_webhook.kept_deliveries
                 set state = 'dead', next_attempt_at = null",
            )
            .await;
    }
    assert_eq!(endpoint(&app).erase_all(&Filter::new()).await.unwrap(), 2);
    assert_erased(&app, "erase_all").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn q2_no_column_has_content_after_retention_has_erased_it() {
    let app = kept_as("dead").await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set died_at = now() - interval '8 days', first_failed_at = now() - interval '8 days'",
        )
        .await;
    let retention = Retention::new(app.database.pool.clone(), 90 * DAY)
        .every(Duration::from_millis(100))
        .erase_dead_after(7 * DAY)
        .spawn();
    let erased = "2 = (
        select count(*) from idempotent_webhook.kept_deliveries where state = 'recorded'
    )";
    app.database.until(erased).await;
    retention.stop().await;
    assert_erased(&app, "retention").await;
}
