//! `webhook record`.

use std::convert::Infallible;
use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use clap::{Args, value_parser};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use idempotent_webhook::provider::PublicUrl;
use idempotent_webhook::testing::{Capture, Pseudonyms};
use idempotent_webhook::{OUTCOME_HEADER, Provider as Preset, Secret, VerifiedWebhook};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::spawn_blocking;
use tower_layer::Layer;
use tower_service::Service;

use crate::preset::Provider;
use crate::secret::SecretArguments;
use crate::visible::visible;
use crate::{Ended, Failed};

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Record {
    /// The provider that sends: "webhook providers" lists them
    provider: Provider,

    /// The folder for the files, created if it is missing
    folder: PathBuf,

    #[command(flatten)]
    secret: SecretArguments,

    /// The URL that the provider calls, without the path, if it signs the URL
    #[arg(long, value_name = "URL")]
    public_url: Option<PublicUrl>,

    /// The address to listen on; port 0 means any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Stop after this many files [default: until ctrl-c]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    count: Option<u32>,

    /// A member, field or header that stays unchanged, by name or path; may be repeated
    #[arg(long, value_name = "NAME")]
    keep: Vec<String>,

    /// A member, field or header that is replaced although it would otherwise stay; may be repeated
    #[arg(long, value_name = "NAME")]
    replace: Vec<String>,

    /// The environment variable with the key that pseudonyms are computed from: each run with this key makes the same
    /// pseudonyms [default: a random key]
    #[arg(long, value_name = "NAME")]
    key_env: Option<OsString>,
}

const AFTER_HELP: &str = r#"Examples:
  Behind a tunnel to port 4000, which the provider calls:
    webhook record stripe tests/captures --listen 127.0.0.1:4000
  Keep an enum value that the handler reads:
    webhook record stripe tests/captures --keep billing_scheme --keep '$.data.object.metadata.plan'

Each delivery whose signature is valid is answered with 200, and written to EVENT_TYPE.http without the signature.
Values that may be personal or secret are replaced by pseudonyms, and equal texts by equal pseudonyms. The structure
stays: names of members, the event type, single words of members such as "status" and "currency", times, amounts and
booleans. For each file, the command lists what was replaced, and each name of --keep or --replace that is not in the
file. Read a file before you commit it.

Each file names its provider, so that "webhook replay" can sign the request again.

A body that is compressed, larger than 2 MiB, or neither JSON nor a form is not recorded. It is answered with 415 or, if
the provider treats 415 as final, with the status after which the provider delivers again."#;

/// How many requests are read at the same time. Each may be as large as the provider's largest request. Further
/// requests wait.
const MAX_CONNECTIONS: usize = 16;

/// The longest time that a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

impl Record {
    pub fn run(self) -> Result<Ended, Failed> {
        let secret = Secret::exact(self.secret.read()?).map_err(|error| error.to_string())?;
        let mut provider = self.provider.with(secret);
        if let Some(url) = self.public_url.clone() {
            provider = provider.public_url(url);
        } else if provider.signs_url() {
            return Err(format!("{} signs the URL: give --public-url", self.provider).into());
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

    async fn record(self, provider: Preset) -> Result<Ended, Failed> {
        let pseudonyms = self.pseudonyms()?;
        std::fs::create_dir_all(&self.folder)
            .map_err(|error| format!("cannot make {}: {error}", self.folder.display()))?;
        let listener = TcpListener::bind(self.listen).await;
        let listener =
            listener.map_err(|error| format!("cannot listen at {}: {error}", self.listen))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        say(&format!("listening at http://{address}"))?;

        let (ended, mut requests) = unbounded_channel();
        let receiver = Receiver {
            body_limit: provider.description().body_limit,
            recorder: Recorder(Arc::new(Recording {
                provider: provider.clone(),
                pseudonyms,
                folder: self.folder.clone(),
                left: Mutex::new(self.count),
            })),
            layer: VerifiedWebhook::new("record", provider),
        };
        tokio::spawn(receiver.receive(listener, ended));
        let mut left = self.count;
        while left != Some(0)
            && let Some(request) = requests.recv().await
        {
            match request {
                Received::Recorded(file) => {
                    say(&file)?;
                    left = left.map(|left| left - 1);
                }
                Received::Refused(why) => say(&format!("not recorded: {why}"))?,
                Received::Failed(error) => return Err(error.into()),
            }
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
                let missing = || {
                    format!(
                        "{} does not contain a key for pseudonyms",
                        name.to_string_lossy()
                    )
                };
                Pseudonyms::with_key(key.ok_or_else(missing)?.into_encoded_bytes())
            }
        };
        let pseudonyms = self.keep.iter().fold(pseudonyms, Pseudonyms::keep);
        Ok(self.replace.iter().fold(pseudonyms, Pseudonyms::replace))
    }
}

/// Prints a line and flushes it, so that a program can wait for the line.
fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(|error| error.to_string())
}

/// The result of a request.
#[derive(Clone)]
enum Received {
    /// The name of the file, and the replaced members.
    Recorded(String),
    /// Why the request was not recorded.
    Refused(String),
    /// An error that would also affect every further request.
    Failed(String),
}

/// Receives requests like an application.
#[derive(Clone)]
struct Receiver {
    body_limit: usize,
    layer: VerifiedWebhook,
    recorder: Recorder,
}

