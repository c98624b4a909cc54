//! *Telling*: the reports to hooks while processes are frozen in a hook, or asked to stop during an outage. One of the
//! processes has no hook.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tempfile::TempPath;

use crate::history::Recorder;
use crate::process::{Process, STOP_TIME};
use crate::proxy::Proxy;
use crate::sender::{Attempt, Sender};
use crate::server::Server;

/// Enough time to do something to a process while it is in a hook.
const LONG: Duration = Duration::from_secs(3);

/// For how long Kubernetes waits before it kills a process that it has asked to stop.
const GRACE: Duration = Duration::from_secs(30);

/// How long a process waits for Postgres.
const PATIENCE: Duration = Duration::from_secs(2);

/// Adds a dead delivery to each of three endpoints, as if the process in which they died had been killed before it
/// reported their deaths.
const DIE: &str = "
    with dead as (
        insert into idempotent_webhook.kept_deliveries
            (endpoint, delivery_id, state, attempts, last_failed_at, died_at, untold_at)
        select name, name || '-dead', 'dead', 9, now(), now(), now() - interval '1 second'
        from unnest(array['acknowledged', 'all', 'kept']) as name
        returning 1
    )
    select count(*) from dead";

const END: &str = "
    with ended as (delete from idempotent_webhook.kept_deliveries returning 1)
    select count(*) from ended";

/// Makes each running hook call look as if it had taken longer than allowed, so that other processes take over its
/// report.
const PASS_ON: &str = "
    with problems as (
        update idempotent_webhook.problems
        set telling_until = now() - interval '1 second'
        where telling_until is not null
        returning 1
    ),
    deaths as (
        update idempotent_webhook.kept_deliveries
        set untold_at = now() - interval '1 second'
        where untold_at is not null
        returning 1
    )
    select (select count(*) from problems) + (select count(*) from deaths)";

const NO_PROBLEM: &str = "select (count(*) = 0)::int::bigint from idempotent_webhook.problems";

const NO_DEATH_UNTOLD: &str = "
    select (count(untold_at) = 0)::int::bigint from idempotent_webhook.kept_deliveries";

pub async fn run() {
    println!("\ntelling: processes are frozen in a hook, and stop in an outage\n");
    // The following tests run at once. Each spends most of its time waiting, and has a Postgres server of its own.
    let moments = [Moment::Idle, Moment::Attempt, Moment::Hook];
    let stopped = [Outage::Silence, Outage::Crash]
        .into_iter()
        .flat_map(|outage| moments.map(|moment| stopped(outage, moment)));
    tokio::join!(join_all([2, 6].map(frozen)), join_all(stopped));
}

/// The reports to the hooks of all processes.
struct Told(TempPath);

impl Told {
    fn new() -> Self {
        Self(tempfile::NamedTempFile::new().unwrap().into_temp_path())
    }

    fn path(&self) -> PathBuf {
        self.0.to_path_buf()
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|told| *told == line).count()
    }

    async fn until(&self, line: &str, times: usize) {
        for _ in 0..3000 {
            if self.count(line) == times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("waited too long for {line:?}: {:?}", self.lines());
    }
}

fn processed() -> Attempt {
    Attempt::Answered {
        status: 200,
        outcome: "processed".into(),
    }
}

/// The first of `number` processes freezes in the first call of its hook, and stays frozen for most of the test.
async fn frozen(number: usize) {
    let server = Server::start().await;
    let recorder = Recorder::start();
    let told = Told::new();
    let process = || Process::new(server.url(), &recorder, 5, PATIENCE).recovering();
    let frozen = process().telling(told.path(), LONG);
    // The last process has no hook.
    let others: Vec<Process> = (1..number)
        .map(|place| match place + 1 < number {
            true => process().telling(told.path(), Duration::ZERO),
            false => process(),
        })
        .collect();
    server.count(DIE).await;
    let first = "acknowledged: failing begun";
    frozen.address().await;
    told.until(first, 1).await;
    frozen.stand_still().await;
    assert_eq!(told.lines(), [first]);
    for process in &others {
        process.address().await;
    }
    let has_hook = number > 2;
    if has_hook {
        // The other processes do not make the report that the frozen process has taken.
        server.until(NO_DEATH_UNTOLD).await;
        told.until("kept: failing begun", 1).await;
        assert_eq!(told.count(first), 1);
    }
    server.count(PASS_ON).await;
    // A process checks for problems when it starts, and then every half minute. The deploy makes it check now.
    others[0].deploy().await;
    if has_hook {
        told.until(first, 2).await;
    }
    server.count(END).await;
    others[0].deploy().await;
    if has_hook {
        server.until(NO_PROBLEM).await;
    } else {
        // Only the report that the frozen process may already have made is left.
        server
            .until(
                "select (array_agg(endpoint || ' ' || is_there) = array['acknowledged false'])::int::bigint
                 from idempotent_webhook.problems",
            )
            .await;
    }
    frozen.go_on().await;
    server.until(NO_PROBLEM).await;

    let sender = Sender::new(&recorder);
    let sent = sender
        .send_once(frozen.address().await, "/kept", "after-it", &[])
        .await;
    assert_eq!(sent, processed());
    // Once it has stopped, the process has made all its reports.
    assert!(frozen.terminate(STOP_TIME).await);
    let mut expected = vec![first.to_owned(), "acknowledged: failing over".to_owned()];
    if has_hook {
        expected.push(first.to_owned());
        for name in ["all", "kept"] {
            expected.push(format!("{name}: failing begun"));
            expected.push(format!("{name}: failing over"));
        }
        for name in ["acknowledged", "all", "kept"] {
            expected.push(format!("{name}: {name}-dead is dead"));
        }
    }
    let lines = told.lines();
    for over in expected.iter().filter(|line| line.ends_with("over")) {
        let endpoint = over.split(' ').next().unwrap();
        let is_of = |line: &&String| line.starts_with(endpoint) && !line.ends_with("dead");
        assert_eq!(lines.iter().rfind(is_of), Some(over), "{lines:?}");
    }
    let mut sorted = lines;
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    let history = server.history(&recorder).await;
    assert_eq!(history.effects("after-it"), 1);
    println!(
        "{number} processes, one frozen in its hook: {} messages; {}",
        sorted.len(),
        history.assert_upheld("telling")
    );
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    /// Nothing gets through to Postgres or back.
    Silence,
    /// Postgres is gone.
    Crash,
}

