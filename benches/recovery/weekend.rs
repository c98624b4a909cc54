//! The cost of an outage: the handler of one endpoint fails until many deliveries are kept, and is then repaired.

use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, PgPool};

use crate::application::{BROKEN, HEALTHY, WEEKEND, broken_endpoint_of};
use crate::database::Past;
use crate::measure::family_cpu;
use crate::server::{Contender, Server};
use crate::stream::{self, Answers};

/// How many deliveries are kept before the repair, unless `--kept` sets another number.
pub const KEPT: u64 = 300_000;

/// The time between two checks of how many deliveries are kept.
const SLICE: Duration = Duration::from_secs(2);

/// The time between an answer and the next delivery on a connection. During the outage, there is no such rest, because
/// the outage would then take hours.
const REST: Duration = Duration::from_millis(40);

/// How many time slices to measure before the outage, and after the backlog is gone.
const QUIET: usize = 5;

/// The longest time of a phase. Deliveries over the quota are never kept, so a phase could otherwise run forever.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// For how many time slices the outage continues once the quota is full.
const FULL: usize = 10;

/// Measures each way to keep deliveries with a quota for all deliveries, and then two of the ways with a quota for a
/// third of the deliveries. All other settings have their defaults.
pub async fn run(server: &Server, pool: &PgPool, past: Past, kept: u64) {
    let room = 10 * kept;
    for way in ["failed", "all", "accepted"] {
        Outage::new(server, pool, past, way, room)
            .await
            .run(kept)
            .await;
    }
    for way in ["all", "accepted"] {
        let quota = kept / 3;
        Outage::new(server, pool, past, way, quota)
            .await
            .run(quota)
            .await;
    }
}

struct Outage<'a> {
    server: &'a Server,
    pool: &'a PgPool,
    application: Contender,
    endpoint: String,
    quota: u64,
}

impl<'a> Outage<'a> {
    async fn new(server: &'a Server, pool: &'a PgPool, past: Past, way: &str, quota: u64) -> Self {
        past.restore(pool).await;
        let variant = format!("{WEEKEND}{way} {quota}");
        println!("\nan outage with `Keep::{way}`, a quota of {quota}\n");
        Self {
            server,
            pool,
            application: Contender::own(server, &variant).await,
            endpoint: broken_endpoint_of(&variant),
            quota,
        }
    }

    /// Runs the outage until this many deliveries are kept.
    async fn run(&self, kept: u64) {
        self.sizes("before").await;
        let mut slices = 0;
        self.phase("before", REST, async |_| {
            slices += 1;
            slices == QUIET
        })
        .await;
        self.set_broken(true).await;
        let mut full = 0;
        self.phase("the outage", Duration::ZERO, async |left| {
            full += usize::from(left >= kept);
            // If the quota has room for all deliveries, the outage ends once they are kept. If not, it continues, to
            // measure deliveries over the quota.
            full > if kept == self.quota { FULL } else { 0 }
        })
        .await;
        self.set_broken(false).await;
        self.sizes("at the peak").await;
        self.phase("the repair", REST, async |left| left < 100)
            .await;
        let mut slices = 0;
        self.phase("after", REST, async |_| {
            slices += 1;
            slices == QUIET
        })
        .await;
        for table in ["kept_deliveries", "kept_requests"] {
            self.execute(&format!("vacuum idempotent_webhook.{table}"))
                .await;
        }
        self.sizes("after the next vacuum").await;
    }

    /// Sends to both endpoints until `is_over`, which gets the number of waiting deliveries, returns true.
    async fn phase(&self, name: &str, rest: Duration, mut is_over: impl AsyncFnMut(u64) -> bool) {
        let (began, cpu) = (Instant::now(), family_cpu(self.server.process_id()));
        let (mut healthy, mut broken) = (Answers::default(), Answers::default());
        loop {
            let address = self.application.address;
            let sent = tokio::join!(
                stream::send(address, HEALTHY, SLICE, rest),
                stream::send(address, BROKEN, SLICE, rest),
            );
            healthy.add(sent.0);
            broken.add(sent.1);
            if is_over(self.waiting().await).await {
                break;
            }
            assert!(began.elapsed() < LONGEST, "{name} does not end");
        }
        let seconds = began.elapsed().as_secs_f64();
        let cpu = family_cpu(self.server.process_id()) - cpu;
        println!(
            "{name}, {seconds:.0} s: Postgres {:.2} s of CPU a second",
            cpu / seconds
        );
        println!("    healthy: {healthy}");
        println!("    broken: {broken}");
    }

    /// How many deliveries of the broken endpoint are kept and not processed.
    async fn waiting(&self) -> u64 {
        let waiting: i64 = sqlx::query_scalar(
            "select count(*) from idempotent_webhook.kept_deliveries where endpoint = $1",
        )
        .bind(&self.endpoint)
        .fetch_one(self.pool)
        .await
        .unwrap();
        waiting.unsigned_abs()
    }

    async fn set_broken(&self, is_broken: bool) {
        let (from, to) = match is_broken {
            true => ("mended", "broken"),
            false => ("broken", "mended"),
        };
        self.execute(&format!("alter table {from} rename to {to}"))
            .await;
    }

    async fn sizes(&self, when: &str) {
        let (table, indexes): (i64, i64) = sqlx::query_as(
            "select sum(pg_table_size(table_of))::int8, sum(pg_indexes_size(table_of))::int8
             from unnest(array[
                 'idempotent_webhook.kept_deliveries', 'idempotent_webhook.kept_requests'
             ]::regclass[]) as table_of",
        )
        .fetch_one(self.pool)
        .await
        .unwrap();
        let mib = |bytes: i64| bytes as f64 / f64::from(1 << 20);
        println!(
            "{when}: tables {:.1} MiB, indexes {:.1} MiB",
            mib(table),
            mib(indexes)
        );
    }

    async fn execute(&self, statement: &str) {
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        statement.execute(self.pool).await.unwrap();
    }
}
