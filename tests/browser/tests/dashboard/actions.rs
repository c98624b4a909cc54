//! What operators do, by mouse and by keyboard alone, with scripts and without: what the page says,
//! what is in the tables, and what is written down.

use std::collections::HashSet;

use browser::{Browser, Look, Page, Server};
use sqlx::{Executor, PgPool};

use crate::stage::{PREFIX, Stage, ada, assert_sound};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    Mouse,
    /// Tab, Enter and Space.
    Keyboard,
}

/// Somebody before a page.
struct Operator {
    page: Page,
    hand: Hand,
    server: Server,
}

impl Operator {
    /// Each way to work, one after the other, each with a stage of its own.
    async fn each<F>(set: impl AsyncFn() -> Stage, work: impl Fn(Self, Stage) -> F)
    where
        F: Future<Output = ()>,
    {
        let browser = Browser::start().await;
        for hand in [Hand::Mouse, Hand::Keyboard] {
            for javascript in [true, false] {
                println!("{hand:?}, JavaScript: {javascript}");
                let stage = set().await;
                let server = stage.serve(ada()).await;
                let look = Look {
                    javascript,
                    ..Look::default()
                };
                let page = browser.page(look).await;
                work(Self { page, hand, server }, stage).await;
            }
        }
    }

    async fn goes_to(&mut self, path: &str) {
        let url = self.server.url(&format!("{PREFIX}/{path}"));
        assert_eq!(self.page.goto(&url).await, 200, "{url}");
    }

    /// Uses a link or a button, and waits for where it leads.
    async fn uses(&mut self, selector: &str) {
        self.begins(selector).await;
        assert_eq!(self.page.wait_for_navigation().await, 200, "{selector}");
        assert_sound(&self.page).await;
    }

    async fn begins(&self, selector: &str) {
        match self.hand {
            Hand::Mouse => self.page.click(selector).await,
            Hand::Keyboard => {
                self.reaches(selector).await;
                self.page.press("Enter").await;
            }
        }
    }

    async fn ticks(&self, selector: &str) {
        match self.hand {
            Hand::Mouse => self.page.click(selector).await,
            Hand::Keyboard => {
                self.reaches(selector).await;
                self.page.press("Space").await;
            }
        }
        let is_checked = format!("document.querySelector({selector:?}).checked");
        assert!(self.page.eval::<bool>(&is_checked).await, "{selector}");
    }

    /// With the key Tab, from wherever the focus is.
    async fn reaches(&self, selector: &str) {
        for _ in 0..200 {
            if self.page.has_focus(selector).await {
                return;
            }
            self.page.press("Tab").await;
        }
        panic!("{selector} cannot be reached by Tab");
    }

    /// The page about the delivery, the action or the list that came of an action is loaded again,
    /// and left and come back to. Nothing is done once more.
    async fn reloads_and_goes_back(&mut self, pool: &PgPool) {
        let before = marks(pool).await;
        let url = self.page.url().await;
        assert_eq!(self.page.reload().await, 200);
        assert_eq!(self.page.url().await, url);
        self.page.back().await;
        // Once more, as somebody does who sees nothing happen.
        self.page.reload().await;
        assert_eq!(marks(pool).await, before);
        assert_eq!(self.page.goto(&url).await, 200);
    }

    async fn sees(&self, texts: &[&str]) {
        let seen = self.page.text().await;
        for text in texts {
            assert!(seen.contains(text), "no {text:?} in:\n{seen}");
        }
    }
}

/// Changes with each write to a table that an action writes to.
async fn marks(pool: &PgPool) -> HashSet<String> {
    let rows = sqlx::query_scalar(
        "select 'action ' || id || ' ' || xmin from idempotent_webhook.operator_actions
        union all
        select 'kept ' || delivery_id || ' ' || xmin from idempotent_webhook.kept_deliveries
        union all
        select 'claim ' || delivery_id || ' ' || xmin from idempotent_webhook.deliveries
        union all
        select 'endpoint ' || endpoint || ' ' || xmin from idempotent_webhook.kept_endpoints",
    );
    rows.fetch_all(pool).await.unwrap().into_iter().collect()
}

