//! A message of SNS, and what of it is signed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use crate::provider::signature::SignatureAlgorithm;

/// A message. A member that is there twice is refused.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Message {
    #[serde(rename = "Type")]
    pub(super) kind: Kind,
    message: String,
    pub(super) message_id: String,
    subject: Option<String>,
    #[serde(rename = "SubscribeURL")]
    pub(super) subscribe_url: Option<String>,
    pub(super) timestamp: String,
    token: Option<String>,
    pub(super) topic_arn: String,
    signature: String,
    signature_version: Version,
    #[serde(rename = "SigningCertURL")]
    pub(super) certificate: String,
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

impl Message {
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    pub(super) fn algorithm(&self) -> SignatureAlgorithm {
        match self.signature_version {
            Version::Sha1 => SignatureAlgorithm::RsaSha1,
            Version::Sha256 => SignatureAlgorithm::RsaSha256,
        }
    }

    pub(super) fn signature(&self) -> Option<Vec<u8>> {
        BASE64.decode(&self.signature).ok()
    }

    /// What is signed: names and values, each with a line break after it. `None` if something is missing, or
    /// if another value than the message has a line break. Such a value could be taken for several, and the
    /// signature of one message would count for another.
    pub(super) fn content(&self) -> Option<String> {
        let subject = self.subject.as_deref();
        let (url, token) = (self.subscribe_url.as_deref(), self.token.as_deref());
        let first = [
            ("Message", &*self.message),
            ("MessageId", &*self.message_id),
        ];
        let last = [("TopicArn", &*self.topic_arn), ("Type", self.kind.name())];
        let time = ("Timestamp", &*self.timestamp);
        let between = match self.kind {
            Kind::Notification => vec![subject.map(|subject| ("Subject", subject)), Some(time)],
            Kind::SubscriptionConfirmation | Kind::UnsubscribeConfirmation => {
                vec![
                    Some(("SubscribeURL", url?)),
                    Some(time),
                    Some(("Token", token?)),
                ]
            }
        };
        let mut content = String::new();
        for (name, value) in first
            .into_iter()
            .chain(between.into_iter().flatten())
            .chain(last)
        {
            if name != "Message" && value.contains('\n') {
                return None;
            }
            content.extend([name, "\n", value, "\n"]);
        }
        Some(content)
    }
}
