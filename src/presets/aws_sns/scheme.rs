//! The signature in an SNS message.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderName;
use serde_json::{Value, json};

use super::is_confirmation_url;
use super::message::{Kind, Message};
use super::topic::SnsTopic;
use crate::provider::digest::sha256_hex;
use crate::provider::keys::{KeyRequest, is_https_at};
use crate::provider::signature::timestamp::TimeFormat;
use crate::provider::signature::{
    CertificateError, SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed,
    SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, SecretError, Secrets};

/// The name of the signed id.
pub(super) const ID: &str = "MessageId";

const TYPE: HeaderName = HeaderName::from_static("x-amz-sns-message-type");

/// AWS's partitions and their domains.
const PARTITIONS: [(&str, &str); 4] = [
    ("aws", "amazonaws.com"),
    ("aws-us-gov", "amazonaws.com"),
    ("aws-cn", "amazonaws.com.cn"),
    ("aws-eusc", "amazonaws.eu"),
];

#[derive(Debug)]
pub(super) struct AwsSns;

/// Whether a host is the SNS host in the region of a topic, such as `sns.us-east-1.amazonaws.com`. With any other
/// region, the host could belong to something else: `sns.s3-us-west-2.amazonaws.com` is an S3 bucket.
pub(super) fn is_sns(host: &str, topic: &str) -> bool {
    host_of(topic).is_some_and(|known| known == host)
}

/// `sns.<region>.<domain of the partition>`.
pub(super) fn host_of(topic: &str) -> Option<String> {
    let mut parts = topic.split(':').skip(1);
    let partition = parts.next()?;
    let region = parts.nth(1).filter(|region| !region.is_empty())?;
    let (_, domain) = PARTITIONS.iter().find(|(name, _)| *name == partition)?;
    Some(format!("sns.{region}.{domain}"))
}

/// Whether a path is the path of a certificate. The host's other paths belong to the SNS API, and a caller can make the
/// API answer with a text of the caller's choice.
fn is_certificate(path: &str) -> bool {
    let name = path
        .strip_prefix("/SimpleNotificationService-")
        .and_then(|rest| rest.strip_suffix(".pem"));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_hexdigit()))
}

/// Whether the name of a certificate belongs to SNS: `sns.amazonaws.com`,
/// `sns-signing.<region>.amazonaws.com`.
fn is_name(name: &str) -> bool {
    let domain = name.split_once('.').map(|(_, domain)| domain);
    let is_known = |domain: &str| {
        PARTITIONS.iter().any(|(_, known)| {
            domain == *known
                || domain
                    .strip_suffix(known)
                    .is_some_and(|rest| rest.ends_with('.'))
        })
    };
    (name.starts_with("sns.") || name.starts_with("sns-")) && domain.is_some_and(is_known)
}

