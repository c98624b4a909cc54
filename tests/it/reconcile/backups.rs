//! Deliveries that were acknowledged after a backup: after the restore, the provider's list brings
//! them back.

use std::time::Duration;

use idempotent_webhook::Reconcile;

use super::{List, MINUTE, Process, effects, spawn_until};
use crate::support::{Database, answer, assert_rows, now, send, stripe, stripe_event};

#[tokio::test]
async fn deploy_1_after_a_restore_the_list_brings_back_what_was_acknowledged_after_the_backup() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::empty();
    let reconcile = |process: &Process| {
        Reconcile::new(&process.layer, list.clone(), "/")
            .unwrap()
            .grace(Duration::ZERO)
            .every(Duration::from_secs(1))
    };
    let processed = answer(200, "processed", "");
    assert_eq!(
        send(&process.router, stripe(stripe_event("before"), now())).await,
        processed
    );
    list.add("before", MINUTE);
    let reconciled = "exists (
        select from idempotent_webhook.reconciliations where reconciled_until is not null and round_since is null
    )";
    spawn_until(reconcile(&process), &database, reconciled).await;

    let backup = database.restored().await;
    assert_eq!(
        send(&process.router, stripe(stripe_event("after"), now())).await,
        processed
    );
    list.add("after", Duration::ZERO);
    assert_rows!(database, claims: 2, effects: 2);

    assert_rows!(backup, claims: 1, effects: 1);
    let restored = Process::new(backup.pool.clone());
    let found =
        "exists (select from idempotent_webhook.kept_deliveries where delivery_id = 'after')";
    spawn_until(reconcile(&restored), &backup, found).await;
    assert_eq!(restored.run_due().await, 1);
    assert_eq!(effects(&backup).await, ["after#", "before"]);
    assert_rows!(backup, claims: 2, effects: 2);
}