async fn two_dead() -> Stage {
    let stage = Stage::empty().await;
    stage.dead("billing", "a-1", "no such order: 1").await;
    stage.dead("billing", "b-2", "no such order: 2").await;
    stage
}

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
        ada.sees(&["What operators did", "ada", "retry", "done"])
            .await;
        assert_eq!(ada.page.text_of(".lead .state").await, "due");
        assert_eq!(
            stage.kept().await,
            ["billing a-1 due now", "billing b-2 dead"]
        );
        assert_eq!(stage.audit().await, ["ada: retry billing a-1, changed 1"]);
        ada.reloads_and_goes_back(&stage.pool).await;

        // It runs already.
        ada.uses("form[action=act] button").await;
        ada.sees(&["no change", "It is due or running already"])
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
        // It is not known any more, but for what was done with it.
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

        // As it says: the provider delivers it, and it is processed.
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
        assert_eq!(stage.audit().await, ["ada: pause payouts, changed 1"]);
        ada.reloads_and_goes_back(&stage.pool).await;

        ada.goes_to("delivery?endpoint=payouts&id=c-3").await;
        assert_eq!(ada.page.text_of(".lead .state").await, "paused");

        ada.goes_to("overview").await;
        ada.uses("form:has([value=resume]):has([value=payouts]) button")
            .await;
        assert_eq!(ada.page.count("[data-state=paused]").await, 0);
        assert_eq!(paused().await, None);
        assert_eq!(
            stage.audit().await,
            [
                "ada: pause payouts, changed 1",
                "ada: resume payouts, changed 1"
            ]
        );
        ada.reloads_and_goes_back(&stage.pool).await;
    })
    .await;
}

#[tokio::test]
async fn all_of_a_reason_are_retried() {
    let set = async || {
        let stage = two_dead().await;
        stage.dead("billing", "c-3", "the ledger is away").await;
        stage.dead("orders", "d-4", "no such order: 4").await;
        stage.due("billing", "e-5", "no such order: 5").await;
        stage
    };
    Operator::each(set, async |mut ada, stage| {
        ada.goes_to("overview").await;
        let group = "tr:has(.reason):has([data-state=dead]):has(a[href*='endpoint=billing'])";
        let retry = format!("{group} a[href*='confirm?action=retry']");
        ada.uses(&retry).await;
        ada.sees(&[
            "Retry 2 deliveries?",
            "billing",
            "with a reason like “no such order: ",
        ])
        .await;
        // One that fails after it was shown is left out.
        stage.dead("billing", "f-6", "no such order: 6").await;
        ada.uses(".confirm button").await;
        stage.wait_for_actions().await;
        assert_eq!(
            stage.kept().await,
            [
                "billing a-1 due now",
                "billing b-2 due now",
                "billing c-3 dead",
                "billing e-5 due",
                "billing f-6 dead",
                "orders d-4 dead",
            ]
        );
        assert_eq!(
            stage.audit().await,
            ["ada: retry billing what is dead, with a reason like “no such order: 2”, changed 2"]
        );
        ada.goes_to("action?id=1").await;
        assert_eq!(ada.page.text_of("dd .state").await, "done");
        assert_eq!(ada.page.text_of(".changed").await, "2");
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
        ada.sees(&["Discard 2 deliveries?", "billing: what is dead"])
            .await;
        ada.uses(".confirm a").await;
        assert!(list.starts_with(&ada.page.url().await), "the same list");
        assert!(stage.audit().await.is_empty());

        ada.uses(".actions a[href*='action=discard']").await;
        ada.uses(".confirm button").await;
        stage.wait_for_actions().await;
        assert_eq!(stage.kept().await, ["billing c-3 due", "orders d-4 dead"]);
        let audit = ["ada: discard billing what is dead, changed 2"];
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
        // Back up from the last row, where Tab would go on to the end of the page.
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
        assert_eq!(
            stage.kept().await,
            [
                "billing a-1 due now",
                "billing b-2 dead",
                "billing c-3 dead",
                "orders d-4 due now",
            ]
        );
        let mut audit = stage.audit().await;
        audit.sort();
        assert_eq!(
            audit,
            [
                "ada: retry billing a-1, changed 1",
                "ada: retry orders d-4, changed 1"
            ]
        );
        ada.sees(&["retry", "a-1 of billing", "d-4 of orders"])
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
            stage.audit().await[2],
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
        assert_eq!(stage.claims().await, ["billing b-2"]);
        let mut audit = stage.audit().await;
        audit.sort();
        assert_eq!(
            audit,
            [
                "ada: forget billing a-1, changed 1",
                "ada: forget billing c-3, changed 1"
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
        assert_eq!(ada.page.text_of(".changed").await, "1,000");
        assert_eq!(stage.kept().await.len(), 1500);
        assert_eq!(
            stage.audit().await,
            ["ada: discard imports what is dead, changed 1000, cancelled by ada"]
        );
    })
    .await;
}
