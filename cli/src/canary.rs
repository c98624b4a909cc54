//! `webhook send --canary`: sends a canary, and reports how far it gets. A canary is a signed request that takes the
//! same path as a provider's request, up to the claim in Postgres. The layer then rolls the claim back without calling
//! the handler.

use std::error::Error;
use std::io;

use bytes::Bytes;
use http::{HeaderName, Request, StatusCode};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{OUTCOME_HEADER, Provider};
use reqwest::Client;
use reqwest::header::LOCATION;
use reqwest::redirect::Policy;

use crate::dashboard::chain;
use crate::load::Load;
use crate::visible::visible;
use crate::{Ended, Failed};

/// The `x-webhook-outcome` of a canary.
const OUTCOME: &str = "canary";

/// How many bytes of a response body are shown.
const MAX_TEXT: usize = 200;

pub struct Canary<'a> {
    provider: &'a str,
    load: &'a Load,
    request: Request<Bytes>,
}

struct Answer {
    status: StatusCode,
    /// The value of `x-webhook-outcome`, if the header is present.
    outcome: Option<String>,
    /// The target of a redirect.
    location: Option<String>,
    text: String,
}

impl<'a> Canary<'a> {
    pub fn new<'h>(
        provider: &'a Provider,
        load: &'a Load,
        headers: impl Iterator<Item = (&'h HeaderName, &'h str)>,
    ) -> Result<Self, String> {
        let canary = TestDelivery::canary(provider).map_err(|error| error.to_string())?;
        let mut canary = canary.uri(load.to.path_and_query());
        for (name, value) in headers {
            canary = canary.header(name.clone(), value);
        }
        let request = canary.try_request().map_err(|error| error.to_string())?;
        Ok(Self {
            provider: provider.name(),
            load,
            request,
        })
    }

    pub fn run(self) -> Result<Ended, Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let (provider, to) = (self.provider, &self.load.to);
        let heading = format!("{provider} canary to {to}");
        match runtime.block_on(self.send()) {
            Ok(answer) => answer.judge(&heading),
            Err(error) if is_of_tls(&error) => Ok(Ended {
                text: format!(
                    "{heading}: no answer\n\nTLS has failed: {}\n",
                    chain(&error)
                ),
                is_right: false,
            }),
            Err(error) => Err(Failed::NotNow(format!(
                "no answer from {}: {}",
                to.authority(),
                chain(&error)
            ))),
        }
    }

    async fn send(&self) -> Result<Answer, reqwest::Error> {
        let client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .timeout(self.load.timeout())
            .user_agent(concat!(
                "idempotent-webhook-cli/",
                env!("CARGO_PKG_VERSION")
            ))
            .build()?;
        let (head, body) = self.request.clone().into_parts();
        let request = client
            .request(head.method, self.load.to.url())
            .headers(head.headers)
            .body(body);
        // An error must not show the URL, because its query may contain a secret.
        let mut response = request.send().await.map_err(reqwest::Error::without_url)?;
        let header = |name| {
            let value: Option<&http::HeaderValue> = response.headers().get(name);
            value.map(|value| visible(&String::from_utf8_lossy(value.as_bytes())))
        };
        let (outcome, location) = (header(OUTCOME_HEADER), header(LOCATION));
        let mut text = Vec::new();
        while let Some(part) = response
            .chunk()
            .await
            .map_err(reqwest::Error::without_url)?
        {
            text.extend(part.iter().take(MAX_TEXT - text.len()));
        }
        Ok(Answer {
            status: response.status(),
            outcome,
            location,
            text: visible(String::from_utf8_lossy(&text).trim_end()),
        })
    }
}

impl Answer {
    fn judge(&self, heading: &str) -> Result<Ended, Failed> {
        let is_canary = self.outcome.as_deref() == Some(OUTCOME);
        let is_right = is_canary && self.status == StatusCode::OK;
        let may_pass = is_canary || is_of_the_moment(self.status);
        let Self { status, text, .. } = self;
        let outcome = self
            .outcome
            .as_deref()
            .unwrap_or("without x-webhook-outcome");
        let mut said = format!(
            "{heading}: {} {outcome}\n\n{}\n",
            status.as_u16(),
            self.meaning()
        );
        if !text.is_empty() {
            said += &format!("The answer says: {text}\n");
        }
        match is_right || !may_pass {
            true => Ok(Ended {
                text: said,
                is_right,
            }),
            false => Err(Failed::NotNow(said.trim_end().to_owned())),
        }
    }

    fn meaning(&self) -> String {
        match (self.outcome.as_deref(), self.status) {
            (Some(OUTCOME), StatusCode::OK) => "It has reached the layer, through DNS, TLS and proxies.".to_owned(),
            (Some(OUTCOME), _) => "It has reached the layer, and the claim has failed.".to_owned(),
            (Some("rejected"), StatusCode::UNAUTHORIZED) => {
                "The layer was reached, and has refused the signature: it is configured with another secret or \
                 provider, a proxy has changed the body or the URL, or a clock is wrong. Its log shows which."
                    .to_owned()
            }
            (Some("rejected" | "failed"), _) => {
                "The layer was reached, and has refused the request. Its log shows why.".to_owned()
            }
            (Some(_), _) => {
                "The layer was reached, and has taken it for a delivery: its version does not know canaries.".to_owned()
            }
            (None, status) if status.is_redirection() => format!(
                "A redirect to {}: a provider does not follow it.",
                self.location.as_deref().unwrap_or("nowhere")
            ),
            (None, _) => {
                "It has not reached the layer: a proxy, a login or another route has answered, or the endpoint has no \
                 layer."
                    .to_owned()
            }
        }
    }
}

/// Whether the same request may soon get a different response.
fn is_of_the_moment(status: StatusCode) -> bool {
    [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ]
    .contains(&status)
}

/// Whether the server was reached but TLS failed, for example because of a certificate for another name. Sending the
/// request again does not help.
fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        cause = match error.downcast_ref::<io::Error>() {
            Some(error) if error.kind() == io::ErrorKind::InvalidData => return true,
            // `source` of an `io::Error` skips its inner error, which may be the TLS error.
            Some(error) => error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    false
}
