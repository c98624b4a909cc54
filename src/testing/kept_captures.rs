//! Makes captures of kept requests.

use sqlx::Row;
use tokio::task::spawn_blocking;

use super::capture::{Capture, CaptureError, Pseudonyms};
use crate::recovery::operator::Endpoint;
use crate::recovery::operator::newest;
use crate::recovery::{Filter, TO_REHEARSE, kept_request_of};
use crate::transaction::ShortTx;

impl Endpoint {
    /// Makes captures of kept deliveries for tests, newest first, at most `limit`. Requires the feature `testing`.
    ///
    /// With a filter for [`KeptState::Processed`](crate::recovery::KeptState::Processed), the captures come from the
    /// archive. Personal and secret values are replaced; [`Pseudonyms`](crate::testing::Pseudonyms) lists the rules.
    /// Headers that a layer [keeps](crate::Keep::headers) are part of the captures, with pseudonyms.
    ///
    /// ```no_run
    /// use idempotent_webhook::Endpoint;
    /// use idempotent_webhook::recovery::{Filter, KeptState};
    /// use idempotent_webhook::testing::Pseudonyms;
    ///
    /// # async fn main_(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
    /// let paid = Filter::new().state(KeptState::Processed).event_type("invoice.paid");
    /// let billing = Endpoint::new(pool, "billing");
    /// for capture in billing.captures(&paid, 5, &Pseudonyms::new()).await? {
    ///     let file = capture?.write_to("tests/captures")?;
    ///     println!("{}", file.display());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If the content of a delivery cannot be read, its values cannot be replaced. The list then contains a
    /// [`CaptureError`](crate::testing::CaptureError) for this delivery.
    ///
    /// # Errors
    ///
    /// Any Postgres error.
    pub async fn captures(
        &self,
        filter: &Filter,
        limit: usize,
        pseudonyms: &Pseudonyms,
    ) -> sqlx::Result<Vec<Result<Capture, CaptureError>>> {
        let scope = self.scope();
        let mut captures = Vec::new();
        for chosen in newest(&self.pool, scope, std::slice::from_ref(filter), limit).await? {
            let row = ShortTx::run(&self.pool, async |tx| {
                let read = sqlx::query(TO_REHEARSE)
                    .bind(scope.endpoint)
                    .bind(&chosen.tenant)
                    .bind(&chosen.delivery_id);
                read.fetch_optional(tx).await
            });
            // The delivery may have been deleted since it was chosen.
            let Some(row) = row.await? else { continue };
            let event_type: Option<String> = row.try_get("event_type")?;
            captures.push(match kept_request_of(&row)? {
                Ok(request) => {
                    let pseudonyms = pseudonyms.clone();
                    // The work for a large body takes long, so it runs on a blocking thread, and not on a thread that
                    // serves requests.
                    let made = spawn_blocking(move || pseudonyms.of_kept(&request, event_type));
                    let ended = |_| Err(CaptureError::new("the runtime has ended"));
                    made.await.unwrap_or_else(ended)
                }
                Err(_unreadable) => Err(CaptureError::new("its kept request cannot be read")),
            });
        }
        Ok(captures)
    }
}
