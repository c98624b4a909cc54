//! `LateClaim`: a claim that the handler makes itself, after the work that needs no transaction. `pending_claim.rs`
//! contains its inner half.

use std::fmt;

use http::Extensions;

use super::claim::NotClaimed;
use super::dedupe_tx::DedupeTx;
use super::pending_claim::PendingClaim;
use super::slot::{Left, Slot};
use crate::tasks_and_errors::extract_error::ExtractError;

/// The delivery of a route with [`late_claim`](crate::IdempotentWebhook::late_claim), which is not claimed yet.
///
/// No connection is held until [`begin`](Self::begin) claims the delivery and returns the [`DedupeTx`]. What the
/// handler does before `begin` is not part of a transaction, and may run more than once: in two processes at the same
/// time, and again in the next attempt after a failure. Fetch data before `begin`, and write after it.
///
/// ```
/// use axum::{Json, http::StatusCode};
/// use idempotent_webhook::{HandlerError, LateClaim, Recency};
///
/// # #[derive(serde::Deserialize)]
/// # struct Thin { related_object: Object }
/// # #[derive(serde::Deserialize)]
/// # struct Object { id: String }
/// # struct Subscription { updated: i64, status: String }
/// # async fn fetch(id: &str) -> std::io::Result<Subscription> {
/// #     Ok(Subscription { updated: 1, status: id.to_owned() })
/// # }
/// async fn updated(claim: LateClaim, Json(event): Json<Thin>) -> Result<StatusCode, HandlerError> {
///     let id = event.related_object.id;
///     let subscription = fetch(&id).await?; // No connection is held.
///     let mut tx = claim.begin().await?;
///     if tx.advance(&id, subscription.updated).await? != Recency::Older {
///         sqlx::query("update subscriptions set status = $2 where id = $1")
///             .bind(&id)
///             .bind(&subscription.status)
///             .execute(&mut *tx)
///             .await?;
///     }
///     Ok(StatusCode::OK)
/// }
/// ```
///
/// With the feature `axum`, `LateClaim` is an extractor. Without the feature, [`LateClaim::take`] takes it out of the
/// request. Like a [`DedupeTx`], it must not outlive the handler: if the handler moves it into a task, the layer
/// answers 500.
///
/// If a handler answers 2xx without calling `begin`, the layer claims the delivery afterwards, and commits only the
/// claim.
#[must_use = "`begin` claims the delivery"]
pub struct LateClaim {
    slot: Slot,
    /// Present until the delivery is claimed.
    pending: Option<PendingClaim>,
}

impl LateClaim {
    /// Takes the claim out of a request's extensions.
    ///
    /// # Errors
    ///
    /// [`ExtractError`] if the request has not passed through [`IdempotentWebhook`](crate::IdempotentWebhook), if that
    /// layer was built without [`late_claim`](crate::IdempotentWebhook::late_claim), or if the claim was already taken.
    pub fn take(extensions: &Extensions) -> Result<Self, ExtractError> {
        let slot = extensions.get::<Slot>().ok_or(ExtractError::MissingLayer)?;
        Ok(Self {
            slot: slot.clone(),
            pending: Some(slot.take_pending()?),
        })
    }

    /// Begins the transaction and claims the delivery in it.
    ///
    /// Of all attempts in all processes, at most one gets the transaction and commits. If another process is working on
    /// the delivery, this method waits for that process. The wait ends at the latest after
    /// [`in_flight_timeout`](crate::IdempotentWebhook::in_flight_timeout), counted from the call, and within
    /// [`handler_timeout`](crate::IdempotentWebhook::handler_timeout).
    ///
    /// # Errors
    ///
    /// [`BeginError`], which the handler returns with `?`. **The layer also sees this error, and decides the answer**,
    /// regardless of what the handler answers: 200 with the outcome `duplicate` if another attempt has processed the
    /// delivery, 503 otherwise.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped, the delivery is not claimed.
    pub async fn begin(mut self) -> Result<DedupeTx, BeginError> {
        let slot = self.slot.clone();
        // If the handler has already answered, this runs in a task that has outlived it, and claims nothing.
        let Some(pending) = self.pending.as_ref().filter(|_| !slot.is_closed()) else {
            return Err(BeginError::Over);
        };
        let claimed = pending.begin().await;
        self.pending = None;
        match claimed {
            // The handler has answered in the meantime.
            Ok(tx) if slot.is_closed() => {
                tx.roll_back().await;
                Err(BeginError::Over)
            }
            Ok(tx) => Ok(DedupeTx::of(tx, slot)),
            Err(not_claimed) => {
                let error = BeginError::of(&not_claimed);
                slot.put_back(Left::NotClaimed(not_claimed));
                Err(error)
            }
        }
    }
}

