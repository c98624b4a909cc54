//! `webhook send`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use http::{HeaderName, HeaderValue};
use idempotent_webhook::provider::PublicUrl;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider as Preset, Secret, Source};
use serde_json::Value;

use crate::canary::Canary;
use crate::expectation::Expectation;
use crate::input;
use crate::load::Load;
use crate::message::{Id, Message, random_id};
use crate::plan::Plan;
use crate::preset::Provider;
use crate::secret::SecretArguments;
use crate::{Ended, Failed};

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Send {
    /// The provider whose signature the delivery gets: "webhook providers" lists them
    provider: Provider,

    #[command(flatten)]
    load: Load,

    #[command(flatten)]
    secret: SecretArguments,

    /// The event type [default: from the body, or "test"]
    #[arg(long, value_name = "TYPE", value_parser = text_of_header)]
    event: Option<String>,

    /// The delivery id [default: from the body, or a random one]
    #[arg(long, value_parser = text_of_header)]
    id: Option<String>,

    /// The file with the body; - for standard input [default: JSON with the members that the preset reads]
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,

    /// An additional header, or a Content-Type other than application/json
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<Header>,

    /// Give each request its own delivery id
    #[arg(long, conflicts_with = "id")]
    distinct: bool,

    /// The URL that the provider calls, without the path, if it signs the URL [default: from --to]
    #[arg(long, value_name = "URL")]
    public_url: Option<PublicUrl>,

    /// Send a canary: a request that shows, without a delivery, that the layer can be reached and can claim. It can
    /// also be sent over https:// and to another machine
    #[arg(long, conflicts_with_all = ["event", "id", "body", "distinct", "times", "concurrency", "fault"])]
    canary: bool,

    /// Send a different body from the signed one
    #[arg(long, group = "fault")]
    tampered: bool,

    /// Send a request that was signed a year ago
    #[arg(long, group = "fault")]
    expired: bool,

    /// Send the request without its signature
    #[arg(long, group = "fault")]
    unsigned: bool,
}

const AFTER_HELP: &str = r#"Examples:
  One delivery twice, the second after the first:
    webhook send stripe --to http://127.0.0.1:3000/webhooks/stripe --event invoice.paid --times 2
  Five copies at the same moment:
    webhook send stripe --to http://... --body event.json --times 5 --concurrency 5
  A body that somebody changed on the way:
    webhook send github --to http://... --body push.json --tampered
  A load of different deliveries:
    webhook send shopify --to http://... --body order.json --distinct --times 200 --concurrency 20

  Check whether an endpoint can be reached from here, through DNS, TLS and proxies, and reaches its Postgres:
    webhook send stripe --to https://example.com/webhooks/stripe --canary

The exit status is 1, unless the answers are as expected:
  the same id   every answer 2xx, and at most one of them processed
  --distinct    every answer 2xx, and none of them duplicate
  --tampered, --expired, --unsigned
                every answer 401
  --canary      a 200 from the layer itself

A body is sent byte for byte, unless the id, the event type or the time must be written into it:
with --id for stripe, and always for linear. Then the JSON is written again, with the same content."#;

#[derive(Clone)]
struct Header(HeaderName, String);

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').ok_or("it has no colon")?;
        let name = name.trim().parse().map_err(|_| "it has no usable name")?;
        Ok(Self(name, text_of_header(value.trim())?))
    }
}

fn text_of_header(text: &str) -> Result<String, String> {
    match !text.is_empty() && HeaderValue::try_from(text).is_ok() {
        true => Ok(text.to_owned()),
        false => Err("it would not fit in a header".to_owned()),
    }
}

impl Send {
    pub fn run(self) -> Result<Ended, Failed> {
        if self.secret.is_stdin() && self.body.as_deref().is_some_and(input::is_stdin) {
            return Err("standard input cannot be both the secret and the body".into());
        }
        if self.canary {
            let preset = self.preset()?;
            let headers = self
                .headers
                .iter()
                .map(|Header(name, value)| (name, &**value));
            let canary = Canary::new(&preset, &self.load, headers)?;
            return canary.run();
        }
        let (message, expectation) = self.message()?;
        let load = self.load;
        Plan {
            load,
            message,
            expectation,
        }
        .run()
    }

