//! The environment of the database. An environment is a name such as `production`. The database stores one, and only
//! processes with the same environment run its deliveries. If processes of another environment use the database, a
//! banner on pages names their environments.

use maud::{Markup, html};
use serde::Serialize;
use sqlx::PgConnection;

use super::Access;
use super::html::visible;
use super::params::Link;

/// A process of another environment updates its row every half a minute.
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
    /// The environment of the database.
    name: Option<String>,
    /// The environments of other processes that use this database. They do not run its deliveries. An empty string
    /// stands for a process without an environment.
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

    /// A warning on pages. It is empty unless a process of another environment uses the database.
    pub(super) fn banner(&self, viewer: &Access) -> Markup {
        let Some(name) = self.name.as_ref().filter(|_| !self.others.is_empty()) else {
            return html! {};
        };
        html! {
            div.notice.environment role="alert" {
                p {
                    strong { "This database belongs to a different environment than some processes that use it." }
                    " It belongs to " code { (visible(name)) } ". Processes with "
                    @for (number, other) in self.others.iter().enumerate() {
                        @if number > 0 { ", " }
                        @if other.is_empty() { "no environment" } @else { code { (visible(other)) } }
                    }
                    " do not run kept deliveries, ask no provider, delete nothing and call no hook."
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
