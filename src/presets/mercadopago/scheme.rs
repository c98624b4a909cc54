//! Mercado Pago's signature of the query, whose `data.id` may be signed in lower case.

use std::borrow::Cow;

use http::HeaderName;
use http::request::Parts;

use super::REQUEST_ID;
use crate::provider::signature::{
    Hmac, SignError, SignatureError, SignatureScheme, Signed, SignedContent, SignedRequest,
    UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

const OBJECT: &str = "data.id";

#[derive(Debug)]
pub(super) struct MercadoPago {
    as_sent: Hmac,
    in_lower_case: Hmac,
}

impl MercadoPago {
    pub(super) fn new() -> Self {
        let id = || SignedContent::new().text("id:");
        Self {
            as_sent: signing(id().query_value(OBJECT).text(";")),
            in_lower_case: signing(id().lower_case_query_value(OBJECT).text(";")),
        }
    }
}

fn signing(object: SignedContent) -> Hmac {
    Hmac::hex(HeaderName::from_static("x-signature"))
        .prefix("v1=")
        .separator(",")
        .trimmed()
        .timestamp_field("ts=")
        .timestamp_in_seconds_or_milliseconds()
        .signed_without_body(
            SignedContent::new()
                .optional(object)
                .optional(
                    SignedContent::new()
                        .text("request-id:")
                        .header(REQUEST_ID)
                        .text(";"),
                )
                .text("ts:")
                .timestamp()
                .text(";"),
        )
}

impl SignatureScheme for MercadoPago {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.as_sent.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        match self.as_sent.verify(request, secrets) {
            Err(SignatureError::NoMatch) => self.in_lower_case.verify(request, secrets),
            result => result,
        }
    }

    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        self.as_sent.signed_content(request)
    }

    fn signed_headers(&self) -> &[HeaderName] {
        self.as_sent.signed_headers()
    }

    fn signs_body(&self) -> bool {
        self.as_sent.signs_body()
    }

    fn signs_url(&self) -> bool {
        self.as_sent.signs_url()
    }

    fn signs_time(&self) -> bool {
        self.as_sent.signs_time()
    }

    fn description(&self) -> Cow<'static, str> {
        self.as_sent.description()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        self.as_sent.check_secret(secret)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        self.as_sent.sign(request, secret)
    }
}
