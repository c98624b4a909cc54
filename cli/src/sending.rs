//! Sends requests, and reads the responses.

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Failed;
use crate::load::Load;
use crate::message::Message;
use crate::target::Target;

/// How many bytes of a response body are kept.
const MAX_TEXT: usize = 200;

pub type Sent = Result<Answer, NoAnswer>;

pub struct Answer {
    pub status: u16,
    /// The value of `x-webhook-outcome`, if the header is present.
    pub outcome: Option<String>,
    /// The start of the response body.
    pub text: Vec<u8>,
    /// The time from before the connection to the end of the response.
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

/// Sends all requests.
///
/// Returns an error if no request was answered.
pub async fn send_all(load: &Load, message: &Message) -> Result<Vec<Sent>, Failed> {
    let mut left = load.times;
    let mut is_connected = true;
    let mut sending = JoinSet::new();
    let mut all = Vec::new();
    loop {
        while is_connected && left > 0 && sending.len() < concurrency(load) {
            left -= 1;
            let request = prepare(message.request()?, &load.to)?;
            sending.spawn(send(load.to.clone(), request, load.timeout()));
        }
        let Some(sent) = sending.join_next().await else {
            break;
        };
        let sent = sent.map_err(|error| error.to_string())?;
        // If nothing listens, no more requests are sent.
        is_connected &= !sent.as_ref().is_err_and(|none| none.is_unconnected);
        all.push(sent);
    }
    match all.first() {
        Some(Err(none)) if all.iter().all(Result::is_err) => Err(Failed::NotNow(format!(
            "no answer from {}: {}",
            load.to.authority(),
            none.reason
        ))),
        _ => Ok(all),
    }
}

fn concurrency(load: &Load) -> usize {
    usize::try_from(load.concurrency).unwrap_or(usize::MAX)
}

/// Brings a request into the form of HTTP/1.1: only path and query in the request line, and a
/// `Host` header.
fn prepare(request: Request<Bytes>, to: &Target) -> Result<Request<Full<Bytes>>, String> {
    let mut request = request.map(Full::new);
    *request.uri_mut() = to
        .path_and_query()
        .parse::<Uri>()
        .map_err(|error| error.to_string())?;
    let host = HeaderValue::try_from(to.authority()).map_err(|error| error.to_string())?;
    request.headers_mut().insert(HOST, host);
    Ok(request)
}

async fn send(to: Target, request: Request<Full<Bytes>>, limit: Duration) -> Sent {
    let started = Instant::now();
    timeout(limit, exchange(&to, request, started))
        .await
        .unwrap_or_else(|_| {
            Err(NoAnswer {
                reason: "timed out".to_owned(),
                is_unconnected: false,
            })
        })
}

/// Sends a request on its own connection, so that the times can be compared.
async fn exchange(to: &Target, request: Request<Full<Bytes>>, started: Instant) -> Sent {
    let stream = TcpStream::connect((to.host(), to.port()))
        .await
        .map_err(|error| NoAnswer {
            reason: error.to_string(),
            is_unconnected: true,
        })?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The task ends when the exchange is complete.
    tokio::spawn(connection);
    let mut response = sender.send_request(request).await?;
    let mut text = Vec::new();
    // The response is complete when its body has ended.
    while let Some(frame) = response.frame().await {
        if let Ok(data) = frame?.into_data() {
            text.extend(data.iter().take(MAX_TEXT - text.len()));
        }
    }
    let outcome = response.headers().get(idempotent_webhook::OUTCOME_HEADER);
    Ok(Answer {
        status: response.status().as_u16(),
        // The library's outcomes are always ASCII text.
        outcome: outcome.map(|outcome| outcome.to_str().unwrap_or("?").to_owned()),
        text,
        took: started.elapsed(),
    })
}

impl From<hyper::Error> for NoAnswer {
    /// Uses the text of the innermost cause.
    fn from(error: hyper::Error) -> Self {
        let mut cause: &dyn Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Self {
            reason: cause.to_string(),
            is_unconnected: false,
        }
    }
}
