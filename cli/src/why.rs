//! `webhook why`.

use std::fmt;

use clap::Args;
use serde::Deserialize;

use crate::dashboard::Dashboard;
use crate::visible::visible;
use crate::{Ended, Failed};

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Why {
    /// The delivery id, exactly as the provider gives it
    id: String,

    #[command(flatten)]
    dashboard: Dashboard,

    /// Only at this endpoint [default: at all endpoints]
    #[arg(long, value_name = "NAME")]
    endpoint: Option<String>,

    /// Only for this tenant, if the tenant is part of the key
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

const AFTER_HELP: &str = "The command asks the application's dashboard, with the rights of the token. It changes \
nothing, and shows no payload. In reasons, quoted texts and digits are masked, unless the token may see payloads.

Examples:
  read -rs WEBHOOK_TOKEN; export WEBHOOK_TOKEN
  webhook why evt_1Qx --dashboard https://ops.example.com/admin/webhooks
  webhook why evt_1Qx --endpoint billing --dashboard https://ops.example.com/admin/webhooks --json

Exit status: 0 if the delivery is processed or discarded; 1 if it is not, or is not known; 2 for wrong usage, or if \
the token is refused; 3 if the dashboard or its database is unavailable.";

impl Why {
    pub fn run(self) -> Result<Ended, Failed> {
        let mut query = vec![("id", &*self.id)];
        query.extend(self.endpoint.iter().map(|name| ("endpoint", &**name)));
        query.extend(self.tenant.iter().map(|name| ("tenant", &**name)));
        self.dashboard.show::<Told>("why", &query)
    }
}

#[derive(Deserialize)]
struct Told {
    deliveries: Vec<Delivery>,
    cut: bool,
    deleted_before: Option<String>,
    rejected: Option<Rejected>,
}

#[derive(Deserialize)]
struct Rejected {
    last_24_hours: i64,
}

#[derive(Deserialize)]
struct Delivery {
    endpoint: String,
    tenant: String,
    id: String,
    tenant_name: Option<String>,
    event_type: Option<String>,
    state: String,
    meaning: String,
    waits_for: Option<String>,
    process: Option<i64>,
    first_received: Option<String>,
    processed: Option<String>,
    discarded: Option<String>,
    next_attempt: Option<String>,
    attempts: Option<i32>,
    failed_attempts: Vec<Attempt>,
    unreached: Option<String>,
    unreached_status: Option<i16>,
    reconciled: bool,
    provider_sends_again: Option<bool>,
}

#[derive(Deserialize)]
struct Attempt {
    at: String,
    by: String,
    status: Option<i16>,
    reason: Option<String>,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, delivery) in self.deliveries.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            delivery.fmt(f)?;
        }
        if self.deliveries.is_empty() {
            writeln!(
                f,
                "Not known: it was never received, it was rejected, or you may not see its endpoint or tenant."
            )?;
            if let Some(before) = &self.deleted_before {
                writeln!(
                    f,
                    "Deliveries received before {} may have been deleted.",
                    visible(before)
                )?;
            }
            if let Some(Rejected { last_24_hours }) = &self.rejected {
                writeln!(
                    f,
                    "Requests that were rejected in the last 24 hours: {last_24_hours}."
                )?;
            }
        }
        if self.cut {
            writeln!(
                f,
                "\nThere are more deliveries with this id: name one endpoint with --endpoint."
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (endpoint, id) = (visible(&self.endpoint), visible(&self.id));
        writeln!(f, "{id} at {endpoint}: {}", visible(&self.state))?;
        writeln!(f, "  {}", visible(&self.meaning))?;
        self.facts(f)?;
        for attempt in &self.failed_attempts {
            attempt.fmt(f)?;
        }
        Ok(())
    }
}

impl Delivery {
    fn facts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenant = Some(&self.tenant).filter(|tenant| !tenant.is_empty());
        let number = |number: &dyn fmt::Display| number.to_string();
        let unreached = self
            .unreached
            .as_ref()
            .map(|at| match self.unreached_status {
                Some(status) => format!("{at}, status {status}"),
                None => at.clone(),
            });
        let came = self
            .reconciled
            .then(|| "from the provider's list of events, by reconciliation".to_owned());
        let facts = [
            ("event type", self.event_type.clone()),
            ("tenant", self.tenant_name.as_ref().or(tenant).cloned()),
            ("came", came),
            ("first received", self.first_received.clone()),
            ("processed", self.processed.clone()),
            ("discarded", self.discarded.clone()),
            ("attempts", self.attempts.as_ref().map(|all| number(all))),
            ("waits for", self.waits_for.clone()),
            (
                "process",
                self.process.as_ref().map(|process| number(process)),
            ),
            ("next attempt", self.next_attempt.clone()),
            ("reached no layer", unreached),
            (
                "sent again by the provider",
                Some(self.sent_again().to_owned()),
            ),
        ];
        for (name, value) in facts {
            if let Some(value) = value {
                writeln!(f, "  {name}: {}", visible(&value))?;
            }
        }
        Ok(())
    }

    fn sent_again(&self) -> &'static str {
        match self.provider_sends_again {
            Some(true) => "yes, by itself",
            Some(false) => "no",
            None => "not known",
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at,
            by,
            status,
            reason,
        } = self;
        write!(f, "  failed {} by {}", visible(at), visible(by))?;
        if let Some(status) = status {
            write!(f, ", status {status}")?;
        }
        match reason {
            Some(reason) => writeln!(f, ": {}", visible(reason)),
            None => writeln!(f),
        }
    }
}
