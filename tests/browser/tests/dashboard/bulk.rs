//! Actions of operators on many deliveries at once: what the page shows, what the tables contain,
//! and the audit record.

use sqlx::Executor;

use crate::operator::{Operator, marks, two_dead};
use crate::stage::{Stage, assert_sound};

/// A stage with failed deliveries for two reasons. Deliveries with the same reason belong to two
/// endpoints, and are in two states.
async fn two_reasons() -> Stage {
    let stage = two_dead().await;
    stage.dead("billing", "c-3", "the ledger is away").await;
    stage.dead("orders", "d-4", "no such order: 4").await;
    stage.due("billing", "e-5", "no such order: 5").await;
    stage
}

/// The row of the overview for the reason "no such order".
const GROUP: &str = "table.groups tr:has(details)";

#[tokio::test]
async fn all_of_a_reason_are_retried() {
    Operator::each(two_reasons, async |mut ada, stage| {
        ada.goes_to("overview").await;
        ada.uses(&format!("{GROUP} a[href*='confirm?action=retry']"))
            .await;
        ada.sees(&[
            "Retry 4 deliveries?",
            "Of all 2 endpoints",
            "failed deliveries, with a reason like “no such order: #”",
        ])
        .await;
        // A delivery that fails after the page was shown is left out.
        stage.dead("billing", "f-6", "no such order: 6").await;
        ada.uses(".confirm button").await;
        stage.wait_for_actions().await;
        assert_eq!(
            stage.kept().await,
            [
                "billing a-1 due now",
                "billing b-2 due now",
                "billing c-3 dead",
                "billing e-5 due now",
                "billing f-6 dead",
                "orders d-4 due now",
            ]
        );
        assert_eq!(
            stage.audit().await,
            ["ada: retry failed deliveries, of a reason, changed 4"]
        );
        ada.goes_to("action?id=1").await;
        assert_eq!(ada.page.text_of("dd .state").await, "under way");
        assert_eq!(ada.page.text_of(".changed").await, "4");
        ada.sees(&["Still due\n4"]).await;
    })
    .await;
}

#[tokio::test]
async fn all_of_a_reason_are_discarded() {
    Operator::each(two_reasons, async |mut ada, stage| {
        ada.goes_to("overview").await;
        ada.uses(&format!("{GROUP} a[href*='confirm?action=discard']"))
            .await;
        ada.sees(&["Discard 4 deliveries?", "This cannot be undone"])
            .await;
        ada.uses(".confirm a").await;
        assert_eq!(stage.kept().await.len(), 5);

        ada.goes_to("overview").await;
        ada.uses(&format!("{GROUP} a[href*='confirm?action=discard']"))
            .await;
        ada.uses(".confirm button").await;
        stage.wait_for_actions().await;
        assert_eq!(stage.kept().await, ["billing c-3 dead"]);
        assert_eq!(
            stage.audit().await,
            ["ada: discard failed deliveries, of a reason, changed 4"]
        );
    })
    .await;
}

#[tokio::test]
async fn a_part_of_a_reason_is_retried() {
    Operator::each(two_reasons, async |mut ada, stage| {
        ada.goes_to("overview").await;
        ada.begins(&format!("{GROUP} summary")).await;
        let part = format!("{GROUP} details[open] a[href*='endpoint=billing&state=dead']");
        ada.uses(&part).await;
        ada.sees(&["With a reason like “no such order: #”"]).await;
        assert_eq!(ada.page.count("tbody tr").await, 2);
        ada.uses(".actions a[href*='action=retry']").await;
        ada.sees(&[
            "Retry 2 deliveries?",
            "billing: dead deliveries, with a reason like “no such order: #”",
        ])
        .await;
        ada.uses(".confirm button").await;
        stage.wait_for_actions().await;
        assert_eq!(
            stage.kept().await,
            [
                "billing a-1 due now",
                "billing b-2 due now",
                "billing c-3 dead",
                "billing e-5 due",
                "orders d-4 dead",
            ]
        );
        assert_eq!(
            stage.audit().await,
            ["ada: retry billing dead deliveries, of a reason, changed 2"]
        );
    })
    .await;
}

