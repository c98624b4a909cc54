//! Keeps a delivery before its handler runs, for `Keep::all` and `Keep::accepted`.

use std::sync::Arc;

use http::Request;

use super::admitted::{Admitted, Origin};
use super::ending::Ending;
use super::failure::Failure;
use super::test_kit::{HandleFirst, RollBack};
use crate::recovery::{Acceptance, Accepted, Keeper, What};
use crate::transaction::{DatabaseError, DuplicateOf};

/// How a delivery is kept before its handler runs.
pub(super) struct KeepFirst {
    keeper: Arc<Keeper>,
    /// Whether the request is also answered before the handler runs.
    pub(super) is_answered_first: bool,
}

/// What was done with a delivery before its handler runs.
pub(super) enum KeptFirst {
    /// The delivery is kept, and this request makes an attempt at it. Contains the origin of the attempt.
    Attempt(Origin),
    /// This request makes no attempt at a kept delivery: either recovery makes the attempt, or the delivery is not
    /// kept.
    NoAttempt,
    /// The delivery is not kept, because the database belongs to another environment than this process. No process
    /// would run the delivery there, so the handler runs before the answer.
    Elsewhere,
}

impl KeepFirst {
    /// Returns `None` if this delivery is not kept before its handler runs.
    pub(super) fn of<B>(admitted: &Admitted, request: &Request<B>) -> Option<Self> {
        let keeper = admitted.settings.keeper.as_ref()?;
        let what = keeper.settings.what;
        // The test kit's attempt must leave nothing behind, and a kept delivery need not be kept again.
        let is_received = matches!(admitted.origin, Origin::Received(_));
        if what == What::Failed || !is_received || RollBack::is_wanted(request) {
            return None;
        }
        Some(Self {
            keeper: keeper.clone(),
            is_answered_first: what == What::Accepted && !HandleFirst::is_wanted(request),
        })
    }
}

impl Admitted {
    /// Keeps the delivery.
    ///
    /// If this returns [`KeptFirst::NoAttempt`] and the request is answered first, nothing is left to do. If the
    /// request is not answered first, it makes an attempt as if nothing were kept before the handler runs. There are
    /// two cases. If the quota is exhausted, the delivery is not kept. If the delivery was kept before, this attempt
    /// may fail.
    pub(super) async fn keep_first<R, E>(
        &self,
        first: &KeepFirst,
    ) -> Result<KeptFirst, Ending<R, E>> {
        let Origin::Received(Some(request)) = &self.origin else {
            let limit = first.keeper.settings.body_limit.unwrap_or(usize::MAX);
            return Err(Failure::TooLargeToKeep { limit }.into());
        };
        let (settings, delivery, keeper) = (&self.settings, &self.delivery, &first.keeper);
        let (store, recovery) = (&settings.store, &keeper.settings.recovery);
        let failed = |error: DatabaseError| Ending::from(Failure::Acceptance(error));
        let has_room = keeper.quota.has_room_for(store, delivery).await;
        if !has_room.map_err(failed)? {
            return match first.is_answered_first {
                // If the database belongs to another environment, no process runs its kept deliveries, so the quota
                // would stay exhausted.
                true if !store.is_home().await.map_err(failed)? => Ok(KeptFirst::Elsewhere),
                true => Err(Failure::QuotaExhausted.into()),
                false => Ok(KeptFirst::NoAttempt),
            };
        }
        let (taker, slot) = if first.is_answered_first {
            let slot = recovery.try_slot();
            let taker = match slot {
                // A taker is the number under which this process takes deliveries. Without one, recovery runs the
                // delivery as soon as it can.
                Some(_) => recovery.taker().await.ok(),
                None => None,
            };
            (taker, slot)
        } else {
            (Some(recovery.taker().await.map_err(failed)?), None)
        };
        let acceptance = Acceptance {
            delivery: delivery.clone(),
            request: request.clone(),
            taker,
        };
        match keeper.accept(store, acceptance).await.map_err(failed)? {
            Accepted::New(take) => {
                keeper.note_kept(store, &settings.verification.endpoint, take.is_some());
                Ok(match (take, slot) {
                    (Some(take), Some(_slot)) => {
                        KeptFirst::Attempt(Origin::Accepted { take, _slot })
                    }
                    (Some(take), None) => KeptFirst::Attempt(Origin::KeptFirst(take)),
                    (None, _) => KeptFirst::NoAttempt,
                })
            }
            Accepted::Known => Ok(KeptFirst::NoAttempt),
            Accepted::Elsewhere => {
                store.look_soon();
                Ok(KeptFirst::Elsewhere)
            }
            Accepted::Processed => Err(Ending::Duplicate(DuplicateOf::Id)),
        }
    }
}
