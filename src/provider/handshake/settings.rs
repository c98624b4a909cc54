//! The settings of a provider's handshakes.

use std::borrow::Cow;

use http::request::Parts;

use super::recognize::{probe, subscription};
use super::{Handshake, HandshakeRequest, HandshakeRule};
use crate::provider::{Provider, Secret, Source};
use crate::tasks_and_errors::error_chain::BoxError;

impl Provider {
    /// Treats an authentic request with this event type and without a delivery id as a handshake.
    ///
    /// A handshake is a check whether the endpoint exists. The layer answers it with 200 and the challenge as plain
    /// text. Nothing is claimed, and the handler does not run.
    #[must_use]
    pub fn handshake(
        mut self,
        event_type: impl Into<Cow<'static, str>>,
        challenge: Source,
    ) -> Self {
        self.identity = self.identity.with_handshake(HandshakeRule {
            event_type: event_type.into(),
            challenge,
        });
        self
    }

    /// Recognizes handshakes that are not signed like deliveries: a GET with a challenge, a HEAD request, a ping.
    ///
    /// The layer answers them before anything is verified or claimed, so `recognize` must be sure of what it sees:
    /// **anyone can send such a request**.
    ///
    /// You can call this method several times. The first function that recognizes a request decides. A request that
    /// no function recognizes is processed as usual.
    ///
    /// ```
    /// use http::{HeaderName, Method};
    /// use idempotent_webhook::provider::{Handshake, HandshakeRequest};
    /// use idempotent_webhook::provider::signature::Hmac;
    /// use idempotent_webhook::{Provider, Secret, Source};
    ///
    /// /// Acme sends a GET with a challenge in the query, and wants it back.
    /// fn challenge(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    ///     let challenge = request.query_value("challenge")?;
    ///     (request.method() == Method::GET).then(|| Handshake::text("challenge", challenge))
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let acme = Provider::custom("acme")
    ///     .signature(
    ///         Hmac::hex(HeaderName::from_static("x-acme-signature")),
    ///         Secret::new("a secret")?,
    ///     )
    ///     .delivery_id(Source::json("$.id".parse()?))
    ///     .unsigned_handshake(challenge);
    ///
    /// let (head, ()) = http::Request::get("/acme?challenge=abc").body(())?.into_parts();
    /// let verified = acme.verify(&head, b"", std::time::SystemTime::now())?;
    /// assert_eq!(verified.handshake().ok_or("no handshake")?.challenge(), "abc");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn unsigned_handshake(
        mut self,
        recognize: impl Fn(&HandshakeRequest<'_>) -> Option<Handshake> + Send + Sync + 'static,
    ) -> Self {
        self.handshakes.add_unsigned(recognize);
        self
    }

