//! The time of signing: in a header, among the signatures, or in the JSON body.

use std::time::SystemTime;

use http::HeaderMap;
use serde_json::Value;

use super::builder::{Hmac, TimestampSource};
use super::presented::Signatures;
use crate::provider::json_path::{JsonPath, Match};
use crate::provider::signature::timestamp::{TimeFormat, TimeUnit, to_unix_time};
use crate::provider::signature::{SignError, SignatureError, UnsignedRequest, only_value};

/// A timestamp: its text, which is signed, and the time.
#[derive(Clone, Copy)]
pub(super) struct Time<'a> {
    pub(super) text: &'a str,
    pub(super) time: SystemTime,
}

impl Hmac {
    /// The timestamp in a separate header.
    pub(super) fn header_time<'a>(
        &self,
        headers: &'a HeaderMap,
    ) -> Result<Option<Time<'a>>, SignatureError> {
        let Some(TimestampSource::Header(name)) = &self.timestamp else {
            return Ok(None);
        };
        let time = self.time(only_value(headers, name)?);
        time.map(Some)
            .ok_or_else(|| SignatureError::MalformedHeader(name.clone()))
    }

    /// The timestamp in a list.
    pub(super) fn list_time<'a>(
        &'a self,
        signatures: &Signatures<'_>,
        list: &'a str,
    ) -> Result<Option<Time<'a>>, SignatureError> {
        let Some(TimestampSource::Field(prefix)) = &self.timestamp else {
            return Ok(None);
        };
        let mut items = self.items(list);
        let text = if prefix.is_empty() {
            items.next()
        } else {
            let mut found = items.filter_map(|item| item.strip_prefix(&**prefix));
            // SDKs differ in which of two timestamps they use, so two are refused.
            found.next().filter(|_| found.next().is_none())
        };
        text.and_then(|text| self.time(text))
            .map(Some)
            .ok_or_else(|| signatures.malformed())
    }

    fn time<'a>(&self, text: &'a str) -> Option<Time<'a>> {
        let time = self.time_format.parse(text)?;
        Some(Time { text, time })
    }

    /// The time in an authentic body.
    pub(super) fn body_time(&self, body: &[u8]) -> Result<Option<SystemTime>, SignatureError> {
        let Some(TimestampSource::Json { reader, .. }) = &self.timestamp else {
            return Ok(None);
        };
        let found = reader.read(body).ok().and_then(|mut matches| matches.pop());
        match found {
            Some(Match::Text(text)) => self
                .time_format
                .parse(&text)
                .map(Some)
                .ok_or(SignatureError::NoTimestamp),
            Some(Match::Nothing | Match::Boolean(_) | Match::Null | Match::Other) | None => {
                Err(SignatureError::NoTimestamp)
            }
        }
    }

    /// Writes the time of a request to be signed into its body.
    pub(super) fn write_body_time(
        &self,
        path: &JsonPath,
        time: &str,
        request: &mut UnsignedRequest,
    ) -> Result<(), SignError> {
        let unit = match self.time_format {
            TimeFormat::Unix(unit) => Some(unit),
            TimeFormat::UnixOfEitherUnit => Some(TimeUnit::Seconds),
            TimeFormat::Rfc3339 => None,
        };
        let time = match unit {
            Some(unit) => u64::try_from(to_unix_time(request.time(), unit))
                .map(Value::from)
                .map_err(|_| SignError::new("the time is too late"))?,
            None => Value::from(time),
        };
        let mut body = serde_json::from_slice(request.body())
            .map_err(|_| SignError::new("the body is not JSON, but its time is signed"))?;
        if !path.write(&mut body, time) {
            return Err(SignError::new("the body has no place for the signed time"));
        }
        request.set_body(body.to_string());
        Ok(())
    }
}
