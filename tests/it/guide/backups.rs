//! The SQL statements of the page on backups and copies.

use super::{blocks, page};
use crate::dashboard::TWO_OF_ALL;
use crate::support::Database;

#[tokio::test]
async fn deploy_1_what_is_scrubbed_is_empty_in_all_tables() {
    let database = Database::new().await;
    let migrated = database.snapshot().await;
    database.run(TWO_OF_ALL).await;
    database
        .run(
            "insert into idempotent_webhook.environment (name) values ('production');
             insert into idempotent_webhook.other_environments values ('staging', now());
             insert into idempotent_webhook.processes values (1, 1);
             insert into idempotent_webhook.turns (task, endpoint, address, source, next_at)
             values ('retention', '', '', '', now())",
        )
        .await;
    assert_ne!(database.snapshot().await, migrated);
    let guide = page("backups.md");
    let [scrub, pause, .., retire] = &*blocks(&guide, "sql") else {
        panic!("{guide}");
    };
    // Runs `pause` as in a copy that is not scrubbed.
    database
        .run("delete from idempotent_webhook.kept_endpoints")
        .await;
    database.run(pause).await;
    let paused =
        "select count(*) from idempotent_webhook.kept_endpoints where paused_at is not null";
    assert_eq!(database.count(paused).await, 2);

    database.run(scrub).await;
    assert_eq!(database.snapshot().await, migrated);
    // The first time, the database has no name yet; the second time, it has one.
    for _ in 0..2 {
        database.run(retire).await;
        let is_retired =
            "select count(*) from idempotent_webhook.environment where name = 'retired'";
        assert_eq!(database.count(is_retired).await, 1);
    }
    // Fails if a new table is missing from the list.
    let listed = scrub.matches("idempotent_webhook.").count() as i64;
    let there = "select count(*) from pg_tables
        where schemaname = 'idempotent_webhook' and tablename <> 'migrations'";
    assert_eq!(database.count(there).await, listed);
}