    /// Recognizes handshakes that are signed like deliveries, and that [`handshake`](Self::handshake) cannot
    /// describe. `recognize` is called only with authentic and recent requests, before their delivery id is read.
    #[must_use]
    pub fn signed_handshake(
        mut self,
        recognize: impl Fn(&HandshakeRequest<'_>) -> Option<Handshake> + Send + Sync + 'static,
    ) -> Self {
        self.handshakes.add_signed(recognize);
        self
    }

    /// Stores the secret that a handshake carries, for providers that create the secret and send it once: Asana in
    /// `X-Hook-Secret`, Notion as `verification_token`.
    ///
    /// `keep` receives the head of the request and the secret. When it has finished, the handshake is answered with
    /// success. If it fails or takes longer than [`database_timeout`](crate::IdempotentWebhook::database_timeout),
    /// the handshake is answered with 503. Later deliveries are verified with the provider's secrets, so let
    /// [`TenantSecrets`](crate::TenantSecrets) look up the secret that `keep` stored.
    ///
    /// **Anyone can send such a request.** Store a secret only for a webhook that is being created and has no
    /// secret yet, and distinguish webhooks by a part of the path that cannot be guessed.
    ///
    /// ```
    /// use http::request::Parts;
    /// use idempotent_webhook::{Provider, Secret};
    ///
    /// fn with_exchange(asana: Provider, pool: sqlx::PgPool) -> Provider {
    ///     asana.secret_exchange(move |head: &Parts, secret: Secret| {
    ///         let pool = pool.clone();
    ///         let webhook = head.uri.path().rsplit('/').next().map(str::to_owned);
    ///         async move {
    ///             let kept = sqlx::query(
    ///                 "update webhooks set secret = $2 where name = $1 and secret is null",
    ///             )
    ///             .bind(webhook)
    ///             .bind(secret.expose())
    ///             .execute(&pool)
    ///             .await?;
    ///             match kept.rows_affected() {
    ///                 1 => Ok(()),
    ///                 _ => Err("no webhook is waiting for a secret".into()),
    ///             }
    ///         }
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn secret_exchange<F>(
        mut self,
        keep: impl Fn(&Parts, Secret) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.handshakes.keep_secret(keep);
        self
    }

    /// Confirms subscriptions, for providers that send an address to visit: AWS SNS.
    ///
    /// `confirm` receives the address, which the preset has checked, and visits it with a GET. When it has
    /// finished, the handshake is answered with success. If it fails or takes longer than
    /// [`database_timeout`](crate::IdempotentWebhook::database_timeout), the handshake is answered with 503.
    ///
    /// Default: if [`keys`](Self::keys) has a client that fetches keys, that client visits the address.
    ///
    /// Copies of a handshake share one visit, because somebody who has captured a handshake can send it again. The
    /// result of a visit is reused: a success or a 4xx other than 429 for a minute, and any other failure, including a
    /// panic, for 5 seconds.
    ///
    /// ```
    /// use idempotent_webhook::Provider;
    ///
    /// fn by_operator(sns: Provider) -> Provider {
    ///     // A person confirms the subscriptions of this topic. Each stays pending until then.
    ///     sns.confirm_subscription(|url: String| async move {
    ///         println!("to confirm, visit {url}");
    ///         Ok(())
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn confirm_subscription<F>(
        mut self,
        confirm: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.handshakes.confirm(confirm);
        self
    }

    /// Answers the subscription checks of Meta and of WebSub providers, if their `hub.verify_token` is this token. A
    /// check is a GET with `hub.challenge`.
    ///
    /// Without this setting, or with another token, such a GET is answered with 405.
    ///
    /// The route must accept a GET: `post(handler).layer(webhook)` does, and with `Events` use
    /// `any(events.layer(webhook))`.
    #[must_use]
    pub fn verify_token(self, token: Secret) -> Self {
        self.unsigned_handshake(move |request| subscription(request, &token))
    }

    /// Answers HEAD requests with 200, for providers that use them to check whether something is at the URL.
    #[must_use]
    pub fn answer_head_requests(self) -> Self {
        self.unsigned_handshake(probe)
    }

    /// Whether handshakes of the provider are recognized and answered.
    pub fn answers_handshakes(&self) -> bool {
        self.identity.has_handshake()
            || self.handshakes.has_signed()
            || self.handshakes.has_unsigned()
    }

    /// Whether a request can be a handshake although it is not signed like a delivery.
    pub(crate) fn has_unsigned_handshakes(&self) -> bool {
        self.handshakes.has_unsigned()
    }

    /// Performs the actions that a handshake needs before its answer: stores its secret, and visits its confirmation
    /// address.
    pub(crate) async fn complete(
        &self,
        head: &Parts,
        handshake: &Handshake,
    ) -> Result<(), BoxError> {
        if let Some(secret) = handshake.secret() {
            self.handshakes.keep(head, secret).await?;
        }
        if let Some(url) = handshake.confirmation_url() {
            self.handshakes.visit(url, self.keys.as_ref()).await?;
        }
        Ok(())
    }
}