impl SignatureScheme for AwsSns {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let message = Message::read(request.body()).ok_or(SignatureError::MalformedBody)?;
        let topic = &message.topic_arn.0;
        let is_ours = |secret: &Secret| secret.expose() == topic.as_bytes();
        if !secrets.iter().any(is_ours) {
            return Err(SignatureError::NotForUs("another topic"));
        }
        let is_known = |host: &str, path: &str| is_sns(host, topic) && is_certificate(path);
        if !is_https_at(&message.certificate.0, is_known) {
            return Err(SignatureError::NotForUs(
                "its certificate is not at SNS's address in the region of the topic",
            ));
        }
        let content = message.content().ok_or(SignatureError::MalformedBody)?;
        let time = TimeFormat::Rfc3339.parse(&message.timestamp.0);
        let time = time.ok_or(SignatureError::MalformedBody)?;
        let signature = message.signature().ok_or(SignatureError::MalformedBody)?;
        let at = KeyRequest::get(message.certificate.0.clone()).one_key();
        let keys = request.keys(&at, None)?;
        let certificate = keys
            .certificates()
            .first()
            .ok_or(CertificateError::Malformed)?;
        certificate.check(time, is_name)?;
        let key = certificate.key().ok_or(CertificateError::Malformed)?;
        if !key.verify(message.algorithm(), content.as_bytes(), &signature) {
            return Err(request.no_match_of_key_at(&at));
        }
        if only_value(request.headers(), &TYPE).is_ok_and(|kind| kind != message.kind.name()) {
            return Err(SignatureError::MalformedHeader(TYPE));
        }
        match &message.subscribe_url {
            Some(url)
                if message.kind != Kind::Notification && !is_confirmation_url(&url.0, topic) =>
            {
                Err(SignatureError::NotForUs("another address to confirm at"))
            }
            Some(_) | None => Ok(Signed::new().at(time).value(ID, message.message_id.0)),
        }
    }

    /// The signature covers neither message attributes nor the white space of the body.
    fn signs_body(&self) -> bool {
        false
    }

    fn signs_value(&self, _: &str) -> bool {
        true
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "RSA PKCS #1, SHA-256 or SHA-1, in the body".into()
    }

    fn dummy_secret(&self) -> Secret {
        let nobodys = SnsTopic::new("arn:aws:sns:us-east-1:000000000000:nobodys");
        nobodys.map_or_else(|_| Secret::dummy(), Secret::from)
    }

    fn needs_keys(&self, _: &Secrets) -> bool {
        true
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<SnsTopic>().map(drop)
    }

    /// A test sets the message as the body. Missing members are added, except `Subject`.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let (_, key) = request.signing_key().ok_or(SignError::no_key())?;
        let key = key.clone();
        let Ok(Value::Object(mut body)) = serde_json::from_slice(request.body()) else {
            return Err(SignError::new("the body is not a JSON object"));
        };
        let topic = String::from_utf8_lossy(secret.expose());
        let host = host_of(&topic).ok_or(SignError::new("the topic's partition is unknown"))?;
        let host = format!("https://{host}");
        let is_notification = body.get("Type").is_none_or(|kind| kind == "Notification");
        let mut set = |name: &str, value: Value| {
            body.entry(name).or_insert(value);
        };
        set("Type", "Notification".into());
        if !is_notification {
            let url = format!("{host}/?Action=ConfirmSubscription&TopicArn={topic}&Token=token");
            set("SubscribeURL", url.into());
            set("Token", "token".into());
        }
        set("Message", "".into());
        set("MessageId", sha256_hex(request.body()).into());
        set(
            "Timestamp",
            TimeFormat::Rfc3339.format(request.time()).into(),
        );
        set("TopicArn", (&*topic).into());
        set("SignatureVersion", "2".into());
        set("Signature", "".into());
        set(
            "SigningCertURL",
            format!("{host}/SimpleNotificationService-0.pem").into(),
        );
        let unsigned = json!(body).to_string();
        let message = Message::read(unsigned.as_bytes());
        let message = message.ok_or(SignError::new("the body is not an SNS message"))?;
        let content = message.content();
        let content = content.ok_or(SignError::new("a member of the message cannot be signed"))?;
        let signature = key.sign(SignatureAlgorithm::RsaSha256, content.as_bytes());
        let signature = signature.ok_or(SignError::new("the key cannot sign the message"))?;
        body.insert("Signature".to_owned(), BASE64.encode(signature).into());
        request.insert_header(TYPE, message.kind.name())?;
        request.set_body(json!(body).to_string());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_at_sns_alone() {
        let is_known = |url: &str, region: &str| {
            let partition = match region.split('-').next() {
                Some("cn") => "aws-cn",
                Some("eusc") => "aws-eusc",
                _ => "aws",
            };
            let topic = format!("arn:{partition}:sns:{region}:1:topic");
            is_https_at(url, |host, path| {
                is_sns(host, &topic) && is_certificate(path)
            })
        };
        for (region, domain) in [
            ("us-east-1", "amazonaws.com"),
            ("cn-north-1", "amazonaws.com.cn"),
            ("eusc-de-east-1", "amazonaws.eu"),
        ] {
            let right = format!("https://sns.{region}.{domain}/SimpleNotificationService-0f.pem");
            assert!(is_known(&right, region), "{right}");
            assert!(!is_known(&right, "eu-west-1"), "{right}");
        }
        for wrong in [
            "http://sns.us-east-1.amazonaws.com/SimpleNotificationService-0f.pem",
            "https://sns.us-east-1.amazonaws.com.evil.test/SimpleNotificationService-0f.pem",
            "https://sns.us-east-1.amazonaws.com@evil.test/SimpleNotificationService-0f.pem",
            "https://user@sns.us-east-1.amazonaws.com/SimpleNotificationService-0f.pem",
            "https://sns.us-east-1.amazonaws.com:8443/SimpleNotificationService-0f.pem",
            "https://sns.evil.test.amazonaws.com/SimpleNotificationService-0f.pem",
            "https://sns.s3-us-west-2.amazonaws.com/SimpleNotificationService-0f.pem",
            "https://sns.s3-accelerate.amazonaws.com/SimpleNotificationService-0f.pem",
            "https://sns.s3-external-1.amazonaws.com/SimpleNotificationService-0f.pem",
            "https://sns.us-east-1.amazonaws.com.cn/SimpleNotificationService-0f.pem",
            "https://sns.us-east-1.amazonaws.eu/SimpleNotificationService-0f.pem",
            "https://sns.us-east-1.amazonaws.com/?Action=x&y=.pem",
            "https://sns.us-east-1.amazonaws.com/x/SimpleNotificationService-0f.pem",
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0f.pem#",
            "https://sns.us-east-1.amazonaws.com\\@evil.test/SimpleNotificationService-0f.pem",
        ] {
            assert!(!is_known(wrong, "us-east-1"), "{wrong}");
        }
    }

    #[test]
    fn certificates_are_for_sns() {
        for right in ["sns.amazonaws.com", "sns-signing.eu-south-2.amazonaws.com"] {
            assert!(is_name(right), "{right}");
        }
        for wrong in [
            "sqs.amazonaws.com",
            "sns.evilamazonaws.com",
            "sns.amazonaws.com.evil.test",
        ] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
