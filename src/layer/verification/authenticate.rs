//! Reads a request, verifies it and identifies its delivery. `provider/verify.rs` decides whether the signature is
//! authentic.

use std::error::Error;
use std::pin::pin;
use std::time::SystemTime;

use bytes::Bytes;
use http::request::Parts;
use http_body::Body;

use super::body;
use super::body_shape::BodyShape;
use super::canary::Canary;
use super::rejection::{Rejected, Rejection};
use super::settings::Verification;
use super::telemetry;
use super::unhandled::Unhandled;
use crate::provider::delivery::{Delivery, VerifiedDelivery};
use crate::provider::event_types::Wanted;
use crate::provider::{Handshake, Verified, VerifyError};
use crate::tasks_and_errors::panic::{self, catch_panic};

/// The largest body of a handshake that is not signed, in bytes.
const MAX_HANDSHAKE: usize = 64 * 1024;

/// An authentic request that is a delivery.
pub(crate) struct Authentic {
    pub(crate) delivery: Delivery,
    /// The raw body.
    pub(crate) body: Bytes,
    /// Set if the layer has a table of event types.
    pub(crate) wanted: Option<Wanted>,
}

/// Reads and verifies a request. If the request is rejected, its route and tenant are added to the span. `seen` is
/// called with each authentic delivery, even if the layer ignores its event type.
///
/// All code of the application that runs before the handler is called here: the lookup of a tenant's secrets, the
/// signature scheme, and the actions of a handshake. If any of it panics, the answer is the same as for other failures.
pub(crate) async fn authenticate<B>(
    verification: &Verification,
    head: &Parts,
    body: B,
    seen: impl FnOnce(&VerifiedDelivery),
) -> Result<Authentic, Unhandled>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // The future is pinned here, because passing it on by value would use its space twice.
    let verifying = pin!(verify(verification, head, body, seen));
    let authentic = catch_panic(verifying).await;
    let authentic =
        authentic.unwrap_or_else(|payload| Err(Unhandled::Panicked(panic::into_message(payload))));
    if let Err(Unhandled::Rejected(rejected)) = &authentic {
        telemetry::rejected(head, rejected);
    }
    authentic
}

async fn verify<B>(
    verification: &Verification,
    head: &Parts,
    body: B,
    seen: impl FnOnce(&VerifiedDelivery),
) -> Result<Authentic, Unhandled>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let provider = &verification.provider;
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
    let body = body::buffer(&head.headers, body, limit, verification.body_timeout).await;
    let (body, refused) = match (body, refused) {
        (Ok(body), refused) => (body, refused),
        (Err(_), Some(rejection)) => return Err(rejection.into()),
        (Err(error), None) => return Err(Rejection::from(error).into()),
    };
    let lookup = tokio::time::timeout(verification.lookup_timeout, provider.secrets().find(head))
        .await
        .unwrap_or_else(|_| Err("the lookup took too long".into()))
        .map_err(Unhandled::NoSecrets)?;
    let secrets = lookup.secrets.as_deref();
    let tenant = lookup.tenant.as_ref().map(|tenant| &tenant.name);
    let rejected = |rejection| {
        Unhandled::Rejected(Rejected {
            rejection,
            tenant: tenant.cloned(),
            body: Some(BodyShape::of(&head.headers, &body)),
        })
    };
    if let Some(rejection) = refused {
        return Err(
            match provider.recognize_unsigned(secrets.ok(), head, &body) {
                Some(handshake) => answer_handshake(verification, head, handshake).await,
                None => rejected(rejection),
            },
        );
    }
    let now = SystemTime::now();
    let verified = provider.verify_and_fetch(secrets, head, &body, now).await;
    let event_type = match &verified {
        Ok(Verified::Delivery(verified)) => verified.event_type(),
        // The request is authentic, and an ignored event needs no usable id.
        Err(VerifyError::Identity(error)) => error.event_type(),
        Ok(Verified::Handshake(_) | Verified::Canary) | Err(VerifyError::Signature(_)) => None,
    };
    if !matches!(
        verified,
        Ok(Verified::Handshake(_) | Verified::Canary) | Err(VerifyError::Signature(_))
    ) {
        verification.metrics.authentic_now();
        if let Some(tenant) = tenant {
            verification.metrics.tenant_authentic(tenant);
        }
    }
    if let Ok(Verified::Delivery(delivery)) = &verified {
        verification.note_authentic(delivery, tenant, now);
        seen(delivery);
    }
    let wanted = match verified {
        // A canary has no event type, so the table does not apply to it.
        Ok(Verified::Canary) => None,
        _ => verification.wanted(event_type, head, &body),
    };
    if let Some(Wanted::Ignored(ignored)) = wanted {
        return Err(Unhandled::Ignored(ignored));
    }
    let verified = verified.map_err(|error| {
        rejected(match error {
            VerifyError::Signature(error) => error.into(),
            VerifyError::Identity(error) => error.into(),
        })
    })?;
    match verified {
        Verified::Delivery(verified) => {
            let endpoint = verification.endpoint.clone();
            let name = provider.shared_name();
            Ok(Authentic {
                delivery: Delivery::new(endpoint, name, lookup.tenant, verified),
                body,
                wanted,
            })
        }
        Verified::Canary => Err(Unhandled::Canary(Canary::Authentic(lookup.tenant))),
        Verified::Handshake(handshake) => {
            Err(answer_handshake(verification, head, handshake).await)
        }
    }
}

/// Performs the action of a handshake, and returns the answer to it.
async fn answer_handshake(
    verification: &Verification,
    head: &Parts,
    handshake: Handshake,
) -> Unhandled {
    let completing = verification.provider.complete(head, &handshake);
    match tokio::time::timeout(verification.lookup_timeout, completing).await {
        Ok(Ok(())) => Unhandled::Handshake(handshake),
        Ok(Err(error)) => Unhandled::HandshakeFailed(error),
        Err(_) => Unhandled::HandshakeFailed("it took too long".into()),
    }
}
