//! Actions, done.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use sqlx::PgPool;

use super::super::error::PageError;
use super::super::params::{Link, Params};
use super::super::rows::Key;
use super::super::{Access, Shared};
use super::audit::{self, Asked};
use super::bulk;
use super::order::{Action, Order, Target};
use crate::Endpoint;
use crate::recovery::Retried;
use crate::recovery::control::Change;
use crate::transaction::BEGIN_APART;

/// For an action on one delivery, or on an endpoint.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Does what was asked for, and leads to the page that has the result.
pub(in crate::dashboard) async fn act(
    shared: &Arc<Shared>,
    access: &Access,
    params: &Params,
) -> Result<Response, PageError> {
    let order = Order::of(params)?;
    let operator: Option<Arc<str>> = access.operator().map(Into::into);
    let pool = shared.database.pool.clone();
    // In a task: what has begun is finished, and written down, even if the browser is closed.
    let done = tokio::spawn(async move { carry_out(&pool, operator.as_deref(), order).await });
    let link = done.await.map_err(|_| PageError::timed_out())??;
    Ok(see(&link))
}

pub(in crate::dashboard) async fn cancel(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Response, PageError> {
    let id = params.number("id");
    let id = id.ok_or(PageError::bad_request("It is not said which action."))?;
    audit::cancel(&shared.database.pool, id, access.operator()).await?;
    tracing::info!(
        operator = access.operator(),
        id,
        "an action of a webhook operator was cancelled"
    );
    Ok(see(&Link::to("action").with("id", id)))
}

async fn carry_out(pool: &PgPool, operator: Option<&str>, order: Order) -> Result<Link, PageError> {
    let action = order.action;
    match order.target {
        Target::Endpoint(endpoint) => {
            let asked = Asked {
                operator,
                action,
                endpoint: &endpoint,
                key: None,
                selection: None,
            };
            one_by_one(pool, &asked).await?;
            Ok(Link::to("overview"))
        }
        Target::Deliveries(keys) => {
            for key in &keys {
                let asked = Asked {
                    operator,
                    action,
                    endpoint: &key.endpoint,
                    key: Some(key),
                    selection: None,
                };
                one_by_one(pool, &asked).await?;
            }
            Ok(match &*keys {
                [key] => key.link("delivery"),
                _ => Link::to("actions"),
            })
        }
        Target::All {
            endpoint,
            mut selection,
        } => {
            let change = match action {
                Action::Retry => Change::Retry,
                Action::Discard => Change::Discard,
                Action::Forget | Action::Pause | Action::Resume => {
                    return Err(PageError::bad_request(
                        "That cannot be done to all of these.",
                    ));
                }
            };
            let mut tx = pool.begin_with(BEGIN_APART).await?;
            let endpoints = std::slice::from_ref(&endpoint);
            selection.look_up_reason(&mut tx, endpoints).await?;
            tx.commit().await?;
            let words = selection.in_words();
            let asked = Asked {
                operator,
                action,
                endpoint: &endpoint,
                key: None,
                selection: Some(&words),
            };
            let id = audit::begin(pool, &asked).await?;
            log(&asked);
            tokio::spawn(bulk::run(
                pool.clone(),
                id,
                change,
                endpoint,
                selection.filter(),
            ));
            Ok(Link::to("action").with("id", id))
        }
    }
}

/// An action that is done at once.
async fn one_by_one(pool: &PgPool, asked: &Asked<'_>) -> Result<(), PageError> {
    let id = audit::begin(pool, asked).await?;
    log(asked);
    let done = tokio::time::timeout(TIMEOUT, call(pool, asked)).await;
    match done {
        Ok(Ok(note)) => {
            audit::end(pool, id, u64::from(note.is_none()), note).await?;
            Ok(())
        }
        Ok(Err(error)) => {
            let note = "The database could not be written. The log says why.";
            audit::end(pool, id, 0, Some(note)).await?;
            Err(error.into())
        }
        // It may have been done all the same.
        Err(_) => Err(PageError::timed_out()),
    }
}

/// Returns why nothing has changed, if so.
async fn call(pool: &PgPool, asked: &Asked<'_>) -> sqlx::Result<Option<&'static str>> {
    let mut endpoint = Endpoint::new(pool.clone(), asked.endpoint);
    if let Some(tenant) = asked.key.and_then(Key::tenant) {
        endpoint = endpoint.tenant(tenant);
    }
    let id = asked.key.map(|key| &*key.id).unwrap_or_default();
    Ok(match asked.action {
        Action::Retry => match endpoint.retry(id).await? {
            Retried::Due => None,
            Retried::Processed => Some("It was processed meanwhile."),
            Retried::Unchanged => {
                Some("It is due or running already, or there is nothing that could run again.")
            }
        },
        Action::Discard if endpoint.discard(id).await? => None,
        Action::Discard => Some("It is not kept any more."),
        Action::Forget if endpoint.forget(id).await? => None,
        Action::Forget => Some("It was not processed, or is deleted already."),
        Action::Pause => {
            endpoint.pause().await?;
            None
        }
        Action::Resume => {
            endpoint.resume().await?;
            None
        }
    })
}

fn log(asked: &Asked<'_>) {
    tracing::info!(
        operator = asked.operator,
        action = asked.action.as_str(),
        endpoint = asked.endpoint,
        delivery_id = asked.key.map(|key| &*key.id),
        selection = asked.selection,
        "webhook operator"
    );
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
