//! Y1: a type that is ignored and never came before, and a handled type that has stopped, are told once over all processes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::post;
use idempotent_webhook::recovery::EndpointChange;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    Events, IdempotentWebhook, Keep, Provider, Recovery, TenantSecrets, presets,
};

use crate::support::{Database, assert_rows, recovery, secret, send, write_effect};

/// What hooks were told, in words.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn note(&self) -> impl Fn(&EndpointChange) + Send + Sync + 'static {
        let told = self.0.clone();
        move |change| {
            let subject = change.subject.as_deref().unwrap_or("no subject");
            let word = if change.is_over { "over" } else { "begun" };
            let text = format!("{}: {subject}, {word}", change.problem);
            told.lock().unwrap().push(text);
        }
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A process with a table of types, and a recovery that tells.
struct Process {
    layer: IdempotentWebhook,
    recovery: Recovery,
    router: Router,
    provider: Provider,
}

/// Ids of deliveries are never used twice.
static SENT: AtomicUsize = AtomicUsize::new(0);

impl Process {
    /// The types in `handled` have a handler, those in `ignored` are named, and all other types are ignored.
    async fn start(
        database: &Database,
        provider: Provider,
        told: &Told,
        handled: &[&str],
        ignored: &[&str],
    ) -> Self {
        let pool = database.another_pool(3).await;
        let recovery = recovery(&pool).on_change(told.note());
        let layer =
            IdempotentWebhook::new(pool, "test", provider.clone()).keep(Keep::failed(&recovery));
        let events = handled
            .iter()
            .fold(Events::new(), |events, name| events.on(*name, write_effect))
            .ignore(ignored.iter().copied())
            .ignore_others();
        let router = Router::new().route("/", post(events.layer(layer.clone())));
        Self {
            layer,
            recovery,
            router,
            provider,
        }
    }

    async fn stripe(database: &Database, told: &Told, handled: &[&str], ignored: &[&str]) -> Self {
        let stripe = presets::stripe(secret());
        Self::start(database, stripe, told, handled, ignored).await
    }

    /// An event of the type comes, and the process writes what it has counted.
    async fn gets(&self, event_type: &str) {
        self.get(event_type).await;
        self.layer.drained().await;
    }

    async fn get(&self, event_type: &str) {
        let id = format!("evt_{}", SENT.fetch_add(1, Ordering::Relaxed));
        let delivery = TestDelivery::new(&self.provider)
            .secret(secret())
            .id(&*id)
            .event_type(event_type)
            .body(format!(
                r#"{{"id":"{id}","type":"{event_type}","action":"opened"}}"#
            ));
        assert_eq!(send(&self.router, delivery.request()).await.status, 200);
    }

    /// Looks now, as each process does every half a minute.
    async fn looks(&self) {
        let running = self.recovery.clone().spawn(self.router.clone());
        // It ends after its first look.
        running.stop().await;
    }
}

/// What has come so far came this much earlier.
async fn time_passes(database: &Database, time: &str) {
    database
        .run(&format!(
            "update idempotent_webhook.event_types
             set first_at = first_at - interval '{time}', last_at = last_at - interval '{time}';
             update idempotent_webhook.endpoint_settings set types_since = types_since - interval '{time}'"
        ))
        .await;
}

async fn types(database: &Database) -> Vec<String> {
    sqlx::query_scalar("select event_type from idempotent_webhook.event_types order by event_type")
        .fetch_all(&database.pool)
        .await
        .unwrap()
}

const NO_PROBLEM: &str = "not exists (select from idempotent_webhook.problems)";

