//! The report about a request.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use idempotent_webhook::Provider as Preset;
use idempotent_webhook::provider::Verified;
use idempotent_webhook::testing::TestDelivery;

use super::case::{Case, Failure, Step};
use super::mistakes;
use crate::secret::Masked;
use crate::{Ended, Failed};

/// How many characters of the signed content are shown.
const MAX_SHOWN: usize = 1000;

const MAX_LINE: usize = 100;

pub struct Report {
    pub case: Case,
    pub preset: Preset,
    pub masked: Masked,
    /// Whether the URL that the provider calls is assumed, because the user has not given it.
    pub is_assumed: bool,
    /// The remark about the capture's length, if there is one.
    pub remark: Option<String>,
}

impl Report {
    pub fn ended(&self) -> Result<Ended, Failed> {
        let judged = self.case.judge();
        if let Err(Failure {
            step: Step::Key, ..
        }) = judged
        {
            return Err(format!(
                "the keys of {} must be fetched, which this command does not do: the application fetches them with \
                 `Provider::keys`",
                self.case.provider
            )
            .into());
        }
        let mut text = String::new();
        let written = self.write(&mut text, &judged);
        written.map_err(|error| error.to_string())?;
        Ok(Ended {
            text,
            is_right: judged.is_ok(),
        })
    }

    fn show(&self, text: &str) -> String {
        self.masked.show(text.as_bytes(), MAX_SHOWN)
    }

    fn write(&self, text: &mut String, judged: &Result<Verified, Failure>) -> std::fmt::Result {
        self.write_request(text)?;
        self.write_steps(text, judged)?;
        let failure = match judged {
            Ok(Verified::Handshake(_)) => {
                return writeln!(text, "\nIt is a handshake, and gets an answer.");
            }
            Ok(_) => return writeln!(text, "\nIt verifies."),
            Err(failure) => failure,
        };
        match failure.step {
            Step::Method | Step::Key => Ok(()),
            Step::Time => self.write_time(text, failure),
            Step::Id => writeln!(
                text,
                "\nThe signature is right. The delivery id is: {}.",
                self.preset.description().delivery_id
            ),
            step => {
                for remark in remarks(step, &self.case.head, &self.case.body) {
                    writeln!(text, "\n{}", wrapped(remark))?;
                }
                if self.case.body.is_empty() && self.preset.signs_body() {
                    return Ok(());
                }
                self.write_signed(text)?;
                if step == Step::Headers {
                    self.write_headers(text)?;
                }
                self.write_mistake(text, step)
            }
        }
    }

    fn write_request(&self, text: &mut String) -> std::fmt::Result {
        let Case { head, body, .. } = &self.case;
        // The query is shown only if it is signed, because another query may contain a token.
        let path = match self.preset.signs_url() {
            true => head.uri.path_and_query().map_or("/", PathAndQuery::as_str),
            false => head.uri.path(),
        };
        writeln!(
            text,
            "{}: {}\n{} {}, a body of {} bytes{}",
            self.case.provider,
            self.preset.description().signature.replace('`', ""),
            head.method,
            self.show(path),
            body.len(),
            ending(body),
        )?;
        let url = self.case.public_url.as_ref();
        if let Some(url) = url.filter(|_| self.preset.signs_url()) {
            let url = self.show(url);
            let assumed = match self.is_assumed {
                true => " (from the header Host; set another one with --public-url)",
                false => "",
            };
            writeln!(text, "the provider calls {url} and that path{assumed}")?;
        }
        if let Some(remark) = &self.remark {
            writeln!(text, "{remark}")?;
        }
        writeln!(text)
    }

    fn write_steps(
        &self,
        text: &mut String,
        judged: &Result<Verified, Failure>,
    ) -> std::fmt::Result {
        let failed = judged.as_ref().err();
        let delivery = judged.as_ref().ok().and_then(Verified::delivery);
        for step in Step::ALL {
            let name = step.name();
            if let Some(failure) = failed.filter(|failure| failure.step.name() == name) {
                return writeln!(text, "{name:<9}  FAILS: {}", failure.reason);
            }
            let detail = match (step, delivery) {
                (Step::Time, _) if !self.preset.signs_time() => ", none is signed".to_owned(),
                (Step::Time, Some(delivery)) => {
                    let at = delivery.signed_at();
                    at.map_or_else(String::new, |at| format!(", signed at {}", date(at)))
                }
                (Step::Id, Some(delivery)) => {
                    let event_type = delivery.event_type();
                    let event_type =
                        event_type.map(|name| format!(", event type {}", self.show(name)));
                    let id = self.show(delivery.id().as_str());
                    format!(", {id}{}", event_type.unwrap_or_default())
                }
                _ => String::new(),
            };
            writeln!(text, "{name:<9}  ok{detail}")?;
        }
        Ok(())
    }

    fn write_signed(&self, text: &mut String) -> std::fmt::Result {
        if let Ok(Some(content)) = self.preset.signed_content(&self.case.head, &self.case.body) {
            let length = content.len();
            let shown = self.masked.show(&content, MAX_SHOWN);
            writeln!(text, "\nWhat is signed, {length} bytes:\n  {shown}")?;
        }
        Ok(())
    }

