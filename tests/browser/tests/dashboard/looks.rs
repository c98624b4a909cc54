//! Every page, as it is seen: light and dark, wide and narrow, with scripts and without.

use browser::{Browser, Look, Server};
use idempotent_webhook::dashboard::Access;
use sqlx::Executor;

use crate::stage::{PREFIX, Stage, ada, assert_sound};

/// What operators did, in each state that an action can have.
const ACTIONS: &str = "
    insert into idempotent_webhook.operator_actions
        (operator, action, endpoint, delivery_id, selection, active_at, ended_at, cancelled_at,
        cancelled_by, changed, note)
    values
        ('ada', 'retry', 'billing', 'dead-1', null, now(), now(), null, null, 1, null),
        (null, 'discard', 'billing', 'deleted-1', null, now(), now(), null, null, 1, null),
        ('ada', 'forget', 'billing', 'processed-1', null, now(), now(), null, null, 0,
            'It was not processed, or is deleted already.'),
        ('ada', 'pause', 'payouts', null, null, now(), now(), null, null, 1, null),
        ('ada', 'retry', 'billing', null, 'what is dead', now(), now(), now(), 'bob', 4000, null),
        ('ada', 'retry', 'billing', null, 'what is dead', now() - interval '1 day', null, null,
            null, 1000, null),
        ('ada', 'discard', 'billing', null, 'what is dead', now() + interval '1 hour', null, now(),
            'bob', 1000, null),
        ('ada', 'retry', 'billing', null, 'what is dead', now() + interval '1 hour', null, null,
            null, 123456, null)
";

const STATES: [&str; 8] = [
    "done",
    "done",
    "no change",
    "done",
    "cancelled",
    "interrupted",
    "cancelling",
    "running",
];

const ACTIVITY: &str = "
    insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
    select
        'billing', date_trunc('hour', now(), 'UTC') - hour * interval '1 hour', 'request', outcome,
        1 + (hour * 7919) % 1000, now() - hour * interval '1 hour'
    from generate_series(0, 23) as hours (hour)
    cross join unnest(array['processed', 'duplicate', 'rejected', 'kept']) as outcomes (outcome)
";

/// With something of everything.
async fn busy_stage() -> Stage {
    let mut stage = Stage::empty().await;
    stage.dead("billing", "dead-1", "no such order: 17").await;
    stage.dead("billing", "dead-2", "no such order: 18").await;
    stage.due("billing", "due-1", "the ledger is away").await;
    stage
        .recorded("orders", "recorded-1", "the stock is negative")
        .await;
    stage.processed("billing", "processed-1").await;
    stage.accepted("commands", "accepted-1").await;
    stage.running("billing", "running-1").await;
    stage.in_flight("billing", "in-flight-1").await;
    stage.due("payouts", "paused-1", "the bank is away").await;
    stage.endpoint("payouts").pause().await.unwrap();
    stage.pool.execute(ACTIONS).await.unwrap();
    stage.pool.execute(ACTIVITY).await.unwrap();
    // More than one page of them.
    stage.many_dead("imports", 60).await;
    stage
}

/// Each page with its status. Those of a delivery come with the state that they say.
const PAGES: [(&str, u16); 39] = [
    ("overview", 200),
    ("deliveries", 200),
    ("deliveries?state=failing&endpoint=billing", 200),
    ("deliveries?state=dead", 200),
    ("deliveries?state=dead&endpoint=billing", 200),
    ("deliveries?state=due", 200),
    ("deliveries?state=due&endpoint=payouts", 200),
    ("deliveries?state=recorded", 200),
    ("deliveries?state=recorded&endpoint=orders", 200),
    ("deliveries?event_type=invoice.paid", 200),
    ("deliveries?event_type=unknown", 200),
    ("deliveries?endpoint=unknown", 200),
    (
        "deliveries?reason=00000000-0000-0000-0000-000000000000",
        200,
    ),
    ("deliveries?state=unknown", 400),
    ("deliveries?reason=unknown", 400),
    ("deliveries?event_type=%00", 400),
    ("delivery", 400),
    ("delivery?endpoint=billing&id=unknown", 404),
    ("delivery?endpoint=billing&id=deleted-1", 200),
    ("lookup", 200),
    ("lookup?ids=unknown", 200),
    (
        "lookup?ids=dead-1%0Adue-1%0Arecorded-1%0Aprocessed-1%0Ain-flight-1%0Aunknown",
        200,
    ),
    ("actions", 200),
    ("actions?after=3", 200),
    ("action?id=999", 404),
    ("action?id=one", 404),
    ("confirm?action=pause&endpoint=billing", 200),
    ("confirm?action=resume&endpoint=payouts", 200),
    ("confirm?action=retry&endpoint=billing&id=dead-1", 200),
    ("confirm?action=discard&endpoint=billing&id=dead-1", 200),
    ("confirm?action=forget&endpoint=billing&id=processed-1", 200),
    (
        "confirm?action=retry&key=endpoint%3Dbilling%26id%3Ddead-1\
         &key=endpoint%3Dbilling%26id%3Ddead-2",
        200,
    ),
    (
        "confirm?action=retry&endpoint=billing&state=dead&before=4000000000",
        200,
    ),
    (
        "confirm?action=discard&endpoint=billing&state=due&before=4000000000",
        200,
    ),
    ("confirm?action=retry&endpoint=billing", 400),
    ("confirm?action=unknown", 400),
    ("act", 405),
    ("unknown", 404),
    ("unknown/below/another", 404),
];

