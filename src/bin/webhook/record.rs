//! `webhook record`.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, value_parser};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use idempotent_webhook::provider::PublicUrl;
use idempotent_webhook::testing::{CaptureError, Pseudonyms};
use idempotent_webhook::{OUTCOME_HEADER, Provider as Preset, Secret, VerifiedWebhook};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tower_layer::Layer;
use tower_service::Service;

use crate::Ended;
use crate::preset::Provider;
use crate::secret::SecretArguments;

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Record {
    /// Who sends: "webhook providers" lists them
    provider: Provider,

    /// The folder for the files, which is made if it is not there
    folder: PathBuf,

    #[command(flatten)]
    secret: SecretArguments,

    /// What the provider calls, before the path, where it signs the URL
    #[arg(long, value_name = "URL")]
    public_url: Option<PublicUrl>,

    /// Where to listen; port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// End after so many files, and not at ctrl-c
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    count: Option<u32>,

    /// A member, field or header that stays as it is, by name or path; may be repeated
    #[arg(long, value_name = "NAME")]
    keep: Vec<String>,

    /// A member, field or header that is replaced although it would stay; may be repeated
    #[arg(long, value_name = "NAME")]
    replace: Vec<String>,

    /// The environment variable with the key of the pseudonyms, for the same ones in each run [default: a random key]
    #[arg(long, value_name = "NAME")]
    key_env: Option<OsString>,
}

const AFTER_HELP: &str = r#"Examples:
  Behind a tunnel to port 4000, which the provider calls:
    webhook record stripe tests/captures --listen 127.0.0.1:4000
  An enum that the handler reads stays as it is:
    webhook record stripe tests/captures --keep billing_scheme --keep '$.data.object.metadata.plan'

Each delivery that verifies is answered with 200, and written as EVENT_TYPE.http, without its signature. What may be
personal or secret is replaced by pseudonyms: the same one for the same text. Stays what is structure: names of members,
the event type, single words of members such as "status" and "currency", times, amounts, booleans. Below each file is a
list of what was replaced. Read a file before you commit it.

A body that is compressed, or neither JSON nor a form, is not recorded and answered with 415."#;

/// The longest time for a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time for the answers that are under way at the end.
const LAST_ANSWER: Duration = Duration::from_secs(1);

impl Record {
    pub fn run(self) -> Result<Ended, String> {
        let secret = Secret::exact(self.secret.read()?).map_err(|error| error.to_string())?;
        let mut provider = self.provider.with(secret);
        if let Some(url) = self.public_url.clone() {
            provider = provider.public_url(url);
        } else if provider.signs_url() {
            return Err(format!("{} signs the URL: give --public-url", self.provider));
        }
        provider
            .check_secrets()
            .map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(self.record(provider))
    }

    async fn record(self, provider: Preset) -> Result<Ended, String> {
        let pseudonyms = self.pseudonyms()?;
        std::fs::create_dir_all(&self.folder)
            .map_err(|error| format!("cannot make {}: {error}", self.folder.display()))?;
        let listener = TcpListener::bind(self.listen).await;
        let listener =
            listener.map_err(|error| format!("cannot listen at {}: {error}", self.listen))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        say(&format!("listening at http://{address}"))?;

        let (files, mut written) = unbounded_channel();
        let receiver = Receiver {
            body_limit: provider.description().body_limit,
            recorder: Recorder(Arc::new(Recording {
                provider: provider.clone(),
                pseudonyms,
                folder: self.folder.clone(),
                written: files,
            })),
            layer: VerifiedWebhook::new("record", provider),
        };
        let mut connections = JoinSet::new();
        let mut left = self.count;
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    // The next one may do better.
                    if let Ok((stream, _)) = accepted {
                        connections.spawn(receiver.clone().serve(stream));
                    }
                }
                Some(said) = connections.join_next() => {
                    if let Ok(Some(refused)) = said {
                        say(&refused)?;
                    }
                }
                Some(line) = written.recv() => {
                    say(&line?)?;
                    left = left.map(|left| left - 1);
                }
            }
            if left == Some(0) {
                break;
            }
        }
        // The sender of the last one gets its answer. A connection on which nothing comes is not waited for.
        drop(listener);
        let _ = tokio::time::timeout(LAST_ANSWER, connections.join_all()).await;
        while let Ok(line) = written.try_recv() {
            say(&line?)?;
        }
        Ok(Ended {
            text: String::new(),
            is_right: true,
        })
    }

    fn pseudonyms(&self) -> Result<Pseudonyms, String> {
        let pseudonyms = match &self.key_env {
            None => Pseudonyms::new(),
            Some(name) => {
                let key = std::env::var_os(name).filter(|key| !key.is_empty());
                let missing = || format!("{} has no key of pseudonyms", name.to_string_lossy());
                Pseudonyms::with_key(key.ok_or_else(missing)?.into_encoded_bytes())
            }
        };
        let pseudonyms = self.keep.iter().fold(pseudonyms, Pseudonyms::keep);
        Ok(self.replace.iter().fold(pseudonyms, Pseudonyms::replace))
    }
}

