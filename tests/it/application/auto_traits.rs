//! Public types can be sent to other threads and shared between them. This file does not compile if
//! a new field prevents that.

use std::convert::Infallible;

use axum::body::Body;
use idempotent_webhook::presets::{
    AppStoreApp, BraintreeKeys, CircleKeys, EbayEndpoint, FalUser, FireblocksKeys, LiveKitKey,
    PayPalWebhook, PlaidKeys, Preset, PubSub, PublicKey, SnsTopic,
};
use idempotent_webhook::provider::signature::{
    BasicAuth, BasicCredentials, ByHeader, Encoding, Hash, Hmac, Key, SignError, SignatureError,
    SignatureScheme, Signed, SignedContent, SignedRequest, StandardWebhooks, Token, Tolerance,
    UnsignedRequest,
};
use idempotent_webhook::provider::{
    CustomProvider, Handshake, HandshakeRequest, IdentityError, JsonPathError, PublicUrl,
    PublicUrlError, ResolvedTenant, SecretError, SecretSource, SignedProvider, Verified,
    VerifiedDelivery, VerifyError,
};
use idempotent_webhook::retention::{PruneError, Pruned, RetentionTask};
use idempotent_webhook::service::{ExtractError, IdempotentWebhookService, ResponseFuture};
use idempotent_webhook::testing::{TestDelivery, TestDeliveryError};
use idempotent_webhook::{
    DedupeTx, Delivery, DeliveryId, Endpoint, HandlerError, IdempotentWebhook, JsonPath, Outcome,
    Provider, Recency, Retention, Savepoint, Secret, Secrets, Source, TenantSecrets,
};

fn is_send<T: Send + Unpin>() {}
fn is_send_and_sync<T: Send + Sync + Unpin>() {}

#[test]
fn extractors_can_cross_threads() {
    is_send::<DedupeTx>();
    is_send::<Savepoint<'_>>();
    is_send_and_sync::<Delivery>();
    is_send_and_sync::<DeliveryId>();
}

#[test]
fn the_layer_can_cross_threads() {
    is_send_and_sync::<IdempotentWebhook>();
    is_send_and_sync::<IdempotentWebhookService<()>>();
    is_send::<ResponseFuture<Body, Infallible>>();
}

#[test]
fn what_handlers_answer_can_cross_threads() {
    is_send_and_sync::<ExtractError>();
    is_send_and_sync::<HandlerError>();
    is_send_and_sync::<Outcome>();
    is_send_and_sync::<Recency>();
}

#[test]
fn providers_can_cross_threads() {
    is_send_and_sync::<CustomProvider>();
    is_send_and_sync::<Handshake>();
    is_send_and_sync::<HandshakeRequest<'_>>();
    is_send_and_sync::<PublicUrl>();
    is_send_and_sync::<PublicUrlError>();
    is_send_and_sync::<Preset>();
    is_send_and_sync::<IdentityError>();
    is_send_and_sync::<JsonPath>();
    is_send_and_sync::<JsonPathError>();
    is_send_and_sync::<Provider>();
    is_send_and_sync::<ResolvedTenant>();
    is_send_and_sync::<Secret>();
    is_send_and_sync::<SecretError>();
    is_send_and_sync::<Secrets>();
    is_send_and_sync::<SecretSource>();
    is_send_and_sync::<SignedProvider>();
    is_send_and_sync::<Source>();
    is_send_and_sync::<TenantSecrets>();
    is_send_and_sync::<TestDelivery>();
    is_send_and_sync::<TestDeliveryError>();
    is_send_and_sync::<Verified>();
    is_send_and_sync::<VerifiedDelivery>();
    is_send_and_sync::<VerifyError>();
}

#[test]
fn what_presets_take_can_cross_threads() {
    is_send_and_sync::<AppStoreApp>();
    is_send_and_sync::<BraintreeKeys>();
    is_send_and_sync::<CircleKeys>();
    is_send_and_sync::<EbayEndpoint>();
    is_send_and_sync::<FalUser>();
    is_send_and_sync::<FireblocksKeys>();
    is_send_and_sync::<LiveKitKey>();
    is_send_and_sync::<PayPalWebhook>();
    is_send_and_sync::<PlaidKeys>();
    is_send_and_sync::<PubSub>();
    is_send_and_sync::<PublicKey>();
    is_send_and_sync::<SnsTopic>();
}

#[test]
fn signatures_can_cross_threads() {
    is_send_and_sync::<Box<dyn SignatureScheme>>();
    is_send_and_sync::<BasicAuth>();
    is_send_and_sync::<BasicCredentials>();
    is_send_and_sync::<ByHeader>();
    is_send_and_sync::<Encoding>();
    is_send_and_sync::<Hash>();
    is_send_and_sync::<Hmac>();
    is_send_and_sync::<Key>();
    is_send_and_sync::<Token>();
    is_send_and_sync::<SignError>();
    is_send_and_sync::<SignatureError>();
    is_send_and_sync::<Signed>();
    is_send_and_sync::<SignedContent>();
    is_send_and_sync::<SignedRequest<'_>>();
    is_send_and_sync::<StandardWebhooks>();
    is_send_and_sync::<Tolerance>();
    is_send_and_sync::<UnsignedRequest>();
}

#[test]
fn maintenance_can_cross_threads() {
    is_send_and_sync::<Endpoint>();
    is_send_and_sync::<Pruned>();
    is_send_and_sync::<PruneError>();
    is_send_and_sync::<Retention>();
    is_send_and_sync::<RetentionTask>();
}
