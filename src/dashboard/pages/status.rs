//! The status of the endpoints, for programs: which endpoints have a problem, and why.
//! `src/documentation/stability.md` promises its format.

use serde::Serialize;

use super::super::activity;
use super::super::endpoint_state::State;
use super::super::endpoints::{self, Endpoint};
use super::super::error::PageError;
use super::super::html::{Timestamp, duration};
use super::super::params::Params;
use super::super::rows::{self, Count};
use super::super::{Access, Shared};

/// The state of an endpoint depends on its activity in this many hours.
const HOURS: i64 = 24;

#[derive(Serialize)]
pub(in crate::dashboard) struct Status {
    now: Timestamp,
    /// Whether there are endpoints, and all of them are well.
    well: bool,
    /// Worst first.
    endpoints: Vec<StatusOf>,
}

#[derive(Serialize)]
struct StatusOf {
    endpoint: String,
    well: bool,
    state: State,
    /// Other problems that the state does not show.
    also: Vec<State>,
    /// Sentences for people.
    why: Vec<String>,
    due: Count,
    unreached: Count,
    dead: Count,
    recorded: Count,
    oldest_due_seconds: Option<f64>,
    last_success: Option<Timestamp>,
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Status, PageError> {
    const UNKNOWN: PageError = PageError::not_found("There is no such endpoint.");
    let asked = params.get("endpoint");
    let mut reading = shared.database.read().await?;
    let now = rows::now(&mut reading).await?;
    let mut names = rows::endpoints(&mut reading, access).await?;
    if let Some(asked) = asked {
        names.retain(|name| name == asked);
    }
    let beginnings = activity::beginnings(now, HOURS);
    let endpoints = endpoints::read(&mut reading, access, &names, &beginnings).await?;
    reading.end();
    if asked.is_some() && endpoints.is_empty() {
        return Err(UNKNOWN);
    }
    let endpoints: Vec<StatusOf> = endpoints.into_iter().map(StatusOf::from).collect();
    Ok(Status {
        now: Timestamp(now),
        // Without endpoints, the status is not well, because this may be the wrong database.
        well: !endpoints.is_empty() && endpoints.iter().all(|endpoint| endpoint.well),
        endpoints,
    })
}

impl From<Endpoint> for StatusOf {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            well: endpoint.state.is_well(),
            state: endpoint.state,
            also: endpoint.also().collect(),
            why: why(&endpoint),
            due: endpoint.due,
            unreached: endpoint.unreached,
            dead: endpoint.dead,
            recorded: endpoint.recorded,
            oldest_due_seconds: endpoint.overdue,
            last_success: endpoint.last_success,
            endpoint: endpoint.name,
        }
    }
}

/// The meaning of the state, and further details. Reasons are already masked.
fn why(endpoint: &Endpoint) -> Vec<String> {
    let silence = endpoint.silence.map(|(silence, every)| {
        format!(
            "No authentic request for {}, and one is expected every {}.",
            duration(silence),
            duration(every)
        )
    });
    let unreached = (!endpoint.unreached.is_zero()).then(|| {
        format!(
            "{} of the due deliveries reach no layer.",
            endpoint.unreached
        )
    });
    let further = [
        silence,
        unreached,
        endpoint.difference.clone(),
        endpoint.why_uncompared.clone(),
        endpoint.why_unreconciled.clone(),
    ];
    let meaning = Some(endpoint.state.meaning().to_owned());
    meaning
        .into_iter()
        .chain(further.into_iter().flatten())
        .collect()
}
