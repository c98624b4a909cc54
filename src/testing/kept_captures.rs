//! Captures of kept requests.

use sqlx::Row;
use tokio::task::spawn_blocking;

use super::capture::{Capture, CaptureError, Pseudonyms};
use crate::recovery::operator::Endpoint;
use crate::recovery::operator::newest;
use crate::recovery::{Filter, TO_REHEARSE, kept_request_of};
use crate::transaction::ShortTx;

impl Endpoint {
    /// Captures of kept deliveries for tests, the newest first, at most `limit`. With a filter of
    /// [`KeptState::Processed`](crate::recovery::KeptState::Processed), of the archive. Personal and secret values are
    /// replaced: [`Pseudonyms`](crate::testing::Pseudonyms) has the rules. Headers that a layer
    /// [keeps](crate::Keep::headers) are in a capture, with pseudonyms. Feature `testing`.
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
    /// A delivery whose content cannot be read, and so cannot be replaced, is a
    /// [`CaptureError`](crate::testing::CaptureError) in the list.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
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
            // It may be gone since it was chosen.
            let Some(row) = row.await? else { continue };
            let event_type: Option<String> = row.try_get("event_type")?;
            captures.push(match kept_request_of(&row)? {
                Ok(request) => {
                    let pseudonyms = pseudonyms.clone();
                    // A large body takes longer than a thread that serves has.
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
