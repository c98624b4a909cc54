//! `Endpoint`: the operations of an operator's tool on the deliveries of an endpoint.

use std::sync::Arc;

use sqlx::PgPool;

use crate::recovery::operator::{self, Bulk, One, Operation, Scope};
use crate::recovery::{Changes, Discarded, Filter, KeptDelivery, Reprocessed, Retried};

/// The deliveries of an endpoint, for an operator's tool.
///
/// As with sqlx itself, each function waits for as long as the pool and Postgres allow. To limit that, set
/// `acquire_timeout` in `PgPoolOptions` (30 seconds by default) and `statement_timeout` with
/// `PgConnectOptions::options`. Or wrap the call in `tokio::time::timeout`, which drops the future after a timeout, and
/// so closes the connection. After a timeout, check whether the change was made.
///
/// A change waits for a running attempt, for another change, and for retention. It waits for as long as the
/// `lock_timeout` of the pool allows, or for two seconds if none is set. After that, it fails with the Postgres
/// error `55P03`, and has changed nothing.
///
/// # Many deliveries
///
/// `retry_all`, `discard_all`, `erase_all` and `reprocess_all` change each delivery at most once. They change only
/// deliveries that came before the call started, by the clock of the database. If the provider sends a delivery again
/// during the call, the call leaves the delivery out, even if it was kept before the call, or an attempt was running
/// when the provider sent it again.
///
/// A delivery that an attempt is working on is not changed either, but counted. [`Changes`] says how many deliveries
/// were changed, and how many were left alone because of an attempt. If both numbers are zero, there was nothing to do.
///
/// Each function uses one connection, and works in batches. Each batch is a transaction of its own. If the call fails
/// or is cancelled, the finished batches stay committed. To change the remaining deliveries, call the function again.
///
/// ```no_run
/// use idempotent_webhook::Endpoint;
///
/// # async fn main_(pool: sqlx::PgPool) -> sqlx::Result<()> {
/// if !Endpoint::new(pool, "billing").forget("evt_1Qx").await? {
///     eprintln!("it was never processed, or has been pruned");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) pool: PgPool,
    pub(super) name: Arc<str>,
    pub(super) tenant: Option<Arc<str>>,
}

impl Endpoint {
    /// The endpoint with the name that was given to
    /// [`IdempotentWebhook::new`](crate::IdempotentWebhook::new).
    pub fn new(pool: PgPool, name: impl Into<Arc<str>>) -> Self {
        Self {
            pool,
            name: name.into(),
            tenant: None,
        }
    }

