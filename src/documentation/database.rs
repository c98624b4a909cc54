//! What does the layer need from the database?
//!
//! PostgreSQL 14 or later, in UTF-8. Any default isolation level works. Many processes share one database.
//!
//! # Tables and rights
//!
//! [`migrate`](crate::migrate) keeps the tables and their history in the schema `idempotent_webhook`, beside the
//! application's own migrations, in either order. It may be called by several processes at once. It needs the right
//! to create a schema, unless the tables are up to date. A role that only runs the application needs these rights:
//!
//! ```sql
//! grant usage on schema idempotent_webhook to app;
//! grant select, insert, update, delete on all tables in schema idempotent_webhook to app;
//! ```
//!
//! Grant again after an upgrade, which may add tables.
//!
//! # Locks
//!
//! While a delivery is in flight, its transaction holds an advisory lock, for which other attempts at it wait. The key
//! of the lock is a 64-bit hash of the delivery's key.
//!
//! # PgBouncer
//!
//! Transaction mode works, with `ignore_startup_parameters = extra_float_digits` and one of
//!
//! - PgBouncer 1.21 or later, with `max_prepared_statements` above 0;
//! - any version with `server_reset_query = deallocate all`, `server_reset_query_always = 1`, and
//!   [`statement_cache_capacity(0)`](sqlx::postgres::PgConnectOptions::statement_cache_capacity) in the
//!   application.
//!
//! Call `migrate` on a direct connection: sqlx takes an advisory lock of the session.
//!
//! # Size
//!
//! One Postgres is enough for most. A claim takes hardly longer with 10 million rows than with 10 thousand.
//! [`Retention`](crate::Retention) finds old rows by an index on their time, so it costs what it deletes.
//! `benches/README.md` in the source has the figures.
//!
//! # Citus
//!
//! On [Citus], the tables of claims and those of the application are distributed over many servers, and a transaction
//! spans them. Nothing changes in the application. The tests of the guarantees pass on Citus 13.2, with the tables
//! distributed as below. Those that put triggers or row locks of their own on these tables were left out: Citus refuses
//! that.
//!
//! Run this once on the coordinator, after [`migrate`](crate::migrate). It takes long if the tables are large:
//!
//! ```sql
#![doc = include_str!("citus.sql")]
//! ```
//!
//! **Each table that a handler writes to must be known to Citus**: distributed, a reference table, or added
//! with `citus_add_local_table_to_metadata`. Otherwise a delivery can be lost. Citus commits on the worker of
//! the claim first, and then on the coordinator. If the coordinator crashes in between, or refuses to commit,
//! the claim is there and what the handler has written is not. With tables that it knows, Citus commits in two
//! phases.
//!
//! ```sql
//! select create_distributed_table('orders', 'customer_id');
//! select create_reference_table('currencies');
//! select citus_add_local_table_to_metadata('settings');
//! ```
//!
//! - **By what to distribute.** By what the application's queries filter on. If that is the delivery id, the
//!   table can be on the same worker as the claim, which saves the two phases: add
//!   `colocate_with => 'idempotent_webhook.deliveries'`. Its column must have the collation of ours,
//!   `delivery_id text collate "C"`.
//! - **What two phases cost.** For a claim and one insert, with 4 connections on one machine whose disk does not
//!   sync, a table on another worker has 0.82 of the rate of one on the same worker, and one on the
//!   coordinator 0.98. On a disk that syncs, the first phase waits for one more sync.
//! - **What stays on the coordinator.** What is kept for [`Recovery`](crate::Recovery), and what operators
//!   did. Recovery takes what is due with `for update skip locked`, which Citus has for a single shard only.
//!   So layers with [`Keep`](crate::Keep), `Recovery` and the dashboard connect to the coordinator. What is
//!   kept is little, and ends in the transaction of the claim. If only the claim is committed, it ends as a
//!   duplicate.
//! - **Several nodes.** Layers without `Keep` and `record_failures` can connect to any node. The advisory lock
//!   of a claim, for which others wait, is one of the node, so attempts on two nodes do not wait for each
//!   other with it. They wait for the unique key: one of them commits, and the other one is a duplicate.
//! - **Crash of a worker.** Deliveries whose claim is on it get a 503 until it is back. What was prepared when
//!   it crashed is committed or rolled back by Citus, by default within a minute (`citus.recover_2pc_interval`).
//!   Until then, the delivery is in flight: it is neither lost nor run again.
//! - **Rebalance** with `select citus_rebalance_start()`. It needs `wal_level = logical` on all nodes, and a
//!   primary key in each table that is on the same worker as ours. Claims go on: beside the move of two shards
//!   none failed.
//!
//! # Other engines and poolers
//!
//! Which features of PostgreSQL they have that this crate uses. *Run*: it was run. *Read*: their documentation or
//! issues say so. *?*: not known.
//!
//! | | transaction-level advisory locks | `for update skip locked` | `commit and chain` | prepared statements | the migration's lock of the session |
//! |---|---|---|---|---|---|
//! | PostgreSQL 14, 15, 18 | run | run | run | run | run |
//! | PgBouncer, transaction mode | run | run | run | run, with its setting | needs a direct connection |
//! | Citus 13.2 | run, of one node | run, on the coordinator | run | run | run |
//! | Neon, Aurora PostgreSQL | read | read | read | read | read, on a direct connection |
//! | Supabase's pooler, transaction mode | read | read | read | **no** (read): `statement_cache_capacity(0)` | needs a direct connection |
//! | YugabyteDB 2025.1 or later | read | read | ? | read | read |
//! | CockroachDB 26.3 or later | read: not released by `rollback to savepoint` | read: slow | read | read | **no** (read) |
//! | Aurora DSQL | **no** (read) | **no** (read) | ? | ? | **no** (read) |
//!
//! On Aurora DSQL it does not run. On CockroachDB and YugabyteDB it was not run. Try these first: the claim, its
//! `lock_timeout`, and the loss of a node.
//!
//! [Citus]: https://docs.citusdata.com/
