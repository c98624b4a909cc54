//! Lists that cannot be reconciled, and events that cannot be run.

use std::time::SystemTime;

use axum::Router;
use axum::http::HeaderName;
use axum::http::request::Parts;
use axum::routing::post;
use idempotent_webhook::reconcile::{ListedEvent, ReconcileError};
use idempotent_webhook::{
    IdempotentWebhook, Keep, Provider, Reconcile, Recovery, Secret, Source, TenantSecrets, presets,
};

use super::{List, MINUTE, Process, effects, handle, missed};
use crate::support::{Database, acme, logged, recovery, secret, stripe_event, until_logged};

fn refused(recovery: &Recovery, provider: Provider) -> String {
    let pool = sqlx::PgPool::connect_lazy("postgres://nowhere").unwrap();
    let layer = IdempotentWebhook::new(pool, "test", provider).keep(Keep::failed(recovery));
    match Reconcile::new(&layer, List::empty(), "/") {
        Ok(_) => "built".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn n3_a_key_that_the_list_cannot_give_is_refused_when_it_is_built() {
    let pool = sqlx::PgPool::connect_lazy("postgres://nowhere").unwrap();
    let recovery = Recovery::new(pool.clone());
    let id = HeaderName::from_static("x-id");
    let json = |path: &str| Source::json(path.parse().unwrap());
    let by_header = refused(&recovery, acme(Source::header(id.clone())));
    assert_eq!(
        by_header,
        "the list cannot be reconciled: the delivery id is header x-id, and the list does not give the header x-id"
    );
    for source in [
        Source::body_digest(),
        Source::signed_time(),
        Source::receipt(),
        json("$.id").and(Source::signed_time()),
        Source::header(id).or(json("$.id")),
    ] {
        let text = refused(&recovery, acme(source.clone()));
        assert!(
            text.starts_with("the list cannot be reconciled"),
            "{source}: {text}"
        );
    }
    assert_eq!(refused(&recovery, acme(json("$.id"))), "built");
    assert_eq!(
        refused(&recovery, acme(json("$.a").and(json("$.b")))),
        "built"
    );

    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::stripe(secret()));
    let kept = Reconcile::new(&layer, List::empty(), "/");
    assert!(matches!(kept, Err(ReconcileError::NothingKept)), "{kept:?}");
    let layer = layer.keep(Keep::failed(&recovery));
    for path in ["", "no path", "https://example.com/hooks", "hooks"] {
        let built = Reconcile::new(&layer, List::empty(), path);
        assert!(
            matches!(built, Err(ReconcileError::Path(_))),
            "{path}: {built:?}"
        );
    }
}

#[tokio::test]
async fn n2_what_cannot_be_run_is_told_and_does_not_stop_the_rest() {
    logged(async {
        let database = Database::new().await;
        let process = Process::with(database.pool.clone(), |keep| keep.body_limit(200));
        let list = List::of([("evt_1", MINUTE)]);
        let event = |body: String| ListedEvent::new(SystemTime::now() - MINUTE, body);
        list.add_event(event(
            r#"{"id":"large","filler":"#.to_owned() + &format!("{:?}}}", "x".repeat(300)),
        ));
        list.add_event(event(r#"{"no":"id"}"#.to_owned()));
        list.add_event(event(stripe_event("older")).unusable("its API version is 2019-02-19"));
        list.add("evt_2", MINUTE);
        let found = process.reconcile(&list).dry_run().await.unwrap();
        let problems: Vec<_> = found
            .iter()
            .filter_map(|one| one.unusable.clone())
            .collect();
        assert_eq!(
            problems,
            [
                "its body is larger than `Keep::body_limit`",
                "its API version is 2019-02-19"
            ]
        );
        let round = process.reconcile(&list).run_once().await.unwrap();
        assert_eq!((round.missed, round.unusable), (2, 3));
        assert_eq!(process.run_due().await, 2);
        assert_eq!(effects(&database).await, ["evt_1#", "evt_2#"]);
        until_logged("cannot be run").await;
        database
            .until(
                "exists (
                select from idempotent_webhook.reconciliations
                where failure = 'large: its body is larger than `Keep::body_limit`'
                    and missed = 2
                    and not exists (select from idempotent_webhook.turns where process is not null)
            )",
            )
            .await;
    })
    .await;
}

#[tokio::test]
async fn n2_the_quota_is_kept_to_and_the_rest_follows_once_there_is_room() {
    let database = Database::new().await;
    let process = Process::with(database.pool.clone(), |keep| keep.quota(2, 1_000_000));
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at, status)
             select 'test', 'dead-' || n, 'dead', 1, now(), 500 from generate_series(1, 3) as n",
        )
        .await;
    let list = List::of([("evt_1", MINUTE)]);
    // The first round makes the layer count its kept deliveries for the quota.
    assert_eq!(missed(&process.reconcile(&list)).await.unwrap(), 1);
    for n in 2..100 {
        list.add(&format!("evt_{n}"), MINUTE);
        match missed(&process.reconcile(&list)).await {
            Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            Err(error) => {
                assert!(matches!(error, ReconcileError::QuotaExhausted), "{error}");
                break;
            }
        }
        assert!(n < 99, "the quota is not enforced");
    }
    database
        .run("delete from idempotent_webhook.kept_deliveries where state = 'dead'")
        .await;
    process.run_due().await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(missed(&process.reconcile(&list)).await.unwrap(), 1);
}

#[tokio::test]
async fn n3_the_path_says_for_which_tenant() {
    let database = Database::new().await;
    let in_path = |head: &Parts| Some(head.uri.path().strip_prefix("/hooks/")?.to_owned());
    let secrets = TenantSecrets::new(in_path, async |tenant: String| {
        Ok((tenant == "acme")
            .then(|| Secret::new("a secret"))
            .transpose()?)
    });
    let recovery = recovery(&database.pool);
    let provider = presets::stripe(secrets.separate_ids());
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", provider)
        .keep(Keep::failed(&recovery));
    let router: Router = Router::new().route("/hooks/{tenant}", post(handle).layer(layer.clone()));
    let list = List::of([("evt_1", MINUTE)]);
    let of = |tenant: &str| {
        Reconcile::new(&layer, list.clone(), &format!("/hooks/{tenant}"))
            .unwrap()
            .grace(std::time::Duration::ZERO)
            .since(SystemTime::UNIX_EPOCH)
    };
    let unknown = missed(&of("nobody")).await;
    assert!(
        matches!(unknown, Err(ReconcileError::Tenant(_))),
        "{unknown:?}"
    );
    assert_eq!(missed(&of("acme")).await.unwrap(), 1);
    assert_eq!(recovery.run_due(&router).await.unwrap().len(), 1);
    database
        .until("exists (select from idempotent_webhook.deliveries where tenant = 'acme' and delivery_id = 'evt_1')")
        .await;
}