/// At once, so that a program can wait for it.
fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(|error| error.to_string())
}

/// Receives requests as an application does.
#[derive(Clone)]
struct Receiver {
    body_limit: usize,
    layer: VerifiedWebhook,
    recorder: Recorder,
}

impl Receiver {
    /// Serves one request. Returns what is to be said if it was not recorded.
    async fn serve(self, stream: TcpStream) -> Option<String> {
        let (refused, mut why) = unbounded_channel();
        let answer = |request: Request<Incoming>| {
            let (receiver, refused) = (self.clone(), refused.clone());
            async move {
                let response = receiver.answer(request).await;
                if let Some(why) = why_not(&response) {
                    // It is there for as long as the connection.
                    let _ = refused.send(format!("not recorded: {why}"));
                }
                Ok::<_, Infallible>(response)
            }
        };
        let connection = http1::Builder::new()
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service_fn(answer));
        match tokio::time::timeout(TIMEOUT, connection).await {
            Ok(Ok(())) => why.try_recv().ok(),
            Ok(Err(error)) => Some(format!("not recorded: {error}")),
            Err(_) => Some("not recorded: the time was up".to_owned()),
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, self.body_limit).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                let is_too_large = error.is::<LengthLimitError>();
                return plain(match is_too_large {
                    true => StatusCode::PAYLOAD_TOO_LARGE,
                    false => StatusCode::BAD_REQUEST,
                });
            }
        };
        let request = Request::from_parts(head, Full::new(body));
        let Ok(response) = self.layer.layer(self.recorder.clone()).call(request).await;
        response
    }
}

/// Why a request is not recorded, by what is answered to it.
fn why_not(response: &Response<Full<Bytes>>) -> Option<String> {
    if let Some(error) = response.extensions().get::<CaptureError>() {
        return Some(error.to_string());
    }
    let outcome = response.headers().get(OUTCOME_HEADER);
    let outcome = outcome.and_then(|outcome| outcome.to_str().ok());
    match (outcome, response.status()) {
        (Some("verified"), status) if status.is_success() => None,
        (Some(outcome), status) => Some(format!("{} {outcome}", status.as_u16())),
        (None, status) => Some(status.to_string()),
    }
}

fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

/// The handler of what verifies.
#[derive(Clone)]
struct Recorder(Arc<Recording>);

struct Recording {
    provider: Preset,
    pseudonyms: Pseudonyms,
    folder: PathBuf,
    /// A line for each, or why the files cannot be written.
    written: UnboundedSender<Result<String, String>>,
}

impl Recording {
    fn write(&self, request: &Request<Bytes>) -> Response<Full<Bytes>> {
        let capture = match self.pseudonyms.capture(&self.provider, request) {
            Ok(capture) => capture,
            Err(error) => {
                let mut response = plain(StatusCode::UNSUPPORTED_MEDIA_TYPE);
                response.extensions_mut().insert(error);
                return response;
            }
        };
        let written = capture.write_to(&self.folder);
        let status = match &written {
            Ok(_) => StatusCode::OK,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let line = match written {
            Ok(file) => Ok(match capture.replaced() {
                [] => format!("{}\n  nothing was replaced", file.display()),
                replaced => format!("{}\n  replaced: {}", file.display(), replaced.join(" ")),
            }),
            Err(error) => Err(format!("cannot write to {}: {error}", self.folder.display())),
        };
        // It ends with the command.
        let _ = self.written.send(line);
        plain(status)
    }
}

impl Service<Request<Full<Bytes>>> for Recorder {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let recording = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let Ok(body) = body.collect().await;
            let request = Request::from_parts(head, body.to_bytes());
            Ok(recording.write(&request))
        })
    }
}
