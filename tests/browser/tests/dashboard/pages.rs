//! An application whose tables contain something of every kind, and all dashboard pages about it.

use std::collections::HashSet;

use sqlx::Executor;

use crate::page_list::{self, Right, Takes};
use crate::stage::Stage;

/// Actions of operators, in each possible state.
const ACTIONS: &str = "
    insert into idempotent_webhook.operator_actions
        (operator, action, endpoint, delivery_id, selection, active_at, ended_at, cancelled_at,
        cancelled_by, changed, note)
    values
        ('ada', 'retry', 'billing', 'dead-1', null, now(), now(), null, null, 1, null),
        (null, 'discard', 'billing', 'deleted-1', null, now(), now(), null, null, 1, null),
        ('ada', 'forget', 'billing', 'processed-1', null, now(), now(), null, null, 0,
            'It was not processed, or has already been deleted.'),
        ('ada', 'pause', 'payouts', null, null, now(), now(), null, null, 1, null),
        ('ada', 'retry', 'billing', null, 'dead deliveries', now(), now(), now(), 'bob', 4000, null),
        ('ada', 'retry', 'billing', null, 'dead deliveries', now() - interval '1 day', null, null,
            null, 1000, null),
        ('ada', 'discard', 'billing', null, 'dead deliveries', now() + interval '1 hour', null, now(),
            'bob', 1000, null),
        ('ada', 'retry', 'billing', null, 'dead deliveries', now() + interval '1 hour', null, null,
            null, 123456, null),
        ('ada', 'retry', 'billing', null, '3 selected', now() + interval '1 hour', now(), null,
            null, 3, null)
";

/// The first action has made one delivery due, which is dead again. The last action has made several deliveries due,
/// one of which has failed again since.
const MADE_DUE: &str = "
    insert into idempotent_webhook.operator_action_deliveries (action, endpoint, tenant, delivery_id)
    values (1, 'billing', '', 'dead-1'), (9, 'billing', '', 'due-1'), (9, 'billing', '', 'processed-1'),
        (9, 'payouts', '', 'paused-1'), (9, 'billing', '', 'deleted-1')
";

const FAILED_AGAIN: &str = "
    update idempotent_webhook.kept_deliveries
    set last_failed_at = now() + interval '1 minute'
    where delivery_id = 'due-1'
";

/// The states of the actions above, in order.
pub const STATES: [&str; 9] = [
    "done",
    "done",
    "no change",
    "done",
    "cancelled",
    "interrupted",
    "cancelling",
    "running",
    "under way",
];

const ACTIVITY: &str = "
    insert into idempotent_webhook.activity
        (endpoint, hour, source, outcome, version, count, last_at)
    select
        'billing', date_trunc('hour', now(), 'UTC') - ago * interval '1 hour', source, outcome,
        case when ago > 5 then '1.8.2' else '1.9.0' end,
        1 + (ago * 7919) % 1000, now() - ago * interval '1 hour'
    from generate_series(0, 23) as hours (ago)
    cross join (
        values ('request', 'processed'), ('request', 'duplicate'), ('request', 'rejected'),
            ('request', 'kept'), ('handler', '5'), ('handler', '2000'), ('handler', 'inf')
    ) as outcomes (source, outcome)
";

const REJECTIONS: &str = "
    insert into idempotent_webhook.rejections (endpoint, hour, cause, count, last_at, reason)
    select
        'billing', date_trunc('hour', now(), 'UTC') - ago * interval '1 hour', cause, 12345, now(),
        reason
    from generate_series(0, 23) as hours (ago)
    cross join (
        values
            ('no_match', 'signature matches none of the secrets: another secret, or a body that              was changed on the way'),
            ('missing_header', 'header stripe-signature is missing')
    ) as causes (cause, reason)
";

const SETTINGS: &str = r#"
    insert into idempotent_webhook.endpoint_settings (endpoint, version, settings, told_at)
    values ('billing', '1.9.0', '{
        "provider": "stripe", "signature_header": "stripe-signature", "tolerance_seconds": null,
        "acknowledge": false, "keep": "failed", "retry_delays_seconds": [10, 60, 3600, 86400]
    }', now())
"#;

/// A stage whose tables contain something of every kind.
pub async fn busy_stage() -> Stage {
    let mut stage = Stage::empty().await;
    stage.dead("billing", "dead-1", "no such order: 17").await;
    stage.dead("billing", "dead-2", "no such order: 18").await;
    stage.dead("orders", "dead-3", "no such order: 19").await;
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
    for statement in [
        ACTIONS,
        MADE_DUE,
        FAILED_AGAIN,
        ACTIVITY,
        REJECTIONS,
        SETTINGS,
    ] {
        stage.pool.execute(statement).await.unwrap();
    }
    // More than fits on one page.
    stage.many_dead("imports", 60).await;
    stage
}

/// Each page with its status. Pages of deliveries come with the state that they show.
pub const PAGES: [(&str, u16); 51] = [
    ("overview", 200),
    ("endpoint?endpoint=billing", 200),
    ("endpoint?endpoint=billing&days=7", 200),
    ("endpoint?endpoint=imports", 200),
    ("endpoint?endpoint=unknown", 404),
    ("endpoint?endpoint=billing&days=2", 400),
    ("rejected", 200),
    ("rejected?endpoint=billing", 200),
    ("rejected?endpoint=imports", 200),
    ("deliveries", 200),
    ("deliveries?state=failing&endpoint=billing", 200),
    ("deliveries?state=dead", 200),
    ("deliveries?state=dead&endpoint=billing", 200),
    ("deliveries?state=due", 200),
    ("deliveries?state=due&endpoint=payouts", 200),
    ("deliveries?state=recorded", 200),
    ("deliveries?state=recorded&endpoint=orders", 200),
    ("deliveries?state=processed", 200),
    ("deliveries?state=processed&endpoint=billing", 200),
    (
        "deliveries?state=dead&tenant=acme&from=2026-01-02T03%3A04&until=2999-01-02T03%3A04",
        200,
    ),
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
    (
        "confirm?action=reprocess&endpoint=billing&state=processed&before=4000000000",
        200,
    ),
    ("confirm?action=retry&endpoint=billing", 400),
    ("confirm?action=unknown", 400),
    ("act", 405),
    ("unknown", 404),
    ("unknown/below/another", 404),
];

pub const DELIVERIES: [(&str, &str, &str); 8] = [
    ("billing", "processed-1", "processed"),
    ("billing", "due-1", "due"),
    ("billing", "dead-1", "dead"),
    ("billing", "running-1", "running"),
    ("billing", "in-flight-1", "in flight"),
    ("orders", "recorded-1", "recorded"),
    ("payouts", "paused-1", "due"),
    ("commands", "accepted-1", "due"),
];

/// Asserts that these addresses include every page that needs one of these rights. Paths that only accept POST, and
/// paths for programs, are not pages.
pub fn assert_has_each_page<'a>(addresses: impl Iterator<Item = &'a str>, rights: &[Right]) {
    let names = addresses.map(|address| address.split_once('?').map_or(address, |(name, _)| name));
    let names: HashSet<_> = names.collect();
    for entry in &page_list::PAGES {
        let is_page = entry.takes != Takes::Post && !entry.is_for_programs;
        if is_page && rights.contains(&entry.needs) {
            assert!(
                names.contains(entry.name),
                "{} is not looked at",
                entry.name
            );
        }
    }
}

#[test]
fn each_page_is_looked_at() {
    let addresses = PAGES.iter().map(|(address, _)| *address);
    assert_has_each_page(addresses, &[Right::Read, Right::Operate]);
}
