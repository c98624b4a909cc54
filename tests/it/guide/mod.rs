//! The README and the guide are correct: their SQL runs, their tests pass, and the crate's promise has the same wording
//! everywhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
use idempotent_webhook::{
    DedupeTx, HandlerError, IdempotentWebhook, Keep, Recovery, Secret, presets,
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgPool, Row};

use crate::support::Database;

mod backups;
mod checked;
mod contributing;
mod first_handler;
mod leaving;
mod links;
mod missing;
mod moving_in;
mod numbers;
pub mod personal_data;
mod quotations;
mod recipes;
mod rooms;
mod unique_index;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages of the guide and the README.
fn pages() -> Vec<(PathBuf, String)> {
    let guide = fs::read_dir(root().join("src/documentation")).unwrap();
    let pages = guide.map(|page| page.unwrap().path());
    pages
        .filter(|page| page.extension().is_some_and(|extension| extension == "md"))
        .chain([root().join("README.md")])
        .map(|page| {
            let text = fs::read_to_string(&page).unwrap();
            (page, text)
        })
        .collect()
}

/// A page of the guide.
fn page(name: &str) -> String {
    fs::read_to_string(root().join("src/documentation").join(name)).unwrap()
}

fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let blocks = page.split(&*fence).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().trim_end())
        .collect()
}

/// Citus has its own test, because it needs a server that no package installs.
fn needs_citus(sql: &str) -> bool {
    sql.contains("create_distributed_table")
}

/// The statement to run. If the SQL defines a `pg_cron` job, this is the statement of the job.
fn statement(sql: &str) -> &str {
    sql.split("$$").nth(1).unwrap_or(sql)
}

#[tokio::test]
async fn each_statement_of_the_guide_runs() {
    let database = Database::new().await;
    // Tables of the application.
    database.run(moving_in::PROCESSED_EVENTS).await;
    let payments = "create table payments (event_id text, amount bigint)";
    database.run(payments).await;
    let mut connection = database.pool.acquire().await.unwrap();
    let mut ran = 0;
    for (page, text) in pages() {
        for sql in blocks(&text, "sql")
            .into_iter()
            .filter(|sql| !needs_citus(sql))
        {
            // Each statement is rolled back. The role of the guide's application does not exist here.
            let sql = statement(sql).replace(" to app;", " to current_user;");
            let mut transaction = connection.begin().await.unwrap();
            let run = transaction.execute(AssertSqlSafe(&*sql)).await;
            run.unwrap_or_else(|error| panic!("{}: {error}: {sql}", page.display()));
            transaction.rollback().await.unwrap();
            ran += 1;
        }
    }
    assert!(ran >= 7, "{ran}");
}

#[tokio::test]
async fn the_guide_tells_whether_an_event_arrived() {
    let database = Database::new().await;
    let query = blocks(&page("operating.md"), "sql")[0].to_owned();
    let state = async || {
        let rows = database
            .pool
            .fetch_all(AssertSqlSafe(&*query))
            .await
            .unwrap();
        rows.iter()
            .map(|row| row.get::<String, _>("state"))
            .collect::<Vec<_>>()
    };
    assert_eq!(state().await, [""; 0]);
    for (table, columns, values, expected) in [
        ("discarded", "", "", "discarded"),
        (
            "kept_deliveries",
            ", state, attempts",
            ", 'dead', 3",
            "dead",
        ),
        ("deliveries", "", "", "processed"),
    ] {
        let insert = format!(
            "delete from idempotent_webhook.discarded;
             delete from idempotent_webhook.kept_deliveries;
             insert into idempotent_webhook.{table} (endpoint, delivery_id{columns})
             values ('billing', 'evt_1Qx'{values}), ('billing', 'evt_2'{values})"
        );
        database.run(&insert).await;
        assert_eq!(state().await, [expected]);
    }
}

/// The application that the guide's function `app` returns for the guide's tests.
struct App {
    router: Router,
}

fn app(pool: PgPool, secret: Secret) -> App {
    let recovery = Recovery::new(pool.clone());
    let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret))
        .keep(Keep::failed(&recovery));
    let router = Router::new().route("/webhooks/stripe", post(payment).layer(stripe));
    App { router }
}

async fn payment(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    sqlx::query("insert into payments default values")
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}

/// The same tests as in the guide, except for the folder of the migrations.
mod with_sqlx_test {
    use axum::body::Body;
    use tower::ServiceExt;

    use super::*;

