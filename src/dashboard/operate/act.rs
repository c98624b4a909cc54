//! Runs actions: at once for one delivery or an endpoint, and in the background for many deliveries (`bulk.rs`).
//! `recovery/operator/operation.rs` takes the locks that prevent two actions, or an action and an attempt, from
//! changing the same delivery at the same time.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use serde::Serialize;
use sqlx::{PgConnection, PgPool};

use super::super::database::Database;
use super::super::error::PageError;
use super::super::format::Format;
use super::super::params::{Link, Params};
use super::super::rows::{self, Key};
use super::super::selection::Selection;
use super::super::view::json;
use super::super::{Access, Shared};
use super::action::Action;
use super::bulk::{HELD, InBackground, change, row_key};
use super::parse_action::{Order, Target};
use super::recorded_actions::{self, Asked};
use crate::recovery::operator::Endpoint;
use crate::recovery::operator::{self, Applied, Operation};
use crate::tasks_and_errors::sqlx_error::is_lock_timeout;
use crate::transaction::{RowKeys, ShortTx};

const NO_ENDPOINT: PageError = PageError::not_found("There is no such endpoint.");

/// An action that has started.
#[derive(Serialize)]
struct Begun {
    id: i64,
    /// The page that shows the result.
    #[serde(skip)]
    page: Link,
}

/// Runs the requested action, and redirects to the page with its result.
pub(in crate::dashboard) async fn act(
    shared: &Arc<Shared>,
    access: &Access,
    params: &Params,
    format: &Format,
) -> Result<Response, PageError> {
    let Order { action, target } = Order::of(params, access)?;
    let database = &shared.database;
    let pool = &database.pool;
    let begun = match target {
        Target::Endpoint(endpoint) => on_endpoint(pool, access, action, endpoint).await?,
        Target::Database(environment) => adopt(pool, access, &environment).await?,
        Target::Deliveries(keys) => {
            let look = async |tx: &mut _| are_there(tx, access, &keys).await;
            if !ShortTx::run(pool, look).await? {
                return Err(PageError::not_found("There is no such delivery."));
            }
            match &*keys {
                [key] => on_delivery(pool, access, action, key).await?,
                _ => on_selected(database, access, action, keys).await?,
            }
        }
        Target::All(operation, selection) => {
            on_all(database, access, action, operation, selection).await?
        }
    };
    Ok(match format {
        Format::Page(_) => see(&begun.page),
        Format::Json => json(&begun),
    })
}

pub(in crate::dashboard) async fn cancel(
    shared: &Shared,
    access: &Access,
    params: &Params,
    format: &Format,
) -> Result<Response, PageError> {
    let id = params.number("id");
    let id = id.ok_or(PageError::bad_request("No action is given."))?;
    let pool = &shared.database.pool;
    let look = async |tx: &mut _| recorded_actions::one(tx, access, id).await;
    let known = ShortTx::run(pool, look).await?;
    known.ok_or(PageError::not_found("There is no such action."))?;
    if recorded_actions::cancel(pool, id, access.operator()).await? {
        tracing::info!(
            operator = access.operator(),
            id,
            "an action of a webhook operator was cancelled"
        );
    }
    let page = Link::to("action").with("id", id);
    Ok(match format {
        Format::Page(_) => see(&page),
        Format::Json => json(&Begun { id, page }),
    })
}

async fn on_endpoint(
    pool: &PgPool,
    access: &Access,
    action: Action,
    name: String,
) -> Result<Begun, PageError> {
    // Recovery is paused and resumed for all tenants together.
    rows::not_by_tenant(access)?;
    let look = async |tx: &mut _| rows::endpoints(tx, access).await;
    let known = ShortTx::run(pool, look).await?;
    // If the application limits the operator to named endpoints, the operator can pause those endpoints even before
    // their first delivery.
    if !known.contains(&name) {
        return Err(NO_ENDPOINT);
    }
    let asked = Asked {
        operator: access.operator(),
        action,
        endpoints: std::slice::from_ref(&name),
        key: None,
        selection: None,
        reason_group: None,
    };
    let id = begin(pool, &asked).await?;
    let endpoint = Endpoint::new(pool.clone(), name);
    let done = match action {
        Action::Pause => endpoint.pause().await,
        _ => endpoint.resume().await,
    };
    end(pool, id, done).await?;
    Ok(Begun {
        id,
        page: Link::to("overview"),
    })
}

/// Gives the database another environment, which decides whose processes run its deliveries.
async fn adopt(pool: &PgPool, access: &Access, environment: &str) -> Result<Begun, PageError> {
    let adopted = operator::adopt_by(pool, environment, access.operator()).await?;
    let adopted = adopted.ok_or(PageError::bad_request(
        "The database has this environment already.",
    ))?;
    Ok(Begun {
        id: adopted.action,
        page: Link::to("overview"),
    })
}

