//! Reads a request, verifies it and identifies its delivery, without Postgres.

use std::error::Error;
use std::time::SystemTime;

use bytes::Bytes;
use http::request::Parts;
use http_body::Body;

use super::body;
use super::failure::Failure;
use super::rejection::Rejection;
use super::response::{Answer, Ignored};
use crate::delivery::Delivery;
use crate::event_types::Wanted;
use crate::provider::{Handshake, Verified, VerifyError};
use crate::recovery::RecoveryAttempt;
use crate::settings::Settings;

/// The largest body of a handshake that is not signed, in bytes.
const MAX_HANDSHAKE: usize = 64 * 1024;

/// An authentic request of a delivery.
pub(super) struct Authentic {
    pub(super) delivery: Delivery,
    /// The raw body.
    pub(super) body: Bytes,
    /// The request is one of recovery.
    pub(super) attempt: Option<RecoveryAttempt>,
    /// If the layer has a table of event types.
    pub(super) wanted: Option<Wanted>,
}

/// Reads and verifies a request. One of recovery was verified when it was kept.
pub(super) async fn authenticate<B, R, E>(
    settings: &Settings,
    head: &Parts,
    body: B,
    attempt: Option<RecoveryAttempt>,
) -> Result<Authentic, Answer<R, E>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let provider = &settings.provider;
    if let Some(attempt) = attempt
        && let Some(delivery) = attempt.delivery_for(&settings.endpoint, provider.shared_name())
    {
        let timeout = settings.body_timeout;
        let body = body::buffer(&head.headers, body, usize::MAX, timeout).await;
        let body = body.map_err(Rejection::from)?;
        return Ok(Authentic {
            wanted: settings.wanted(delivery.event_type(), head, &body),
            delivery,
            body,
            attempt: Some(attempt),
        });
    }
    let refused = if provider.methods.contains(&head.method) {
        provider.check_head(head).err().map(Rejection::from)
    } else {
        Some(Rejection::Method(provider.methods.to_vec()))
    };
    let limit = match refused {
        None => provider.body_limit,
        Some(_) if provider.has_unsigned_handshakes() => provider.body_limit.min(MAX_HANDSHAKE),
        Some(rejection) => return Err(rejection.into()),
    };
    let body = body::buffer(&head.headers, body, limit, settings.body_timeout).await;
    let (body, refused) = match (body, refused) {
        (Ok(body), refused) => (body, refused),
        (Err(_), Some(rejection)) => return Err(rejection.into()),
        (Err(error), None) => return Err(Rejection::from(error).into()),
    };
    let lookup = tokio::time::timeout(settings.store.timeout, provider.secrets().find(head))
        .await
        .unwrap_or_else(|_| Err("the lookup took too long".into()))
        .map_err(Failure::SecretLookup)?;
    let secrets = lookup.secrets.as_deref();
    if let Some(rejection) = refused {
        return match provider.recognize_unsigned(secrets.ok(), head, &body) {
            Some(handshake) => Err(answer_handshake(settings, head, handshake).await),
            None => Err(rejection.into()),
        };
    }
    let now = SystemTime::now();
    let verified = provider.verify_and_fetch(secrets, head, &body, now).await;
    let event_type = match &verified {
        Ok(Verified::Delivery(verified)) => verified.event_type(),
        // It is authentic, and its id does not matter if it is ignored.
        Err(VerifyError::Identity(error)) => error.event_type(),
        Ok(Verified::Handshake(_)) | Err(VerifyError::Signature(_)) => None,
    };
    let wanted = settings.wanted(event_type, head, &body);
    if let (Some(Wanted::Ignored), Some(event_type)) = (wanted, event_type) {
        let event_type = event_type.to_owned();
        return Err(Answer::Ignored(Ignored::Request, event_type));
    }
    let verified = verified.map_err(|error| match error {
        VerifyError::Signature(error) => Rejection::from(error),
        VerifyError::Identity(error) => Rejection::from(error),
    })?;
    match verified {
        Verified::Delivery(verified) => {
            let endpoint = settings.endpoint.clone();
            let name = provider.shared_name();
            Ok(Authentic {
                delivery: Delivery::new(endpoint, name, lookup.tenant, verified),
                body,
                attempt: None,
                wanted,
            })
        }
        Verified::Handshake(handshake) => Err(answer_handshake(settings, head, handshake).await),
    }
}

/// The answer to a handshake, after what it asks for.
async fn answer_handshake<R, E>(
    settings: &Settings,
    head: &Parts,
    handshake: Handshake,
) -> Answer<R, E> {
    let completing = settings.provider.complete(head, &handshake);
    match tokio::time::timeout(settings.store.timeout, completing).await {
        Ok(Ok(())) => Answer::Handshake(handshake),
        Ok(Err(error)) => Failure::Handshake(error).into(),
        Err(_) => Failure::Handshake("it took too long".into()).into(),
    }
}