    #[sqlx::test(migrations = "tests/it/guide/migrations")]
    #[ignore = "the test below runs it, with a `DATABASE_URL`"]
    async fn a_payment_is_booked_once(pool: PgPool) {
        idempotent_webhook::migrate(&pool).await.unwrap();
        let secret = Secret::new("whsec_test").unwrap();
        let app = app(pool.clone(), secret.clone());
        let paid = TestDelivery::new(&presets::stripe(secret))
            .uri("/webhooks/stripe")
            .event_type("invoice.paid")
            .body(r#"{"created":1,"data":{"object":{"id":"in_1","amount_paid":4200}}}"#);

        let payments = async || -> i64 {
            let count = sqlx::query_scalar("select count(*) from payments");
            count.fetch_one(&pool).await.unwrap()
        };
        assert_idempotent(&app.router, &paid, payments).await;
    }

    #[sqlx::test(migrations = "tests/it/guide/migrations")]
    #[ignore = "the test below runs it, with a `DATABASE_URL`"]
    async fn a_forged_payment_is_rejected(pool: PgPool) {
        idempotent_webhook::migrate(&pool).await.unwrap();
        let secret = Secret::new("whsec_test").unwrap();
        let app = app(pool, secret.clone());
        let paid = TestDelivery::new(&presets::stripe(secret)).uri("/webhooks/stripe");

        for forged in [paid.tampered(), paid.expired(), paid.unsigned()] {
            let request = forged.request::<Body>();
            let response = app.router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        }
    }

    /// The test leaves no connection open, because its database could not be dropped while one is open.
    #[sqlx::test(migrations = "tests/it/guide/migrations")]
    #[ignore = "the test below runs it, with a `DATABASE_URL`"]
    async fn what_is_kept_is_run_again(pool: PgPool) {
        idempotent_webhook::migrate(&pool).await.unwrap();
        let provider = presets::stripe(Secret::new("whsec_test").unwrap());
        let recovery = Recovery::new(pool.clone());
        let layer = IdempotentWebhook::new(pool, "billing", provider.clone());
        let layer = layer.keep(Keep::all(&recovery));
        let app = Router::new().route("/", post(StatusCode::CONFLICT).layer(layer));
        let paid = TestDelivery::new(&provider).request::<Body>();
        let response = app.clone().oneshot(paid).await.unwrap();
        assert_eq!(response.status(), StatusCode::CONFLICT);
        recovery.run_due(&app).await.unwrap();
    }
}

#[tokio::test]
async fn the_tests_of_the_guide_pass() {
    let database = Database::empty().await;
    // The module's name without the crate's name, as the test runner shows it.
    let (_, module) = module_path!().split_once("::").unwrap();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--nocapture",
            &format!("{module}::with_sqlx_test::"),
        ])
        .env("DATABASE_URL", database.options().to_url_lossy().as_str())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("3 passed"), "{said}");
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert!(
        !complained.contains("failed to delete database"),
        "{complained}"
    );

    // The tests above are the same as in the guide.
    let here = include_str!("mod.rs");
    let guide = page("testing.md");
    for name in ["a_payment_is_booked_once", "a_forged_payment_is_rejected"] {
        let name = format!("{name}(pool");
        assert_eq!(function(here, &name), function(&guide, &name));
    }
}

/// The lines of a function whose signature starts with `name`, without their indentation.
fn function(text: &str, name: &str) -> Vec<String> {
    let begin = text.find(&format!("async fn {name}")).unwrap();
    let indent = text[..begin].rsplit('\n').next().unwrap().len();
    let lines = text[begin..].lines().map(|line| line.trim().to_owned());
    let end = format!("{}}}", " ".repeat(indent));
    let count = text[begin..].lines().position(|line| line == end).unwrap();
    lines.take(count).collect()
}

#[test]
fn the_promise_is_worded_once() {
    let promise = include_str!("../../../src/documentation/promise.md");
    assert!(include_str!("../../../README.md").contains(promise));
}

/// Every page that builds an application, including the README and the page for programs, has the same form: `app`
/// returns an `App`, which has a router and a recovery handle.
#[test]
fn each_page_has_the_same_form_of_an_application() {
    const FORM: [&str; 2] = ["router: Router", "recovery: Recovery"];
    let for_programs = root().join("llms.txt");
    let text = fs::read_to_string(&for_programs).unwrap();
    let mut forms = 0;
    for (page, text) in pages().into_iter().chain([(for_programs, text)]) {
        let page = page.display();
        // Applications with actix-web have no router.
        for block in text.split("```").filter(|block| block.contains("axum")) {
            let builds = block.split("fn app(").nth(1);
            let returned = builds.and_then(|function| function.split('{').next()?.split_once("->"));
            if let Some((_, returned)) = returned {
                let returned = returned.trim();
                assert!(
                    ["App", "Result<App, Box<dyn std::error::Error>>"].contains(&returned),
                    "{page}: {returned}"
                );
            }
            let Some((_, members)) = block
                .split_once("\npub struct App {")
                .or_else(|| block.split_once("\nstruct App {"))
            else {
                continue;
            };
            let members = members.split('}').next().unwrap().replace("pub ", "");
            let members = members
                .lines()
                .map(str::trim)
                .filter(|member| !member.is_empty());
            let members: Vec<_> = members.collect();
            for (member, expected) in members.iter().zip(FORM) {
                assert!(member.starts_with(expected), "{page}: {member}");
            }
            assert!(members.len() >= FORM.len(), "{page}: {members:?}");
            forms += 1;
        }
    }
    assert!(forms >= 7, "{forms}");
}

/// The statements of a page from the signal to the end of the process, without the statements that print the unfinished
/// work.
fn ending(text: &str) -> Option<String> {
    let (_, ending) = text.split_once("    stopped().await;\n")?;
    let (ending, _) = ending.split_once("exit(0)")?;
    let lines = ending.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with("//") && !line.starts_with("eprintln!"));
    Some(lines.collect::<String>().replace("let unfinished = ", ""))
}

/// Each page stops its process with the same statements as `tests/under_fire/shutdown.rs`. That test delays the stop
/// with senders, handlers and hooks.
#[test]
fn b4_each_page_ends_as_the_process_of_the_tests() {
    let tested = ending(include_str!("../../under_fire/shutdown.rs")).unwrap();
    let for_programs = fs::read_to_string(root().join("llms.txt")).unwrap();
    let pages = pages().into_iter();
    let pages = pages.map(|(path, text)| (path.display().to_string(), text));
    let mut ends = 0;
    for (page, text) in pages.chain([("llms.txt".to_owned(), for_programs)]) {
        for block in text
            .split("```")
            .filter(|block| block.contains("with_graceful_shutdown("))
        {
            assert_eq!(ending(block).as_ref(), Some(&tested), "{page}");
            ends += 1;
        }
    }
    assert!(ends >= 6, "{ends}");
}
