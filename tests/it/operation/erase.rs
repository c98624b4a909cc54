//! Guarantee Q2: the content of deliveries is erased, while their records stay.

use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use idempotent_webhook::recovery::{Filter, KeptState, Reprocessed};
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Keep, LateClaim, Provider,
    Retention, Secret, TenantSecrets, presets, prune,
};

use crate::support::{
    Database, NONE_TAKEN, NOTHING_KEPT, ONE_WAITS_FOR_A_LOCK, Process, SECRET, TestApp, answer,
    assert_kept, assert_rows, endpoint, failing_behind_gate, gate, github, github_delivery,
    insert_effect, keep, keep_accepted, keeping_by, recover, recover_all, secret, send, spawn_send,
    write_effect,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The content that somebody wants to have erased.
const NAME: &str = "lovelace";

/// Fails and quotes the body. Only the delivery `good` succeeds.
async fn quote(
    mut tx: DedupeTx,
    delivery: Delivery,
    body: String,
) -> Result<StatusCode, HandlerError> {
    insert_effect(&mut tx, &delivery).await?;
    match delivery.id().as_str() {
        "good" => Ok(StatusCode::OK),
        _ => Err(HandlerError::new(format_args!("no such customer: {body}"))),
    }
}

fn delivery(id: &str) -> axum::http::Request<axum::body::Body> {
    github_delivery()
        .id(id)
        .event_type("push")
        .uri("/?name=lovelace")
        .body(format!("{{\"name\":\"{NAME}\"}}"))
        .request()
}

/// An application that keeps all deliveries, and archives processed ones. The delivery `due` waits for its next
/// attempt, and the delivery `dead` is dead.
async fn app_with(ids: &[&str]) -> TestApp {
    let set = |keep: Keep| keep.processed_for(DAY).retry_delays([DAY]);
    let app = TestApp::keeping_all(set, quote).await;
    for id in ids {
        app.send(delivery(id)).await;
    }
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set state = 'dead', next_attempt_at = null, died_at = now() where delivery_id = 'dead'",
        )
        .await;
    app
}

