//! 1,000 events of each provider that has a list. Of these events, 37 never came, 5 are under way, 3 come while they
//! are being reconciled, 2 were forgotten on purpose, 10 are older than what retention has left, and the others were
//! processed. Two processes reconcile, and are killed in the middle. The test runs them until the 37 and the 3 events
//! have been processed once each. Nothing else may be processed.
//!
//! A *round* reads a provider's list once. One process at a time has the *turn* to do a round.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use provider_apis::{Api, Event, PROVIDERS, Refusal, webhook};

use crate::history::Recorder;
use crate::process::Process;
use crate::sender::Sender;
use crate::server::Server;

const EVENTS: u64 = 1000;
const GRACE: Duration = Duration::from_secs(300);
const OLD: u64 = 10;
const DAY: u64 = 24 * 60 * 60;

/// How long the test may take, with kills.
const PATIENCE: Duration = Duration::from_secs(120);

/// What happened to an event before the test starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Old,
    NeverCame,
    Young,
    /// The delivery has failed, and runs again later.
    Kept,
    Comes,
    Forgotten,
    Processed,
}

/// The events with the numbers 1 to 10 are the oldest.
fn fate(number: u64) -> Fate {
    match number {
        ..=OLD => Fate::Old,
        998.. => Fate::Young,
        _ if number.is_multiple_of(26) && number / 26 <= 37 => Fate::NeverCame,
        100 | 901 => Fate::Kept,
        33 | 444 | 955 => Fate::Comes,
        55 | 777 => Fate::Forgotten,
        _ => Fate::Processed,
    }
}

fn numbers(fates: &[Fate]) -> Vec<u64> {
    (1..=EVENTS)
        .filter(|number| fates.contains(&fate(*number)))
        .collect()
}

fn event(number: u64, now: u64) -> Event {
    let time = match fate(number) {
        Fate::Old => now - 40 * DAY + number,
        Fate::Young => now,
        _ => now - GRACE.as_secs() - (EVENTS - number) * 60,
    };
    Event { number, time }
}

fn ids(provider: &str, numbers: &[u64]) -> String {
    let ids: Vec<String> = numbers.iter().map(|n| format!("{provider}-{n}")).collect();
    format!("unnest(array['{}'])", ids.join("','"))
}

pub async fn run() {
    let seed = fastrand::u64(..);
    println!("\nreconciliation: 5 lists of 1,000 events, 2 processes, seed {seed}\n");
    let mut random = fastrand::Rng::with_seed(seed);
    let server = Server::start().await;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let mut apis = Vec::new();
    for provider in PROVIDERS {
        let (api, address) = Api::start(provider).await;
        for number in 1..=EVENTS {
            api.add(event(number, now));
        }
        api.refuse(Refusal::Broken);
        api.delay(Duration::from_millis(100));
        prepare(&server, provider).await;
        apis.push((provider, api, address));
    }
    let addresses: Vec<String> = apis
        .iter()
        .map(|(provider, _, address)| format!("{provider}={address}"))
        .collect();
    let recorder = Recorder::start();
    let missing = numbers(&[Fate::NeverCame, Fate::Comes]);
    assert_eq!(missing.len(), 40);
    for provider in PROVIDERS {
        for number in &missing {
            recorder.missing(&format!("{provider}-{number}"));
        }
    }
    let processes: Vec<Process> = (0..2)
        .map(|_| {
            Process::new(server.url(), &recorder, 20, Duration::from_secs(5))
                .reconciling(addresses.join(","), GRACE)
        })
        .collect();
    for process in &processes {
        process.address().await;
    }

    let started = Instant::now();
    let sender = Sender::new(&recorder);
    let mut to_send: Vec<(&str, u64)> = PROVIDERS
        .into_iter()
        .flat_map(|provider| {
            numbers(&[Fate::Comes])
                .into_iter()
                .map(move |n| (provider, n))
        })
        .collect();
    random.shuffle(&mut to_send);
    let (mut kills, mut broken_off) = (0, 0);
    let complete = "select count(*) from idempotent_webhook.reconciliations where reconciled_until is not null";
    loop {
        for (provider, api, _) in &apis {
            to_send.extend(api.take_redeliveries().into_iter().map(|n| (*provider, n)));
        }
        let mut unsent = Vec::new();
        let later = to_send.split_off(to_send.len().min(8));
        for (provider, number) in to_send {
            let process = &processes[random.usize(0..2)];
            let uri = format!("http://{}/{provider}", process.address().await);
            let request = webhook(provider, event(number, now)).uri(&uri);
            let request: reqwest::Request = request.request::<reqwest::Body>().try_into().unwrap();
            let sent = sender
                .execute(&format!("{provider}-{number}"), request)
                .await;
            if !sent.is_acknowledged() {
                unsent.push((provider, number));
            }
        }
        to_send = later;
        to_send.extend(unsent);
        if kills < 8 {
            kills += 1;
            tokio::time::sleep(Duration::from_millis(random.u64(100..600))).await;
            processes[random.usize(0..2)].kill().await;
            broken_off += server.end_turns().await;
        }
        for process in &processes {
            process.address().await;
        }
        let done = server
            .count("select count(distinct delivery_id) from effects")
            .await;
        let completed = server.count(complete).await;
        if done >= 200 && completed == 5 && to_send.is_empty() && kills == 8 {
            break;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "{done} of 200 deliveries and {completed} of 5 lists after {PATIENCE:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // More rounds change nothing.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let history = server.history(&recorder).await;
    println!("    {}", history.assert_upheld("reconciliation"));
    assert_eq!(history.processed().len(), 200);
    let kept = "select count(*) from idempotent_webhook.kept_deliveries";
    assert_eq!(server.count(kept).await, 10, "earlier failures stay kept");
    assert!(broken_off > 0, "no process was killed in a round");
    println!(
        "    {kills} kills, {broken_off} rounds broken off, {:.1} s, all 200 deliveries processed once, and nothing else",
        started.elapsed().as_secs_f64()
    );
}

/// Fills the tables with what happened to a provider's events before the test starts.
async fn prepare(server: &Server, provider: &str) {
    let processed = ids(provider, &numbers(&[Fate::Processed]));
    let forgotten = ids(provider, &numbers(&[Fate::Forgotten]));
    let kept = ids(provider, &numbers(&[Fate::Kept]));
    for sql in [
        format!(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             select '{provider}', {processed}"
        ),
        format!(
            "insert into idempotent_webhook.discarded (endpoint, delivery_id)
             select '{provider}', {forgotten}"
        ),
        format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             select '{provider}', {kept}, 'due', 1, now() + interval '1 hour'"
        ),
        format!(
            "insert into idempotent_webhook.pruned (endpoint, before)
             values ('{provider}', now() - interval '35 days')"
        ),
    ] {
        let counted = format!("with done as ({sql} returning 1) select count(*) from done");
        server.count(&counted).await;
    }
}
