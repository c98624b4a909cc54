//! Mistakes that an application can make, and how its developer learns about each.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Outcome, Provider, Recovery, Secret,
    TenantSecrets, VerifiedWebhook, presets,
};
use tower::ServiceExt;

use crate::support::{
    Database, TestApp, answer, assert_rows, github, github_delivery, insert_effect, let_pass,
    logged, now, record, secret, send, shopify, stripe, stripe_event, write_effect,
};

fn with_method(method: Method) -> Request<Body> {
    let mut request = github("a", "{}");
    *request.method_mut() = method;
    request
}

/// Browsers, scanners and uptime checks send requests with methods other than POST.
#[tokio::test]
async fn g1_another_method_is_a_405_with_one_warning() {
    let app = TestApp::github(write_effect).await;
    let response = app.router.clone().oneshot(with_method(Method::GET));
    let response = response.await.unwrap();
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "POST");
    assert_eq!(
        send(&app.router, with_method(Method::GET)).await,
        answer(405, "rejected", "method not allowed")
    );
    let log = logged(async {
        app.send(with_method(Method::DELETE)).await;
    })
    .await;
    assert!(log.contains("webhook rejected status=405"), "{log}");
    assert!(!log.contains("WARN"), "only the first is a warning: {log}");
    let another = TestApp::github(write_effect).await;
    let log = logged(async {
        another.send(with_method(Method::GET)).await;
    })
    .await;
    assert!(
        log.contains("put the layer on the webhook's route only"),
        "{log}"
    );
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn g1_no_method_gets_past_the_layer_unverified() {
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    async fn page() -> &'static str {
        "a page"
    }
    let covered = Router::new().route("/", get(page).post(write_effect).layer(layer.clone()));
    let beside = Router::new().route("/", post(write_effect).layer(layer).get(page));
    let get = || Request::get("/").body(Body::empty()).unwrap();
    assert_eq!(send(&covered, get()).await.status, 405);
    assert_eq!(send(&beside, get()).await.body, "a page");
    let forged = Request::post("/").body(Body::empty()).unwrap();
    assert_eq!(send(&beside, forged).await.status, 401);
    assert_eq!(send(&beside, github("a", "{}")).await.outcome, "processed");
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn a_provider_that_uses_another_method_says_so() {
    let provider = presets::github(secret()).methods([Method::PUT, Method::POST]);
    let database = Database::new().await;
    let sent = TestDelivery::new(&provider).id("b");
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", provider);
    let router = Router::new().route("/", post(write_effect).put(write_effect).layer(layer));
    assert_eq!(sent.request::<Body>().method(), Method::PUT);
    assert_eq!(send(&router, sent.request()).await.outcome, "processed");
    assert_eq!(send(&router, github("a", "{}")).await.outcome, "processed");
    assert_eq!(send(&router, with_method(Method::PATCH)).await.status, 405);
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test]
async fn a_layer_around_a_router_is_told_from_a_handler_that_failed() {
    let app = TestApp::github(write_effect).await;
    let pool = app.database.pool.clone();
    let layer = IdempotentWebhook::new(pool, "router", presets::github(secret()));
    let router = Router::new()
        .route("/known", post(write_effect))
        .layer(layer);
    let log = logged(async {
        let answer = send(&router, github("a", "{}")).await;
        assert_eq!((answer.status, &*answer.outcome), (404, "failed"));
    })
    .await;
    assert!(log.contains("put the layer on the route"), "{log}");

    // A handler may itself answer 404, and then the log does not suggest this mistake.
    let missing = TestApp::github(async |_: DedupeTx| StatusCode::NOT_FOUND).await;
    let log = logged(async {
        assert_eq!(missing.send(github("a", "{}")).await.status, 404);
    })
    .await;
    assert!(
        log.contains("webhook rolled back") && !log.contains("put the layer"),
        "{log}"
    );
}

