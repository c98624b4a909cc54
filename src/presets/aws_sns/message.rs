//! An SNS message, and the part of it that is signed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::provider::json_path::unescape::{unescape, unescape_into};
use crate::provider::signature::SignatureAlgorithm;

/// The maximum length of each member except the message itself, as written in JSON, in bytes. The
/// members are read before the signature is verified.
const MAX_SHORT: usize = 4 * 1024;

/// A message. A repeated member is refused. Text that SNS users can choose is not copied.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Message<'a> {
    #[serde(rename = "Type")]
    pub(super) kind: Kind,
    #[serde(borrow)]
    message: &'a RawValue,
    pub(super) message_id: Short,
    subject: Option<Short>,
    #[serde(rename = "SubscribeURL")]
    pub(super) subscribe_url: Option<Short>,
    pub(super) timestamp: Short,
    token: Option<Short>,
    pub(super) topic_arn: Short,
    signature: Short,
    signature_version: Version,
    #[serde(rename = "SigningCertURL")]
    pub(super) certificate: Short,
}

/// A text of limited length.
pub(super) struct Short(pub(super) String);

impl<'de> Deserialize<'de> for Short {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        let text = Some(json).filter(|json| json.len() <= MAX_SHORT);
        let text = text.and_then(unescape);
        text.map(Self)
            .ok_or_else(|| D::Error::custom("it is not text, or it is too long"))
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(super) enum Kind {
    Notification,
    SubscriptionConfirmation,
    UnsubscribeConfirmation,
}

#[derive(Clone, Copy, Deserialize)]
enum Version {
    #[serde(rename = "1")]
    Sha1,
    #[serde(rename = "2")]
    Sha256,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Notification => "Notification",
            Self::SubscriptionConfirmation => "SubscriptionConfirmation",
            Self::UnsubscribeConfirmation => "UnsubscribeConfirmation",
        }
    }
}

impl<'a> Message<'a> {
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    pub(super) fn algorithm(&self) -> SignatureAlgorithm {
        match self.signature_version {
            Version::Sha1 => SignatureAlgorithm::RsaSha1,
            Version::Sha256 => SignatureAlgorithm::RsaSha256,
        }
    }

    pub(super) fn signature(&self) -> Option<Vec<u8>> {
        BASE64.decode(&self.signature.0).ok()
    }

    /// The signed content: names and values, each followed by a line break. `None` if something is missing, or if a
    /// value other than the message contains a line break. A value with a line break could be read as several values,
    /// and the signature of one message would be valid for another.
    pub(super) fn content(&self) -> Option<String> {
        let mut rest = vec![("MessageId", &*self.message_id.0)];
        match self.kind {
            Kind::Notification => {
                rest.extend(self.subject.iter().map(|subject| ("Subject", &*subject.0)));
                rest.push(("Timestamp", &self.timestamp.0));
            }
            Kind::SubscriptionConfirmation | Kind::UnsubscribeConfirmation => {
                rest.push(("SubscribeURL", &self.subscribe_url.as_ref()?.0));
                rest.push(("Timestamp", &self.timestamp.0));
                rest.push(("Token", &self.token.as_ref()?.0));
            }
        }
        rest.push(("TopicArn", &self.topic_arn.0));
        rest.push(("Type", self.kind.name()));
        if rest.iter().any(|(_, value)| value.contains('\n')) {
            return None;
        }
        let lines = rest
            .iter()
            .flat_map(|(name, value)| [*name, "\n", value, "\n"]);
        let lines: String = lines.collect();
        let message = self.message.get();
        let mut content = String::with_capacity("Message\n\n".len() + message.len() + lines.len());
        content.push_str("Message\n");
        unescape_into(message, &mut content)?;
        content.push('\n');
        content.push_str(&lines);
        Some(content)
    }
}