impl LateClaim {
    /// The take number: the number under which this attempt has taken a kept delivery.
    ///
    /// Pass it as the last argument to the SQL function [`claim`](crate::documentation::drivers#the-claim). The
    /// function refuses an attempt if another attempt has taken the delivery since. The number is `None` if the
    /// delivery was not kept before its handler runs. In a [rehearsal](crate::Delivery::is_rehearsal), it is a number
    /// that `claim` always refuses.
    pub fn take_number(&self) -> Option<i64> {
        self.pending.as_ref()?.take()
    }

    /// Reports that the handler has claimed the delivery itself, and has committed.
    ///
    /// Call this in a handler that uses another driver, after the handler has called the SQL function
    /// [`claim`](crate::documentation::drivers#the-claim) in a transaction of that driver, and has committed this
    /// transaction.
    ///
    /// Before the layer acknowledges the delivery, it looks for the claim: if there is none, the sender gets a 500. So
    /// no event is lost if the driver reports a successful commit although Postgres has rolled back. If the SQL
    /// function returned `false`, do not call this method: drop the `LateClaim`, and answer 200. If the handler fails
    /// after its commit, the layer logs the failure, and the sender gets a 200 as for a duplicate.
    ///
    /// With [`assert_idempotent`](crate::testing::assert_idempotent), a layer whose handler calls this needs
    /// [`allow_unused_transaction`](crate::IdempotentWebhook::allow_unused_transaction), because the handler's
    /// commit cannot be rolled back.
    pub fn committed(mut self) {
        if let Some(pending) = self.pending.take() {
            self.slot.put_back(Left::Committed(pending));
        }
    }
}

/// Puts back what the claim needs, so that the layer can still claim the delivery.
impl Drop for LateClaim {
    fn drop(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.slot.put_back(Left::Claim(pending));
        }
    }
}

impl fmt::Debug for LateClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateClaim").finish_non_exhaustive()
    }
}

/// Why [`LateClaim::begin`] has not claimed the delivery.
///
/// The layer answers the sender, regardless of what the handler returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BeginError {
    /// Another attempt has processed the delivery.
    Duplicate,
    /// When the wait was over, another attempt was still working on the delivery, or on another delivery of the same
    /// [object](crate::IdempotentWebhook::serialize_by).
    InFlight,
    /// The delivery was kept. After the handler was called, it was discarded, forgotten or taken by another attempt.
    ///
    /// This is also the error if an operator has asked to [reprocess](crate::Delivery::is_reprocessed) the delivery
    /// after the handler was called, because the handler does not know about this request.
    ///
    /// If a delivery was kept after a failure and the provider sends it again, the new request does not depend on the
    /// kept row. It is processed even if the row is discarded while its handler runs.
    Superseded,
    /// Postgres could not be reached, or has refused the claim. The log gives the error.
    Database,
    /// The handler has already answered.
    Over,
}

impl BeginError {
    fn of(not_claimed: &NotClaimed) -> Self {
        match not_claimed {
            NotClaimed::Duplicate(_) => Self::Duplicate,
            NotClaimed::InFlight | NotClaimed::ObjectInFlight => Self::InFlight,
            NotClaimed::Superseded => Self::Superseded,
            NotClaimed::Failed(_) => Self::Database,
        }
    }
}

impl fmt::Display for BeginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duplicate => "another attempt has processed the delivery",
            Self::InFlight => "another attempt is still working on the delivery, or on its object",
            Self::Superseded => "the delivery was discarded, forgotten or taken by another attempt",
            Self::Database => "the delivery could not be claimed",
            Self::Over => "the delivery cannot be claimed after the handler has answered",
        })
    }
}

impl std::error::Error for BeginError {}