#[tokio::test(flavor = "multi_thread")]
async fn y1_a_renamed_type_is_told_once_over_processes_and_restarts_until_it_is_named() {
    let database = Database::new().await;
    let told = Told::default();
    let handled = ["message.received"];
    let one = Process::stripe(&database, &told, &handled, &[]).await;
    let other = Process::stripe(&database, &told, &handled, &[]).await;
    one.gets("message.received").await;
    // The endpoint learns for a day.
    other.gets("charge.updated").await;
    for process in [&one, &other] {
        process.looks().await;
    }
    assert_eq!(told.all(), [""; 0]);

    time_passes(&database, "25 hours").await;
    for process in [&one, &other] {
        process.gets("charge.updated").await;
        process.gets("message.received.v2").await;
        process.looks().await;
        process.gets("message.received.v2").await;
    }
    let begun = ["new event type: message.received.v2, begun"];
    assert_eq!(told.all(), begun);
    drop((one, other));
    let restarted = Process::stripe(&database, &told, &handled, &[]).await;
    restarted.looks().await;
    restarted.gets("message.received.v2").await;
    restarted.looks().await;
    assert_eq!(told.all(), begun);
    assert_eq!(
        types(&database).await,
        ["charge.updated", "message.received", "message.received.v2"]
    );

    // A deploy names it. Any request tells of its table.
    let deployed = Process::stripe(&database, &told, &handled, &["message.received.v2"]).await;
    deployed.gets("message.received").await;
    deployed.looks().await;
    restarted.looks().await;
    let both = [begun[0], "new event type: message.received.v2, over"];
    assert_eq!(told.all(), both);
    database.until(NO_PROBLEM).await;
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn y1_a_new_type_is_over_with_its_handler_or_after_a_week() {
    let database = Database::new().await;
    let told = Told::default();
    let process = Process::stripe(&database, &told, &["a"], &[]).await;
    process.gets("a").await;
    time_passes(&database, "25 hours").await;
    for event_type in ["b.one", "c"] {
        process.gets(event_type).await;
        process.looks().await;
    }
    let deployed = Process::stripe(&database, &told, &["a", "b.*"], &[]).await;
    deployed.gets("b.one").await;
    deployed.looks().await;
    time_passes(&database, "7 days 1 minute").await;
    deployed.gets("a").await;
    deployed.gets("b.one").await;
    deployed.looks().await;
    assert_eq!(
        told.all(),
        [
            "new event type: b.one, begun",
            "new event type: c, begun",
            "new event type: b.one, over",
            "new event type: c, over",
        ]
    );
    assert_rows!(database, claims: 4, effects: 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn y1_a_type_that_is_named_is_ignored_counted_and_not_told() {
    let database = Database::new().await;
    let told = Told::default();
    let (handled, ignored) = (["a", "charge.refunded"], ["charge.*", "b"]);
    let process = Process::stripe(&database, &told, &handled, &ignored).await;
    process.gets("a").await;
    time_passes(&database, "25 hours").await;
    for event_type in ["charge.updated", "charge.failed", "b", "charge.refunded"] {
        process.gets(event_type).await;
    }
    process.looks().await;
    assert_eq!(told.all(), [""; 0]);
    database.until(NO_PROBLEM).await;
    let counted: Vec<(String, i64)> = sqlx::query_as(
        "select outcome, count from idempotent_webhook.activity where source = 'ignored' order by 1",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert_eq!(counted, [("b".to_owned(), 1), ("charge.*".to_owned(), 2)]);
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn y1_types_that_a_sender_may_have_chosen_are_told_and_marked() {
    let tenants = || {
        TenantSecrets::new(
            |_| Some("acme".to_owned()),
            |_| async { Ok(Some(secret())) },
        )
    };
    for (provider, handled) in [
        // The header is not signed. An action makes a difference where the table has one of the same type.
        (presets::github(secret()), ["push", "pull_request.closed"]),
        (presets::stripe(tenants()), ["push", "pull"]),
    ] {
        let database = Database::new().await;
        let told = Told::default();
        let has_actions = provider.name() == "github";
        let process = Process::start(&database, provider.clone(), &told, &handled, &[]).await;
        process.gets("push").await;
        time_passes(&database, "25 hours").await;
        process.gets("star").await;
        process.looks().await;
        assert_eq!(told.all(), ["new event type: star (unverified), begun"]);
        if has_actions {
            process.gets("pull_request").await;
            process.looks().await;
            let opened = "new event type: pull_request.opened (unverified), begun";
            assert_eq!(told.all()[1..], [opened]);
        }
        let named = ["star", "pull_request"];
        let named = if has_actions { &named[..] } else { &named[..1] };
        let deployed = Process::start(&database, provider, &told, &handled, named).await;
        deployed.gets("push").await;
        deployed.looks().await;
        database.until(NO_PROBLEM).await;
        assert_eq!(told.all().len(), 2 * named.len(), "{:?}", told.all());
        assert_rows!(database, claims: 2, effects: 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn y1_thousands_of_names_are_bounded_in_rows_and_in_what_is_told() {
    let database = Database::new().await;
    let told = Told::default();
    let provider = || presets::github(secret());
    let first = Process::start(&database, provider(), &told, &["push"], &[]).await;
    first.gets("push").await;
    time_passes(&database, "25 hours").await;
    // One process after the other, each with 500 names at most.
    for (number, names) in [1000, 300, 300].into_iter().enumerate() {
        let process = Process::start(&database, provider(), &told, &["push"], &[]).await;
        for name in 0..names {
            process.get(&format!("name-{number}-{name}")).await;
        }
        process.gets("push").await;
        process.looks().await;
    }
    let names = types(&database).await;
    assert_eq!(names.len(), 1000, "{names:?}");
    assert_eq!(names[0], "*");
    assert!(names.contains(&"push".to_owned()));
    let mut all = told.all();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), told.all().len(), "{all:?}");
    assert_eq!(all.len(), 11, "{all:?}");
    assert_eq!(all[0], "new event type: *, begun");
    database
        .until("(select count(*) from idempotent_webhook.activity where source = 'ignored') = 1101")
        .await;
    assert_rows!(database, claims: 4, effects: 4);
}

/// A subscription to all events of Stripe has some 250 types.
#[tokio::test(flavor = "multi_thread")]
async fn y1_a_new_type_is_told_by_name_beside_all_types_of_a_provider() {
    let database = Database::new().await;
    let told = Told::default();
    let process = Process::stripe(&database, &told, &["a"], &[]).await;
    for number in 0..300 {
        process.get(&format!("type.{number}")).await;
    }
    process.gets("a").await;
    time_passes(&database, "25 hours").await;
    process.gets("type.renamed").await;
    process.looks().await;
    assert_eq!(told.all(), ["new event type: type.renamed, begun"]);
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn y1_a_handled_type_that_has_stopped_is_told_once_until_it_comes_again() {
    let database = Database::new().await;
    let told = Told::default();
    let handled = ["message.received", "account.*", "chatty"];
    let one = Process::stripe(&database, &told, &handled, &[]).await;
    let other = Process::stripe(&database, &told, &handled, &[]).await;
    for day in 0..8 {
        if day > 0 {
            time_passes(&database, "1 day").await;
        }
        one.gets("message.received").await;
        other.gets("account.updated").await;
        other.gets("chatty").await;
    }
    database
        .run(
            "update idempotent_webhook.event_types set longest_pause = '1 minute'
             where event_type = 'chatty'",
        )
        .await;
    time_passes(&database, "23 hours").await;
    for process in [&one, &other] {
        process.gets("message.received").await;
        process.looks().await;
    }
    assert_eq!(told.all(), [""; 0]);
    // Not before a day, however often it came.
    time_passes(&database, "2 hours").await;
    for process in [&one, &other] {
        process.gets("message.received").await;
        process.looks().await;
    }
    drop(one);
    let one = Process::stripe(&database, &told, &handled, &[]).await;
    time_passes(&database, "46 hours").await;
    for process in [&one, &other] {
        process.gets("message.received").await;
        process.looks().await;
    }
    let begun = [
        "event type stopped: chatty, begun",
        "event type stopped: account.*, begun",
    ];
    assert_eq!(told.all(), begun[..1]);
    // Three times its longest pause.
    time_passes(&database, "2 hours").await;
    for process in [&one, &other] {
        process.gets("message.received").await;
        process.looks().await;
    }
    assert_eq!(told.all(), begun);

    one.gets("account.created").await;
    other.looks().await;
    one.gets("chatty").await;
    other.looks().await;
    let over = [
        "event type stopped: account.*, over",
        "event type stopped: chatty, over",
    ];
    assert_eq!(told.all()[2..], over);
    // It is known to pause for longer now.
    time_passes(&database, "218 hours").await;
    one.gets("chatty").await;
    one.gets("message.received").await;
    one.looks().await;
    assert_eq!(told.all().len(), 4, "{:?}", told.all());
    time_passes(&database, "2 hours").await;
    one.gets("message.received").await;
    one.looks().await;
    assert_eq!(told.all()[4..], begun[1..]);

    // No handler is for it any more.
    let deployed = Process::stripe(&database, &told, &["message.received", "chatty"], &[]).await;
    deployed.gets("message.received").await;
    deployed.looks().await;
    assert_eq!(told.all()[5..], over[..1]);
    database.until(NO_PROBLEM).await;
    let sent = 3 * 8 + 4 * 2 + 2 + 2 + 1 + 1;
    assert_rows!(database, claims: sent, effects: sent);
}

/// What a group has matched was not known by its own name.
#[tokio::test(flavor = "multi_thread")]
async fn y1_what_a_narrower_table_ignores_is_not_new() {
    let database = Database::new().await;
    let told = Told::default();
    let wide = Process::stripe(&database, &told, &["invoice.*"], &[]).await;
    for _ in 0..3 {
        wide.gets("invoice.paid").await;
        wide.gets("invoice.created").await;
        time_passes(&database, "1 day").await;
    }
    let narrow = Process::stripe(&database, &told, &["invoice.paid"], &[]).await;
    narrow.gets("invoice.created").await;
    narrow.looks().await;
    time_passes(&database, "1 day 1 minute").await;
    narrow.gets("invoice.created").await;
    narrow.looks().await;
    assert_eq!(told.all(), [""; 0]);
    narrow.gets("invoice.renamed").await;
    narrow.looks().await;
    assert_eq!(told.all(), ["new event type: invoice.renamed, begun"]);
    assert_rows!(database, claims: 6, effects: 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn y1_a_type_that_is_rare_by_nature_has_not_stopped() {
    let database = Database::new().await;
    let told = Told::default();
    let handled = ["weekly", "burst", "steady"];
    let process = Process::stripe(&database, &told, &handled, &[]).await;
    for week in 0..8 {
        process.gets("weekly").await;
        for day in 0..7 {
            process.gets("steady").await;
            // On some days of one week.
            if week == 0 && day < 6 {
                process.gets("burst").await;
            }
            time_passes(&database, "1 day").await;
        }
        process.looks().await;
    }
    assert_eq!(told.all(), [""; 0]);
    for _ in 0..13 {
        time_passes(&database, "1 day").await;
        process.gets("steady").await;
    }
    process.looks().await;
    assert_eq!(told.all(), [""; 0]);
    time_passes(&database, "2 days").await;
    // Nothing came at all.
    process.looks().await;
    assert_eq!(told.all(), [""; 0]);
    process.gets("steady").await;
    process.looks().await;
    assert_eq!(told.all(), ["event type stopped: weekly, begun"]);
    let (days, pauses): (i32, f64) = sqlx::query_as(
        "select days, extract(epoch from longest_pause)::float8 / 86400
         from idempotent_webhook.event_types where event_type = 'weekly'",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!((days, pauses.round()), (8, 7.0));
}

/// What is known of types is written beside the requests, with the other numbers.
#[tokio::test(flavor = "multi_thread")]
async fn y1_no_request_waits_for_what_is_known_of_types() {
    let database = Database::new().await;
    let told = Told::default();
    let process = Process::stripe(&database, &told, &["a"], &[]).await;
    database
        .run("alter table idempotent_webhook.event_types rename to away")
        .await;
    process.gets("a").await;
    process.gets("b").await;
    assert_rows!(database, claims: 1, effects: 1);
    database
        .run("alter table idempotent_webhook.away rename to event_types")
        .await;
    process.gets("a").await;
    assert_eq!(types(&database).await, ["a", "b"]);
    assert_rows!(database, claims: 2, effects: 2);
}
