//! An operator who uses the dashboard with the mouse only or with the keyboard only, with scripts
//! and without.

use std::collections::HashSet;

use browser::{Browser, Look, Page, Server};
use sqlx::PgPool;

use crate::stage::{PREFIX, Stage, ada, assert_sound};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    Mouse,
    /// Uses only the Tab, Enter and Space keys.
    Keyboard,
}

/// An operator in front of a page.
pub struct Operator {
    pub page: Page,
    hand: Hand,
    server: Server,
}

impl Operator {
    /// Runs the test for each way to work, one after the other, each with a new stage.
    pub async fn each<F>(set: impl AsyncFn() -> Stage, work: impl Fn(Self, Stage) -> F)
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

    pub async fn goes_to(&mut self, path: &str) {
        let url = self.server.url(&format!("{PREFIX}/{path}"));
        assert_eq!(self.page.goto(&url).await, 200, "{url}");
    }

    /// Uses a link or a button, and waits for the page that it leads to.
    pub async fn uses(&mut self, selector: &str) {
        self.begins(selector).await;
        assert_eq!(self.page.wait_for_navigation().await, 200, "{selector}");
        assert_sound(&self.page).await;
    }

    pub async fn begins(&self, selector: &str) {
        match self.hand {
            Hand::Mouse => self.page.click(selector).await,
            Hand::Keyboard => {
                self.reaches(selector).await;
                self.page.press("Enter").await;
            }
        }
    }

    pub async fn ticks(&self, selector: &str) {
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

    /// Moves the focus to the element with the Tab key, from its current position.
    pub async fn reaches(&self, selector: &str) {
        for _ in 0..200 {
            if self.page.has_focus(selector).await {
                return;
            }
            self.page.press("Tab").await;
        }
        panic!("{selector} cannot be reached by Tab");
    }

    /// After an action, reloads the page about the delivery, the action or the list, leaves it, and
    /// comes back. This must not repeat the action.
    pub async fn reloads_and_goes_back(&mut self, pool: &PgPool) {
        let before = marks(pool).await;
        let url = self.page.url().await;
        assert_eq!(self.page.reload().await, 200);
        assert_eq!(self.page.url().await, url);
        self.page.back().await;
        // Reloads once more, like a user who sees nothing happen.
        self.page.reload().await;
        assert_eq!(marks(pool).await, before);
        assert_eq!(self.page.goto(&url).await, 200);
    }

    pub async fn sees(&self, texts: &[&str]) {
        let seen = self.page.text().await;
        for text in texts {
            assert!(seen.contains(text), "no {text:?} in:\n{seen}");
        }
    }
}

/// Values that change whenever something is written to the tables that actions write to.
pub async fn marks(pool: &PgPool) -> HashSet<String> {
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

pub async fn two_dead() -> Stage {
    let stage = Stage::empty().await;
    stage.dead("billing", "a-1", "no such order: 1").await;
    stage.dead("billing", "b-2", "no such order: 2").await;
    stage
}