#[tokio::test]
async fn all_of_a_filter_are_discarded() {
    let set = async || {
        let stage = two_dead().await;
        stage.due("billing", "c-3", "the ledger is away").await;
        stage.dead("orders", "d-4", "no such order: 4").await;
        stage
    };
    Operator::each(set, async |mut ada, stage| {
        ada.goes_to("deliveries").await;
        ada.sees(&["Choose an endpoint"]).await;
        ada.page.fill("select[name=endpoint]", "billing").await;
        ada.page.fill("select[name=state]", "dead").await;
        ada.uses(".filters button").await;
        assert_eq!(ada.page.count("tbody tr").await, 2);
        let list = ada.page.url().await;
        ada.uses(".actions a[href*='action=discard']").await;
        ada.sees(&["Discard 2 deliveries?", "billing: dead deliveries"])
            .await;
        ada.uses(".confirm a").await;
        assert!(list.starts_with(&ada.page.url().await), "the same list");
        assert!(stage.audit().await.is_empty());

        ada.uses(".actions a[href*='action=discard']").await;
        ada.uses(".confirm button").await;
        stage.wait_for_actions().await;
        assert_eq!(stage.kept().await, ["billing c-3 due", "orders d-4 dead"]);
        let audit = ["ada: discard billing dead deliveries, changed 2"];
        assert_eq!(stage.audit().await, audit);
        ada.goes_to("actions").await;
        ada.uses("td a[href='action?id=1']").await;
        assert_eq!(ada.page.text_of("dd .state").await, "done");
        ada.reloads_and_goes_back(&stage.pool).await;
    })
    .await;
}

#[tokio::test]
async fn the_selected_are_retried_and_discarded() {
    let set = async || {
        let stage = two_dead().await;
        stage.dead("billing", "c-3", "the ledger is away").await;
        stage.dead("orders", "d-4", "the stock is negative").await;
        stage
    };
    Operator::each(set, async |mut ada, stage| {
        ada.goes_to("deliveries?state=dead").await;
        let before = marks(&stage.pool).await;
        ada.ticks("input[value='endpoint=billing&id=a-1']").await;
        ada.ticks("input[value='endpoint=orders&id=d-4']").await;
        // Goes back up from the last row, because Tab would go on from there to the end of the
        // page.
        ada.uses("button[value=retry]").await;
        ada.sees(&["Retry 2 deliveries?", "a-1 billing", "d-4 orders"])
            .await;
        ada.uses(".confirm a").await;
        assert_eq!(marks(&stage.pool).await, before);

        ada.goes_to("deliveries?state=dead").await;
        ada.ticks("input[value='endpoint=billing&id=a-1']").await;
        ada.ticks("input[value='endpoint=orders&id=d-4']").await;
        ada.uses("button[value=retry]").await;
        ada.uses(".confirm button").await;
        stage.wait_for_actions().await;
        assert_eq!(
            stage.kept().await,
            [
                "billing a-1 due now",
                "billing b-2 dead",
                "billing c-3 dead",
                "orders d-4 due now",
            ]
        );
        assert_eq!(stage.audit().await, ["ada: retry 2 selected, changed 2"]);
        assert!(ada.page.url().await.ends_with("/action?id=1"));
        ada.goes_to("action?id=1").await;
        ada.sees(&["2 selected", "several endpoints", "Still due\n2"])
            .await;
        ada.reloads_and_goes_back(&stage.pool).await;

        ada.goes_to("deliveries?state=dead").await;
        ada.ticks("input[value='endpoint=billing&id=c-3']").await;
        ada.uses("button[value=discard]").await;
        ada.sees(&["Discard 1 delivery?"]).await;
        ada.uses(".confirm button").await;
        assert_eq!(
            stage.kept().await,
            [
                "billing a-1 due now",
                "billing b-2 dead",
                "orders d-4 due now"
            ]
        );
        assert_eq!(
            stage.audit().await[1],
            "ada: discard billing c-3, changed 1"
        );
    })
    .await;
}

