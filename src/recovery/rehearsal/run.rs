//! `Recovery::rehearse`.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use sqlx::Row;
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;
use tower_service::Service;

use super::attempt::{Refused, RehearsalAttempt, RehearsalResult};
use super::report::{Findings, RehearsalReport};
use super::settings::Rehearsal;
use crate::delivery::{Delivery, Past};
use crate::pg_time::from_unix_time;
use crate::recovery::operator::{Chosen, Scope, newest};
use crate::recovery::router::Router;
use crate::recovery::served_endpoints::Served;
use crate::recovery::taken::{request_of, tenant_of, verified_of};
use crate::recovery::task::{Recovery, share_of};
use crate::transaction::{DatabaseError, Store};

pub(in crate::recovery) const TO_REHEARSE: &str = include_str!("../kept/to_rehearse.sql");

/// A delivery that was rehearsed.
struct Rehearsed {
    delivery: Delivery,
    was_processed: bool,
    result: Result<RehearsalResult, Refused>,
}

impl Recovery {
    /// Runs kept deliveries through `service`, each in a transaction of its own that is rolled back whatever its handler
    /// answers, and returns what would happen to them now: before a deploy, one knows what the new handlers make of the
    /// events of the last week.
    ///
    /// ```no_run
    /// # use idempotent_webhook::recovery::Rehearsal;
    /// # async fn job(recovery: idempotent_webhook::Recovery, app: axum::Router) -> sqlx::Result<()> {
    /// let report = recovery.rehearse(&app, &Rehearsal::new()).await?;
    /// for of_type in &report.types {
    ///     for broken in &of_type.fails_now {
    ///         println!("{} {}: {}", of_type.endpoint, broken.delivery_id, broken.reason);
    ///     }
    /// }
    /// std::process::exit(report.has_broken().into());
    /// # }
    /// ```
    ///
    /// `service` is the router of the new version, whose layers hold this handle and are
    /// [`rehearsable`](crate::IdempotentWebhook::rehearsable). An endpoint whose layer is not is refused. There is something
    /// to rehearse where requests of processed deliveries stay ([`Keep::processed_for`](crate::Keep::processed_for)), or
    /// deliveries are due or dead.
    ///
    /// Nothing of a rehearsal is written, counted, measured or told: no row is changed, and no attempt is used up. A rehearsal
    /// has the locks of a claim, and those of the handler's own statements. So a request for the same delivery waits for at
    /// most one handler, and is processed once. [Rehearsal](crate::documentation::rehearsal) says what a rehearsal cannot
    /// see, and how a job of a deploy does it.
    ///
    /// The deliveries of one endpoint are run after those of another one. A delivery that is processed or discarded
    /// meanwhile is left out.
    ///
    /// # Errors
    ///
    /// Any error of Postgres in reading what is kept.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped, the handlers that run are dropped, and their connections are closed.
    pub async fn rehearse<S, R>(
        &self,
        service: &S,
        rehearsal: &Rehearsal,
    ) -> sqlx::Result<RehearsalReport>
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        R: Send,
    {
        let router = Router::new(service.clone(), self.prepare.clone());
        let mut findings = Findings::default();
        for served in self.shared.endpoints.all() {
            self.rehearse_endpoint(&router, &served, rehearsal, &mut findings)
                .await
                .map_err(DatabaseError::into_sqlx)?;
        }
        Ok(findings.into_report())
    }

    async fn rehearse_endpoint(
        &self,
        router: &Router,
        served: &Arc<Served>,
        rehearsal: &Rehearsal,
        findings: &mut Findings,
    ) -> Result<(), DatabaseError> {
        let store = &self.shared.store;
        let most = share_of(store.pool(), 2);
        let at_once = rehearsal
            .concurrency
            .unwrap_or_else(|| share_of(store.pool(), 4));
        let at_once = at_once.clamp(1, most);
        let scope = Scope {
            endpoint: &served.endpoint,
            tenant: None,
        };
        let filters = rehearsal.filters();
        let chosen = newest(store.pool(), scope, &filters, rehearsal.limit).await?;
        let mut chosen = chosen.into_iter();
        // Dropping it aborts what runs.
        let mut running = JoinSet::new();
        loop {
            for chosen in chosen.by_ref().take(at_once - running.len()) {
                let (store, router, served) = (store.clone(), router.clone(), served.clone());
                running.spawn(async move { rehearse(&store, &router, &served, &chosen).await });
            }
            // No task panics, and none is aborted before.
            let Some(Ok(rehearsed)) = running.join_next().await else {
                return Ok(());
            };
            let Some(rehearsed) = rehearsed? else {
                continue;
            };
            match rehearsed.result {
                Ok(result) => {
                    findings.add(&rehearsed.delivery, rehearsed.was_processed, result);
                }
                Err(Refused(reason)) => {
                    findings.refuse(&served.endpoint, reason);
                    return Ok(());
                }
            }
        }
    }
}

/// Rehearses one delivery, if what was chosen is still there.
async fn rehearse(
    store: &Store,
    router: &Router,
    served: &Served,
    chosen: &Chosen,
) -> Result<Option<Rehearsed>, DatabaseError> {
    let statement = || {
        sqlx::query(TO_REHEARSE)
            .bind(&*served.endpoint)
            .bind(&chosen.tenant)
            .bind(&chosen.delivery_id)
    };
    let rows = store.run(statement).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let was_processed: bool = row.try_get("was_processed")?;
    let reprocessed: bool = row.try_get("reprocessed")?;
    let delivery = Delivery::new(
        served.endpoint.clone(),
        served.provider(),
        tenant_of(row)?,
        verified_of(row)?,
    )
    .with_past(Past {
        attempt: row.try_get::<i32, _>("attempts")?.max(0).cast_unsigned() + 1,
        first_received_at: from_unix_time(row.try_get("first_received_at")?),
        // Its effects are there.
        reprocessed: reprocessed || was_processed,
        reconciled: row.try_get("reconciled")?,
        rehearsed: true,
    });
    let attempt = RehearsalAttempt::new(delivery.clone());
    let result = match request_of(row, attempt.clone())? {
        Ok(request) => {
            let sent = router.send(request);
            let sent = tokio::time::timeout(served.longest_attempt(), sent).await;
            attempt.result().unwrap_or_else(|| Ok(unreached(sent)))
        }
        Err(_unreadable) => {
            let reason = "what was kept of the request cannot be read";
            Ok(RehearsalResult::NotRun(reason.into()))
        }
    };
    Ok(Some(Rehearsed {
        delivery,
        was_processed,
        result,
    }))
}

/// The result of a rehearsal that no layer has ended, by what the router has answered.
fn unreached(sent: Result<Option<StatusCode>, Elapsed>) -> RehearsalResult {
    RehearsalResult::NotRun(match sent {
        Ok(Some(status)) => {
            format!("no layer of its endpoint was reached: the answer was {status}")
        }
        Ok(None) => "no layer of its endpoint was reached".into(),
        Err(_) => "it did not end in time".into(),
    })
}
