//! Klaviyo's signature of the body and the text of a date.

use std::borrow::Cow;
use std::time::SystemTime;

use http::HeaderName;
use http::request::Parts;

use crate::provider::signature::timestamp::{TimeUnit, to_rfc_3339, to_unix_time};
use crate::provider::signature::{
    Hmac, SignError, SignatureError, SignatureScheme, Signed, SignedContent, SignedRequest,
    UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("klaviyo-signature");
const TIME: HeaderName = HeaderName::from_static("klaviyo-timestamp");

#[derive(Debug)]
pub(super) struct Klaviyo {
    hmac: Hmac,
}

impl Klaviyo {
    pub(super) fn new() -> Self {
        let content = SignedContent::new().body().header(TIME);
        Self {
            hmac: Hmac::hex(SIGNATURE).signed(content),
        }
    }
}

impl SignatureScheme for Klaviyo {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.hmac.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        self.hmac.verify(request, secrets)
    }

    fn signed_headers(&self) -> &[HeaderName] {
        self.hmac.signed_headers()
    }

    fn description(&self) -> Cow<'static, str> {
        self.hmac.description()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        self.hmac.check_secret(secret)
    }

    /// If the request already has a date, it stays.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        if !request.headers().contains_key(TIME) {
            request.insert_header(TIME, http_date(request.time()))?;
        }
        self.hmac.sign(request, secret)
    }
}

/// A date such as `Thu, 04 Jan 2024 18:05:25 GMT`.
fn http_date(time: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let date = to_rfc_3339(time);
    let part = |range| date.get(range).unwrap_or_default();
    // Day 0, 1970-01-01, was a Thursday.
    let day = to_unix_time(time, TimeUnit::Seconds) / 86_400 % 7;
    let day = usize::try_from(day).ok().and_then(|day| DAYS.get(day));
    let month = part(5..7).parse::<usize>().ok();
    let month = month.and_then(|month| MONTHS.get(month.checked_sub(1)?));
    format!(
        "{}, {} {} {} {} GMT",
        day.unwrap_or(&""),
        part(8..10),
        month.unwrap_or(&""),
        part(0..4),
        part(11..19)
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_date_is_written_as_in_http() {
        for (seconds, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (1_704_391_525, "Thu, 04 Jan 2024 18:05:25 GMT"),
            (1_750_000_000, "Sun, 15 Jun 2025 15:06:40 GMT"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(http_date(time), date);
        }
    }
}
