//! The command line.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Display, Path, PathBuf};
use std::time::Duration;

use clap::{Parser, value_parser};
use idempotent_webhook::testing::TestDelivery;
use reqwest::Url;

use crate::capture::Capture;
use crate::expectation::Expectation;
use crate::message::{Fault, Message, Signed, Unsigned};
use crate::provider::Provider;

/// Sends a captured webhook again and again, signed as the provider would, and says whether
/// the endpoint takes it once.
// No `Debug`: the secret is in it.
#[derive(Parser)]
#[command(name = "replay", after_help = AFTER_HELP, max_term_width = 100)]
pub struct Arguments {
    /// Where to send it: http only. No redirect is followed, and no proxy used
    #[arg(long, value_parser = http_url)]
    url: Url,

    /// Who signs the body
    #[arg(long, required_unless_present = "capture")]
    provider: Option<Provider>,

    /// The scheme and the host that the provider calls, where it signs the URL [default: those of
    /// --url]
    #[arg(long, value_name = "URL")]
    public_url: Option<Url>,

    /// What it is signed with [default: that of the environment, WEBHOOK_SECRET]
    #[arg(long, allow_hyphen_values = true)]
    secret: Option<OsString>,

    /// The file with the body; - for standard input
    #[arg(default_value = STDIN, hide_default_value = true)]
    body: PathBuf,

    /// A captured request, to be sent as it is: needs no provider and no secret
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    capture: Option<PathBuf>,

    /// How often
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    times: u32,

    /// How many at once; with 1 the first is answered before the second is sent
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    concurrency: u32,

    /// The delivery id [default: what the body says, or a random one]
    #[arg(long)]
    id: Option<String>,

    /// The event type [default: what the body says, or "test"]
    #[arg(long, value_name = "TYPE")]
    event_type: Option<String>,

    /// Each request under an id of its own
    #[arg(long, conflicts_with = "id")]
    fresh_ids: bool,

    /// Another body than the one that was signed
    #[arg(long, group = "fault")]
    tampered: bool,

    /// Signed a year ago
    #[arg(long, group = "fault")]
    expired: bool,

    /// Without the signature
    #[arg(long, group = "fault")]
    unsigned: bool,

    /// How long to wait for each answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

const AFTER_HELP: &str = r#"Examples, with replay for "cargo run --example replay --":
  One delivery twice, the second after the first:
    read -rs WEBHOOK_SECRET; export WEBHOOK_SECRET    # typed, not in the shell's history
    replay --provider stripe --url http://127.0.0.1:3000/webhooks/stripe event.json
  Five copies at the same moment:
    replay --provider stripe --url http://... --times 5 --concurrency 5 event.json
  A body that somebody changed on the way:
    replay --provider github --url http://... --tampered push.json
  A load of different deliveries:
    replay --provider shopify --url http://... --fresh-ids --times 200 --concurrency 20 order.json
  What a log has kept:
    replay --capture request.json --url http://...

Expected, or else the exit code is 1 (it is 2 for wrong usage, or without any answer):
  the same id          every answer 2xx; of those that say an outcome at most one is
                       processed, and the rest are duplicate
  --fresh-ids          every answer 2xx, and none duplicate
  --tampered, --expired, --unsigned
                       every answer 401

A capture is a JSON object:
  {"method": "POST", "headers": {"name": "value", "other": ["v1", "v2"]}, "body": "text"}
or with "body_base64" for "body". Without a method it is a POST. All headers are sent but
Host, Content-Length and those of the connection; "Accept: */*" is added where there is no
Accept. Its signature is as old as it is, and many providers sign a time: a capture from
Stripe is good for five minutes.

A body is sent to the byte, unless the id, the event type or the time has to be written into
it, as --id does for stripe, and linear always: then it is JSON that says the same otherwise."#;

/// What is to be done.
pub struct Plan {
    pub url: Url,
    pub message: Message,
    pub expectation: Expectation,
    pub times: u32,
    pub concurrency: u32,
    pub timeout: Duration,
}

impl Arguments {
    pub fn plan(self) -> Result<Plan, String> {
        let (message, expectation) = match &self.capture {
            Some(file) => (self.captured(file)?, Expectation::Once),
            None => self.signed()?,
        };
        Ok(Plan {
            url: self.url,
            message,
            expectation,
            times: self.times,
            concurrency: self.concurrency,
            timeout: Duration::from_secs(self.timeout),
        })
    }

    fn captured(&self, file: &Path) -> Result<Message, String> {
        let for_signing = [
            ("--provider", self.provider.is_some()),
            ("--public-url", self.public_url.is_some()),
            ("--secret", self.secret.is_some()),
            ("--id", self.id.is_some()),
            ("--event-type", self.event_type.is_some()),
            ("--fresh-ids", self.fresh_ids),
            ("--tampered", self.tampered),
            ("--expired", self.expired),
            ("--unsigned", self.unsigned),
        ];
        if let Some((flag, _)) = for_signing.into_iter().find(|(_, is_given)| *is_given) {
            return Err(format!(
                "a capture is sent as it is, without signing: {flag} cannot go with --capture"
            ));
        }
        let capture =
            Capture::parse(&read(file)?).map_err(|error| format!("{}: {error}", said(file)))?;
        Ok(Message::Captured(capture))
    }

    fn signed(&self) -> Result<(Message, Expectation), String> {
        let provider = self
            .provider
            .ok_or("the provider is missing: give it with --provider")?;
        let secret = self
            .secret
            .clone()
            .or_else(|| std::env::var_os("WEBHOOK_SECRET"))
            .ok_or("the secret is missing: give it with --secret or in WEBHOOK_SECRET")?;
        let signed = Signed::new(Unsigned {
            provider,
            secret: secret.into_encoded_bytes(),
            id: self.id.clone(),
            fresh_ids: self.fresh_ids,
            event_type: self.event_type.clone(),
            body: read(&self.body)?,
            url: self.url.clone(),
            public_url: self.public_url.clone(),
            expired: self.expired,
        })?;
        let faults: [(bool, Fault); 3] = [
            (self.tampered, TestDelivery::tampered),
            (self.expired, TestDelivery::expired),
            (self.unsigned, TestDelivery::unsigned),
        ];
        Ok(match faults.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, fault)) => (
                Message::Signed(Box::new(signed.with(fault))),
                Expectation::Refused,
            ),
            None if self.fresh_ids => (
                Message::Signed(Box::new(signed)),
                Expectation::EachForItself,
            ),
            None => (Message::Signed(Box::new(signed)), Expectation::Once),
        })
    }
}

fn http_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" => Ok(url),
        "https" => Err("this example is built without TLS: http only".to_owned()),
        _ => Err("it has to start with http://".to_owned()),
    }
}

/// The whole of a file, or of standard input for `-`.
fn read(file: &Path) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let read = if file == Path::new(STDIN) {
        let mut stdin = std::io::stdin().lock();
        if stdin.is_terminal() {
            eprintln!("reading from standard input, up to ctrl-d");
        }
        stdin.read_to_end(&mut content)
    } else {
        File::open(file).and_then(|mut file| file.read_to_end(&mut content))
    };
    read.map_err(|error| format!("cannot read {}: {error}", said(file)))?;
    Ok(content)
}

const STDIN: &str = "-";

fn said(file: &Path) -> Display<'_> {
    match file == Path::new(STDIN) {
        true => Path::new("standard input").display(),
        false => file.display(),
    }
}
