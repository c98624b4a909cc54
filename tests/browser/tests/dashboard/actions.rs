//! Actions of operators on one delivery or one endpoint: what the page shows, what the tables
//! contain, and the audit record.

use crate::operator::{Operator, marks, two_dead};
use crate::stage::Stage;

#[tokio::test]
async fn one_is_retried() {
    Operator::each(two_dead, async |mut ada, stage| {
        ada.goes_to("deliveries").await;
        ada.uses("td.id a[href*='id=a-1']").await;
        ada.uses("form[action=act] button").await;
        assert!(
            ada.page
                .url()
                .await
                .ends_with("/delivery?endpoint=billing&id=a-1")
        );
        ada.sees(&["What operators did", "ada", "retry", "under way"])
            .await;
        assert_eq!(ada.page.text_of(".lead .state").await, "due");
        assert_eq!(
            stage.kept().await,
            ["billing a-1 due now", "billing b-2 dead"]
        );
        assert_eq!(stage.audit().await, ["ada: retry billing a-1, changed 1"]);
        ada.reloads_and_goes_back(&stage.pool).await;

        // The delivery is already running.
        ada.uses("form[action=act] button").await;
        ada.sees(&["no change", "It is already due or running"])
            .await;
        let audit = stage.audit().await;
        assert_eq!(audit[1], "ada: retry billing a-1, changed 0");
    })
    .await;
}

#[tokio::test]
async fn one_is_discarded_once_that_is_confirmed() {
    Operator::each(two_dead, async |mut ada, stage| {
        ada.goes_to("delivery?endpoint=billing&id=a-1").await;
        let before = marks(&stage.pool).await;
        ada.uses("a[href*='action=discard']").await;
        ada.sees(&["Discard 1 delivery?", "This cannot be undone", "a-1"])
            .await;
        ada.uses(".confirm a").await;
        assert!(
            ada.page
                .url()
                .await
                .ends_with("/delivery?endpoint=billing&id=a-1")
        );
        assert_eq!(marks(&stage.pool).await, before);

        ada.uses("a[href*='action=discard']").await;
        ada.uses(".confirm button").await;
        // The delivery is no longer known, except for the record of the action.
        assert_eq!(ada.page.text_of(".lead .state").await, "unknown");
        ada.sees(&["discard", "done"]).await;
        assert_eq!(stage.kept().await, ["billing b-2 dead"]);
        let requests = "select count(*) from idempotent_webhook.kept_requests";
        let requests = sqlx::query_scalar::<_, i64>(requests).fetch_one(&stage.pool);
        assert_eq!(requests.await.unwrap(), 1);
        assert_eq!(stage.audit().await, ["ada: discard billing a-1, changed 1"]);
        ada.reloads_and_goes_back(&stage.pool).await;
    })
    .await;
}

#[tokio::test]
async fn one_is_processed_again_once_that_is_confirmed() {
    let set = async || {
        let stage = Stage::empty().await;
        stage.processed("billing", "a-1").await;
        stage.processed("billing", "b-2").await;
        stage
    };
    Operator::each(set, async |mut ada, stage| {
        ada.goes_to("delivery?endpoint=billing&id=a-1").await;
        assert_eq!(ada.page.count("form[action=act]").await, 0);
        ada.uses("a[href*='action=forget']").await;
        ada.sees(&["Process 1 delivery again?", "Undo the effects"])
            .await;
        ada.uses(".confirm a").await;
        assert_eq!(stage.claims().await, ["billing a-1", "billing b-2"]);
        assert!(stage.audit().await.is_empty());

        ada.uses("a[href*='action=forget']").await;
        ada.uses(".confirm button").await;
        assert_eq!(stage.claims().await, ["billing b-2"]);
        assert_eq!(stage.audit().await, ["ada: forget billing a-1, changed 1"]);
        ada.reloads_and_goes_back(&stage.pool).await;

        // The page promises this: if the provider delivers it again, it is processed.
        stage.processed("billing", "a-1").await;
        assert_eq!(stage.claims().await, ["billing a-1", "billing b-2"]);
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_is_paused_and_resumed() {
    let set = async || {
        let stage = two_dead().await;
        stage.due("payouts", "c-3", "the bank is away").await;
        stage
    };
    Operator::each(set, async |mut ada, stage| {
        let paused = async || {
            let paused = "select string_agg(endpoint, ' ') from idempotent_webhook.kept_endpoints
                where paused_at is not null";
            let paused = sqlx::query_scalar::<_, Option<String>>(paused);
            paused.fetch_one(&stage.pool).await.unwrap()
        };
        ada.goes_to("overview").await;
        ada.uses("form:has([value=pause]):has([value=payouts]) button")
            .await;
        assert!(ada.page.url().await.ends_with("/overview"));
        assert_eq!(ada.page.count("[data-state=paused]").await, 1);
        assert_eq!(paused().await.as_deref(), Some("payouts"));
        assert_eq!(stage.audit().await, ["ada: pause payouts, changed 0"]);
        ada.reloads_and_goes_back(&stage.pool).await;

        ada.goes_to("delivery?endpoint=payouts&id=c-3").await;
        assert_eq!(ada.page.text_of(".lead .state").await, "due");
        assert!(ada.page.text_of(".lead").await.contains("is paused"));

        ada.goes_to("overview").await;
        ada.uses("form:has([value=resume]):has([value=payouts]) button")
            .await;
        assert_eq!(ada.page.count("[data-state=paused]").await, 0);
        assert_eq!(paused().await, None);
        assert_eq!(
            stage.audit().await,
            [
                "ada: pause payouts, changed 0",
                "ada: resume payouts, changed 0"
            ]
        );
        ada.reloads_and_goes_back(&stage.pool).await;
    })
    .await;
}

#[tokio::test]
async fn one_is_found_by_the_search_on_each_page() {
    Operator::each(two_dead, async |mut ada, _stage| {
        ada.goes_to("actions").await;
        ada.reaches("[type=search]").await;
        ada.page.fill("[type=search]", "a-1").await;
        ada.uses(".search button").await;
        ada.uses("td.id a").await;
        assert_eq!(ada.page.text_of("dd code").await, "a-1");
    })
    .await;
}