/// The states of the kept deliveries, by id.
async fn states(database: &Database) -> Vec<(String, String)> {
    sqlx::query_as(
        "select delivery_id, state from idempotent_webhook.kept_deliveries order by delivery_id",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

fn pair(id: &str, state: &str) -> (String, String) {
    (id.to_owned(), state.to_owned())
}

#[tokio::test]
async fn q2_nothing_of_the_content_is_left_in_any_table() {
    let app = app_with(&["good", "due", "dead"]).await;
    assert!(app.database.dump(&[]).await.has(NAME));
    let endpoint = endpoint(&app);
    for id in ["good", "due", "dead"] {
        assert!(endpoint.erase(id).await.unwrap(), "{id}");
        assert!(!endpoint.erase(id).await.unwrap(), "{id}, again");
    }
    assert!(!app.database.dump(&[]).await.has(NAME));
    assert!(!endpoint.erase("unknown").await.unwrap());

    // The records of the deliveries stay.
    let left = [pair("dead", "recorded"), pair("due", "recorded")];
    assert_eq!(states(&app.database).await, left);
    app.database
        .until(
            "2 = (
                select count(*) from idempotent_webhook.kept_deliveries
                where attempts = 1 and status = 500 and reason = 'its content was erased'
                    and body_bytes is null and taken_by is null and next_attempt_at is null
                    and jsonb_array_length(history) = 1
                    and history -> 0 ->> 'status' = '500' and history -> 0 ->> 'reason' is null
            )",
        )
        .await;
    assert_rows!(app.database, claims: 1, effects: 1);
    assert_eq!(app.send(delivery("good")).await.outcome, "duplicate");
}

/// A handler can write anything into a reason, even the text that an erasure leaves. An erasure must not mistake such a
/// reason for an erased one.
#[tokio::test]
async fn q2_what_only_says_that_it_was_erased_is_erased() {
    async fn fail(_: DedupeTx) -> Result<StatusCode, HandlerError> {
        Err(HandlerError::new("its content was erased"))
    }
    // The first failure of the delivery is in its history.
    let app = TestApp::keeping(|keep| keep.body_limit(1), fail).await;
    let endpoint = endpoint(&app);
    for attempts in 1..3 {
        assert_eq!(app.send(delivery("a")).await.outcome, "failed");
        let has_reason = format!(
            "exists (
                select from idempotent_webhook.kept_deliveries
                where state = 'recorded' and attempts = {attempts} and history -> -1 ? 'reason'
            )"
        );
        app.database.until(&has_reason).await;
        assert!(endpoint.erase("a").await.unwrap());
        assert!(!endpoint.erase("a").await.unwrap());
        app.database
            .until("not exists (select from idempotent_webhook.kept_deliveries where history::text ~ 'reason')")
            .await;
    }
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn q2_what_is_erased_does_not_run_unless_the_provider_sends_it_again() {
    let app = app_with(&["due"]).await;
    assert!(endpoint(&app).erase("due").await.unwrap());
    let recovery = recover(&app);
    assert_eq!(
        endpoint(&app).reprocess("due").await.unwrap(),
        Reprocessed::NotProcessed
    );
    let retried = endpoint(&app)
        .retry_all(&Filter::new())
        .await
        .unwrap()
        .changed;
    assert_eq!(retried, 0);
    app.database.run("select pg_sleep(0.3)").await;
    recovery.stop().await;
    assert_eq!(app.runs(), 1);

    let again = app.elsewhere(write_effect).await;
    let sent = send(&again, github("due", "{}")).await;
    assert_eq!(sent, answer(200, "processed", "done"));
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A delivery that is erased before its first failure has not failed, and its request is gone. Its row stays for as
/// long as the row of a failure without a request.
#[tokio::test]
async fn q2_what_is_erased_before_it_had_failed_is_no_failure() {
    let app = keeping_by(keep_accepted, write_effect).await;
    let endpoint = endpoint(&app);
    endpoint.pause().await.unwrap();
    for id in ["a", "b", "c"] {
        let accepted = app.send(delivery(id)).await;
        assert_eq!(accepted, answer(200, "accepted", ""));
        assert!(endpoint.erase(id).await.unwrap());
    }
    let recorded = Filter::new().state(KeptState::Recorded);
    let listed = endpoint.kept(&recorded, None, 10).await.unwrap();
    assert_eq!(listed.len(), 3);
    assert!(listed.iter().all(|kept| kept.last_failed_at.is_none()));
    app.database
        .until(
            "not exists (select from idempotent_webhook.endpoint_problems('{test}'))
             and not exists (select from idempotent_webhook.failing_deliveries)",
        )
        .await;
    let failing = recorded.failed(..SystemTime::now() + DAY);
    assert_eq!(endpoint.discard_all(&failing).await.unwrap().changed, 0);

    app.database.has_window("test", "1 day").await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set last_received_at = now() - interval '29 days' where delivery_id = 'a';
             update idempotent_webhook.kept_deliveries
             set last_received_at = now() - interval '31 days' where delivery_id <> 'a';
             -- The provider has sent it again since, and it has failed.
             update idempotent_webhook.kept_deliveries
             set first_failed_at = now(), last_failed_at = now() where delivery_id = 'c'",
        )
        .await;
    assert_eq!(
        prune(&app.database.pool, 30 * DAY).await.unwrap().failures,
        0
    );
    let left = [pair("a", "recorded"), pair("c", "recorded")];
    assert_eq!(states(&app.database).await, left);
    assert_rows!(app.database, claims: 0, effects: 0);

    // The delivery runs if the provider sends it again.
    endpoint.discard("c").await.unwrap();
    endpoint.resume().await.unwrap();
    assert_eq!(app.send(delivery("a")).await, answer(200, "accepted", ""));
    recover_all(&app).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn q2_all_of_a_filter_are_erased_and_no_others() {
    let app = app_with(&["good", "due", "dead"]).await;
    let endpoint = endpoint(&app);
    let dead = Filter::new().state(KeptState::Dead);
    assert_eq!(endpoint.erase_all(&dead).await.unwrap().changed, 1);
    assert_eq!(endpoint.erase_all(&dead).await.unwrap().changed, 0);
    let all = [
        pair("dead", "recorded"),
        pair("due", "due"),
        pair("good", "processed"),
    ];
    assert_eq!(states(&app.database).await, all);
    let other = Filter::new().event_type("pull");
    assert_eq!(endpoint.erase_all(&other).await.unwrap().changed, 0);
    let elsewhere = Endpoint::new(app.database.pool.clone(), "other");
    assert_eq!(
        elsewhere.erase_all(&Filter::new()).await.unwrap().changed,
        0
    );
    // Processed deliveries are erased as well.
    assert_eq!(endpoint.erase_all(&Filter::new()).await.unwrap().changed, 2);
    assert_eq!(endpoint.erase_all(&Filter::new()).await.unwrap().changed, 0);
    assert!(!app.database.dump(&[]).await.has(NAME));
    let left = [pair("dead", "recorded"), pair("due", "recorded")];
    assert_eq!(states(&app.database).await, left);
}

#[tokio::test]
async fn q2_thousands_are_erased_in_batches() {
    let database = Database::new().await;
    for (state, time) in [
        ("processed", "archived_until"),
        ("due", "next_attempt_at"),
        ("dead", "died_at"),
    ] {
        database
            .run(&format!(
                "insert into idempotent_webhook.kept_deliveries
                     (endpoint, delivery_id, state, attempts, processed_at, last_failed_at, {time})
                 select 'test', '{state}-' || n, '{state}', 1, now() - interval '1 minute',
                     case when n % 2 = 0 then now() - interval '1 minute' end, now()
                 from generate_series(1, 1500) as n;
                 insert into idempotent_webhook.kept_requests
                     (endpoint, delivery_id, format, method, uri, headers, body)
                 select 'test', '{state}-' || n, 1, 'POST', '/', '', '{NAME}'
                 from generate_series(1, 1500) as n;
                 update idempotent_webhook.kept_deliveries
                 set first_received_at = now() - interval '1 minute'"
            ))
            .await;
    }
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    assert_eq!(
        endpoint.erase_all(&Filter::new()).await.unwrap().changed,
        4500
    );
    assert!(!database.dump(&[]).await.has(NAME));
    database
        .until(
            "3000 = (
                select count(*) from idempotent_webhook.kept_deliveries where state = 'recorded'
            )
            and 3000 = (select count(*) from idempotent_webhook.kept_deliveries)",
        )
        .await;
}

fn by_host() -> Provider {
    let tenant = |head: &axum::http::request::Parts| {
        Some(head.headers.get("x-tenant")?.to_str().ok()?.to_owned())
    };
    presets::github(TenantSecrets::new(tenant, async |_| {
        Ok(Some(Secret::new(SECRET)?))
    }))
}

#[tokio::test]
async fn q2_all_of_a_tenant_are_erased_also_where_ids_are_not_separate() {
    let set = |layer: IdempotentWebhook, recovery: &_| {
        layer.keep(Keep::failed(recovery).retry_delays([DAY]))
    };
    let app = TestApp::recovered(by_host(), set, quote).await;
    for (id, tenant) in [("a", "acme"), ("b", "acme"), ("c", "other")] {
        let mut request = delivery(id);
        let tenant = tenant.parse().unwrap();
        request.headers_mut().insert("x-tenant", tenant);
        assert_eq!(app.send(request).await.outcome, "kept");
    }
    let acme = Filter::new().tenant("acme");
    assert_eq!(endpoint(&app).erase_all(&acme).await.unwrap().changed, 2);
    let all = [
        pair("a", "recorded"),
        pair("b", "recorded"),
        pair("c", "due"),
    ];
    assert_eq!(states(&app.database).await, all);
    let both = acme.tenant("other");
    assert_eq!(endpoint(&app).erase_all(&both).await.unwrap().changed, 1);
    assert!(!app.database.dump(&[]).await.has(NAME));
}

/// The erasure waits for the attempt. What the attempt records afterwards has no effect.
#[tokio::test(flavor = "multi_thread")]
async fn q2_an_attempt_under_way_brings_no_content_back() {
    let (mut gate, handler) = failing_behind_gate();
    let set = |keep: Keep| keep.retry_delays([DAY]);
    let app = TestApp::keeping_all(set, handler).await;
    let sent = spawn_send(&app.router, github("a", NAME));
    gate.reached().await;
    let of = endpoint(&app);
    let erasing = tokio::spawn(async move { of.erase("a").await.unwrap() });
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    gate.open();
    assert!(erasing.await.unwrap());
    assert_eq!(sent.await.unwrap().status, 502);
    app.database.until(NONE_TAKEN).await;
    assert_kept!(app.database, "recorded", attempts: 1, retries: 0);
    assert!(!app.database.dump(&[]).await.has(NAME));
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// The delivery is erased, and the provider sends it again. An attempt from before the erasure, which holds no lock,
/// finishes only after that.
#[tokio::test(flavor = "multi_thread")]
async fn q2_an_attempt_of_before_has_no_effect_on_what_is_kept_anew() {
    let (mut gate, way) = gate();
    let handler = move |claim: LateClaim| {
        let way = way.clone();
        async move {
            way.pass().await;
            drop(claim);
            Err::<StatusCode, _>(HandlerError::new(NAME))
        }
    };
    let set = |layer: IdempotentWebhook, recovery: &_| {
        layer
            .late_claim()
            .keep(Keep::all(recovery).retry_delays([DAY]))
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    let sent = spawn_send(&app.router, delivery("a"));
    gate.reached().await;
    assert!(endpoint(&app).erase("a").await.unwrap());
    assert_kept!(app.database, "recorded", attempts: 1, retries: 0);

    let failing = async |_: DedupeTx| StatusCode::CONFLICT;
    let elsewhere = Process::new(app.database.another_pool(2).await, keep, failing);
    assert_eq!(
        send(&elsewhere.router, github("a", "{}")).await.outcome,
        "kept"
    );
    gate.open();
    assert_eq!(sent.await.unwrap().status, 500);
    assert_kept!(app.database, "due", attempts: 2, retries: 0);
    assert!(!app.database.dump(&[]).await.has(NAME));
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// With a late claim, the handler has the content before it begins its transaction. Until then, the handler holds no
/// lock that an erasure could wait for.
#[tokio::test(flavor = "multi_thread")]
async fn q2_a_late_claim_of_what_was_erased_has_no_effect() {
    let (mut gate, way) = gate();
    let handler = move |claim: LateClaim, delivery: Delivery| {
        let way = way.clone();
        async move {
            way.pass().await;
            let mut tx = claim.begin().await?;
            insert_effect(&mut tx, &delivery).await?;
            Ok::<_, HandlerError>(StatusCode::OK)
        }
    };
    let set = |layer: IdempotentWebhook, recovery: &_| {
        layer
            .late_claim()
            .keep(Keep::all(recovery).retry_delays([DAY]))
    };
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    let sent = spawn_send(&app.router, delivery("a"));
    gate.reached().await;
    assert!(endpoint(&app).erase("a").await.unwrap());
    gate.open();
    assert_eq!(sent.await.unwrap().status, 503);
    assert_kept!(app.database, "recorded", attempts: 1, retries: 0);
    assert!(!app.database.dump(&[]).await.has(NAME));
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// `reprocess` has deleted the claim, and somebody may have undone the effects of the delivery. If the provider sends
/// the delivery again, it is processed.
#[tokio::test]
async fn q2_what_was_to_be_reprocessed_and_is_erased_is_processed_if_it_is_sent_again() {
    let app = app_with(&["good"]).await;
    let endpoint = endpoint(&app);
    let reprocessed = endpoint.reprocess("good").await.unwrap();
    assert_eq!(reprocessed, Reprocessed::Due);
    assert!(endpoint.erase("good").await.unwrap());
    assert!(!app.database.dump(&[]).await.has(NAME));
    assert_rows!(app.database, claims: 0, effects: 1);
    assert_eq!(app.send(delivery("good")).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn q2_retention_erases_what_has_been_dead_for_some_time() {
    let app = app_with(&["good", "due", "dead"]).await;
    app.send(delivery("young")).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set last_failed_at = now() - interval '8 days' where delivery_id <> 'dead';
             update idempotent_webhook.kept_deliveries
             set state = 'dead', next_attempt_at = null, died_at = now() where delivery_id = 'young';
             -- The provider has sent it again since.
             update idempotent_webhook.kept_deliveries
             set died_at = now() - interval '8 days' where delivery_id = 'dead'",
        )
        .await;
    let retention = Retention::new(app.database.pool.clone(), 90 * DAY)
        .every(Duration::from_millis(100))
        .erase_dead_after(7 * DAY)
        .spawn();
    let erased = "exists (
        select from idempotent_webhook.kept_deliveries
        where delivery_id = 'dead' and state = 'recorded'
    )";
    app.database.until(erased).await;
    retention.stop().await;
    let all = [
        pair("dead", "recorded"),
        pair("due", "due"),
        pair("good", "processed"),
        pair("young", "dead"),
    ];
    assert_eq!(states(&app.database).await, all);
    app.database
        .until(
            "not exists (
                select from idempotent_webhook.kept_requests where delivery_id = 'dead'
            )
            and 3 = (select count(*) from idempotent_webhook.kept_requests)",
        )
        .await;
}

/// A transaction that deletes many bodies takes long, and a delivery that waits for one of its rows waits until it has
/// finished.
#[tokio::test]
async fn growth_1_no_transaction_deletes_more_than_16_mib_of_bodies() {
    const MIB: i64 = 1024 * 1024;
    let database = Database::new().await;
    database
        .run(
            "create table deleted (xid xid8 default pg_current_xact_id(), bytes bigint);
             create function note() returns trigger language plpgsql as
                 $$ begin insert into deleted (bytes) values (octet_length(old.body)); return null; end $$;
             create trigger note after delete on idempotent_webhook.kept_requests
                 for each row execute function note()",
        )
        .await;
    database.has_window("test", "1 hour").await;
    let all = Endpoint::new(database.pool.clone(), "test");
    for way in ["erase", "discard", "dead", "old", "resolved"] {
        database
            .run(
                "insert into idempotent_webhook.kept_deliveries
                     (endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, died_at, body_bytes)
                 select 'test', n, 'dead', 1, now() - interval '9 days', now() - interval '9 days',
                     now() - interval '9 days', 1048576
                 from generate_series(1, 40) as n;
                 insert into idempotent_webhook.kept_requests
                     (endpoint, delivery_id, format, method, uri, headers, body)
                 select 'test', n, 1, 'POST', '/', '', convert_to(repeat('a', 1048576), 'UTF8')
                 from generate_series(1, 40) as n",
            )
            .await;
        let soon = Duration::from_millis(10);
        let retention = Retention::new(database.pool.clone(), 30 * DAY).every(soon);
        let deleted = match way {
            "erase" => all.erase_all(&Filter::new()).await.unwrap().changed,
            "discard" => all.discard_all(&Filter::new()).await.unwrap().changed,
            _ => {
                if way == "resolved" {
                    database
                        .run(
                            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
                             select 'test', n from generate_series(1, 40) as n",
                        )
                        .await;
                }
                let task = match way {
                    "dead" => retention.erase_dead_after(DAY),
                    "old" => Retention::new(database.pool.clone(), 3 * DAY).every(soon),
                    _ => retention,
                }
                .spawn();
                database
                    .until("not exists (select from idempotent_webhook.kept_requests)")
                    .await;
                task.stop().await;
                40
            }
        };
        assert_eq!(deleted, 40, "{way}");
        let most = "select max(bytes)::int8 from (select sum(bytes) as bytes from deleted group by xid) as by_transaction";
        assert_eq!(database.count(most).await, 16 * MIB, "{way}");
        assert_eq!(
            database.count("select count(*) from deleted").await,
            40,
            "{way}"
        );
        database
            .run("delete from idempotent_webhook.kept_deliveries; truncate deleted")
            .await;
    }
}