/// Whether all of these deliveries belong to existing endpoints, and the operator may see them.
async fn are_there(
    connection: &mut PgConnection,
    access: &Access,
    keys: &[Key],
) -> sqlx::Result<bool> {
    if !rows::may_see(connection, access, keys).await? {
        return Ok(false);
    }
    for endpoint in endpoints_of(keys) {
        if !rows::is_endpoint(connection, &endpoint).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn endpoints_of(keys: &[Key]) -> Vec<String> {
    // The keys are sorted, so equal endpoints are next to each other.
    let mut endpoints: Vec<String> = keys.iter().map(|key| key.endpoint.clone()).collect();
    endpoints.dedup();
    endpoints
}

async fn on_delivery(
    pool: &PgPool,
    access: &Access,
    action: Action,
    key: &Key,
) -> Result<Begun, PageError> {
    let asked = Asked {
        operator: access.operator(),
        action,
        endpoints: std::slice::from_ref(&key.endpoint),
        key: Some(key),
        selection: None,
        reason_group: None,
    };
    let id = begin(pool, &asked).await?;
    let id = match change_and_count(pool, id, action, key).await {
        Ok(Some(note)) => recorded_actions::end_unchanged(pool, id, note).await?,
        done => {
            end(pool, id, done.map(drop)).await?;
            id
        }
    };
    Ok(Begun {
        id,
        page: key.link("delivery"),
    })
}

/// Changes one delivery and counts the change. If nothing has changed, returns the reason.
async fn change_and_count(
    pool: &PgPool,
    id: i64,
    action: Action,
    key: &Key,
) -> sqlx::Result<Option<&'static str>> {
    const RUNNING: &str = "It is running. Try again when the attempt has finished.";
    let (endpoint, keys) = (&*key.endpoint, RowKeys::from_iter([row_key(key)]));
    let done = operator::in_transaction(pool, async |tx| {
        let was_processed = operator::is_processed(&keys, endpoint, tx).await?;
        let applied = match action {
            // A processed delivery has nothing to retry.
            Action::Retry if was_processed => Applied::default(),
            _ => change(action, endpoint, &keys, tx).await?,
        };
        recorded_actions::add(tx, id, action, endpoint, &applied).await?;
        Ok((applied, was_processed))
    });
    let (applied, was_processed) = match done.await {
        Err(error) if is_lock_timeout(&error) => return Ok(Some(HELD)),
        done => done?,
    };
    Ok(match applied.running {
        _ if !applied.changed.is_empty() => None,
        0 => Some(action.why_unchanged(was_processed)),
        _ => Some(RUNNING),
    })
}

async fn on_selected(
    database: &Database,
    access: &Access,
    action: Action,
    keys: Vec<Key>,
) -> Result<Begun, PageError> {
    let words = format!("{} selected", rows::grouped(keys.len() as i64));
    let endpoints = endpoints_of(&keys);
    let asked = Asked {
        operator: access.operator(),
        action,
        endpoints: &endpoints,
        key: None,
        selection: Some(&words),
        reason_group: None,
    };
    let (bulk, begun) = in_background(database, access, &asked).await?;
    tokio::spawn(bulk.run_selected(action, keys));
    Ok(begun)
}

async fn on_all(
    database: &Database,
    access: &Access,
    action: Action,
    operation: Operation,
    mut selection: Selection,
) -> Result<Begun, PageError> {
    let (endpoints, is_there) = ShortTx::run(&database.pool, async |tx| {
        selection.bound(rows::now(tx).await?);
        let endpoints = selection.endpoints(tx, access).await?;
        let is_there = match &*endpoints {
            [only] => rows::is_endpoint(tx, only).await?,
            some => !some.is_empty(),
        };
        Ok((endpoints, is_there))
    })
    .await?;
    if !is_there {
        return Err(NO_ENDPOINT);
    }
    if selection.endpoint.is_none() && endpoints.len() >= rows::MAX_ENDPOINTS {
        return Err(PageError::bad_request(
            "There are more endpoints than this page can handle. Choose one.",
        ));
    }
    let asked = Asked {
        operator: access.operator(),
        action,
        endpoints: &endpoints,
        key: None,
        selection: Some(&selection.for_record()),
        reason_group: selection.reason.as_deref(),
    };
    let (bulk, begun) = in_background(database, access, &asked).await?;
    tokio::spawn(bulk.run(action, operation, endpoints, selection.filter()));
    Ok(begun)
}

/// Records an action that will run in the background.
async fn in_background(
    database: &Database,
    access: &Access,
    asked: &Asked<'_>,
) -> sqlx::Result<(InBackground, Begun)> {
    let id = begin(&database.pool, asked).await?;
    let bulk = InBackground {
        database: database.clone(),
        id,
    };
    // The page of an action counts the deliveries of all tenants, so readers of only some tenants may not see it.
    let page = match access.tenants() {
        None => Link::to("action").with("id", id),
        Some(_) => Link::to("deliveries"),
    };
    Ok((bulk, Begun { id, page }))
}

async fn begin(pool: &PgPool, asked: &Asked<'_>) -> sqlx::Result<i64> {
    let id = recorded_actions::begin(pool, asked).await?;
    tracing::info!(
        operator = asked.operator,
        action = asked.action.as_str(),
        endpoints = ?asked.endpoints,
        delivery_id = asked.key.map(|key| &*key.id),
        selection = asked.selection,
        reason_group = asked.reason_group,
        "webhook operator"
    );
    Ok(id)
}

async fn end(pool: &PgPool, id: i64, done: sqlx::Result<()>) -> Result<(), PageError> {
    match done {
        Ok(()) => Ok(recorded_actions::end(pool, id, None).await?),
        Err(error) => {
            let note = "The database could not be written. The log says why.";
            recorded_actions::end(pool, id, Some(note)).await?;
            Err(error.into())
        }
    }
}

/// A redirect, so that reloading the page does not repeat the action.
fn see(link: &Link) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(location) = HeaderValue::try_from(link.to_string()) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
