//! Sending, and what comes back.

use std::error::Error;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use reqwest::{Client, Request, redirect};
use tokio::task::JoinSet;

use crate::arguments::Plan;

/// One request.
pub struct Sent {
    /// From 1, in the order of sending.
    pub number: u32,
    pub answer: Result<Answer, NoAnswer>,
}

pub struct Answer {
    pub status: u16,
    /// What `x-webhook-outcome` says, if it is there.
    pub outcome: Option<String>,
    /// From before the connection to the end of the answer.
    pub took: Duration,
}

pub struct NoAnswer {
    pub reason: String,
    is_unconnected: bool,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Sends them all, in the order of their numbers.
///
/// An error if not one was answered.
pub async fn send_all(plan: &Plan) -> Result<Vec<Sent>, Box<dyn Error>> {
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        // A connection for each request, so that their times can be compared.
        .pool_max_idle_per_host(0)
        .timeout(plan.timeout)
        .build()?;
    // Shown on a terminal only.
    let bar = ProgressBar::new(plan.times.into());
    let concurrency = usize::try_from(plan.concurrency)?;
    bar.tick();

    let mut numbers = 1..=plan.times;
    let mut is_connected = true;
    let mut sending = JoinSet::new();
    let mut all = Vec::new();
    loop {
        while is_connected
            && sending.len() < concurrency
            && let Some(number) = numbers.next()
        {
            let request = plan.message.request(&plan.url);
            sending.spawn(send(client.clone(), number, request));
        }
        let Some(sent) = sending.join_next().await else {
            break;
        };
        let sent = sent?;
        // Where one finds nobody, the others would fare no better.
        is_connected &= !sent.answer.as_ref().is_err_and(|none| none.is_unconnected);
        all.push(sent);
        bar.inc(1);
    }
    bar.finish_and_clear();

    all.sort_unstable_by_key(|sent| sent.number);
    if let Some(Err(none)) = all.first().map(|sent| &sent.answer)
        && all.iter().all(|sent| sent.answer.is_err())
    {
        let host = plan.url.host_str().unwrap_or_default();
        let port = plan.url.port_or_known_default().unwrap_or_default();
        return Err(format!("no answer from {host}:{port}: {}", none.reason).into());
    }
    Ok(all)
}

async fn send(client: Client, number: u32, request: Request) -> Sent {
    let started = Instant::now();
    let answer = exchange(client, request, started)
        .await
        .map_err(|error| NoAnswer {
            is_unconnected: error.is_connect(),
            reason: reason(&error),
        });
    Sent { number, answer }
}

async fn exchange(client: Client, request: Request, started: Instant) -> reqwest::Result<Answer> {
    let mut response = client.execute(request).await?;
    // The end of the body is the end of the answer. What it says is not asked for.
    while response.chunk().await?.is_some() {}
    let outcome = response.headers().get("x-webhook-outcome");
    Ok(Answer {
        status: response.status().as_u16(),
        // What is not plain text would not be one that this crate gives.
        outcome: outcome.map(|outcome| outcome.to_str().unwrap_or("?").to_owned()),
        took: started.elapsed(),
    })
}

/// The cause at the bottom, without the URL, which may have a password in it.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "the time was up".to_owned();
    }
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
