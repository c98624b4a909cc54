//! The environment of the database, and the other ones whose processes use it: for the banner of pages.

use maud::{Markup, html};
use serde::Serialize;
use sqlx::PgConnection;

use super::Access;
use super::html::visible;
use super::params::Link;

/// A process of another environment says every half a minute that it is there.
const OTHERS: &str = "
    select name
    from idempotent_webhook.other_environments
    where seen_at between now() - interval '2 minutes' and now()
        and name is distinct from (select name from idempotent_webhook.environment)
    order by name
    limit 10
";

const OWN: &str = "select name from idempotent_webhook.environment";

#[derive(Debug, Serialize)]
pub(super) struct Environments {
    /// That of the database.
    name: Option<String>,
    /// Those of processes that run nothing here. Empty, if a process has none.
    others: Vec<String>,
}

impl Environments {
    pub(super) async fn read(connection: &mut PgConnection) -> sqlx::Result<Self> {
        Ok(Self {
            name: Self::own(&mut *connection).await?,
            others: sqlx::query_scalar(OTHERS).fetch_all(connection).await?,
        })
    }

    pub(super) async fn own(connection: &mut PgConnection) -> sqlx::Result<Option<String>> {
        sqlx::query_scalar(OWN).fetch_optional(connection).await
    }

    /// Nothing, unless a process of another environment is there.
    pub(super) fn banner(&self, viewer: &Access) -> Markup {
        let Some(name) = self.name.as_ref().filter(|_| !self.others.is_empty()) else {
            return html! {};
        };
        html! {
            div.notice.environment role="alert" {
                p {
                    strong { "This database is of another environment than processes that use it." }
                    " It is of " code { (visible(name)) } ". Processes of "
                    @for (number, other) in self.others.iter().enumerate() {
                        @if number > 0 { ", " }
                        @if other.is_empty() { "no environment" } @else { code { (visible(other)) } }
                    }
                    " run nothing of what is kept here, ask no provider, delete nothing and call no hook."
                }
                @if viewer.may_adopt() {
                    @for other in self.others.iter().filter(|other| !other.is_empty()) {
                        a.button href=(Link::to("confirm").with("action", "adopt").with("environment", other)) {
                            "Adopt it for " (visible(other)) "…"
                        }
                        " "
                    }
                }
            }
        }
    }
}
