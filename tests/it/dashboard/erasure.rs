//! Guarantee Q2: after an erasure, no column contains anything from the request, no matter where the erasure was
//! requested.

use std::collections::BTreeSet;

use axum::http::{HeaderName, request};
use idempotent_webhook::recovery::Discarded;
use idempotent_webhook::{IdempotentWebhook, Recovery, Retention, TenantSecrets, prune};

use super::*;
use crate::guide::personal_data::{Holds, columns};
use crate::support::{SECRET, endpoint};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The name of the person to forget.
const NAME: &str = "lovelace";

const NOTE: HeaderName = HeaderName::from_static("x-note");

const TENANT: HeaderName = HeaderName::from_static("x-tenant");

const STATES: [&str; 4] = ["due", "dead", "recorded", "processed"];

/// Succeeds or fails as the event type says. The error quotes the request.
async fn quote(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    insert_effect(&mut tx, &delivery).await?;
    let error = HandlerError::new(format_args!("no customer {NAME}"));
    match delivery.event_type() {
        Some("processed") => Ok(StatusCode::OK),
        Some("dead") => Err(error.dead()),
        _ => Err(error),
    }
}

fn by_tenant() -> TenantSecrets {
    let tenant = |head: &request::Parts| {
        let name = head.headers.get(TENANT)?.to_str();
        name.ok().map(str::to_owned)
    };
    TenantSecrets::new(tenant, async |_| Ok(Some(Secret::new(SECRET)?)))
}

/// An application whose deliveries are kept in one state.
struct App {
    app: TestApp,
    state: &'static str,
    kept: u32,
}

impl App {
    async fn keeping_as(state: &'static str) -> Self {
        let set = |layer: IdempotentWebhook, recovery: &Recovery| {
            let keep = match state {
                // Every body is larger than this, so no request is kept.
                "recorded" => Keep::failed(recovery).body_limit(1),
                _ => Keep::all(recovery),
            };
            let keep = keep.headers([NOTE]).processed_for(DAY).retry_delays([DAY]);
            layer.keep(keep).replay_guard()
        };
        let provider = presets::github(by_tenant());
        Self {
            app: TestApp::recovered(provider, set, quote).await,
            state,
            kept: 0,
        }
    }

    fn database(&self) -> &Database {
        &self.app.database
    }