    /// Only the deliveries of this tenant, if [`separate_ids`](crate::TenantSecrets::separate_ids) is on.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Lists the deliveries that are not processed yet, in the order of their ids.
    ///
    /// These are the kept deliveries, and the deliveries with a recorded failure. The list has at most `limit` entries.
    /// For the next page, pass the last delivery of the page before as `after`.
    ///
    /// If the filter is for [`KeptState::Processed`](crate::recovery::KeptState::Processed), the list contains the
    /// processed deliveries whose requests are still archived. If each tenant has ids of its own, this list is ordered
    /// by tenant, and then by id.
    ///
    /// ```no_run
    /// use idempotent_webhook::Endpoint;
    /// use idempotent_webhook::recovery::{Filter, KeptState};
    ///
    /// # async fn main_(billing: Endpoint) -> sqlx::Result<()> {
    /// let dead = Filter::new().state(KeptState::Dead);
    /// let mut page = billing.kept(&dead, None, 100).await?;
    /// while let Some(last) = page.last() {
    ///     for delivery in &page {
    ///         println!("{} {:?}", delivery.delivery_id, delivery.reason);
    ///     }
    ///     page = billing.kept(&dead, Some(last), 100).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn kept(
        &self,
        filter: &Filter,
        after: Option<&KeptDelivery>,
        limit: u32,
    ) -> sqlx::Result<Vec<KeptDelivery>> {
        operator::list(&self.pool, self.scope(), filter, after, limit).await
    }

    /// Makes a kept delivery due now, with a new schedule. The delivery must be dead, or due later.
    ///
    /// A [`Recovery`](crate::Recovery) runs it when it next looks for due deliveries, by default within 5 seconds
    /// ([`poll_interval`](crate::Recovery::poll_interval)).
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn retry(&self, delivery_id: &str) -> sqlx::Result<Retried> {
        Ok(match self.one(Operation::Retry, delivery_id).await? {
            One::Changed => Retried::Due,
            One::Processed => Retried::Processed,
            One::Unchanged => Retried::Unchanged,
        })
    }

    /// Makes all kept deliveries that match a filter due now, with a new schedule.
    ///
    /// For which deliveries this changes, see [Many deliveries](Self#many-deliveries). A delivery that a living
    /// process has taken counts as running.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn retry_all(&self, filter: &Filter) -> sqlx::Result<Changes> {
        self.all(Operation::Retry, filter).await
    }

    /// Deletes a kept delivery that should not be processed. The call waits for a running attempt.
    ///
    /// If the delivery was to be [reprocessed](Self::reprocess), its claim stays deleted. If the provider then sends
    /// the delivery again, it is processed again.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn discard(&self, delivery_id: &str) -> sqlx::Result<Discarded> {
        Ok(match self.one(Operation::Discard, delivery_id).await? {
            One::Changed => Discarded::Discarded,
            One::Processed => Discarded::Processed,
            One::Unchanged => Discarded::NotKept,
        })
    }

    /// Deletes all kept deliveries that match a filter, so that they are not processed.
    ///
    /// For which deliveries this changes, see [Many deliveries](Self#many-deliveries).
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn discard_all(&self, filter: &Filter) -> sqlx::Result<Changes> {
        self.all(Operation::Discard, filter).await
    }

    /// Erases the kept content of a delivery: its request, and the reasons of its failures, which may quote the
    /// request.
    ///
    /// Returns whether there was any content. The call waits for a running attempt. However, it does not wait for an
    /// attempt with a [late claim](crate::IdempotentWebhook::late_claim) whose handler has not called `begin` yet. When
    /// that handler calls `begin`, the call is refused. If the attempt belongs to a provider request and fails, the
    /// request is kept again. So check again once such an attempt has ended.
    ///
    /// **The delivery cannot run again.** If it was not processed, it is only
    /// [recorded](crate::recovery::KeptState::Recorded) from now on, with its times and statuses. It counts as a failed
    /// delivery until it is discarded or deleted. If it was processed, it leaves the archive, and its claim stays. If
    /// it was to be [reprocessed](Self::reprocess), it has no claim, because `reprocess` has deleted the claim. If the
    /// provider sends the delivery again, it is a duplicate if it has a claim, and is processed otherwise. For what
    /// else is stored, see [Personal data](crate::documentation::personal_data).
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn erase(&self, delivery_id: &str) -> sqlx::Result<bool> {
        let erased = self.one(Operation::Erase, delivery_id).await?;
        Ok(matches!(erased, One::Changed))
    }

    /// Erases the content of all deliveries that match a filter, for example of a [tenant](Filter::tenant), or of
    /// all [dead](crate::recovery::KeptState::Dead) deliveries.
    ///
    /// If the filter has no [state](Filter::state), processed deliveries are included. Deliveries that fail or are
    /// processed while this runs are included, too. Apart from that, see [Many deliveries](Self#many-deliveries) for
    /// which deliveries this changes.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn erase_all(&self, filter: &Filter) -> sqlx::Result<Changes> {
        self.all(Operation::Erase, filter).await
    }

    /// Makes a processed delivery due again, if its request is still archived
    /// ([`Keep::processed_for`](crate::Keep::processed_for)).
    ///
    /// Its claim is deleted, and the delivery is due now with a new schedule.
    ///
    /// This is for repairs, after a bug in the handler was fixed. First undo the effects of the first run. Or let the
    /// handler look for them if [`Delivery::is_reprocessed`](crate::Delivery::is_reprocessed) is `true`. If the handler
    /// inserts a row under a unique [`idempotency_key`](crate::Delivery::idempotency_key), the row of the first run
    /// still exists, and each attempt fails unless the handler inserts with `on conflict do nothing`.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn reprocess(&self, delivery_id: &str) -> sqlx::Result<Reprocessed> {
        Ok(match self.one(Operation::Reprocess, delivery_id).await? {
            One::Changed => Reprocessed::Due,
            One::Processed => Reprocessed::NotKept,
            One::Unchanged => Reprocessed::NotProcessed,
        })
    }

    /// [Reprocesses](Self::reprocess) all processed deliveries that match a filter, for example all that were
    /// processed [since](Filter::processed) a deploy.
    ///
    /// For which deliveries this changes, see [Many deliveries](Self#many-deliveries). Deliveries that are processed
    /// while this runs are left out.
    ///
    /// ```no_run
    /// use std::time::{Duration, SystemTime};
    ///
    /// use idempotent_webhook::Endpoint;
    /// use idempotent_webhook::recovery::Filter;
    ///
    /// # async fn main_(pool: sqlx::PgPool) -> sqlx::Result<()> {
    /// let yesterday = SystemTime::now() - Duration::from_secs(24 * 60 * 60);
    /// let filter = Filter::new().event_type("invoice.paid").processed(yesterday..);
    /// Endpoint::new(pool, "billing").reprocess_all(&filter).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn reprocess_all(&self, filter: &Filter) -> sqlx::Result<Changes> {
        self.all(Operation::Reprocess, filter).await
    }

    /// Pauses recovery of the endpoint, in all processes.
    ///
    /// Requests of the provider are handled as before, but with [`Keep::accepted`](crate::Keep::accepted) they are
    /// only kept. An endpoint can be paused before its first delivery.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn pause(&self) -> sqlx::Result<()> {
        operator::pause(&self.pool, &self.name).await?;
        tracing::info!(endpoint = &*self.name, "webhook recovery paused");
        Ok(())
    }

    /// Resumes recovery of the endpoint, even if its breaker is open after failures in a row.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn resume(&self) -> sqlx::Result<()> {
        operator::resume(&self.pool, &self.name).await?;
        tracing::info!(endpoint = &*self.name, "webhook recovery resumed");
        Ok(())
    }

    async fn one(&self, operation: Operation, delivery_id: &str) -> sqlx::Result<One> {
        let apply = async |tx: &mut _| {
            operator::apply_to_one(operation, self.scope(), delivery_id, tx).await
        };
        let result = operator::in_transaction(&self.pool, apply).await?;
        let (endpoint, done) = (&*self.name, operation.past());
        match result {
            One::Changed => tracing::info!(endpoint, delivery_id, "webhook delivery {done}"),
            One::Processed | One::Unchanged => tracing::info!(
                endpoint,
                delivery_id,
                ?result,
                "webhook delivery not {done}"
            ),
        }
        Ok(result)
    }

    async fn all(&self, operation: Operation, filter: &Filter) -> sqlx::Result<Changes> {
        let changes = Bulk::new(operation, self.scope(), filter)
            .run(&self.pool)
            .await?;
        tracing::info!(
            endpoint = &*self.name,
            ?filter,
            changed = changes.changed,
            running = changes.running,
            "webhook deliveries {}",
            operation.past()
        );
        Ok(changes)
    }

    pub(crate) fn scope(&self) -> Scope<'_> {
        Scope {
            endpoint: &self.name,
            tenant: self.tenant.as_deref(),
        }
    }
}