impl Receiver {
    /// Receives requests, and reports each result. Nothing is reported after the last file.
    async fn receive(self, listener: TcpListener, ended: UnboundedSender<Received>) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        // The semaphore is never closed.
        while let Ok(place) = places.clone().acquire_owned().await {
            // After an error, for example because the client has gone or too many files are open, the recording
            // continues.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (receiver, ended) = (self.clone(), ended.clone());
            tokio::spawn(async move {
                if let Some(request) = receiver.serve(stream).await {
                    let _ = ended.send(request);
                }
                drop(place);
            });
        }
    }

    /// Serves one request, and returns after it is answered.
    async fn serve(self, stream: TcpStream) -> Option<Received> {
        let (answered, mut answers) = unbounded_channel();
        let answer = |request: Request<Incoming>| {
            let (receiver, answered) = (self.clone(), answered.clone());
            async move {
                let (response, received) = receiver.answer(request).await;
                // The receiver of this channel lives as long as the connection.
                let _ = answered.send(received);
                Ok::<_, Infallible>(response)
            }
        };
        let connection = http1::Builder::new()
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service_fn(answer));
        let ended = tokio::time::timeout(TIMEOUT, connection).await;
        let because = |why: String| Some(Received::Refused(why));
        match (answers.try_recv(), ended) {
            (Ok(received), _) => Some(received),
            (Err(_), Ok(Ok(()))) => None,
            (Err(_), Ok(Err(error))) => because(visible(&error.to_string())),
            (Err(_), Err(_)) => because("timed out".to_owned()),
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> (Response<Full<Bytes>>, Received) {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, self.body_limit).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                let status = match error.is::<LengthLimitError>() {
                    true => StatusCode::PAYLOAD_TOO_LARGE,
                    false => StatusCode::BAD_REQUEST,
                };
                return (plain(status), Received::Refused(status.to_string()));
            }
        };
        let request = Request::from_parts(head.clone(), Full::new(body.clone()));
        let Ok(response) = self.layer.layer(self.recorder.clone()).call(request).await;
        let received = response.extensions().get::<Received>().cloned();
        let received = received.unwrap_or_else(|| self.unrecorded(&response, &head, &body));
        (response, received)
    }

    /// The result of a request that the layer answered itself.
    fn unrecorded(&self, response: &Response<Full<Bytes>>, head: &Parts, body: &[u8]) -> Received {
        let status = response.status();
        let outcome = response.headers().get(OUTCOME_HEADER);
        let outcome = outcome.and_then(|outcome| outcome.to_str().ok());
        let mut told = match outcome {
            Some(outcome) => format!("{} {outcome}", status.as_u16()),
            None => status.to_string(),
        };
        // The response to the sender contains no reason, so the request is verified again. For a method that is not
        // allowed, the status is the reason.
        let provider = &self.recorder.0.provider;
        if status != StatusCode::METHOD_NOT_ALLOWED
            && let Err(error) = provider.verify(head, body, SystemTime::now())
        {
            let cause = error.source().map(ToString::to_string);
            told = format!("{told}: {}", cause.unwrap_or_else(|| error.to_string()));
        }
        Received::Refused(visible(&told))
    }
}

fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

/// The handler for requests with a valid signature.
#[derive(Clone)]
struct Recorder(Arc<Recording>);

struct Recording {
    provider: Preset,
    pseudonyms: Pseudonyms,
    folder: PathBuf,
    /// How many files are still to be written.
    left: Mutex<Option<u32>>,
}

impl Recording {
    fn write(&self, request: &Request<Bytes>) -> Response<Full<Bytes>> {
        let (status, received) = self.written(request);
        let mut response = plain(status);
        response.extensions_mut().insert(received);
        response
    }

    fn written(&self, request: &Request<Bytes>) -> (StatusCode, Received) {
        let capture = match self.pseudonyms.capture(&self.provider, request) {
            Ok(capture) => capture,
            Err(error) => {
                let refused = Received::Refused(error.to_string());
                return (StatusCode::UNSUPPORTED_MEDIA_TYPE, refused);
            }
        };
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        // All files are written, but the response to the last request may not have been sent yet.
        if *left == Some(0) {
            let refused = Received::Refused("all files have been written".to_owned());
            return (StatusCode::SERVICE_UNAVAILABLE, refused);
        }
        match capture.write_to(&self.folder) {
            Ok(file) => {
                *left = left.map(|left| left - 1);
                (
                    StatusCode::OK,
                    Received::Recorded(recorded(&file, &capture)),
                )
            }
            Err(error) => {
                let error = format!("cannot write to {}: {error}", self.folder.display());
                (StatusCode::INTERNAL_SERVER_ERROR, Received::Failed(error))
            }
        }
    }
}

fn recorded(file: &Path, capture: &Capture) -> String {
    let mut text = file.display().to_string();
    text += &match capture.replaced() {
        [] => "\n  nothing was replaced".to_owned(),
        replaced => format!("\n  replaced: {}", replaced.join(" ")),
    };
    if let [_, ..] = capture.unmatched() {
        text += &format!("\n  not found: {}", capture.unmatched().join(" "));
    }
    text
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
            // The work for a large body takes long, so it runs on a blocking thread, and not on the thread that serves
            // requests.
            let written = spawn_blocking(move || recording.write(&request)).await;
            Ok(written.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR)))
        })
    }
}