    /// Keeps two more deliveries of the tenant `acme`, with the name in each place where a request can have content.
    /// Returns their ids.
    async fn keep_two(&mut self) -> [String; 2] {
        let ids = [self.kept, self.kept + 1].map(|number| format!("id-{number}"));
        self.kept += 2;
        for id in &ids {
            let delivery = github_delivery()
                .id(id)
                .event_type(self.state)
                .uri(&format!("/?name={NAME}"))
                .header(NOTE, NAME)
                .header(TENANT, "acme")
                .body(format!(r#"{{"name":"{NAME}","id":"{id}"}}"#));
            // Sent twice, so that there is an earlier reason as well as the last one.
            self.app.send(delivery.request()).await;
            self.app.send(delivery.request()).await;
        }
        let (state, [one, other]) = (self.state, &ids);
        let both = format!(
            "2 = (
                select count(*) from idempotent_webhook.kept_deliveries
                where state = '{state}' and delivery_id in ('{one}', '{other}')
            )"
        );
        self.database().until(&both).await;
        ids
    }

    async fn columns_with_the_name(&self) -> BTreeSet<String> {
        self.database()
            .columns_with(NAME)
            .await
            .into_iter()
            .collect()
    }

    async fn assert_erased(&self, by: &str) {
        let left = self.columns_with_the_name().await;
        assert!(left.is_empty(), "{by} of {}: {left:?}", self.state);
    }

    fn board(&self) -> Board {
        let access = Access::operate().with_payloads().with_erasure();
        Board::of(&self.database().pool, access.named("ada"))
    }

    /// Each way to select the two deliveries, as the fields of a form.
    async fn selections(&self, [one, other]: &[String; 2]) -> Vec<String> {
        let state = self.state;
        let before = unix_now(self.database()).await;
        let of_endpoint = |fields: &str| format!("endpoint=test&{fields}&before={before}");
        let key = |id: &str| format!("key=endpoint%3Dtest%26id%3D{id}");
        let mut selections = vec![
            format!("{}&{}", key(one), key(other)),
            of_endpoint(&format!("state={state}")),
            of_endpoint(&format!("state={state}&event_type={state}")),
            of_endpoint(&format!("state={state}&from=2000-01-01&until=2999-01-01")),
        ];
        if state != "processed" {
            let group: String = sqlx::query_scalar(
                "select reason_group::text from idempotent_webhook.kept_deliveries
                 where delivery_id = $1",
            )
            .bind(one)
            .fetch_one(&self.database().pool)
            .await
            .unwrap();
            selections.extend([
                of_endpoint("state=failing"),
                of_endpoint(&format!("state={state}&tenant=acme")),
                of_endpoint(&format!("state={state}&reason={group}")),
                // A form without an endpoint selects from all endpoints.
                format!("state=failing&reason={group}&before={before}"),
            ]);
        }
        selections
    }

    async fn act(&self, form: &str, as_program: bool) {
        let board = self.board();
        let (answer, expected) = match as_program {
            false => (board.post("act", form).await, 303),
            true => (board.order("act", &order(form), &JSON).await, 200),
        };
        assert_eq!(answer.status, expected, "{form}: {}", answer.text());
        self.database().until(ALL_ENDED).await;
    }
}

/// The columns that the guide lists as this kind.
fn columns_of(kind: Holds) -> BTreeSet<String> {
    let columns = columns().into_iter().filter(|(_, holds)| *holds == kind);
    columns.map(|(column, _)| column).collect()
}

/// Converts a form to the JSON that a program sends.
fn order(form: &str) -> Value {
    let pairs = |text: &[u8]| -> serde_json::Map<String, Value> {
        let pairs = form_urlencoded::parse(text).into_owned();
        pairs.map(|(name, value)| (name, value.into())).collect()
    };
    let mut order = pairs(form.as_bytes());
    let keys = form_urlencoded::parse(form.as_bytes()).filter(|(name, _)| name == "key");
    let keys: Vec<Value> = keys.map(|(_, key)| pairs(key.as_bytes()).into()).collect();
    if order.remove("key").is_some() {
        order.insert("keys".to_owned(), keys.into());
    }
    order.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn q2_no_column_has_content_after_a_function_has_erased_it() {
    let mut found = BTreeSet::new();
    for state in STATES {
        let mut app = App::keeping_as(state).await;
        let ids = app.keep_two().await;
        found.append(&mut app.columns_with_the_name().await);
        let endpoint = endpoint(&app.app);
        for id in &ids {
            assert!(endpoint.erase(id).await.unwrap(), "{state}");
        }
        app.assert_erased("erase").await;

        let mut filters = vec![Filter::new(), Filter::new().event_type(state)];
        if state != "processed" {
            filters.push(Filter::new().tenant("acme"));
            filters.push(Filter::new().reason_contains(NAME));
            filters.push(Filter::new().failed(..));
        }
        for filter in filters {
            app.keep_two().await;
            assert_eq!(endpoint.erase_all(&filter).await.unwrap().changed, 2);
            app.assert_erased(&format!("{filter:?}")).await;
        }
    }
    // Each column that can contain content did contain some before the erasure.
    assert_eq!(found, columns_of(Holds::Content));
}

/// The record of the operator's action must not contain the content either.
#[tokio::test(flavor = "multi_thread")]
async fn q2_no_column_has_content_after_the_dashboard_has_erased_it() {
    for state in STATES {
        let mut app = App::keeping_as(state).await;
        for as_program in [false, true] {
            let [one, other] = app.keep_two().await;
            for id in [one, other] {
                app.act(&format!("action=erase&endpoint=test&id={id}"), as_program)
                    .await;
            }
            app.assert_erased("one by one").await;

            let mut number = 0;
            loop {
                let ids = app.keep_two().await;
                let selections = app.selections(&ids).await;
                let Some(selection) = selections.get(number) else {
                    break;
                };
                let form = format!("action=erase&{selection}");
                app.act(&form, as_program).await;
                app.assert_erased(&form).await;
                number += 1;
            }
            endpoint(&app.app).erase_all(&Filter::new()).await.unwrap();
        }
    }
}

/// The record of an earlier action on the deliveries must not contain the content either.
#[tokio::test(flavor = "multi_thread")]
async fn q2_no_column_has_content_that_an_operator_has_chosen_by_before_it_was_erased() {
    let mut app = App::keeping_as("dead").await;
    let ids = app.keep_two().await;
    for selection in app.selections(&ids).await {
        app.board()
            .page(&format!("confirm?action=retry&{selection}"))
            .await;
        app.act(&format!("action=retry&{selection}"), false).await;
        app.database()
            .run(
                "update idempotent_webhook.kept_deliveries
                 set state = 'dead', next_attempt_at = null",
            )
            .await;
    }
    let erased = endpoint(&app.app).erase_all(&Filter::new()).await;
    assert_eq!(erased.unwrap().changed, 2);
    app.assert_erased("erase_all").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn q2_no_column_has_content_after_retention_has_erased_it() {
    let mut app = App::keeping_as("dead").await;
    app.keep_two().await;
    app.database()
        .run(
            "update idempotent_webhook.kept_deliveries
             set died_at = now() - interval '8 days', last_failed_at = now() - interval '8 days'",
        )
        .await;
    let retention = Retention::new(app.database().pool.clone(), 90 * DAY)
        .every(Duration::from_millis(100))
        .erase_dead_after(7 * DAY)
        .spawn();
    let erased = "2 = (
        select count(*) from idempotent_webhook.kept_deliveries where state = 'recorded'
    )";
    app.database().until(erased).await;
    retention.stop().await;
    app.assert_erased("retention").await;
}

/// Content is also removed by a discard, by a forget, and by retention. Retention leaves due deliveries, regardless of
/// their age.
#[tokio::test(flavor = "multi_thread")]
async fn q2_no_column_has_content_after_a_discard_a_forget_or_retention() {
    for state in STATES {
        let mut app = App::keeping_as(state).await;
        let endpoint = endpoint(&app.app);
        for id in app.keep_two().await {
            match state {
                "processed" => assert!(endpoint.forget(&id).await.unwrap()),
                _ => assert_eq!(endpoint.discard(&id).await.unwrap(), Discarded::Discarded),
            }
        }
        app.assert_erased("discard or forget").await;

        app.keep_two().await;
        app.database()
            .run(
                "update idempotent_webhook.kept_deliveries
                 set first_received_at = now() - interval '91 days',
                     first_failed_at = first_failed_at - interval '91 days',
                     last_failed_at = last_failed_at - interval '91 days',
                     archived_until = archived_until - interval '91 days'",
            )
            .await;
        prune(&app.database().pool, 90 * DAY).await.unwrap();
        match state {
            "due" => assert!(!app.columns_with_the_name().await.is_empty()),
            _ => app.assert_erased("prune").await,
        }
    }
}

/// `analyze` must take no samples of columns with content, because the samples would stay in `pg_stats`.
#[tokio::test]
async fn q2_the_planner_has_no_sample_of_content() {
    for state in STATES {
        let mut app = App::keeping_as(state).await;
        app.keep_two().await;
        app.database().run("analyze").await;
        let sampled: Vec<String> = sqlx::query_scalar(
            "select tablename || '.' || attname
             from pg_stats
             cross join concat_ws(' ', most_common_vals, histogram_bounds) as samples
             where schemaname = 'idempotent_webhook'
                 and (strpos(samples, $1) > 0 or strpos(samples, encode($1::bytea, 'hex')) > 0)",
        )
        .bind(NAME)
        .fetch_all(&app.database().pool)
        .await
        .unwrap();
        assert!(sampled.is_empty(), "{state}: {sampled:?}");
    }
}

/// Names stay, and the guide lists the columns that may contain them.
#[tokio::test(flavor = "multi_thread")]
async fn q2_names_stay_in_no_other_columns_than_the_guide_says() {
    async fn advance(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
        tx.advance(NAME, 1).await?;
        match delivery.id().as_str().contains("done") {
            true => Ok(StatusCode::OK),
            false => Err(HandlerError::new("it broke")),
        }
    }
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        let keep = Keep::all(recovery).processed_for(DAY).retry_delays([DAY]);
        layer.keep(keep.breaker(9, DAY)).replay_guard()
    };
    let provider = presets::github(by_tenant().separate_ids());
    let app = TestApp::recovered(provider, set, advance).await;
    for id in ["done", "fails", "discarded"] {
        let delivery = github_delivery()
            .id(format!("{NAME}-{id}"))
            .event_type(NAME)
            .header(TENANT, NAME)
            .body(id);
        app.send(delivery.request()).await;
    }
    let access = Access::operate().with_erasure().named(NAME);
    let board = Board::of(&app.database.pool, access);
    let before = unix_now(&app.database).await;
    let one = |id: &str| format!("endpoint=test&tenant={NAME}&id={NAME}-{id}");
    let all =
        format!("endpoint=test&state=failing&tenant={NAME}&event_type={NAME}&before={before}");
    for form in [
        format!("action=retry&{all}"),
        format!("action=discard&{}", one("discarded")),
        format!("action=erase&{}", one("done")),
        format!("action=erase&{all}"),
    ] {
        assert_eq!(board.post("act", &form).await.status, 303, "{form}");
        app.database.until(ALL_ENDED).await;
    }
    let left: BTreeSet<_> = app.database.columns_with(NAME).await.into_iter().collect();
    let names = columns_of(Holds::Name);
    assert!(left.is_subset(&names), "{left:?}");
    // The test fills no columns that need a reconciled list, an ignored event, a table of types, a cancelled action, an
    // environment, or a request.
    let not_seen: Vec<_> = names.difference(&left).map(|name| &**name).collect();
    assert_eq!(
        not_seen,
        [
            "activity.outcome",
            "endpoint_settings.settings",
            "environment.name",
            "event_types.event_type",
            "kept_requests.delivery_id",
            "kept_requests.tenant",
            "operator_actions.cancelled_by",
            "other_environments.name",
            "problems.subject",
            "reconciliations.cursor",
            "reconciliations.failure",
            "reconciliations.path",
            "reconciliations.source",
            "redelivery_requests.delivery_id",
            "redelivery_requests.tenant",
            "sent_again.delivery_id",
            "sent_again.tenant",
            "subscriptions.address",
            "subscriptions.differences",
            "subscriptions.failure",
            "subscriptions.source",
            "turns.address",
            "turns.source",
        ]
    );
}