    fn message(&self) -> Result<(Message, Expectation), String> {
        let body = self.body.as_deref().map(input::read).transpose()?;
        let preset = self.preset()?;
        let said = said_id(&preset, body.as_deref());
        let is_asked_for = self.distinct || self.id.is_some();
        let is_written =
            is_asked_for || said.is_none() && has_place(preset.description().delivery_id);
        self.check_writable(&preset, body.as_deref(), is_written)?;

        let mut delivery = TestDelivery::new(&preset).uri(self.load.to.path_and_query());
        if let Some(body) = body {
            delivery = delivery.body(body);
        }
        for Header(name, value) in &self.headers {
            delivery = delivery.header(name.clone(), value);
        }
        if let Some(event_type) = &self.event {
            delivery = delivery.event_type(event_type);
        }
        let id = if self.distinct {
            Id::Distinct
        } else if !is_written && said.is_none() {
            Id::OfBody
        } else {
            let id = self.id.clone().or(said).unwrap_or_else(random_id);
            if is_written {
                delivery = delivery.id(id.clone());
            }
            Id::Same(id)
        };
        if self.expired && !preset.signs_time() {
            let provider = self.provider;
            return Err(format!(
                "{provider} signs no time, so its requests do not expire"
            ));
        }
        let (delivery, expectation) = if self.tampered {
            (delivery.tampered(), Expectation::Refused)
        } else if self.expired {
            (delivery.expired(), Expectation::Refused)
        } else if self.unsigned {
            (delivery.unsigned(), Expectation::Refused)
        } else if self.distinct {
            (delivery, Expectation::EachForItself)
        } else {
            (delivery, Expectation::Once)
        };
        let message = Message::Delivery {
            provider: self.provider.name(),
            delivery: Box::new(delivery),
            id,
        };
        Ok((message, expectation))
    }

    fn preset(&self) -> Result<Preset, String> {
        let secret = Secret::exact(self.secret.read()?).map_err(|error| error.to_string())?;
        let public_url = match &self.public_url {
            Some(url) => url.clone(),
            None => self
                .load
                .to
                .origin()
                .parse()
                .map_err(|error| format!("--to: {error}"))?,
        };
        let preset = self.provider.with(secret).public_url(public_url);
        preset.check_secrets().map_err(|error| error.to_string())?;
        Ok(preset)
    }

    /// Checks that the values that must be in the body can be written into it.
    fn check_writable(
        &self,
        preset: &Preset,
        body: Option<&[u8]>,
        writes_id: bool,
    ) -> Result<(), String> {
        let Some(body) = body.filter(|body| !json(body).is_object()) else {
            return Ok(());
        };
        let description = preset.description();
        let id_is_in_body = description.delivery_id.json_path().is_some();
        let type_is_in_body = description.event_type.and_then(Source::json_path).is_some();
        let what = if writes_id && id_is_in_body {
            "id"
        } else if self.event.is_some() && type_is_in_body {
            "event type"
        } else {
            return Ok(());
        };
        let provider = self.provider;
        let length = body.len();
        Err(format!(
            "{provider} has the {what} in the body, and this body of {length} bytes is not a JSON object"
        ))
    }
}

/// Whether a value can be written to this source. A digest, for example, cannot be written.
fn has_place(source: &Source) -> bool {
    source.json_path().is_some() || source.header_name().is_some()
}

fn said_id(preset: &Preset, body: Option<&[u8]>) -> Option<String> {
    let path = preset.description().delivery_id.json_path()?;
    match json(body?).pointer(&path.pointer())? {
        Value::Null => None,
        Value::String(id) => Some(id.clone()),
        other => Some(other.to_string()),
    }
}

fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}
