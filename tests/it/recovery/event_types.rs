//! Guarantee Y1: if a new event type is ignored, or a handled event type has stopped, this is reported once for all
//! processes.
//!
//! The *table* of a layer lists its event types: *handled* types, and types that are ignored on purpose. A type is
//! *named* if the table lists it by its own name.

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

/// The reports that hooks got, in words.
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

/// A process with a table of types, and a recovery that reports problems.
struct Process {
    layer: IdempotentWebhook,
    recovery: Recovery,
    router: Router,
    provider: Provider,
}

/// Numbers the delivery ids, so that none is used twice.
static SENT: AtomicUsize = AtomicUsize::new(0);

impl Process {
    /// The types in `handled` have a handler. The table also names the types in `ignored`. All other types are ignored
    /// as well, but not by name.
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

    /// A process of one version of the application, with Stripe.
    async fn of_version(version: &str, database: &Database, told: &Told, handled: &[&str]) -> Self {
        let pool = database.another_pool(3).await;
        let recovery = recovery(&pool).on_change(told.note());
        let provider = presets::stripe(secret());
        let layer = IdempotentWebhook::new(pool, "test", provider.clone())
            .version(version)
            .keep(Keep::failed(&recovery));
        let events = handled
            .iter()
            .fold(Events::new(), |events, name| events.on(*name, write_effect))
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

    /// Sends an event of the type, and makes the process write its counts.
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

    /// Makes the process look for problems now, as each process does every half minute.
    async fn looks(&self) {
        let running = self.recovery.clone().spawn(self.router.clone());
        // The task stops after its first look.
        running.stop().await;
    }
}

/// Moves all previous events this far into the past.
async fn time_passes(database: &Database, time: &str) {
    database
        .run(&format!(
            "update idempotent_webhook.event_types
             set first_at = first_at - interval '{time}', last_at = last_at - interval '{time}';
             update idempotent_webhook.endpoint_settings
             set told_at = told_at - interval '{time}', ignores_since = ignores_since - interval '{time}',
                 names_since = names_since - interval '{time}'"
        ))
        .await;
}

async fn types(database: &Database) -> Vec<String> {
    sqlx::query_scalar("select event_type from idempotent_webhook.event_types order by event_type")
        .fetch_all(&database.pool)
        .await
        .unwrap()
}

/// The time after which an endpoint has learned its types, if no new type comes.
const LEARNED: &str = "7 days 1 hour";

const NO_PROBLEM: &str = "not exists (select from idempotent_webhook.problems)";

#[tokio::test(flavor = "multi_thread")]
async fn y1_a_renamed_type_is_told_once_over_processes_and_restarts_until_it_is_named() {
    let database = Database::new().await;
    let told = Told::default();
    let handled = ["message.received"];
    let one = Process::stripe(&database, &told, &handled, &[]).await;
    let other = Process::stripe(&database, &told, &handled, &[]).await;
    one.gets("message.received").await;
    // The endpoint learns its types for a week.
    other.gets("charge.updated").await;
    for process in [&one, &other] {
        process.looks().await;
    }
    assert_eq!(told.all(), [""; 0]);

    time_passes(&database, LEARNED).await;
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

    // A deploy names the type. Any request makes the process report its table of types.
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
    time_passes(&database, LEARNED).await;
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
    time_passes(&database, LEARNED).await;
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
        // GitHub's type header is not signed. The table names an action only for `pull_request`, so the actions of
        // other types do not matter.
        (presets::github(secret()), ["push", "pull_request.closed"]),
        (presets::stripe(tenants()), ["push", "pull"]),
    ] {
        let database = Database::new().await;
        let told = Told::default();
        let has_actions = provider.name() == "github";
        let process = Process::start(&database, provider.clone(), &told, &handled, &[]).await;
        process.gets("push").await;
        time_passes(&database, LEARNED).await;
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
    time_passes(&database, LEARNED).await;
    // The processes run one after the other. Each process counts at most 500 type names.
    for (number, names) in [1000, 300, 300, 0].into_iter().enumerate() {
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
    assert_rows!(database, claims: 5, effects: 5);
}

/// A subscription to all of Stripe's events has about 250 types.
#[tokio::test(flavor = "multi_thread")]
async fn y1_a_new_type_is_told_by_name_beside_all_types_of_a_provider() {
    let database = Database::new().await;
    let told = Told::default();
    let process = Process::stripe(&database, &told, &["a"], &[]).await;
    for number in 0..300 {
        process.get(&format!("type.{number}")).await;
    }
    process.gets("a").await;
    time_passes(&database, LEARNED).await;
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
            "update idempotent_webhook.event_types set clock = 8, longest_pause = 1;
             update idempotent_webhook.event_types set longest_pause = 2 where event_type = 'account.*'",
        )
        .await;
    let only_messages = async |days: usize| {
        for _ in 0..days {
            time_passes(&database, "1 day").await;
            one.gets("message.received").await;
        }
        for process in [&one, &other] {
            process.looks().await;
        }
    };
    only_messages(3).await;
    // The whole endpoint receives nothing, so none of its types has stopped.
    time_passes(&database, "10 days").await;
    other.looks().await;
    assert_eq!(told.all(), [""; 0]);
    let begun = [
        "event type stopped: chatty, begun",
        "event type stopped: account.*, begun",
    ];
    // A type has stopped after three times its longest pause.
    only_messages(1).await;
    assert_eq!(told.all(), begun[..1]);
    let restarted = Process::stripe(&database, &told, &handled, &[]).await;
    restarted.looks().await;
    only_messages(2).await;
    assert_eq!(told.all(), begun[..1]);
    only_messages(1).await;
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
    // By now, the types are known to have longer pauses.
    database
        .run(
            "update idempotent_webhook.event_types
             set clock = (select max(clock) from idempotent_webhook.event_types);
             update idempotent_webhook.event_types set longest_pause = 7
             where event_type <> 'message.received' and longest_pause between 7 and 8",
        )
        .await;
    time_passes(&database, "1 day").await;
    one.gets("account.created").await;
    only_messages(20).await;
    assert_eq!(told.all().len(), 4, "{:?}", told.all());
    only_messages(1).await;
    assert_eq!(told.all()[4..], begun[..1]);

    // The type has no handler any more.
    let deployed = Process::stripe(&database, &told, &["message.received", "account.*"], &[]).await;
    deployed.gets("message.received").await;
    deployed.looks().await;
    assert_eq!(told.all()[5..], over[1..]);
    database.until(NO_PROBLEM).await;
    let sent = 3 * 8 + 7 + 2 + 1 + 21 + 1;
    assert_rows!(database, claims: sent, effects: sent);
}

/// A captured request, for example, can be replayed with another type header.
#[tokio::test(flavor = "multi_thread")]
async fn y1_what_the_table_does_not_name_is_no_sign_that_an_endpoint_is_alive() {
    let database = Database::new().await;
    let told = Told::default();
    let handled = ["push", "release"];
    let github = presets::github(secret());
    let process = Process::start(&database, github, &told, &handled, &[]).await;
    for _ in 0..8 {
        process.get("push").await;
        process.gets("release").await;
        time_passes(&database, "1 day").await;
    }
    for _ in 0..40 {
        process.gets("made-up").await;
        time_passes(&database, "1 day").await;
    }
    process.looks().await;
    assert_eq!(told.all(), [""; 0]);
    for _ in 0..20 {
        process.gets("push").await;
        time_passes(&database, "1 day").await;
    }
    process.looks().await;
    assert_eq!(told.all(), ["event type stopped: release, begun"]);
    assert_rows!(database, claims: 36, effects: 36);
}

/// The application may build its table from a hash map, so the order of the names differs at each start.
#[tokio::test(flavor = "multi_thread")]
async fn y1_a_new_type_is_told_until_a_deploy_takes_a_name_away() {
    let database = Database::new().await;
    let told = Told::default();
    let process = Process::stripe(&database, &told, &["a", "b"], &["c"]).await;
    process.gets("a").await;
    time_passes(&database, LEARNED).await;
    process.gets("renamed").await;
    process.looks().await;
    let begun = "new event type: renamed, begun";
    assert_eq!(told.all(), [begun]);
    for (handled, ignored) in [
        (&["b", "a"][..], &["c"][..]),
        (&["d", "b", "a"], &["c"]),
        // The type has a handler now.
        (&["c", "d", "b", "a"], &[]),
    ] {
        let deployed = Process::stripe(&database, &told, handled, ignored).await;
        deployed.gets("a").await;
        deployed.looks().await;
        assert_eq!(told.all(), [begun], "{handled:?}");
    }
    let deployed = Process::stripe(&database, &told, &["a", "b", "c"], &[]).await;
    deployed.gets("a").await;
    deployed.looks().await;
    assert_eq!(told.all(), [begun, "new event type: renamed, over"]);
    assert_rows!(database, claims: 5, effects: 5);
}

/// A process of the older version is still running, and reports the types of its table every hour.
#[tokio::test(flavor = "multi_thread")]
async fn y1_the_newer_of_two_versions_says_what_is_expected_until_it_is_rolled_back() {
    let database = Database::new().await;
    let told = Told::default();
    let old = async || Process::of_version("1", &database, &told, &["a"]).await;
    let new = async || Process::of_version("2", &database, &told, &["a", "renamed"]).await;
    let expecting = async || -> String {
        sqlx::query_scalar("select version from idempotent_webhook.endpoint_settings")
            .fetch_one(&database.pool)
            .await
            .unwrap()
    };
    let first = old().await;
    first.gets("a").await;
    time_passes(&database, LEARNED).await;
    first.gets("renamed").await;
    first.looks().await;
    let begun = "new event type: renamed, begun";
    assert_eq!(told.all(), [begun]);
    let changes = [begun, "new event type: renamed, over"];
    for _ in 0..4 {
        for process in [new().await, old().await] {
            process.gets("a").await;
            process.looks().await;
            assert_eq!(expecting().await, "2");
            assert_eq!(told.all(), changes);
        }
        time_passes(&database, "1 hour").await;
    }
    time_passes(&database, "2 hours").await;
    let rolled_back = old().await;
    rolled_back.gets("a").await;
    assert_eq!(expecting().await, "1");
    // A type that the newer version has handled is not new.
    rolled_back.gets("renamed").await;
    rolled_back.looks().await;
    assert_eq!(told.all(), changes);
    assert_rows!(database, claims: 10, effects: 10);
}

/// If the clock is set back, the types that came before the change seem to come from the future.
#[tokio::test(flavor = "multi_thread")]
async fn y1_the_time_of_an_endpoint_goes_on_by_minutes_where_the_clock_was_set_back() {
    let database = Database::new().await;
    let told = Told::default();
    let handled = ["a", "b", "c", "d", "later"];
    let process = Process::stripe(&database, &told, &handled, &[]).await;
    process.gets("later").await;
    time_passes(&database, "-1 day").await;
    for event_type in ["a", "b", "c", "d"] {
        process.gets(event_type).await;
    }
    // The four types may have come in two different minutes.
    database
        .until("(select max(clock) < 4 from idempotent_webhook.event_types)")
        .await;
    assert_rows!(database, claims: 5, effects: 5);
}

/// Somebody has replayed a captured request with a thousand type names.
#[tokio::test(flavor = "multi_thread")]
async fn y1_names_that_came_on_one_day_only_give_way_to_a_renamed_type() {
    let database = Database::new().await;
    let told = Told::default();
    let start = async || {
        let github = presets::github(secret());
        Process::start(&database, github, &told, &["push"], &[]).await
    };
    start().await.gets("push").await;
    time_passes(&database, LEARNED).await;
    database
        .run(
            "insert into idempotent_webhook.event_types (endpoint, event_type, days)
             select 'test', 'name-' || number, case when number <= 10 then 2 else 1 end
             from generate_series(1, 999) as number",
        )
        .await;
    time_passes(&database, "30 days").await;
    let process = start().await;
    process.gets("pushed").await;
    process.looks().await;
    assert_eq!(told.all(), ["new event type: pushed (unverified), begun"]);
    let names = types(&database).await;
    assert_eq!(names.len(), 1000);
    for name in ["push", "pushed", "name-1", "name-10"] {
        assert!(names.iter().any(|there| there == name), "{name}");
    }
    assert_rows!(database, claims: 1, effects: 1);
}

/// Types that exceed the limit on rows are reported together as `*`. After a week, `*` can be reported again, for other
/// types.
#[tokio::test(flavor = "multi_thread")]
async fn y1_the_types_that_have_no_room_are_new_again_after_a_week() {
    let database = Database::new().await;
    let told = Told::default();
    let process = Process::stripe(&database, &told, &["a"], &[]).await;
    process.gets("a").await;
    time_passes(&database, LEARNED).await;
    // Each of these types has come on more than one day.
    database
        .run(
            "insert into idempotent_webhook.event_types (endpoint, event_type, days)
             select 'test', 'name-' || number, 2 from generate_series(1, 1000) as number;
             update idempotent_webhook.event_types set first_at = first_at - interval '40 days'",
        )
        .await;
    let begun = "new event type: *, begun";
    let over = "new event type: *, over";
    for (days, expected) in [
        (0, &[begun][..]),
        (6, &[begun]),
        (2, &[begun, over]),
        (8, &[begun, over, begun]),
    ] {
        time_passes(&database, &format!("{days} days")).await;
        process.gets(&format!("without room {days}")).await;
        process.looks().await;
        assert_eq!(told.all(), expected, "{days} days later");
    }
    assert_rows!(database, claims: 1, effects: 1);
}

/// The report has room for a few names. If it did not prefer the most frequent types, the types of a single tenant
/// could hide types that come for all tenants.
#[tokio::test(flavor = "multi_thread")]
async fn y1_the_new_types_that_are_told_by_name_are_the_most_frequent() {
    let database = Database::new().await;
    let told = Told::default();
    let process = Process::stripe(&database, &told, &["a"], &[]).await;
    process.gets("a").await;
    time_passes(&database, LEARNED).await;
    process.gets("z.renamed").await;
    database
        .run(
            "insert into idempotent_webhook.event_types (endpoint, event_type, first_at, minutes)
             select 'test', 'name-' || number, now() - interval '1 minute', 9 from generate_series(1, 12) as number;
             update idempotent_webhook.event_types set minutes = 10 where event_type = 'z.renamed'",
        )
        .await;
    process.looks().await;
    let all = told.all();
    assert_eq!(all.len(), 11, "{all:?}");
    assert!(
        all.contains(&"new event type: z.renamed, begun".to_owned()),
        "{all:?}"
    );
    assert_rows!(database, claims: 1, effects: 1);
}

/// A group such as `invoice.*` has handled the type, so the type has no row under its own name. It is not new anyway.
#[tokio::test(flavor = "multi_thread")]
async fn y1_what_a_narrower_table_ignores_is_not_new() {
    let database = Database::new().await;
    let told = Told::default();
    let wide = Process::stripe(&database, &told, &["invoice.*"], &[]).await;
    for _ in 0..9 {
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
    assert_rows!(database, claims: 18, effects: 18);
}

#[tokio::test(flavor = "multi_thread")]
async fn y1_a_type_that_is_rare_by_nature_has_not_stopped() {
    let database = Database::new().await;
    let told = Told::default();
    let handled = ["weekly", "burst", "steady"];
    let process = Process::stripe(&database, &told, &handled, &[]).await;
    for week in 0..8 {
        process.get("weekly").await;
        for day in 0..7 {
            // The type comes on several days of one week only.
            if week == 0 && day < 6 {
                process.get("burst").await;
            }
            process.gets("steady").await;
            time_passes(&database, "1 day").await;
        }
        process.looks().await;
    }
    assert_eq!(told.all(), [""; 0]);
    for _ in 0..15 {
        time_passes(&database, "1 day").await;
        process.gets("steady").await;
    }
    process.looks().await;
    assert_eq!(told.all(), [""; 0]);
    time_passes(&database, "2 days").await;
    // No event came at all.
    process.looks().await;
    assert_eq!(told.all(), [""; 0]);
    process.gets("steady").await;
    process.looks().await;
    assert_eq!(told.all(), ["event type stopped: weekly, begun"]);
    let (days, pause): (i32, i32) = sqlx::query_as(
        "select days, longest_pause
         from idempotent_webhook.event_types where event_type = 'weekly'",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!((days, pause), (8, 7));
}

/// Event types are written by a background task, together with the counts, so no request waits for this.
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
