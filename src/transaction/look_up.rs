//! What is known about a delivery with a late claim before its handler runs.

use sqlx::Row;

use super::claim::{ClaimRequest, DuplicateOf};
use super::pg_error::{DatabaseError, with_timeout};
use super::row_keys::keyed;
use super::store::{MAX_CONNECTIONS, Store};

const LOOK_UP: &str = include_str!("look_up.sql");

/// What is known about a delivery that is not claimed yet.
pub(crate) struct Known {
    /// Set if the delivery was already processed.
    pub(crate) duplicate_of: Option<DuplicateOf>,
    /// Whether an operator has asked to reprocess the delivery.
    pub(crate) is_reprocessed: bool,
}

impl Store {
    /// Looks up a delivery. This lookup only saves an unnecessary handler call. The claim later decides whether the
    /// delivery is a duplicate.
    pub(crate) async fn look_up(&self, request: &ClaimRequest) -> Result<Known, DatabaseError> {
        let mut connections_tried = 1;
        loop {
            match self.try_look_up(request).await {
                Err(error)
                    if error.may_be_the_connection() && connections_tried < MAX_CONNECTIONS =>
                {
                    connections_tried += 1;
                }
                ended => return ended,
            }
        }
    }

    async fn try_look_up(&self, request: &ClaimRequest) -> Result<Known, DatabaseError> {
        let (delivery, fingerprint) = (&request.delivery, request.fingerprint);
        // The handler may claim with another driver. Such a claim does not register the redelivery window, so it is
        // registered here.
        self.ensure_registered(delivery).await?;
        let mut tx = self.begin_short().await?;
        let known = keyed(LOOK_UP, delivery).fetch_one(&mut *tx);
        let known = with_timeout(self.timeout, known).await?;
        let duplicate_of = if known.try_get("is_processed")? {
            Some(DuplicateOf::Id)
        } else if let Some(digest) = fingerprint {
            let first = self.first_with_body(&mut tx, delivery, digest).await?;
            first.map(|first| DuplicateOf::Body { first: Some(first) })
        } else {
            None
        };
        tx.end();
        Ok(Known {
            duplicate_of,
            is_reprocessed: known.try_get("is_reprocessed")?,
        })
    }
}
