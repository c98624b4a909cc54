//! `webhook status`.

use std::fmt;

use clap::Args;
use serde::Deserialize;

use crate::dashboard::Dashboard;
use crate::visible::visible;
use crate::{Ended, Failed};

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Status {
    #[command(flatten)]
    dashboard: Dashboard,

    /// Only this endpoint
    #[arg(long, value_name = "NAME")]
    endpoint: Option<String>,
}

const AFTER_HELP: &str = "The command asks the application's dashboard, with the rights of the token. It changes \
nothing.

Examples:
  read -rs WEBHOOK_TOKEN; export WEBHOOK_TOKEN
  webhook status --dashboard https://ops.example.com/admin/webhooks
  webhook status --dashboard https://ops.example.com/admin/webhooks --token-file /run/secrets/webhooks --json

Exit status: 0 if all endpoints are well; 1 if one is not, or no endpoint is known; 2 for wrong usage, or if the token \
is refused; 3 if the dashboard or its database is unavailable.";

impl Status {
    pub fn run(self) -> Result<Ended, Failed> {
        let query: Vec<_> = self
            .endpoint
            .iter()
            .map(|name| ("endpoint", &**name))
            .collect();
        self.dashboard.show::<Told>("status", &query)
    }
}

#[derive(Deserialize)]
struct Told {
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    endpoint: String,
    well: bool,
    state: String,
    also: Vec<String>,
    why: Vec<String>,
    due: Count,
    dead: Count,
    recorded: Count,
    last_success: Option<String>,
}

#[derive(Deserialize)]
struct Count {
    number: i64,
    or_more: bool,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.endpoints.is_empty() {
            writeln!(
                f,
                "No endpoint is known: this database has no record of any delivery."
            )?;
        }
        self.endpoints
            .iter()
            .try_for_each(|endpoint| endpoint.fmt(f))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let well = if self.well { "well  " } else { "unwell" };
        write!(
            f,
            "{well}  {}: {}",
            visible(&self.endpoint),
            visible(&self.state)
        )?;
        for also in &self.also {
            write!(f, ", {}", visible(also))?;
        }
        writeln!(f)?;
        if self.well {
            return Ok(());
        }
        for why in &self.why {
            writeln!(f, "        {}", visible(why))?;
        }
        let last = self.last_success.as_deref().unwrap_or("none counted");
        let Self {
            due,
            dead,
            recorded,
            ..
        } = self;
        writeln!(
            f,
            "        due {due}, dead {dead}, recorded {recorded}; last success: {}",
            visible(last)
        )
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, if self.or_more { "+" } else { "" })
    }
}
