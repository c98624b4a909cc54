//! `Recovery::rehearse`: runs the handlers of kept deliveries, and rolls back.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use sqlx::Row;
use tokio::task::JoinSet;
use tower_service::Service;

use super::attempt::{NOT_REHEARSABLE, Refused, RehearsalAttempt, RehearsalResult};
use super::report::{Findings, RehearsalReport};
use super::settings::Rehearsal;
use crate::provider::delivery::{Delivery, Past};
use crate::recovery::operator::{Chosen, Scope, newest};
use crate::recovery::router::Router;
use crate::recovery::served_endpoints::Served;
use crate::recovery::taken::{request_of, tenant_of, verified_of};
use crate::recovery::task::{Recovery, share_of};
use crate::transaction::pg_time::from_unix_time;
use crate::transaction::{AsRead, DatabaseError, Store};

pub(crate) const TO_REHEARSE: &str = include_str!("../kept/to_rehearse.sql");

const KEPT_ENDPOINTS: &str = include_str!("kept_endpoints.sql");

/// How often a delivery is rehearsed again because it has changed while its rehearsal waited for its lock.
const MAX_CHANGES: usize = 5;

/// A delivery that was rehearsed.
struct Rehearsed {
    delivery: Delivery,
    was_processed: bool,
    result: Result<RehearsalResult, Refused>,
}