/// What the process is doing when Postgres is lost and the process is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Idle,
    /// Its handler runs.
    Attempt,
    /// Its hook is called.
    Hook,
}

/// A process is asked to stop during an outage, and is killed if that takes too long. Another process does the rest of
/// its work.
async fn stopped(outage: Outage, moment: Moment) {
    let server = Server::start().await;
    let recorder = Recorder::start();
    let told = Told::new();
    let proxy = Proxy::start(server.socket()).await;
    let stopping = Process::new(proxy.url(), &recorder, 5, PATIENCE)
        .recovering()
        .telling(told.path(), LONG);
    let living = Process::new(server.url(), &recorder, 5, PATIENCE).recovering();
    let first = "acknowledged: failing begun";
    if moment == Moment::Hook {
        server.count(DIE).await;
    }
    let address = stopping.address().await;
    // Once this query succeeds, the process has started all its background work.
    server
        .until("select count(*) / 2 from idempotent_webhook.processes")
        .await;
    living.address().await;
    let sender = Sender::new(&recorder);
    let accepted = Attempt::Answered {
        status: 200,
        outcome: "accepted".into(),
    };
    match moment {
        Moment::Idle => {}
        Moment::Attempt => {
            let sent = sender
                .send_once(address, "/accepted", "in-hand", &["hang"])
                .await;
            assert_eq!(sent, accepted);
            server
                .until("select count(taken_by) from idempotent_webhook.kept_deliveries")
                .await;
        }
        Moment::Hook => told.until(first, 1).await,
    }
    let told_at = Instant::now();
    let has_stopped;
    match outage {
        Outage::Silence => {
            let silence = proxy.silence().await;
            has_stopped = stopping.terminate(GRACE).await;
            drop(silence);
        }
        Outage::Crash => {
            server.crash();
            has_stopped = stopping.terminate(GRACE).await;
            server.start_again().await;
        }
    }
    let took = told_at.elapsed();
    server
        .until(
            "select (count(*) = 0)::int::bigint from idempotent_webhook.kept_deliveries
             where state = 'due'",
        )
        .await;
    if moment == Moment::Hook {
        // The report that the process made but could not write down is made again, and each missing report is made
        // once.
        server.count(PASS_ON).await;
        stopping.address().await;
        server.until(NO_DEATH_UNTOLD).await;
        assert!(stopping.terminate(STOP_TIME).await);
        let mut expected = vec![first.to_owned()];
        for name in ["acknowledged", "all", "kept"] {
            expected.push(format!("{name}: failing begun"));
            expected.push(format!("{name}: {name}-dead is dead"));
        }
        let mut lines = told.lines();
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected);
    } else {
        assert_eq!(told.lines(), [""; 0]);
    }
    let sent = sender
        .send_once(living.address().await, "/kept", "after-it", &[])
        .await;
    assert_eq!(sent, processed());
    let history = server.history(&recorder).await;
    let effects = usize::from(moment == Moment::Attempt);
    assert_eq!(history.effects("in-hand"), effects);
    println!(
        "{outage:?}, asked to stop at {moment:?}: {} after {took:.0?}, {} messages; {}",
        if has_stopped { "gone" } else { "killed" },
        told.lines().len(),
        history.assert_upheld("telling")
    );
}
