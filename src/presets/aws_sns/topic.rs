//! The topic whose messages the preset accepts.

use std::str::FromStr;

use super::scheme::host_of;
use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError};

/// The topic whose messages [`aws_sns`](super::aws_sns) accepts.
///
/// Its text form is the ARN.
#[derive(Clone, Debug)]
pub struct SnsTopic {
    arn: String,
}

impl SnsTopic {
    /// The topic with this ARN, such as `arn:aws:sns:us-east-1:123456789012:orders`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is not the ARN of a topic, or if the address of the partition's keys is not known, as
    /// for `aws-iso`.
    pub fn new(arn: impl Into<String>) -> Result<Self, SecretError> {
        let arn = arn.into();
        let parts: Vec<_> = arn.split(':').collect();
        match *parts {
            ["arn", _, "sns", region, account, name]
                if host_of(&arn).is_some()
                    && [region, account, name]
                        .iter()
                        .all(|part| is_part(part, ':')) =>
            {
                Ok(Self { arn })
            }
            _ => Err(SecretError::new(
                "it is not the ARN of a topic, such as `arn:aws:sns:us-east-1:123456789012:orders`, or of a \
                 partition that this crate does not know",
            )),
        }
    }
}

impl FromStr for SnsTopic {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        Self::new(text)
    }
}

impl From<SnsTopic> for Secret {
    fn from(topic: SnsTopic) -> Self {
        Self::of_text_form(topic.arn)
    }
}
