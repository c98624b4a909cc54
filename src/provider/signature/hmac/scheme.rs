//! Verifying and signing requests.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

use super::builder::{Hmac, Place, TimestampSource};
use super::time::Time;
use crate::provider::signature::mac::{ExpectedMac, MacBuilder};
use crate::provider::signature::signed_content::Values;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, SecretError, Secrets};

impl Hmac {
    fn check_required(&self, headers: &HeaderMap) -> Result<(), SignatureError> {
        for (name, required) in &self.required_headers {
            if only_value(headers, name)?.as_bytes() != required.as_bytes() {
                return Err(SignatureError::MalformedHeader(name.clone()));
            }
        }
        Ok(())
    }

    fn mac(&self, key: &[u8], values: &Values<'_>) -> Result<ExpectedMac, SignatureError> {
        let mut mac = MacBuilder::new(self.hash, key);
        self.content.feed(values, &mut |part| mac.update(part))?;
        Ok(mac.finish())
    }

    /// The values of the content's parts. `url` comes from `url_of`.
    fn values<'a>(
        &self,
        request: &SignedRequest<'a>,
        timestamp: &'a str,
        url: &'a str,
    ) -> Result<Values<'a>, SignatureError> {
        Ok(Values {
            timestamp,
            id: self.id(request.headers())?,
            body: request.body(),
            method: request.method(),
            headers: request.headers(),
            path_and_query: match self.signs_path {
                true => request.path_and_query(),
                false => "",
            },
            url,
        })
    }

    /// The URL. Empty if it is not signed.
    fn url_of(&self, request: &SignedRequest<'_>) -> Result<String, SignatureError> {
        match self.signs_url {
            true => request.url(),
            false => Ok(String::new()),
        }
    }

    /// The delivery id in its header. Empty if it is not signed.
    fn id<'a>(&self, headers: &'a HeaderMap) -> Result<&'a str, SignatureError> {
        match &self.id {
            Some(name) => only_value(headers, name),
            None => Ok(""),
        }
    }
}

impl SignatureScheme for Hmac {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.check_required(&head.headers)?;
        self.header_time(&head.headers)?;
        self.id(&head.headers)?;
        let signatures = self.signatures(&head.headers)?;
        let mut lists = self.lists(&signatures);
        if !lists.any(|list| self.candidates(list).next().is_some()) {
            return Err(signatures.malformed());
        }
        for list in self.lists(&signatures) {
            self.list_time(&signatures, list)?;
        }
        Ok(())
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let headers = request.headers();
        self.check_required(headers)?;
        let signatures = self.signatures(headers)?;
        let header_time = self.header_time(headers)?;
        let url = self.url_of(request)?;
        let timestamp = header_time.map_or("", |time| time.text);
        let values = self.values(request, timestamp, &url)?;
        let mut is_well_formed = false;
        let mut unusable = false;
        for secret in secrets.iter() {
            let Some(key) = self.key.of(secret) else {
                unusable = true;
                continue;
            };
            let mut expected = None;
            for list in self.lists(&signatures) {
                let list_time = self.list_time(&signatures, list)?;
                let mac = match (list_time, &expected) {
                    (None, Some(mac)) => mac,
                    (Some(Time { text, .. }), _) => {
                        let timestamp = text;
                        let values = Values {
                            timestamp,
                            ..values
                        };
                        expected.insert(self.mac(&key, &values)?)
                    }
                    (None, None) => expected.insert(self.mac(&key, &values)?),
                };
                for presented in self.candidates(list) {
                    is_well_formed = true;
                    if mac.matches(presented.as_bytes()) {
                        let time = list_time.or(header_time).map(|time| time.time);
                        let time = match time {
                            Some(time) => Some(time),
                            None => self.body_time(request.body())?,
                        };
                        return Ok(time.map_or_else(Signed::new, |time| Signed::new().at(time)));
                    }
                }
            }
        }
        Err(if unusable {
            SignatureError::UnusableSecret
        } else if is_well_formed {
            SignatureError::NoMatch
        } else {
            signatures.malformed()
        })
    }

    /// If the header has several lists, this returns the content for the first list.
    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        let signatures = self.signatures(request.headers())?;
        let list_time = match self.lists(&signatures).next() {
            Some(list) => self.list_time(&signatures, list)?,
            None => None,
        };
        let time = match list_time {
            Some(time) => Some(time),
            None => self.header_time(request.headers())?,
        };
        let url = self.url_of(request)?;
        let values = self.values(request, time.map_or("", |time| time.text), &url)?;
        let mut content = Vec::new();
        self.content
            .feed(&values, &mut |part| content.extend_from_slice(part))?;
        Ok(Some(content))
    }

    fn signed_headers(&self) -> &[HeaderName] {
        &self.signed_headers
    }

    fn signs_body(&self) -> bool {
        self.signs_body
    }

    fn signs_url(&self) -> bool {
        self.signs_url
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        self.key.check(secret)?;
        self.secret_check.map_or(Ok(()), |check| check(secret))
    }

    fn signs_time(&self) -> bool {
        self.timestamp.is_some()
    }

    fn description(&self) -> Cow<'static, str> {
        let place = match &self.place {
            Place::First(names) | Place::Every(names) => {
                names.first().map_or("", HeaderName::as_str)
            }
            Place::Numbered(name) => name.as_str(),
        };
        let (hash, encoding) = (self.hash.name(), self.encoding.name());
        format!("HMAC-{hash} in {encoding}, `{place}`").into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        for (name, value) in &self.required_headers {
            request.insert_header(name.clone(), value)?;
        }
        let mut time = self.time_format.format(request.time());
        if let Some(TimestampSource::Header(name)) = &self.timestamp {
            // A date can be written in many ways, so keep a header that already has this time.
            match only_value(request.headers(), name) {
                Ok(text) if self.time_format.parse(text) == Some(request.time()) => {
                    time = text.to_owned();
                }
                Ok(_) | Err(_) => request.insert_header(name.clone(), &time)?,
            }
        }
        if let Some(TimestampSource::Json { path, .. }) = &self.timestamp
            && self.body_time(request.body()).ok().flatten() != self.time_format.parse(&time)
        {
            self.write_body_time(path, &time, request)?;
        }
        let key = self
            .key
            .of(secret)
            .ok_or(SignError::new("the secret is not one that signs"))?;
        let url = match self.signs_url {
            true => request.url()?,
            false => String::new(),
        };
        let values = Values {
            timestamp: &time,
            id: self
                .id(request.headers())
                .map_err(|_| SignError::new("the header with the signed id is missing"))?,
            body: request.body(),
            method: request.method(),
            headers: request.headers(),
            path_and_query: request.path_and_query(),
            url: &url,
        };
        let mac = self
            .mac(&key, &values)
            .map_err(|_| SignError::new("the request lacks a part that is signed"))?;
        let mut value = String::new();
        if let Some(TimestampSource::Field(prefix)) = &self.timestamp {
            value.extend([prefix, &*time, &self.separator]);
        }
        value.push_str(&self.prefix);
        value.push_str(&self.encoding.encode(&mac.into_bytes()));
        let name = match &self.place {
            Place::First(names) | Place::Every(names) => names.first().cloned(),
            Place::Numbered(name) => format!("{name}-1").parse().ok(),
        };
        let name = name.ok_or(SignError::new("the scheme names no header"))?;
        request.insert_header(name, value)
    }
}
