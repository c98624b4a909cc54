//! `webhook replay`.

use std::path::PathBuf;

use clap::Args;
use idempotent_webhook::Secret;
use idempotent_webhook::provider::PublicUrl;
use idempotent_webhook::testing::Capture;

use crate::expectation::Expectation;
use crate::input;
use crate::load::Load;
use crate::message::Message;
use crate::plan::Plan;
use crate::preset::Provider;
use crate::secret::SecretArguments;
use crate::visible::visible;
use crate::{Ended, Failed};

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Replay {
    /// The file with the captured request; - for standard input
    capture: PathBuf,

    #[command(flatten)]
    load: Load,

    /// Sign the request again as this provider, because the captured signature may be too old [default: the provider
    /// that "webhook record" has written to the file; a file without a provider is sent unchanged]
    #[arg(long)]
    provider: Option<Provider>,

    #[command(flatten)]
    secret: SecretArguments,

    /// The URL that the provider calls, without the path, if it signs the URL [default: from --to]
    #[arg(long, value_name = "URL")]
    public_url: Option<PublicUrl>,
}

const AFTER_HELP: &str = "A capture is a raw HTTP request: the request line, the headers, an empty line, and the \
body. All of it is sent, except Host, Content-Length and the headers of the original connection. Without a path in \
--to, the request is sent to the path of the capture.

The exit status is 1 unless every answer is 2xx and at most one of them has the outcome \"processed\".";

impl Replay {
    pub fn run(self) -> Result<Ended, Failed> {
        if self.secret.is_stdin() && input::is_stdin(&self.capture) {
            return Err("standard input cannot be both the secret and the capture".into());
        }
        let capture = input::read_capture(&self.capture)?;
        let provider = match self.provider {
            Some(provider) => Some(provider),
            None => recorded_of(&capture)?,
        };
        if provider.is_none() && (self.secret.is_given() || self.public_url.is_some()) {
            return Err(
                "a capture is sent unchanged, unless --provider names the provider that signs it again"
                    .into(),
            );
        }
        let mut load = self.load;
        load.to = load.to.with_default_path(capture.uri());
        let mut request = capture.into_request();
        *request.uri_mut() = load
            .to
            .path_and_query()
            .parse()
            .map_err(|_| "the path is not valid")?;
        let message = match provider {
            None => Message::Captured(request),
            Some(provider) => {
                let secret = Secret::exact(self.secret.read()?);
                let secret = secret.map_err(|error| error.to_string())?;
                let public_url = match self.public_url {
                    Some(url) => url,
                    None => format!("http://{}", load.to.authority())
                        .parse()
                        .map_err(|error| format!("--to: {error}"))?,
                };
                let provider = provider.with(secret.clone()).public_url(public_url);
                provider
                    .check_secrets()
                    .map_err(|error| error.to_string())?;
                Message::SignedAnew {
                    request,
                    provider: Box::new(provider),
                    secret,
                }
            }
        };
        Plan {
            load,
            message,
            expectation: Expectation::Once,
        }
        .run()
    }
}

/// The provider that a file of `webhook record` names. A recorded file has no signature, because its pseudonyms would
/// make the signature invalid.
fn recorded_of(capture: &Capture) -> Result<Option<Provider>, String> {
    let Some(name) = capture.provider() else {
        return Ok(None);
    };
    let provider = name.parse().map_err(|_| {
        let name = visible(name);
        format!("the file was recorded for {name}, which is not a preset: name one with --provider")
    });
    provider.map(Some)
}