impl Recovery {
    /// Runs kept deliveries through `service`, and rolls them back.
    ///
    /// Each delivery runs in a transaction of its own, which is rolled back regardless of the handler's answer. The
    /// report says what would happen to the deliveries now, and what their handlers have written. So before a deploy,
    /// you know how the new handlers process the events of the last week. To find where the new handlers write
    /// something different from the running version, use [`RehearsalReport::compare`].
    ///
    /// ```no_run
    /// # use idempotent_webhook::recovery::Rehearsal;
    /// # async fn job(recovery: idempotent_webhook::Recovery, app: axum::Router) -> sqlx::Result<()> {
    /// let report = recovery.rehearse(&app, &Rehearsal::new()).await?;
    /// println!("{report}");
    /// std::process::exit((!report.passed()).into());
    /// # }
    /// ```
    ///
    /// `service` is the router of the new version, whose layers hold this handle and are
    /// [`rehearsable`](crate::IdempotentWebhook::rehearsable). An endpoint whose layer is not rehearsable is
    /// refused. A rehearsal covers due and dead deliveries, and processed deliveries whose requests are archived
    /// ([`Keep::processed_for`](crate::Keep::processed_for)).
    ///
    /// A rehearsal writes, counts, measures and reports nothing: no row is changed, and no attempt is used up. A
    /// handler cannot commit by itself: its transaction refuses that, and its session is read-only afterwards. A
    /// handler can get around this in two ways. If one does, this is detected and logged at ERROR, and the rehearsal of
    /// the endpoint ends. A rehearsal holds the lock of a claim, and the locks of the handler's own statements. So a
    /// request for the same delivery waits for at most one handler, and is processed once. See
    /// [Rehearsal](crate::documentation::rehearsal) for what a rehearsal cannot see, and for a job that rehearses
    /// before a deploy.
    ///
    /// Endpoints are rehearsed one after the other. A delivery that fails is rehearsed once more, and only the second
    /// result is reported. A delivery that is discarded or erased meanwhile is left out.
    ///
    /// # Errors
    ///
    /// Any error of Postgres before a delivery was rehearsed. A later error ends the rehearsal, and is in [the
    /// report](RehearsalReport::error).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped, the running handlers are dropped, and their connections are closed.
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
        let mut findings = Findings::new(rehearsal);
        if let Err(error) = self.rehearse_all(&router, rehearsal, &mut findings).await {
            if findings.is_empty() {
                return Err(error.into_sqlx());
            }
            findings.end(&error);
        }
        Ok(findings.into_report())
    }

    async fn rehearse_all(
        &self,
        router: &Router,
        rehearsal: &Rehearsal,
        findings: &mut Findings<'_>,
    ) -> Result<(), DatabaseError> {
        let served = self.shared.endpoints.all();
        let kept = self
            .shared
            .store
            .read(|| sqlx::query(KEPT_ENDPOINTS))
            .await?;
        let kept = kept.into_iter().map(|(name,): (String,)| name);
        // In the order of names, each endpoint once.
        let names: BTreeSet<String> = match rehearsal.named() {
            Some(named) => named.iter().cloned().collect(),
            None => {
                let served = served.iter().map(|served| served.endpoint.to_string());
                served.chain(kept).collect()
            }
        };
        for name in names {
            match served.iter().find(|served| *served.endpoint == *name) {
                None => findings.refuse(&name, "no layer of this version serves it".into()),
                Some(served) if !served.is_rehearsable() => {
                    findings.refuse(&name, NOT_REHEARSABLE.into());
                }
                Some(served) => {
                    self.rehearse_endpoint(router, served, rehearsal, findings)
                        .await?;
                }
            }
        }
        Ok(())
    }

    async fn rehearse_endpoint(
        &self,
        router: &Router,
        served: &Arc<Served>,
        rehearsal: &Rehearsal,
        findings: &mut Findings<'_>,
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
        // Dropping this set aborts the running rehearsals.
        let mut running = JoinSet::new();
        loop {
            for chosen in chosen.by_ref().take(at_once - running.len()) {
                let (store, router, served) = (store.clone(), router.clone(), served.clone());
                running.spawn(async move { rehearse(&store, &router, &served, &chosen).await });
            }
            // No task panics, and none is aborted before the set is dropped.
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

/// Rehearses one delivery, if it is still there. If it fails, it is rehearsed once more.
async fn rehearse(
    store: &Store,
    router: &Router,
    served: &Served,
    chosen: &Chosen,
) -> Result<Option<Rehearsed>, DatabaseError> {
    let (mut changes, mut has_failed) = (0, false);
    loop {
        let Some(mut rehearsed) = rehearse_once(store, router, served, chosen).await? else {
            return Ok(None);
        };
        match &rehearsed.result {
            Ok(RehearsalResult::Changed) if changes < MAX_CHANGES => changes += 1,
            Ok(RehearsalResult::Changed) => {
                let reason = "it was changed again and again while it was rehearsed";
                rehearsed.result = Ok(RehearsalResult::not_run(reason.into()));
                return Ok(Some(rehearsed));
            }
            Ok(RehearsalResult::Failed(_) | RehearsalResult::Interrupted(_)) if !has_failed => {
                has_failed = true;
            }
            Ok(RehearsalResult::Interrupted(reason)) => {
                rehearsed.result = Ok(RehearsalResult::not_run(reason.clone()));
                return Ok(Some(rehearsed));
            }
            _ => return Ok(Some(rehearsed)),
        }
    }
}

async fn rehearse_once(
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
        // The effects of the first run still exist, as they do when an operator reprocesses a delivery.
        reprocessed: reprocessed || was_processed,
        reconciled: row.try_get("reconciled")?,
        rehearsed: true,
    });
    let read = AsRead {
        state: row.try_get("state")?,
        takes: row.try_get("takes")?,
    };
    let attempt = RehearsalAttempt::new(delivery.clone(), read);
    // Aborts the layer's work even if this future is dropped.
    let _abort = attempt.abort_on_drop();
    let result = match request_of(row, attempt.clone())? {
        Ok(request) => {
            let ended = tokio::time::timeout(served.longest_attempt(), async {
                let status = router.send(request).await;
                let result = attempt.result().await;
                result.unwrap_or_else(|| Ok(unreached(status)))
            });
            let timed_out = |_| Ok(RehearsalResult::not_run("it did not end in time".into()));
            ended.await.unwrap_or_else(timed_out)
        }
        Err(_unreadable) => {
            let reason = "the kept request cannot be read";
            Ok(RehearsalResult::not_run(reason.into()))
        }
    };
    Ok(Some(Rehearsed {
        delivery,
        was_processed,
        result,
    }))
}

/// The result of a rehearsal whose request reached no layer. `status` is the router's answer, if it gave one.
fn unreached(status: Option<StatusCode>) -> RehearsalResult {
    RehearsalResult::unreached(match status {
        Some(status) => format!("no layer of its endpoint was reached: the answer was {status}"),
        None => "no layer of its endpoint was reached".into(),
    })
}
