//! How does an application move in that has a table of its own?
//!
//! Such a table has the ids of the events that were processed, `processed_events (event_id primary key)` for example.
//! During a deploy both versions of the application run, and the provider's retry may come to either. Your table is what
//! both know. So the new version writes it, too, for one release:
//!
//! 1. Create the tables: [`migrate`](crate::migrate). Nothing else changes.
//! 2. Deploy the layer. Its handler inserts the id into your table first, and does nothing if it is there:
//!
//!    ```
//!    use axum::http::StatusCode;
//!    use idempotent_webhook::{DedupeTx, Delivery, HandlerError};
//!
//!    async fn paid(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
//!        let inserted = sqlx::query(
//!            "insert into processed_events (event_id) values ($1) on conflict do nothing",
//!        )
//!        .bind(delivery.id())
//!        .execute(&mut *tx)
//!        .await?;
//!        if inserted.rows_affected() == 0 {
//!            // The version before has processed it.
//!            return Ok(StatusCode::OK);
//!        }
//!        // What the handler does.
//!        Ok(StatusCode::OK)
//!    }
//!    ```
//!
//! 3. When the last process of the version before has ended, take its ids over:
//!
//!    ```sql
//!    insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
//!    select 'billing', event_id, created_at
//!    from processed_events
//!    on conflict do nothing;
//!    ```
//!
//! 4. Deploy the handler without that insert. Your table can go. Until then, to run a delivery again
//!    ([`Endpoint::reprocess`](crate::Endpoint::reprocess), [`forget`](crate::Endpoint::forget)), delete its row there, too.
//!
//! # What to look at before
//!
//! - **The endpoint** is the name that the layer has.
//! - **The id** is the one that the preset takes ([`provider_table`](super::provider_table)). If your table has another
//!   one, [`Provider::delivery_id`](crate::Provider::delivery_id) can take that from the request.
//! - **The time** is that of your row, so that [`Retention`](crate::Retention) keeps the id for as long as any other. A
//!   table without times takes over with `now()`.
//! - **Tenants** with [`separate_ids`](crate::TenantSecrets::separate_ids) need the column `tenant`.
//! - **A large table** is taken over in parts, by `where created_at between ..`. Ids that are older than the provider's
//!   last retry need not come along.
//!
//! # What is in flight
//!
//! An event that the version before works on during step 2 is safe if its row and its effects are one transaction: the new
//! handler's insert waits for that transaction, and then finds the row, or does the work.
//!
//! The new version cannot mend what the version before does otherwise:
//!
//! - If it inserts the row in a transaction before the one with the effects, a crash between them has lost an event, and
//!   its id is taken over as one that was processed. Look for rows without effects before step 3.
//! - If it inserts the row after the effects, an event may have taken effect without a row, and may do so again.
//! - If it answers before it has processed the event, by a queue in memory for example, let that queue run empty before a
//!   process ends.