#[tokio::test]
async fn nothing_selected_is_nothing_done() {
    Operator::each(two_dead, async |mut ada, stage| {
        ada.goes_to("deliveries?state=dead").await;
        ada.begins("button[value=discard]").await;
        assert_eq!(ada.page.wait_for_navigation().await, 400);
        ada.sees(&["No delivery is selected"]).await;
        assert_eq!(stage.kept().await.len(), 2);
        assert!(stage.audit().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn what_was_looked_up_is_processed_again() {
    let set = async || {
        let stage = Stage::empty().await;
        for id in ["a-1", "b-2", "c-3"] {
            stage.processed("billing", id).await;
        }
        stage
    };
    Operator::each(set, async |mut ada, stage| {
        ada.goes_to("lookup").await;
        ada.page.fill("#ids", "a-1\nb-2\nc-3\nunknown").await;
        ada.uses(".lookup button").await;
        ada.sees(&["Not known", "unknown", "Never received"]).await;
        assert_eq!(ada.page.count("[data-state=processed]").await, 3);
        ada.ticks("input[value='endpoint=billing&id=a-1']").await;
        ada.ticks("input[value='endpoint=billing&id=c-3']").await;
        ada.uses("button[value=forget]").await;
        ada.sees(&["Process 2 deliveries again?"]).await;
        assert_eq!(stage.claims().await.len(), 3);
        ada.uses(".confirm button").await;
        stage.wait_for_actions().await;
        assert_eq!(stage.claims().await, ["billing b-2"]);
        let audit = ["ada: forget billing 2 selected, changed 2"];
        assert_eq!(stage.audit().await, audit);
        ada.reloads_and_goes_back(&stage.pool).await;
    })
    .await;
}

#[tokio::test]
async fn an_action_is_cancelled_while_it_runs() {
    let set = async || {
        let stage = Stage::empty().await;
        stage.many_dead("imports", 2500).await;
        stage
    };
    Operator::each(set, async |mut ada, stage| {
        ada.goes_to("deliveries?state=dead&endpoint=imports").await;
        ada.uses(".actions a[href*='action=discard']").await;
        ada.sees(&["Discard 2,500 deliveries?"]).await;
        // The first batch waits for this transaction.
        let mut tx = stage.pool.begin().await.unwrap();
        let lock = "lock table idempotent_webhook.kept_deliveries in exclusive mode";
        tx.execute(lock).await.unwrap();
        ada.begins(".confirm button").await;
        assert_eq!(ada.page.wait_for_navigation().await, 200);
        assert_eq!(ada.page.text_of("dd .state").await, "running");
        assert_eq!(ada.page.text_of(".changed").await, "0");
        ada.begins("form[action=cancel] button").await;
        let cancelled = "select cancelled_at is not null from idempotent_webhook.operator_actions";
        stage.until(cancelled).await;
        ada.goes_to("action?id=1").await;
        assert_eq!(ada.page.text_of("dd .state").await, "cancelling");
        tx.rollback().await.unwrap();

        stage.wait_for_actions().await;
        ada.goes_to("action?id=1").await;
        assert_sound(&ada.page).await;
        assert_eq!(ada.page.text_of("dd .state").await, "cancelled");
        assert_eq!(ada.page.text_of(".changed").await, "500");
        assert_eq!(stage.kept().await.len(), 2000);
        assert_eq!(
            stage.audit().await,
            ["ada: discard imports dead deliveries, changed 500, cancelled by ada"]
        );
    })
    .await;
}
