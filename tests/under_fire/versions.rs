//! A deploy that goes forward, back, and forward again. Deliveries that the new version has acknowledged are taken by
//! processes of the old version, which have no handler for them. The handler of the new version still runs.

use std::time::Duration;

use crate::application::VERSIONS;
use crate::history::{Event, Recorder};
use crate::operator::Order;
use crate::process::Process;
use crate::sender::{Attempt, Sender};
use crate::server::Server;

const DELIVERIES: usize = 20;

/// The handler of the new version fails at its first attempts.
const BEHAVIOURS: [&str; 6] = ["fail"; 6];

/// Makes the deliveries look two hours old, because a deploy may take longer than an hour.
const AGE: &str = "
    with aged as (
        update idempotent_webhook.kept_deliveries
        set first_received_at = now() - interval '2 hours'
        returning 1
    )
    select count(*) from aged";

const ATTEMPTS: &str = "
    select coalesce(sum(attempts), 0)::bigint
    from idempotent_webhook.kept_deliveries";

const NONE_IS_DUE: &str = "
    select (count(*) = 0)::int::bigint
    from idempotent_webhook.kept_deliveries
    where state = 'due'";

pub async fn run() {
    println!("\nversions: what the new version has acknowledged is taken by the old one\n");
    let server = Server::start().await;
    let recorder = Recorder::start();
    let process = || Process::new(server.url(), &recorder, 5, Duration::from_secs(5)).recovering();
    let (old, new) = (process().of_old_version(), process());
    let sender = Sender::new(&recorder);
    let address = new.address().await;
    let order = |order| sender.order(address, order, VERSIONS, VERSIONS);
    // Pauses the endpoint, so that no delivery runs before all of them look old.
    assert!(order(Order::Pause).await.is_acknowledged());
    send(&sender, &new, "accepted").await;
    let kept = i64::try_from(DELIVERIES).unwrap();
    assert_eq!(server.count(AGE).await, kept);
    assert!(order(Order::Resume).await.is_acknowledged());
    // Both versions are running, as during a deploy.
    old.address().await;
    server.until(&has_run(DELIVERIES)).await;
    // The deploy is rolled back. The old version ignores what the provider sends, but takes the kept deliveries.
    new.kill().await;
    let before = usize::try_from(server.count(ATTEMPTS).await).unwrap();
    send(&sender, &old, "ignored").await;
    server.until(&has_run(before + DELIVERIES)).await;
    // The new version is deployed again, next to processes of the old version.
    new.address().await;
    server.until(NONE_IS_DUE).await;

    let history = server.history(&recorder).await;
    let upheld = history.assert_upheld("versions");
    let processed = history.processed();
    assert!(
        ids().all(|id| processed.contains(id.as_str())),
        "{processed:?}"
    );
    let calls = history.count(|event| matches!(event, Event::Begun { .. }));
    println!(
        "{DELIVERIES} acknowledged deliveries, {calls} calls, {} effects",
        processed.len()
    );
    println!("{upheld}");
}

/// The query for whether the kept deliveries had this many attempts in total, or have all ended.
fn has_run(times: usize) -> String {
    format!(
        "select (attempts >= {times} or attempts = 0)::int::bigint from ({ATTEMPTS}) as all_of_them (attempts)"
    )
}

fn ids() -> impl Iterator<Item = String> {
    (0..DELIVERIES).map(|number| format!("v-{number}"))
}

/// Sends each delivery once.
async fn send(sender: &Sender, to: &Process, outcome: &str) {
    for id in ids() {
        let (address, path) = (to.address().await, format!("/{VERSIONS}"));
        let expected = Attempt::Answered {
            status: 200,
            outcome: outcome.into(),
        };
        let answer = sender.send_once(address, &path, &id, &BEHAVIOURS).await;
        assert_eq!(answer, expected, "{id}");
    }
}
