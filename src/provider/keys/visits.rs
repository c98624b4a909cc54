//! Visits to addresses that confirm handshakes.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use tokio::sync::watch;
use tokio::time::Instant;

use super::address::KeyRequest;
use super::client::Client;
use crate::tasks_and_errors::error_chain::{BoxError, ErrorChain};

/// How many addresses are remembered.
const MAX_VISITS: usize = 100;

/// How long a final result is reused: a success, or a 4xx other than 429.
const SETTLED: Duration = Duration::from_secs(60);

/// How long any other failure is reused. SNS sends a confirmation again after 20 seconds, three times.
const FAILED: Duration = Duration::from_secs(5);

/// The result of a visit, and until when it is reused.
#[derive(Clone)]
struct Ended {
    result: Result<(), Arc<str>>,
    until: Instant,
}

/// `None` while the visit is under way.
type Visit = watch::Receiver<Option<Ended>>;

/// Visits, by their address. Clones share them. Somebody can send a captured handshake many times, so requests at the
/// same time share one visit, and its result is reused for a while.
#[derive(Clone, Default)]
pub(super) struct Visits(Arc<Mutex<HashMap<String, Visit>>>);

impl Visits {
    /// Visits an address with a GET. If a visit to the address is already under way, waits for it. If the result of the
    /// last visit can still be reused, returns that result.
    pub(super) async fn visit(
        &self,
        url: &str,
        client: &Client,
        timeout: Duration,
    ) -> Result<(), BoxError> {
        let mut visit = self.get_or_begin(url, client, timeout)?;
        let ended = visit.wait_for(Option::is_some).await;
        match ended.as_deref() {
            Ok(Some(ended)) => ended.result.clone().map_err(|error| (*error).into()),
            Ok(None) | Err(_) => Err("the visit has not ended".into()),
        }
    }

    fn get_or_begin(
        &self,
        url: &str,
        client: &Client,
        timeout: Duration,
    ) -> Result<Visit, BoxError> {
        // Nothing panics while it holds the lock.
        let mut visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        visits.retain(|_, visit| match &*visit.borrow() {
            // A visit whose runtime was shut down never ends.
            None => visit.has_changed().is_ok(),
            Some(ended) => now < ended.until,
        });
        if let Some(visit) = visits.get(url) {
            return Ok(visit.clone());
        }
        let request = KeyRequest::get(url.to_owned()).to_http()?;
        if visits.len() >= MAX_VISITS {
            make_room(&mut visits)?;
        }
        let (sender, visit) = watch::channel(None);
        visits.insert(url.to_owned(), visit.clone());
        drop(visits);
        let client = client.clone();
        // The visit runs in a task, so that a dropped request does not end it.
        tokio::spawn(async move {
            sender.send_replace(Some(send(request, &client, timeout).await));
        });
        Ok(visit)
    }
}

/// Forgets the visit whose result expires first. Visits that are under way stay.
fn make_room(visits: &mut HashMap<String, Visit>) -> Result<(), BoxError> {
    let until = |visit: &Visit| visit.borrow().as_ref().map(|ended| ended.until);
    let ended = visits
        .iter()
        .filter_map(|(url, visit)| Some((until(visit)?, url)));
    let first = ended.min().map(|(_, url)| url.clone());
    let first = first.ok_or("too many other visits are under way")?;
    visits.remove(&first);
    Ok(())
}

async fn send(request: Request<Bytes>, client: &Client, timeout: Duration) -> Ended {
    let answer = tokio::time::timeout(timeout, client(request)).await;
    let answer = answer.unwrap_or_else(|_| Err("it took too long".into()));
    let (result, lasts) = match answer.map(|answer| answer.status()) {
        Ok(StatusCode::OK) => (Ok(()), SETTLED),
        Ok(status) => {
            let is_final = status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS;
            let lasts = if is_final { SETTLED } else { FAILED };
            (Err(format!("it was answered with {status}").into()), lasts)
        }
        Err(error) => {
            let error: &(dyn Error + 'static) = &*error;
            (Err(ErrorChain(error).to_string().into()), FAILED)
        }
    };
    Ended {
        result,
        until: Instant::now() + lasts,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::Response;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(3);

    /// A client that gets this status as its answer after a second, and the number of its calls.
    fn answered_with(status: StatusCode) -> (Client, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let client: Client = Arc::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let mut answer = Response::new(Bytes::new());
                *answer.status_mut() = status;
                Ok(answer)
            })
        });
        (client, calls)
    }

    #[tokio::test(start_paused = true)]
    async fn a_visit_counts_for_as_long_as_its_answer_may_stay_the_same() {
        for (status, lasts) in [
            (StatusCode::OK, SETTLED),
            (StatusCode::FORBIDDEN, SETTLED),
            (StatusCode::TOO_MANY_REQUESTS, FAILED),
            (StatusCode::FOUND, FAILED),
            (StatusCode::BAD_GATEWAY, FAILED),
        ] {
            let (client, calls) = answered_with(status);
            let visits = Visits::default();
            let visit = || visits.visit("https://a.test/", &client, TIMEOUT);
            let calls = || calls.load(Ordering::Relaxed);
            let is_ok = status == StatusCode::OK;

            let (first, second) = tokio::join!(visit(), visit());
            assert_eq!((first.is_ok(), second.is_ok()), (is_ok, is_ok), "{status}");
            assert_eq!(calls(), 1, "{status}");

            tokio::time::advance(lasts - Duration::from_secs(1)).await;
            assert_eq!(visit().await.is_ok(), is_ok, "{status}");
            assert_eq!(calls(), 1, "{status}");

            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(visit().await.is_ok(), is_ok, "{status}");
            assert_eq!(calls(), 2, "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_visit_ends_though_nobody_waits_for_it() {
        let (client, calls) = answered_with(StatusCode::OK);
        let visits = Visits::default();
        let visit = || visits.visit("https://a.test/", &client, TIMEOUT);
        let hung_up = tokio::time::timeout(Duration::from_millis(1), visit()).await;
        assert!(hung_up.is_err());
        assert!(visit().await.is_ok());
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_visit_that_hangs_fails() {
        let hangs: Client = Arc::new(|_| Box::pin(std::future::pending()));
        let visits = Visits::default();
        let visited = visits.visit("https://a.test/", &hangs, TIMEOUT).await;
        let error = visited.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("it took too long"));
    }

    #[tokio::test(start_paused = true)]
    async fn visits_are_bounded() {
        let (client, calls) = answered_with(StatusCode::OK);
        let visits = Visits::default();
        let url = |i: usize| format!("https://a.test/{i}");
        let visit = |i: usize| {
            let (visits, client) = (visits.clone(), client.clone());
            tokio::spawn(async move { visits.visit(&url(i), &client, TIMEOUT).await })
        };
        let first: Vec<_> = (0..MAX_VISITS).map(visit).collect();
        tokio::task::yield_now().await;
        assert!(matches!(visit(MAX_VISITS).await, Ok(Err(_))));
        for visit in first {
            assert!(matches!(visit.await, Ok(Ok(()))));
        }
        assert_eq!(calls.load(Ordering::Relaxed), MAX_VISITS);

        // A finished visit makes room.
        assert!(matches!(visit(MAX_VISITS).await, Ok(Ok(()))));
        let remembered = visits.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(remembered.len(), MAX_VISITS);
    }
}
