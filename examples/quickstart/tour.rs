//! The tour: requests that a provider may send, over real HTTP, and their results.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use axum::body::Bytes;
use idempotent_webhook::OUTCOME_HEADER;
use idempotent_webhook::testing::TestDelivery;

use crate::application::{Application, Span};
use crate::senders::Sender;

/// A row of the tour and its expected result.
struct Step<'a> {
    what: &'a str,
    delivery: TestDelivery,
    /// How many copies are sent at the same moment.
    copies: usize,
    /// The delivery whose rows in the ledger are counted.
    id: &'a str,
    /// Status, outcome, and how often this answer must come.
    answers: &'a [(u16, &'a str, usize)],
    handler_runs: u32,
    ledger_rows: i64,
}

/// Runs the tour and returns whether everything went as expected.
pub async fn run(application: &Application, address: SocketAddr) -> Result<bool, Box<dyn Error>> {
    let [stripe, github, shopify, acme] = ["stripe", "github", "shopify", "acme"].map(|name| {
        application
            .sender(name)
            .ok_or_else(|| format!("no sender {name}"))
    });
    let (stripe, github, shopify, acme) = (stripe?, github?, shopify?, acme?);
    let event = stripe.fresh_id();
    let another = stripe.fresh_id();
    let forged = stripe.fresh_id();
    let expired = stripe.fresh_id();
    let push = github.fresh_id();
    let order = shopify.fresh_id();
    let parcel = acme.fresh_id();
    let star = github.fresh_id();
    let pull_request = github.fresh_id();
    let [first, second] = [github.fresh_id(), github.fresh_id()];

    let ten_minutes_ago = SystemTime::now() - Duration::from_secs(600);
    let fail_once = acme.delivery(&parcel).body(r#"{"fail_once":true}"#);

    let one = |what, delivery, id, answer, handler_runs, ledger_rows| Step {
        what,
        delivery,
        copies: 1,
        id,
        answers: answer,
        handler_runs,
        ledger_rows,
    };
    let steps = [
        Step {
            what: "five simultaneous copies of a Stripe event",
            delivery: stripe.delivery(&event),
            copies: 5,
            id: &event,
            answers: &[(200, "processed", 1), (200, "duplicate", 4)],
            handler_runs: 1,
            ledger_rows: 1,
        },
        one(
            "the same event again",
            stripe.delivery(&event),
            &event,
            DUPLICATE,
            0,
            1,
        ),
        one(
            "the same with a new id",
            stripe.delivery(&another),
            &another,
            PROCESSED,
            1,
            1,
        ),
        one(
            "a tampered body",
            stripe.delivery(&forged).tampered(),
            &forged,
            REJECTED,
            0,
            0,
        ),
        one(
            "an expired signature",
            stripe.delivery(&expired).at(ten_minutes_ago),
            &expired,
            REJECTED,
            0,
            0,
        ),
        one(
            "a GitHub push",
            github.delivery(&push),
            &push,
            PROCESSED,
            1,
            1,
        ),
        one(
            "its redelivery",
            github.delivery(&push),
            &push,
            DUPLICATE,
            0,
            1,
        ),
        one(
            "a Shopify order",
            shopify.delivery(&order),
            &order,
            PROCESSED,
            1,
            1,
        ),
        one(
            "its retry",
            shopify.delivery(&order),
            &order,
            DUPLICATE,
            0,
            1,
        ),
        one(
            "a handler that fails: rolled back",
            fail_once.clone(),
            &parcel,
            &[(500, "failed", 1)],
            1,
            0,
        ),
        one(
            "the retry succeeds",
            fail_once.clone(),
            &parcel,
            PROCESSED,
            1,
            1,
        ),
        one("and once more", fail_once, &parcel, DUPLICATE, 0, 1),
        one(
            "an event without a handler",
            github
                .delivery(&star)
                .event_type("star")
                .uri("/events/github"),
            &star,
            &[(200, "ignored", 1)],
            0,
            0,
        ),
        one(
            "and one that has a handler",
            github
                .delivery(&pull_request)
                .event_type("pull_request")
                .body(r#"{"action":"opened"}"#)
                .uri("/events/github"),
            &pull_request,
            PROCESSED,
            1,
            1,
        ),
    ];

    let mut as_expected = true;
    print_row(
        "",
        [
            "what was sent",
            "status",
            "outcome",
            "handler runs",
            "ledger rows",
        ]
        .map(str::to_owned),
    );
    for step in steps {
        as_expected &= take(&step, application, address).await?;
    }
    as_expected &= claim_late(application, github, address).await?;
    as_expected &= serialize(application, github, address, [first, second]).await?;
    as_expected &= recover(application, github, address).await?;
    as_expected &= reprocess(application, github, address).await?;
    println!();
    if as_expected {
        println!("All as expected.\n");
    } else {
        println!("NOT as expected: see the rows marked with an exclamation mark.\n");
    }
    Ok(as_expected)
}

const PROCESSED: &[(u16, &str, usize)] = &[(200, "processed", 1)];
const DUPLICATE: &[(u16, &str, usize)] = &[(200, "duplicate", 1)];
const REJECTED: &[(u16, &str, usize)] = &[(401, "rejected", 1)];

async fn take(
    step: &Step<'_>,
    application: &Application,
    address: SocketAddr,
) -> Result<bool, Box<dyn Error>> {
    let client = reqwest::Client::new();
    let sending: Vec<_> = (0..step.copies)
        .map(|_| tokio::spawn(send(client.clone(), address, step.delivery.clone())))
        .collect();
    let mut answers = BTreeMap::new();
    for sent in sending {
        *answers.entry(sent.await??).or_default() += 1;
    }
    let handler_runs = application.take_runs();
    let ledger_rows = application.ledger_rows(step.id).await?;

    let expected: BTreeMap<(u16, String), usize> = step
        .answers
        .iter()
        .map(|&(status, outcome, count)| ((status, outcome.to_owned()), count))
        .collect();
    let good =
        answers == expected && handler_runs == step.handler_runs && ledger_rows == step.ledger_rows;

    let mut statuses: Vec<String> = answers
        .keys()
        .map(|(status, _)| status.to_string())
        .collect();
    statuses.dedup();
    let outcomes: Vec<String> = answers
        .iter()
        .map(|((_, outcome), count)| match (count, step.copies) {
            (_, 1) => outcome.clone(),
            _ => format!("{count} {outcome}"),
        })
        .collect();
    print_row(
        if good { "" } else { "!" },
        [
            step.what.to_owned(),
            statuses.join(", "),
            outcomes.join(", "),
            handler_runs.to_string(),
            ledger_rows.to_string(),
        ],
    );
    Ok(good)
}

/// A handler with a late claim, and a copy of its delivery that arrives before the claim.
async fn claim_late(
    application: &Application,
    github: &Sender,
    address: SocketAddr,
) -> Result<bool, Box<dyn Error>> {
    let client = reqwest::Client::new();
    let id = github.fresh_id();
    let slow = github
        .delivery(&id)
        .uri("/recovery/late")
        .body(r#"{"sleep_ms":300}"#);
    let copy = tokio::spawn(send(client.clone(), address, slow.clone()));
    let (status, outcome) = send(client, address, slow).await?;
    let mut outcomes = [outcome, copy.await??.1];
    outcomes.sort_unstable();
    let runs = application.attempts(&id).await?;
    let rows = application.ledger_rows(&id).await?;
    let good = (status, outcomes.each_ref().map(String::as_str), runs, rows)
        == (200, ["duplicate", "processed"], 1, 1);
    print_row(
        if good { "" } else { "!" },
        [
            "two copies, with a late claim".to_owned(),
            status.to_string(),
            outcomes.join(", "),
            runs.to_string(),
            rows.to_string(),
        ],
    );
    Ok(good)
}

/// Two deliveries of one object (with the same `ref`) at the same moment: the second handler starts only after the
/// first one has committed.
async fn serialize(
    application: &Application,
    github: &Sender,
    address: SocketAddr,
    ids: [String; 2],
) -> Result<bool, Box<dyn Error>> {
    let sending = ids.each_ref().map(|id| {
        let push = github
            .delivery(id)
            .uri("/serial/github")
            .body(r#"{"ref":"main","sleep_ms":300}"#);
        tokio::spawn(async move {
            let (head, body) = push.request::<Bytes>().into_parts();
            let request = reqwest::Client::new()
                .post(format!("http://{address}{}", head.uri))
                .headers(head.headers)
                .body(body);
            request.send().await?.json::<Span>().await
        })
    });
    let [one, other] = sending;
    let (one, other) = (one.await??, other.await??);
    let apart = one.ended <= other.began || other.ended <= one.began;
    let mut rows = 0;
    for id in &ids {
        rows += application.ledger_rows(id).await?;
    }
    let good = apart && rows == 2;
    print_row(
        if good { "" } else { "!" },
        [
            "two events of one object at once".to_owned(),
            "200".to_owned(),
            "one after the other".to_owned(),
            "2".to_owned(),
            rows.to_string(),
        ],
    );
    Ok(good)
}

/// A delivery whose handler fails twice, and whose provider never retries.
async fn recover(
    application: &Application,
    github: &Sender,
    address: SocketAddr,
) -> Result<bool, Box<dyn Error>> {
    let id = github.fresh_id();
    let push = github
        .delivery(&id)
        .uri("/recovery/kept")
        .body(r#"{"fail_times":2}"#);
    let (status, outcome) = send(reqwest::Client::new(), address, push).await?;
    let runs = application.attempts(&id).await?;
    let kept = (status, &*outcome, runs) == (500, "kept", 1);
    print_row(
        if kept { "" } else { "!" },
        [
            "a handler that fails twice: kept".to_owned(),
            status.to_string(),
            outcome,
            runs.to_string(),
            application.ledger_rows(&id).await?.to_string(),
        ],
    );
    let rows = ledger_has(application, &id, 1).await?;
    let runs = application.attempts(&id).await? - runs;
    let recovered = (runs, rows) == (2, 1);
    print_row(
        if recovered { "" } else { "!" },
        [
            "and run again until it succeeds".to_owned(),
            "-".to_owned(),
            "-".to_owned(),
            runs.to_string(),
            rows.to_string(),
        ],
    );
    Ok(kept && recovered)
}

/// A delivery that is kept before its handler runs, and that an operator runs again.
async fn reprocess(
    application: &Application,
    github: &Sender,
    address: SocketAddr,
) -> Result<bool, Box<dyn Error>> {
    let client = reqwest::Client::new();
    let id = github.fresh_id();
    let slow = github
        .delivery(&id)
        .uri("/recovery/all")
        .body(r#"{"sleep_ms":500}"#);
    let sending = tokio::spawn(send(client.clone(), address, slow));
    while application.attempts(&id).await? == 0 && !sending.is_finished() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // If the process were killed now, another process would run the delivery.
    let state = state(&client, address, &id).await?;
    let rows = application.ledger_rows(&id).await?;
    let kept = (state.as_deref(), rows) == (Some("due"), 0);
    print_row(
        if kept { "" } else { "!" },
        [
            "a slow handler: kept before it runs".to_owned(),
            "-".to_owned(),
            state.unwrap_or_else(|| "not kept".to_owned()),
            application.attempts(&id).await?.to_string(),
            rows.to_string(),
        ],
    );
    let (status, outcome) = sending.await??;
    let runs = application.attempts(&id).await?;
    let rows = application.ledger_rows(&id).await?;
    let processed = (status, &*outcome, runs, rows) == (200, "processed", 1, 1);
    print_row(
        if processed { "" } else { "!" },
        [
            "and answered when it has finished".to_owned(),
            status.to_string(),
            outcome,
            (runs - 1).to_string(),
            rows.to_string(),
        ],
    );
    let answer = client
        .post(format!(
            "http://{address}/recovery/reprocess?endpoint=all&delivery_id={id}"
        ))
        .send()
        .await?;
    let (status, answer) = (answer.status().as_u16(), answer.text().await?);
    let rows = ledger_has(application, &id, 2).await?;
    let runs = application.attempts(&id).await? - runs;
    let reprocessed = (status, &*answer, runs, rows) == (200, r#"{"reprocessed":1}"#, 1, 2);
    print_row(
        if reprocessed { "" } else { "!" },
        [
            "the same, run again by an operator".to_owned(),
            status.to_string(),
            answer,
            runs.to_string(),
            rows.to_string(),
        ],
    );
    Ok(kept && processed && reprocessed)
}

/// Waits until a delivery has this many rows in the ledger, for a few seconds at most. Returns how many rows it has.
async fn ledger_has(application: &Application, id: &str, rows: i64) -> sqlx::Result<i64> {
    for _ in 0..200 {
        if application.ledger_rows(id).await? >= rows {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    application.ledger_rows(id).await
}

/// The state of a delivery according to `GET /recovery`.
async fn state(
    client: &reqwest::Client,
    address: SocketAddr,
    id: &str,
) -> Result<Option<String>, reqwest::Error> {
    let listed: Vec<serde_json::Value> = client
        .get(format!("http://{address}/recovery"))
        .send()
        .await?
        .json()
        .await?;
    let delivery = listed.iter().find(|listed| listed["delivery_id"] == id);
    Ok(delivery.and_then(|listed| listed["state"].as_str().map(str::to_owned)))
}

/// Sends a delivery and returns the status and the outcome.
async fn send(
    client: reqwest::Client,
    address: SocketAddr,
    delivery: TestDelivery,
) -> Result<(u16, String), reqwest::Error> {
    let (head, body) = delivery.request::<Bytes>().into_parts();
    let response = client
        .post(format!("http://{address}{}", head.uri))
        .headers(head.headers)
        .body(body)
        .send()
        .await?;
    let outcome = response
        .headers()
        .get(OUTCOME_HEADER)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("none");
    Ok((response.status().as_u16(), outcome.to_owned()))
}

fn print_row(mark: &str, [what, status, outcome, runs, rows]: [String; 5]) {
    println!("{mark:1} {what:<45} {status:<7} {outcome:<25} {runs:>12} {rows:>12}");
}
