//! The message that each request carries.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::SystemTime;

use bytes::Bytes;
use http::Request;
use idempotent_webhook::testing::{self, TestDelivery};
use idempotent_webhook::{Provider, Secret};

pub enum Message {
    /// A delivery, which is signed each time it is sent.
    Delivery {
        provider: &'static str,
        delivery: Box<TestDelivery>,
        id: Id,
    },
    /// A captured request, sent unchanged.
    Captured(Request<Bytes>),
    /// A captured request, which is signed each time it is sent.
    SignedAnew {
        request: Request<Bytes>,
        provider: Box<Provider>,
        secret: Secret,
    },
}

pub enum Id {
    /// One id for all requests.
    Same(String),
    /// An id that is computed from the body, such as its digest.
    OfBody,
    /// A separate id for each request.
    Distinct,
}

impl Message {
    pub fn request(&self) -> Result<Request<Bytes>, String> {
        match self {
            Self::Delivery { delivery, id, .. } => match id {
                Id::Same(_) | Id::OfBody => delivery.try_request(),
                Id::Distinct => (**delivery).clone().id(random_id()).try_request(),
            }
            .map_err(|error| error.to_string()),
            Self::Captured(request) => Ok(request.clone()),
            Self::SignedAnew {
                request,
                provider,
                secret,
            } => testing::sign(provider, secret, request.clone(), SystemTime::now())
                .map_err(|error| error.to_string()),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivery { provider, id, .. } => match id {
                Id::Same(id) => write!(f, "{provider} delivery {id:?}"),
                Id::OfBody => write!(f, "{provider} delivery"),
                Id::Distinct => write!(f, "{provider} deliveries with distinct ids"),
            },
            Self::Captured(_) => f.write_str("a capture"),
            Self::SignedAnew { provider, .. } => {
                write!(f, "a capture, signed again for {}", provider.name())
            }
        }
    }
}

pub fn random_id() -> String {
    // Each `RandomState` has random keys.
    format!(
        "webhook_{:016x}",
        RandomState::new().build_hasher().finish()
    )
}