const DELIVERIES: [(&str, &str, &str); 8] = [
    ("billing", "processed-1", "processed"),
    ("billing", "due-1", "due"),
    ("billing", "dead-1", "dead"),
    ("billing", "running-1", "running"),
    ("billing", "in-flight-1", "in flight"),
    ("orders", "recorded-1", "recorded"),
    ("payouts", "paused-1", "paused"),
    ("commands", "accepted-1", "due"),
];

async fn every_page(dark: bool, width: u32) {
    let (stage, browser) = tokio::join!(busy_stage(), Browser::start());
    let server = stage.serve(ada()).await;
    let forbidden = stage.serve(Access::none()).await;
    let first_list = server.url(&format!("{PREFIX}/deliveries?endpoint=imports"));
    for javascript in [true, false] {
        let look = Look {
            dark,
            width,
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        for (path, status) in PAGES {
            let url = server.url(&format!("{PREFIX}/{path}"));
            assert_eq!(page.goto(&url).await, status, "{url}");
            assert_sound(&page).await;
            assert_eq!(page.count("link[rel=stylesheet]").await, 1);
            let is_styled: bool = page.eval("document.styleSheets.length === 1").await;
            assert!(is_styled, "{url} has no style");
        }
        for (endpoint, id, state) in DELIVERIES {
            let url = server.url(&format!("{PREFIX}/delivery?endpoint={endpoint}&id={id}"));
            assert_eq!(page.goto(&url).await, 200, "{url}");
            assert_sound(&page).await;
            assert_eq!(page.text_of(".lead .state").await, state, "{url}");
        }
        for (number, state) in (1..).zip(STATES) {
            let url = server.url(&format!("{PREFIX}/action?id={number}"));
            assert_eq!(page.goto(&url).await, 200, "{url}");
            assert_sound(&page).await;
            assert_eq!(page.text_of("dd .state").await, state, "{url}");
        }
        assert_eq!(page.goto(&first_list).await, 200);
        assert_eq!(page.count("tbody tr").await, 50);
        assert_eq!(page.click_through("a[rel=next]").await, 200);
        assert_sound(&page).await;
        assert_eq!(page.count("tbody tr").await, 10);
        let url = forbidden.url(&format!("{PREFIX}/overview"));
        assert_eq!(page.goto(&url).await, 403);
        assert_sound(&page).await;
    }
}

#[tokio::test]
async fn every_page_is_sound_in_light_and_wide() {
    every_page(false, 1280).await;
}

#[tokio::test]
async fn every_page_is_sound_in_dark_and_wide() {
    every_page(true, 1280).await;
}

#[tokio::test]
async fn every_page_is_sound_in_light_and_narrow() {
    every_page(false, 360).await;
}

#[tokio::test]
async fn every_page_is_sound_in_dark_and_narrow() {
    every_page(true, 360).await;
}

#[tokio::test]
async fn before_anything_has_arrived_each_page_says_what_will_be_there() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    let server: Server = stage.serve(ada()).await;
    for (dark, width, javascript) in [(false, 1280, true), (true, 360, false)] {
        let look = Look {
            dark,
            width,
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        for (path, text) in [
            ("overview", "as soon as its first delivery has arrived"),
            ("deliveries", "Nothing is failing here"),
            ("deliveries?state=dead", "Nothing is dead here"),
            ("deliveries?state=due", "Nothing is due here"),
            ("deliveries?state=recorded", "Nothing here"),
            ("lookup?ids=unknown", "No deliveries have been deleted here"),
            ("actions", "What operators do"),
        ] {
            let url = server.url(&format!("{PREFIX}/{path}"));
            assert_eq!(page.goto(&url).await, 200);
            assert_sound(&page).await;
            assert!(page.text().await.contains(text), "{url}");
        }
    }
}
