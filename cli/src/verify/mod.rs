//! `webhook verify`: explains why a request is answered with 401.

mod case;
mod json;
mod mistakes;
mod report;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use http::header::HOST;
use idempotent_webhook::provider::PublicUrl;

use self::case::Case;
use self::report::Report;
use crate::input;
use crate::preset::Provider;
use crate::secret::{Masked, SecretArguments};
use crate::visible::visible;
use crate::{Ended, Failed};

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Verify {
    /// The provider that has sent the request: "webhook providers" lists them
    provider: Provider,

    /// The file with the captured request; - for standard input
    capture: PathBuf,

    #[command(flatten)]
    secret: SecretArguments,

    /// The URL that the provider calls, without the path, if it signs the URL [default: https:// and the Host header of
    /// the capture]
    #[arg(long, value_name = "URL", value_parser = public_url)]
    public_url: Option<String>,

    /// When the request arrived: a date such as 2026-01-31T12:00:00Z, or Unix seconds [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<SystemTime>,
}

const AFTER_HELP: &str = "A capture is a raw HTTP request: the request line, the headers, an empty line, and the \
body byte for byte, up to the end of the file.

The command shows at which step the request fails, and the signed content. Then it undoes each of the usual mistakes, \
verifies again, and names the mistake whose correction makes the request valid. It never shows the secret.";

fn public_url(text: &str) -> Result<String, String> {
    let parsed = text.parse::<PublicUrl>();
    parsed.map_err(|error| error.to_string())?;
    Ok(text.trim_end_matches('/').to_owned())
}

fn time(text: &str) -> Result<SystemTime, String> {
    if let Ok(seconds) = text.parse() {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        return time.ok_or_else(|| "it is too late".to_owned());
    }
    humantime::parse_rfc3339_weak(text).map_err(|error| error.to_string())
}

impl Verify {
    pub fn run(self) -> Result<Ended, Failed> {
        if self.secret.is_stdin() && input::is_stdin(&self.capture) {
            return Err("standard input cannot be both the secret and the capture".into());
        }
        let secret = self.secret.read()?;
        let capture = input::read_capture(&self.capture)?;
        if let Some(name) = capture.provider() {
            return Err(format!(
                "the file was recorded for {}, with pseudonyms and without a signature, so there is no signature to \
                 verify: \"webhook replay\" signs the request again",
                visible(name)
            )
            .into());
        }
        let remark = capture.remark().map(str::to_owned);
        let (head, body) = capture.into_received().into_parts();
        let mut case = Case {
            provider: self.provider,
            secret,
            public_url: self.public_url,
            head,
            body,
            at: self.at.unwrap_or_else(SystemTime::now),
        };
        let preset = case.preset().map_err(|failure| failure.reason)?;
        let is_assumed = case.public_url.is_none() && preset.signs_url();
        if is_assumed {
            case.public_url = base_of_host(&case);
        }
        let report = Report {
            // Read again, because the public URL may have been set above.
            preset: case.preset().map_err(|failure| failure.reason)?,
            masked: masked(&case),
            case,
            is_assumed,
            remark,
        };
        report.ended()
    }
}

/// The base URL, from the host that the request was sent to.
fn base_of_host(case: &Case) -> Option<String> {
    let host = case.head.headers.get(HOST)?.to_str().ok()?;
    Some(format!("https://{host}"))
}

/// The texts to hide: the secret, and the user name and password in the URL.
fn masked(case: &Case) -> Masked {
    let user = case.public_url.as_deref().and_then(|url| {
        let (_, rest) = url.split_once("://")?;
        Some(rest.rsplit_once('@')?.0.as_bytes())
    });
    Masked::new(std::iter::once(&*case.secret).chain(user))
}