    /// Writes which of the provider's headers are present.
    fn write_headers(&self, text: &mut String) -> std::fmt::Result {
        let sample = TestDelivery::new(&self.preset).try_request::<bytes::Bytes>();
        let Ok(sample) = sample else {
            return Ok(());
        };
        writeln!(text, "\nThe headers of the provider:")?;
        for name in sample.headers().keys().filter(|name| *name != CONTENT_TYPE) {
            let is_there = match self.case.head.headers.contains_key(name) {
                true => "there",
                false => "missing",
            };
            writeln!(text, "  {name}: {is_there}")?;
        }
        Ok(())
    }

    fn write_mistake(&self, text: &mut String, step: Step) -> std::fmt::Result {
        let Some(mistake) = mistakes::find(&self.case) else {
            let provider = self.case.provider;
            let cause = match step {
                Step::Headers => format!(
                    " A proxy, or the tool that took the capture, has dropped or changed headers, or the request is \
                     not from {provider}."
                ),
                Step::Secret | Step::Signature => {
                    let url = match self.preset.signs_url() {
                        true => "the provider calls another URL, ",
                        false => "",
                    };
                    format!(
                        " It is another secret (of another endpoint, of test instead of live mode, or one that was \
                         replaced), {url}the request was changed in another way, or it is not from {provider}."
                    )
                }
                _ => String::new(),
            };
            let said = format!("None of the usual mistakes makes it right.{cause}");
            return writeln!(text, "\n{}", wrapped(&said));
        };
        let change = self.show(&mistake.change);
        let (change, cure) = (format!("It verifies if {change}."), wrapped(&mistake.cure));
        writeln!(text, "\n{}\n{cure}", wrapped(&change))?;
        if let Err(next) = mistake.case.judge() {
            writeln!(
                text,
                "\nThen the {} fails: {}",
                next.step.name(),
                next.reason
            )?;
        }
        Ok(())
    }

    fn write_time(&self, text: &mut String, failure: &Failure) -> std::fmt::Result {
        writeln!(text, "\nThe signature is right.")?;
        let Some(at) = failure.valid_at else {
            return Ok(());
        };
        let then = Case {
            at,
            ..self.case.clone()
        };
        if then.judge().is_ok() {
            let off = at.duration_since(self.case.at);
            let off = off.unwrap_or_else(|error| error.duration()).as_secs();
            let off = Duration::from_secs(off);
            let (date, off) = (date(at), humantime::format_duration(off));
            let said = format!(
                "It verifies at {date} (--at {date}), which is {off} away. If the request was sent just now, a clock \
                 is wrong by that much: compare this machine's clock with a time server. If it is an old capture, give \
                 the time of receipt with --at, or let \"webhook replay\" sign it again."
            );
            writeln!(text, "{}", wrapped(&said))?;
        }
        Ok(())
    }
}

/// Problems that can be seen without the secret.
fn remarks(step: Step, head: &Parts, body: &[u8]) -> impl Iterator<Item = &'static str> {
    let starts = |value: Option<&HeaderValue>, start: &str| {
        value.is_some_and(|value| value.as_bytes().starts_with(start.as_bytes()))
    };
    let is_json = starts(head.headers.get(CONTENT_TYPE), "application/json");
    let is_gzip = body.starts_with(&[0x1f, 0x8b]);
    let is_text = std::str::from_utf8(body).is_ok();
    let has_sha1 = head
        .headers
        .values()
        .any(|value| starts(Some(value), "sha1="));
    let remarks = [
        (
            body.is_empty() && head.method == Method::POST,
            "The body is empty, which no provider sends with POST: a middleware has read it before the verification, \
             or the capture ends before it.",
        ),
        (
            is_gzip,
            "The body is compressed with gzip. A sender that signs before it compresses has signed the content: \
             decompress it before the verification.",
        ),
        (
            is_json && !is_gzip && !is_text,
            "The body is JSON by its type, but not in UTF-8: it was read as text in another character set.",
        ),
        (
            is_json && is_text && !body.is_empty() && !is_json_text(body),
            "The body is JSON by its type, but not complete JSON: it was cut off, or changed.",
        ),
        (
            step == Step::Headers && has_sha1,
            "It only has the older signature, with SHA-1, which is not checked: the sender is old, or something in \
             between drops the newer signature.",
        ),
    ];
    let made = remarks.into_iter().filter(|(is_made, _)| *is_made);
    made.map(|(_, remark)| remark)
}

fn is_json_text(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

/// The last bytes of a body, with escapes, because line breaks at the end would not be visible.
fn ending(body: &[u8]) -> String {
    let last = body.len().saturating_sub(2);
    match body.get(last..) {
        None | Some([]) => String::new(),
        Some(bytes) => {
            let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!(", the last of which are {}", bytes.join(" "))
        }
    }
}

/// Breaks a text into lines that fit into a terminal.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        if length + word.len() > MAX_LINE {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
        }
        lines.push_str(word);
        length += word.len() + 1;
    }
    lines
}

fn date(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
