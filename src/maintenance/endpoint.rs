//! `Endpoint`: the operations of an operator's tool on the deliveries of an endpoint.

use std::sync::Arc;

use sqlx::PgPool;

use crate::recovery::operator::{self, Batches, Change, Of};
use crate::recovery::{Discarded, Filter, KeptDelivery, Reprocessed, Retried};
use crate::transaction::ShortTx;

/// The deliveries of an endpoint, for an operator's tool.
///
/// As with sqlx itself, a function waits for as long as the pool and Postgres let it: set `acquire_timeout`
/// in `PgPoolOptions`, which is 30 seconds by default, and `statement_timeout` and `lock_timeout` with
/// `PgConnectOptions::options`. Or wrap it in `tokio::time::timeout`: where it is dropped, its connection is
/// closed. After a timeout, look up whether the change was made.
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
    pub(super) pool: PgPool,
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

    /// Only the deliveries of this tenant, where
    /// [`separate_ids`](crate::TenantSecrets::separate_ids) is on.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// The deliveries that are not processed yet, by delivery id: those that are kept, and those
    /// whose failure is recorded. At most `limit`, and only those `after` the last one of the page before. With a
    /// filter of [`KeptState::Processed`](crate::recovery::KeptState::Processed), those whose requests stay
    /// after they were processed.
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
        operator::list(&self.pool, self.of(), filter, after, limit).await
    }

    /// Has a kept delivery run again now, with a new schedule. It is a dead one, or one that is due
    /// later.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn retry(&self, delivery_id: &str) -> sqlx::Result<Retried> {
        let mut tx = ShortTx::begin(&self.pool).await?;
        if operator::is_processed(&mut tx, self.of(), delivery_id).await? {
            tx.end();
            return Ok(Retried::Processed);
        }
        let retried = operator::retry(&mut tx, self.of(), delivery_id).await?;
        tx.commit().await?;
        let endpoint = &*self.name;
        Ok(if retried {
            tracing::info!(endpoint, delivery_id, "webhook delivery retried");
            Retried::Due
        } else {
            tracing::info!(
                endpoint,
                delivery_id,
                "webhook delivery not retried: it is not kept, or is due or running already"
            );
            Retried::Unchanged
        })
    }

    /// Has all kept deliveries of a filter run again now, with a new schedule. Returns how many. One that
    /// is running, or that something else changes at the same moment, is left out.
    ///
    /// It works in batches, each in a transaction of its own. If it is cancelled, those of the
    /// finished batches are run again.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn retry_all(&self, filter: &Filter) -> sqlx::Result<u64> {
        let retried = Batches::new(Change::Retry, self.of(), filter)
            .run(&self.pool)
            .await?;
        tracing::info!(
            endpoint = &*self.name,
            ?filter,
            retried,
            "webhook deliveries retried"
        );
        Ok(retried)
    }

    /// Deletes a kept delivery that should not be processed.
    ///
    /// One that was to be [reprocessed](Self::reprocess) stays forgotten: if the provider sends it again, it is
    /// processed again.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn discard(&self, delivery_id: &str) -> sqlx::Result<Discarded> {
        let mut tx = ShortTx::begin(&self.pool).await?;
        let discarded = match operator::discard(&mut tx, self.of(), delivery_id, None).await? {
            true => Discarded::Discarded,
            false if operator::is_processed(&mut tx, self.of(), delivery_id).await? => {
                Discarded::Processed
            }
            false => Discarded::NotKept,
        };
        tx.commit().await?;
        let endpoint = &*self.name;
        match discarded {
            Discarded::Discarded => {
                tracing::info!(endpoint, delivery_id, "webhook delivery discarded");
            }
            result => tracing::info!(
                endpoint,
                delivery_id,
                ?result,
                "webhook delivery not discarded"
            ),
        }
        Ok(discarded)
    }

    /// Deletes all kept deliveries of a filter, which should not be processed. Returns how many. A running
    /// delivery is left out, and so is one that comes or fails after this has begun.
    ///
    /// It works in batches, each in a transaction of its own. If it is cancelled, those of the
    /// finished batches are deleted.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn discard_all(&self, filter: &Filter) -> sqlx::Result<u64> {
        let discarded = Batches::new(Change::Discard, self.of(), filter)
            .run(&self.pool)
            .await?;
        tracing::info!(
            endpoint = &*self.name,
            ?filter,
            discarded,
            "webhook deliveries discarded"
        );
        Ok(discarded)
    }

    /// Erases the content that is kept of a delivery: its request, and the reasons of its failures, which may quote it.
    /// Returns whether there was any. An attempt that is under way is waited for, but for a
    /// [late claim](crate::IdempotentWebhook::late_claim) before its `begin`, which is refused. If it is one of a request of
    /// the provider and fails, that request is kept anew: look again once it has ended.
    ///
    /// **It cannot run again.** If it was not processed, it is only [recorded](crate::recovery::KeptState::Recorded) from
    /// now on, with its times and statuses, and counts as one that has failed until it is discarded or deleted. If it was
    /// processed, it leaves the archive, and its id stays known, unless it was to be [reprocessed](Self::reprocess). A
    /// request that the provider sends later is a new one. [Personal data](crate::documentation::personal_data) says what
    /// else is stored.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn erase(&self, delivery_id: &str) -> sqlx::Result<bool> {
        let mut tx = ShortTx::begin(&self.pool).await?;
        let erased = operator::erase(&mut tx, self.of(), delivery_id, None).await?;
        tx.commit().await?;
        let endpoint = &*self.name;
        tracing::info!(
            endpoint,
            delivery_id,
            erased,
            "content of a webhook delivery erased"
        );
        Ok(erased)
    }

    /// Erases the content of all deliveries of a filter: those of a [tenant](Filter::tenant), for example, or those that
    /// are [dead](crate::recovery::KeptState::Dead). Without a [state](Filter::state) it takes those that were processed,
    /// too. Returns how many. One that is running is left out, and so is one that comes after this has begun.
    ///
    /// It works in batches, each in a transaction of its own. If it is cancelled, those of the finished batches are
    /// erased.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn erase_all(&self, filter: &Filter) -> sqlx::Result<u64> {
        let erased = Batches::new(Change::Erase, self.of(), filter)
            .run(&self.pool)
            .await?;
        tracing::info!(
            endpoint = &*self.name,
            ?filter,
            erased,
            "content of webhook deliveries erased"
        );
        Ok(erased)
    }

    /// Has a processed delivery run again, whose request stays
    /// ([`Keep::processed_for`](crate::Keep::processed_for)): its claim is forgotten, and it is due now with
    /// a new schedule.
    ///
    /// This is for repairs: the handler had a bug, and is fixed. Undo its effects first, or have the
    /// handler find them: [`Delivery::is_reprocessed`](crate::Delivery::is_reprocessed). A row with a unique
    /// [`idempotency_key`](crate::Delivery::idempotency_key) is there from the first time: insert it with
    /// `on conflict do nothing`, or each attempt fails.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn reprocess(&self, delivery_id: &str) -> sqlx::Result<Reprocessed> {
        let mut tx = ShortTx::begin(&self.pool).await?;
        let reprocessed = match operator::reprocess(&mut tx, self.of(), delivery_id).await? {
            true => Reprocessed::Due,
            false if operator::is_processed(&mut tx, self.of(), delivery_id).await? => {
                Reprocessed::NotKept
            }
            false => Reprocessed::NotProcessed,
        };
        tx.commit().await?;
        let endpoint = &*self.name;
        match reprocessed {
            Reprocessed::Due => {
                tracing::info!(endpoint, delivery_id, "webhook delivery reprocessed");
            }
            result => tracing::info!(
                endpoint,
                delivery_id,
                ?result,
                "webhook delivery not reprocessed"
            ),
        }
        Ok(reprocessed)
    }

    /// The same for all processed deliveries of a filter, such as those that were processed
    /// [since](Filter::processed) a deploy. Returns how many.
    ///
    /// It works in batches of a thousand, each in a transaction of its own. If it is cancelled, those of
    /// the finished batches are run again.
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
    pub async fn reprocess_all(&self, filter: &Filter) -> sqlx::Result<u64> {
        let reprocessed = Batches::new(Change::Reprocess, self.of(), filter)
            .run(&self.pool)
            .await?;
        tracing::info!(
            endpoint = &*self.name,
            ?filter,
            reprocessed,
            "webhook deliveries reprocessed"
        );
        Ok(reprocessed)
    }

    /// Pauses recovery of the endpoint, in all processes. Requests of the provider are handled as
    /// before, but with [`Keep::accepted`](crate::Keep::accepted) they are only kept. The
    /// name need not be known: an endpoint can be paused before its first delivery.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn pause(&self) -> sqlx::Result<()> {
        operator::pause(&self.pool, &self.name).await?;
        tracing::info!(endpoint = &*self.name, "webhook recovery paused");
        Ok(())
    }

    /// Resumes recovery of the endpoint, also if failures in a row hold it back.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn resume(&self) -> sqlx::Result<()> {
        operator::resume(&self.pool, &self.name).await?;
        tracing::info!(endpoint = &*self.name, "webhook recovery resumed");
        Ok(())
    }

    pub(super) fn of(&self) -> Of<'_> {
        Of {
            endpoint: &self.name,
            tenant: self.tenant.as_deref(),
        }
    }
}
