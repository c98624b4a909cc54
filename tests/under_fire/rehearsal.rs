//! The job of a deploy rehearses a thousand deliveries. It is killed halfway, and leaves nothing behind. Then it
//! rehearses while another process serves traffic.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Length;
use crate::application::REHEARSE;
use crate::history::Recorder;
use crate::process::Process;
use crate::sender::{Attempt, Sender};
use crate::server::Server;

const DELIVERIES: i64 = 1000;

const KILLS: u32 = 6;

/// How many requests are under way at once during a rehearsal.
const SENDERS: usize = 4;

/// The deliveries belong to five endpoints. Half of them are processed, and half are dead.
const INSERT: &str = "
    with numbered as (
        select
            (array['kept', 'acknowledged', 'all', 'accepted', 'archived'])[1 + n % 5] as endpoint,
            'rehearsed-' || n as id, n % 2 = 0 as is_processed
        from generate_series(1, 1000) as n
    ),
    kept as (
        insert into idempotent_webhook.kept_deliveries
            (endpoint, delivery_id, event_type, state, attempts, archived_for, processed_at, archived_until)
        select
            endpoint, id, 'push', case when is_processed then 'processed' else 'dead' end, 1,
            interval '1 day', now(), now() + interval '1 day'
        from numbered
    ),
    requests as (
        insert into idempotent_webhook.kept_requests
            (endpoint, delivery_id, format, method, uri, headers, body)
        select
            endpoint, id, 1, 'POST', '/' || endpoint,
            convert_to(E'content-type: application/json\\nx-github-event: push\\n', 'UTF8'),
            convert_to('{\"behaviours\":[]}', 'UTF8')
        from numbered
    ),
    claims as (
        insert into idempotent_webhook.deliveries (endpoint, delivery_id)
        select endpoint, id from numbered where is_processed
    ),
    effects as (
        insert into effects (delivery_id) select id from numbered where is_processed
    )
    select count(*) from numbered";

const WRITING: &str = "select count(*) from pg_stat_activity where backend_xid is not null";

const NO_ADVISORY_LOCK: &str = "
    select (count(*) = 0)::int::bigint from pg_locks where locktype = 'advisory'";

pub async fn run(length: Length) {
    println!("\nrehearsal: {DELIVERIES} deliveries, with kills halfway, and during traffic\n");
    let server = Server::start().await;
    assert_eq!(server.count(INSERT).await, DELIVERIES);
    // Handler calls in a rehearsal do not belong to the history of sent deliveries.
    let rehearsed = Recorder::start();
    let job = Process::new(server.url(), &rehearsed, 10, Duration::from_secs(5)).rehearsing();
    kills_leave_nothing(&server, &job).await;
    beside_traffic(&server, &job, length).await;
}

async fn kills_leave_nothing(server: &Server, job: &Process) {
    let before = server.snapshot().await;
    let mut midst = Vec::new();
    for _ in 0..KILLS {
        let started = Instant::now();
        let rehearsing = tokio::spawn(rehearse(job.address().await));
        server.until(WRITING).await;
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..500))).await;
        job.kill().await;
        assert_eq!(rehearsing.await.unwrap(), None, "it had finished before");
        midst.push(started.elapsed());
        assert_eq!(server.left_in_transaction().await, 0);
        server.until(NO_ADVISORY_LOCK).await;
        assert!(server.snapshot().await == before, "a row has changed");
    }
    let started = Instant::now();
    let report = rehearse(job.address().await).await;
    assert_eq!(report, Some(all_is_well()));
    let whole = started.elapsed();
    assert!(server.snapshot().await == before, "a row has changed");
    println!("killed after {midst:.1?} of {whole:.1?}: no row has changed");
}

/// What the job answers if each delivery was rehearsed and would be processed.
fn all_is_well() -> String {
    format!("{DELIVERIES} {DELIVERIES}")
}

async fn rehearse(job: SocketAddr) -> Option<String> {
    let request = reqwest::Client::new().post(format!("http://{job}{REHEARSE}"));
    request.send().await.ok()?.text().await.ok()
}

/// Sends deliveries alternately while the job rehearses and while it does not, and compares how long they take.
async fn beside_traffic(server: &Server, job: &Process, length: Length) {
    let (turns, requests) = match length {
        Length::Short => (4, 400),
        Length::Long => (20, 1000),
    };
    let recorder = Recorder::start();
    let serving = Process::new(server.url(), &recorder, 10, Duration::from_secs(5)).recovering();
    let (serving, job) = (serving.address().await, job.address().await);
    let sender = Sender::new(&recorder);
    send(&sender, serving, "warm-up", requests).await;
    let mut sent = requests;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for turn in 0..turns {
        let name = format!("alone-{turn}");
        alone.extend(send(&sender, serving, &name, requests).await);
        let rehearsing = tokio::spawn(rehearse(job));
        for part in 0.. {
            if rehearsing.is_finished() {
                break;
            }
            let name = format!("beside-{turn}-{part}");
            beside.extend(send(&sender, serving, &name, SENDERS).await);
        }
        assert_eq!(rehearsing.await.unwrap(), Some(all_is_well()));
    }
    sent += alone.len() + beside.len();
    let effects = "select count(*) from effects where delivery_id not like 'rehearsed-%'";
    assert_eq!(server.count(effects).await, i64::try_from(sent).unwrap());
    let history = server.history(&recorder).await;
    assert_eq!(history.processed().len(), sent);
    println!("{}", history.assert_upheld("rehearsal"));
    println!("{sent} sent, each processed once, during {turns} rehearsals");
    for (name, mut times) in [("alone", alone), ("during a rehearsal", beside)] {
        times.sort_unstable();
        let at = |part: f64| times[(times.len() as f64 * part) as usize];
        let count = times.len();
        println!(
            "  {count:>5} {name:<20} p50 {:.1?}, p99 {:.1?}",
            at(0.5),
            at(0.99)
        );
    }
}

/// Sends `requests` deliveries, a few at once, and returns how long each took.
async fn send(sender: &Sender, to: SocketAddr, name: &str, requests: usize) -> Vec<Duration> {
    let mut sending = JoinSet::new();
    for part in 0..SENDERS {
        let (sender, name) = (sender.clone(), name.to_owned());
        sending.spawn(async move {
            let mut times = Vec::new();
            for number in (part..requests).step_by(SENDERS) {
                let id = format!("{name}-{number}");
                let started = Instant::now();
                let sent = sender.send_once(to, "/kept", &id, &[]).await;
                times.push(started.elapsed());
                let processed = Attempt::Answered {
                    status: 200,
                    outcome: "processed".into(),
                };
                assert_eq!(sent, processed, "{id}");
            }
            times
        });
    }
    sending.join_all().await.into_iter().flatten().collect()
}