#[tokio::test]
async fn two_layers_with_one_endpoint_are_a_warning_whether_they_keep_or_not() {
    const WARNING: &str = "two webhook layers have the same endpoint";
    let (database, other_database) = (Database::new().await, Database::new().await);
    for keeps in [false, true] {
        let route = |endpoint: &str, database: &Database| {
            let pool = database.pool.clone();
            let github = presets::github(secret());
            let mut layer = IdempotentWebhook::new(pool.clone(), endpoint.to_owned(), github);
            if keeps {
                // No task runs for this recovery.
                layer = layer.keep(Keep::failed(&Recovery::new(pool)));
            }
            let two = Router::<()>::new().route("/one", post(write_effect).layer(layer.clone()));
            two.route("/two", post(write_effect).layer(layer))
        };
        let log = logged(async {
            let _first = route("shared", &database);
            let _another = route("another", &database);
            let _elsewhere = route("shared", &other_database);
        })
        .await;
        assert!(!log.contains(WARNING), "{log}");

        let log = logged(async {
            let _first = route("shared", &database);
            let _second = route("shared", &database);
        })
        .await;
        assert!(
            log.contains(WARNING) && log.contains("WARN") && log.contains(r#"endpoint="shared""#),
            "{log}"
        );

        let log = logged(async {
            let _next = route("shared", &database);
        })
        .await;
        assert!(!log.contains(WARNING), "the earlier layers are gone: {log}");
    }
}

#[tokio::test]
async fn the_reason_of_a_handler_reaches_the_log_and_the_record() {
    async fn fails(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
        insert_effect(&mut tx, &delivery).await?;
        match delivery.id().as_str() {
            "sql" => {
                sqlx::query("select no_such_column")
                    .execute(&mut *tx)
                    .await?;
            }
            "text" => Err("no such order")?,
            _ => return Err(HandlerError::new("not yet").status(StatusCode::CONFLICT)),
        }
        Ok(StatusCode::OK)
    }
    let app = TestApp::keeping(record, fails).await;
    for (id, status, reason) in [
        (
            "sql",
            500,
            // The reason does not contain the second line of sqlx's message, which locates the error in the source code
            // of Postgres.
            r#"error returned from database: column "no_such_column" does not exist"#,
        ),
        ("text", 500, "no such order"),
        ("status", 409, "not yet"),
    ] {
        let log = logged(async {
            let answer = app.send(github(id, "{}")).await;
            assert_eq!((answer.status, &*answer.body), (status, ""));
        })
        .await;
        assert!(log.contains(&format!("reason={reason:?}")), "{log}");
        let recorded: (i16, String) = sqlx::query_as(
            "select status, reason
             from idempotent_webhook.failing_deliveries
             where delivery_id = $1",
        )
        .bind(id)
        .fetch_one(&app.database.pool)
        .await
        .unwrap();
        assert_eq!(recorded.0.cast_unsigned(), status);
        assert_eq!(recorded.1, reason);
    }
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// An error type of the application, with its own response body.
#[tokio::test]
async fn an_error_of_the_application_can_carry_a_reason() {
    struct AppError(std::io::Error);
    impl IntoResponse for AppError {
        fn into_response(self) -> Response {
            let status = StatusCode::BAD_GATEWAY;
            (status, HandlerError::from(self.0), "try later").into_response()
        }
    }
    let app = TestApp::github(async |_: DedupeTx| -> Result<(), AppError> {
        Err(AppError(std::io::Error::other("the bank is closed")))
    })
    .await;
    let log = logged(async {
        assert_eq!(
            app.send(github("a", "{}")).await,
            answer(502, "failed", "try later")
        );
    })
    .await;
    assert!(log.contains("the bank is closed"), "{log}");
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn a_handler_may_serve_routes_with_and_without_the_layer() {
    async fn either(tx: Option<DedupeTx>, delivery: Option<Delivery>) -> Json<serde_json::Value> {
        Json(serde_json::json!([
            tx.is_some(),
            delivery.as_ref().map(Delivery::id)
        ]))
    }
    let app = TestApp::github(either).await;
    let with = app.send(github("a", "{}")).await;
    assert_eq!((with.status, &*with.body), (200, r#"[true,"a"]"#));
    let plain = Router::new().route("/", post(either));
    let without = send(&plain, github("a", "{}")).await;
    assert_eq!((without.status, &*without.body), (200, "[false,null]"));
    assert_rows!(app.database, claims: 1, effects: 0);
}

#[tokio::test]
async fn the_outcome_is_in_the_extensions_of_every_response() {
    let app = TestApp::github(write_effect).await;
    let tampered = TestDelivery::new(&presets::github(secret())).tampered();
    for (request, outcome) in [
        (github("a", "{}"), Outcome::Processed),
        (github("a", "{}"), Outcome::Duplicate),
        (tampered.request(), Outcome::Rejected),
    ] {
        let response = app.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.extensions().get(), Some(&outcome));
        let header = &response.headers()[idempotent_webhook::OUTCOME_HEADER];
        assert_eq!(header, outcome.as_str());
        assert_eq!(outcome.to_string(), outcome.as_str());
    }
    assert_rows!(app.database, claims: 1, effects: 1);
}

fn panic_of<T>(build: impl FnOnce() -> T) -> String {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(build)) {
        Ok(_) => "no panic".to_owned(),
        Err(panic) => panic.downcast_ref::<String>().unwrap().clone(),
    }
}

/// The developer sees the error when the application starts, not when the first delivery is rejected.
#[tokio::test]
async fn an_unusable_secret_is_refused_at_start() {
    let database = Database::new().await;
    let not_base64 = || Secret::new("whsec_not base64").unwrap();
    let provider = presets::standard_webhooks(not_base64());
    let error = provider.check_secrets().unwrap_err().to_string();
    assert!(error.contains("Standard Webhooks needs"), "{error}");
    assert!(
        !error.contains("not base64"),
        "the error shows the secret: {error}"
    );
    let pool = database.pool.clone();
    let message = panic_of(|| IdempotentWebhook::new(pool, "test", provider));
    assert!(
        message.starts_with(r#"endpoint "test": the webhook secret"#),
        "{message}"
    );

    // Secrets of other schemes, and secrets that are looked up later, are accepted.
    assert!(presets::stripe(not_base64()).check_secrets().is_ok());
    let looked_up = TenantSecrets::new(
        |_| Some("acme".to_owned()),
        async |_| Ok(Some(idempotent_webhook::Secrets::new(Secret::new("?")?))),
    );
    assert!(presets::svix(looked_up).check_secrets().is_ok());
}

#[tokio::test]
async fn an_unusable_endpoint_is_refused_at_start() {
    let database = Database::empty().await;
    let long = "x".repeat(256);
    for (endpoint, fault) in [
        (" ", "blank"),
        (&*long, "longer than 255 bytes"),
        ("a\nb", "not free of control characters"),
    ] {
        let (pool, endpoint) = (database.pool.clone(), endpoint.to_owned());
        let message =
            panic_of(|| IdempotentWebhook::new(pool, endpoint, presets::github(secret())));
        assert!(message.ends_with(fault), "{message}");
    }
}

#[tokio::test]
async fn a_savepoint_that_was_not_committed_is_a_warning() {
    async fn forgets(mut tx: DedupeTx, delivery: Delivery) -> Result<(), HandlerError> {
        let id = delivery.id().as_str();
        let mut savepoint = tx.begin().await?;
        if id != "unused" {
            sqlx::query("insert into effects values ('lost')")
                .execute(&mut *savepoint)
                .await?;
        }
        match id {
            "rollback" => savepoint.rollback().await?,
            "commit" => savepoint.commit().await?,
            "nested" => {
                savepoint.begin().await?.commit().await?;
                drop(savepoint);
            }
            "transaction" => {
                drop(savepoint);
                let failed = tx.transaction(|savepoint| {
                    Box::pin(async move {
                        sqlx::query("insert into effects values ('lost')")
                            .execute(&mut **savepoint)
                            .await?;
                        Err::<(), _>(sqlx::Error::RowNotFound)
                    })
                });
                assert!(failed.await.is_err());
            }
            _ => drop(savepoint),
        }
        Ok(())
    }
    let app = TestApp::github(forgets).await;
    for (id, warned) in [
        ("dropped", true),
        ("nested", true),
        ("transaction", true),
        ("unused", false),
        ("rollback", false),
        ("commit", false),
    ] {
        let log = logged(async {
            assert_eq!(app.send(github(id, "{}")).await.outcome, "processed");
        })
        .await;
        assert_eq!(
            log.contains("has dropped a savepoint"),
            warned,
            "{id}: {log}"
        );
    }
    assert_rows!(app.database, claims: 6, effects: 1);

    // If a delivery fails, everything is rolled back anyway.
    let app = TestApp::github(async |mut tx: DedupeTx| {
        let mut savepoint = tx.begin().await.unwrap();
        sqlx::query("insert into effects values ('lost')")
            .execute(&mut *savepoint)
            .await
            .unwrap();
        StatusCode::CONFLICT
    })
    .await;
    let log = logged(async {
        assert_eq!(app.send(github("a", "{}")).await.outcome, "failed");
    })
    .await;
    assert!(!log.contains("savepoint"), "{log}");
}

/// One role runs the migrations, and another role runs the application.
#[tokio::test]
async fn a_role_without_rights_may_migrate_what_is_up_to_date() {
    let database = Database::new().await;
    let role = format!("plain_{}", database.name);
    database
        .run(&format!(
            "create role {role} login;
             grant usage on schema idempotent_webhook to {role};
             grant select, insert, update, delete on all tables in schema idempotent_webhook to {role}"
        ))
        .await;
    let options = database.options().username(&role);
    let pool = sqlx::PgPool::connect_lazy_with(options);
    idempotent_webhook::migrate(&pool).await.unwrap();

    // The role may also call `migrate` if the tables belong to a later version.
    let later = "insert into idempotent_webhook.migrations (version, description, success, checksum, execution_time)
                 values (9999, 'later', true, '', 0)";
    database.run(later).await;
    idempotent_webhook::migrate(&pool).await.unwrap();

    database
        .run("delete from idempotent_webhook.migrations where version = 3")
        .await;
    let refused = idempotent_webhook::migrate(&pool).await.unwrap_err();
    assert!(
        refused.to_string().contains("permission denied"),
        "{refused}"
    );
    pool.close().await;
    database
        .run(&format!("drop owned by {role}; drop role {role}"))
        .await;
}

/// A layer covers only the routes that were added before it. A test with `assert_idempotent` reports this mistake, and
/// so does the log if a handler extracts something that the layer provides.
#[tokio::test]
async fn a_layer_before_the_routes_is_found_by_a_test() {
    let database = Database::new().await;
    let layer = || IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let router = Router::new()
        .layer(layer())
        .route("/", post(async || "done"));
    assert_eq!(send(&router, github("a", "{}")).await.body, "done");
    let asserted = tokio::spawn(async move {
        assert_idempotent(&router, &github_delivery(), async || 0).await;
    });
    let panic = asserted.await.unwrap_err().into_panic();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("is the layer on this route?"), "{message}");

    let router = Router::new()
        .layer(layer())
        .route("/hooks/{tenant}", post(write_effect));
    let mut request = github("a", "{}");
    *request.uri_mut() = "/hooks/a-token?of=a-sender".parse().unwrap();
    let log = logged(async {
        assert_eq!(send(&router, request).await.status, 500);
    })
    .await;
    for part in [
        "the webhook handler could not be called",
        r#"method="POST" route="/hooks/{tenant}""#,
        "a layer covers only routes that were added before it",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(
        !log.contains("a-token") && !log.contains("a-sender"),
        "{log}"
    );
    assert_rows!(database, claims: 0, effects: 0);
}

/// The body was changed somewhere between the provider and the layer.
#[tokio::test]
async fn g13_a_body_that_nobody_signs_is_told_before_the_secret() {
    let app = TestApp::github(write_effect).await;
    let whole = "{\"name\":\"caf\u{e9}\"}";
    for (received, reason) in [
        (&b""[..], "the body is empty: the sender has sent none"),
        (
            b"{\"name\":\"ca",
            "the body is not complete JSON: it was cut off; signature",
        ),
        (b"{\"name\":\"caf\xe9\"}", "the body is not UTF-8"),
        (
            b"{\"name\": \"caf\xc3\xa9\"}",
            "signature matches none of the secrets",
        ),
    ] {
        let mut request = github("a", whole);
        *request.body_mut() = Body::from(received);
        let log = logged(async {
            assert_eq!(app.send(request).await.status, 401);
        })
        .await;
        let begins = format!("body_bytes={} reason=\"{reason}", received.len());
        assert!(log.contains(&begins), "{begins}: {log}");
        assert!(!log.contains("name\\\""), "{log}");
    }
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// A middleware has changed the body, but not the `Content-Length` header.
#[tokio::test]
async fn g13_a_body_of_another_length_than_was_announced_is_told_before_the_secret() {
    let app = TestApp::github(write_effect).await;
    let mut request = github("a", "{\"name\": \"ca\"}");
    request.headers_mut().insert("content-length", 14.into());
    *request.body_mut() = Body::from("{\"name\":\"ca\"}");
    let log = logged(async {
        assert_eq!(app.send(request).await.status, 401);
    })
    .await;
    let reason = "reason=\"Content-Length says 14 bytes, and 13 have arrived: a middleware outside of the layer";
    assert!(log.contains(reason), "{log}");
    // A length that matches the body is not a mistake.
    let mut request = github("a", "{}");
    request.headers_mut().insert("content-length", 2.into());
    assert_eq!(app.send(request).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// With Stripe, a signature may have any time in the future. If the clock of this host is behind, only this warning
/// reveals it.
#[tokio::test]
async fn g13_a_clock_that_is_behind_is_one_warning() {
    let app = TestApp::of(presets::stripe(secret()), write_effect).await;
    let log = logged(async {
        // The tolerance allows a difference of 290 seconds in the past, so the same difference in the future is no
        // reason to warn either.
        for (id, ahead) in [("evt_1", 0), ("evt_2", 290)] {
            let request = stripe(stripe_event(id), now() + ahead);
            assert_eq!(app.send(request).await.outcome, "processed");
        }
    })
    .await;
    assert!(!log.contains("is this clock behind?"), "{log}");
    let log = logged(async {
        for id in ["evt_3", "evt_4"] {
            let request = stripe(stripe_event(id), now() + 3600);
            assert_eq!(app.send(request).await.outcome, "processed");
        }
    })
    .await;
    assert_eq!(
        log.matches("webhook signed in the future: is this clock behind?")
            .count(),
        1,
        "{log}"
    );
    assert!(
        log.contains("WARN") && log.contains("limit_seconds=300"),
        "{log}"
    );
    assert_rows!(app.database, claims: 4, effects: 4);
}

const NOTHING_MATCHED: &str = "no name of the table has matched yet";

#[tokio::test]
async fn e1_a_table_that_is_spelt_in_another_way_is_one_warning() {
    let shopify_preset = presets::shopify(secret()).event_names_like::<String>([]);
    let only = |layer: IdempotentWebhook| layer.only(["ORDERS_CREATE"]);
    let app = TestApp::with(shopify_preset, only, write_effect).await;
    let log = logged(async {
        for id in ["a", "b"] {
            assert_eq!(app.send(shopify(id, "{}")).await.outcome, "ignored");
        }
    })
    .await;
    assert_eq!(log.matches(NOTHING_MATCHED).count(), 1, "{log}");
    assert!(
        log.contains("`ORDERS_CREATE` has another spelling"),
        "{log}"
    );
    assert!(log.contains(r#"event_type="orders/create""#), "{log}");
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn e1_a_table_that_matches_nothing_is_one_warning_and_one_that_has_matched_is_none() {
    for has_matched in [false, true] {
        let app = TestApp::github_with(|layer| layer.only(["push"]), write_effect).await;
        let log = logged(async {
            if has_matched {
                assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
            }
            for _ in 0..250 {
                let star = github_delivery().event_type("star");
                assert_eq!(app.send(star.request()).await.outcome, "ignored");
            }
        })
        .await;
        let expected = usize::from(!has_matched);
        assert_eq!(log.matches(NOTHING_MATCHED).count(), expected, "{log}");
        let claims = i64::from(has_matched);
        assert_rows!(app.database, claims: claims, effects: claims);
    }
}

/// The mistake is found when the layer is created.
#[tokio::test]
async fn a_missing_public_url_is_refused_at_start() {
    let database = Database::empty().await;
    let build = |provider: Provider| {
        let pool = database.pool.clone();
        panic_of(|| IdempotentWebhook::new(pool, "sms", provider))
    };
    let twilio = || presets::twilio(secret());
    let refused = "endpoint \"sms\": twilio signs the URL that it calls: set it with \
                   `Provider::public_url`";
    assert_eq!(build(twilio()), refused);
    assert_eq!(panic_of(|| VerifiedWebhook::new("sms", twilio())), refused);
    let url = "https://example.com".parse().unwrap();
    assert_eq!(build(twilio().public_url(url)), "no panic");
    // HubSpot's first signature version does not include the URL, and Contentful signs only the path.
    assert_eq!(build(presets::hubspot(secret())), "no panic");
    let contentful = presets::contentful(Secret::new("x".repeat(64)).unwrap());
    assert_eq!(build(contentful), "no panic");
}

/// Starts a process that runs another version of the application.
async fn process_with(database: &Database, endpoint: &'static str) -> (Router, IdempotentWebhook) {
    let pool = database.another_pool(5).await;
    let layer = IdempotentWebhook::new(pool, endpoint, presets::github(secret()));
    let router = Router::new().route("/", post(write_effect).layer(layer.clone()));
    (router, layer)
}

const NEW: &str = "this webhook endpoint is new";

#[tokio::test]
async fn an_endpoint_that_may_be_another_one_renamed_is_one_warning() {
    let database = Database::new().await;
    let log_of = async |endpoint| {
        logged(async {
            let (router, layer) = process_with(&database, endpoint).await;
            send(&router, github("a", "{}")).await;
            layer.drained().await;
        })
        .await
    };
    let log = log_of("billing").await;
    assert!(!log.contains(NEW), "there is no other endpoint: {log}");
    let log = log_of("payments").await;
    assert_eq!(log.matches(NEW).count(), 1, "{log}");
    let names = r#"endpoint="payments" not_served="billing""#;
    assert!(log.contains("WARN") && log.contains(names), "{log}");
    let log = log_of("payments").await;
    assert!(
        !log.contains(NEW),
        "the second process warns as well: {log}"
    );
    // The warning says that the endpoint may have been renamed. In that case, the delivery has been processed twice.
    assert_rows!(database, claims: 2, effects: 2);

    // A new process starts while two other processes run.
    let _others = [
        process_with(&database, "billing").await,
        process_with(&database, "payments").await,
    ];
    let log = log_of("refunds").await;
    assert!(!log.contains(NEW), "{log}");
}

/// The process no longer serves the endpoints `billing` and `payments` when it writes the last counts of their dropped
/// layers.
#[tokio::test]
async fn endpoints_whose_layers_are_dropped_are_not_taken_for_renamed_ones() {
    let database = Database::new().await;
    let log = logged(async {
        for endpoint in ["billing", "payments"] {
            let (router, layer) = process_with(&database, endpoint).await;
            assert_eq!(send(&router, github("a", "{}")).await.status, 200);
            drop((router, layer));
        }
        // Longer than the interval at which counts are written.
        let_pass(Duration::from_secs(6)).await;
        database
            .until("2 = (select count(*) from idempotent_webhook.endpoint_settings)")
            .await;
        // Leaves time for the task that writes the counts to look for renamed endpoints as well.
        database.run("select pg_sleep(0.3)").await;
    })
    .await;
    assert!(!log.contains(NEW), "{log}");
    assert_rows!(database, claims: 2, effects: 2);
}

/// Runs the statements of the guide.
#[tokio::test]
async fn an_endpoint_that_is_renamed_by_the_guide_knows_what_it_has_processed() {
    const RENAME: &str = include_str!("../../../src/documentation/rename_endpoint.sql");
    let database = Database::new().await;
    let fails = async || StatusCode::INTERNAL_SERVER_ERROR;
    {
        let pool = database.another_pool(5).await;
        let recovery = Recovery::new(pool.clone());
        let layer = IdempotentWebhook::new(pool, "billing", presets::github(secret()))
            .replay_guard()
            .keep(Keep::failed(&recovery));
        let router = Router::new()
            .route("/", post(write_effect).layer(layer.clone()))
            .route("/fails", post(fails).layer(layer.clone()));
        assert_eq!(send(&router, github("a", "{}")).await.outcome, "processed");
        let failing = github_delivery().id("b").body("[]").uri("/fails");
        assert_eq!(send(&router, failing.request()).await.outcome, "kept");
        layer.drained().await;
    }
    database.run(RENAME).await;
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.columns
         where table_schema = 'idempotent_webhook' and column_name = 'endpoint'",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert!(tables.len() > 10, "{tables:?}");
    for table in tables {
        let left =
            format!("select count(*) from idempotent_webhook.{table} where endpoint = 'billing'");
        assert_eq!(database.count(&left).await, 0, "{table}");
        assert!(
            RENAME.contains(&table)
                || table.starts_with("operator_action")
                || table == "failing_deliveries",
            "{table}"
        );
    }
    let kept = "select count(*) from idempotent_webhook.kept_deliveries
                join idempotent_webhook.kept_requests using (endpoint, tenant, delivery_id)
                where endpoint = 'payments' and state = 'due'";
    assert_eq!(database.count(kept).await, 1);

    let log = logged(async {
        let (router, layer) = process_with(&database, "payments").await;
        assert_eq!(send(&router, github("a", "{}")).await.outcome, "duplicate");
        layer.drained().await;
    })
    .await;
    assert!(!log.contains(NEW), "{log}");
    let claims = "select count(*) from idempotent_webhook.deliveries where endpoint = 'payments'";
    assert_eq!(database.count(claims).await, 1);
}
