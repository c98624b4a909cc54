//! `Provider`: its settings, and what they mean.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, Method};

use super::answers::Answers;
use super::custom::CustomProvider;
use super::delivery::check_text;
use super::event_types::NameForms;
use super::handshake::Handshakes;
use super::identity::Identity;
use super::json_path::JsonPath;
use super::keys::KeySource;
use super::public_url::PublicUrl;
#[cfg(feature = "testing")]
use super::secret::Secret;
use super::secret::{SecretError, Secrets};
use super::secret_source::SecretSource;
use super::signature::{SignatureError, SignatureScheme, Tolerance};
use super::source::{Source, Unreadable};
use super::{DAY, LONGEST_TOLERANCE_OF_ATTEMPTS};

/// How a provider signs, identifies and redelivers its webhooks.
///
/// The [`presets`](crate::presets) and [`custom`](Self::custom) make values of this type, so
/// every setting of a preset can be adjusted:
///
/// ```
/// use std::time::Duration;
/// use idempotent_webhook::provider::signature::Tolerance;
/// use idempotent_webhook::{Secret, presets};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stripe = presets::stripe(Secret::new("whsec_…")?)
///     .tolerance(Tolerance::two_sided(Duration::from_secs(60)))
///     .body_limit(512 * 1024);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Provider {
    pub(super) name: Arc<str>,
    pub(super) scheme: Arc<dyn SignatureScheme>,
    pub(super) secrets: SecretSource,
    pub(crate) methods: Vec<Method>,
    pub(super) public_url: Option<PublicUrl>,
    pub(super) keys: Option<KeySource>,
    pub(crate) tolerance: Tolerance,
    pub(super) identity: Identity,
    pub(super) name_forms: NameForms,
    pub(super) handshakes: Handshakes,
    pub(crate) answers: Answers,
    pub(crate) body_limit: usize,
    pub(crate) response_deadline: Duration,
    /// Whether the response deadline was published by the provider or set by the application.
    pub(crate) deadline_is_known: bool,
    pub(crate) redelivery_window: Duration,
}

impl Provider {
    /// Starts to define a provider that has no preset. The name appears in
    /// [`Delivery::provider`](crate::Delivery::provider) and in logs.
    ///
    /// ```
    /// use http::HeaderName;
    /// use idempotent_webhook::provider::signature::Hmac;
    /// use idempotent_webhook::{Provider, Secret, Source};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let acme = Provider::custom("acme")
    ///     .signature(
    ///         Hmac::hex(HeaderName::from_static("x-acme-signature")).prefix("sha256="),
    ///         Secret::new("a secret")?,
    ///     )
    ///     .delivery_id(Source::header(HeaderName::from_static("x-acme-delivery")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The defaults are: method POST, a [tolerance](Self::tolerance) of 5 minutes in the past and in the future, a
    /// [body limit](Self::body_limit) of 2 MiB, a [response deadline](Self::response_deadline) of 5 seconds and a
    /// [redelivery window](Self::redelivery_window) of 30 days.
    pub fn custom(name: impl Into<Arc<str>>) -> CustomProvider {
        CustomProvider { name: name.into() }
    }

    /// Where to find the delivery id in a request. The id must be the same on every retry and different for every
    /// delivery.
    #[must_use]
    pub fn delivery_id(mut self, source: Source) -> Self {
        self.identity = self.identity.with_id(source);
        self
    }

    /// Where to find the event type in a request.
    #[must_use]
    pub fn event_type(mut self, source: Source) -> Self {
        self.identity = self.identity.with_event_type(source);
        self
    }

    /// Where to find the qualifier of the event type, such as GitHub's `$.action`.
    ///
    /// With a qualifier, an event of type `pull_request` with the action `opened` can be named
    /// `pull_request.opened` in `Events` and in [`only`](crate::IdempotentWebhook::only).
    /// [`Delivery::event_type`](crate::Delivery::event_type) does not include the qualifier. An action that already
    /// starts with the event type and a dot, such as Mercado Pago's `payment.created`, is the whole name.
    ///
    /// # Panics
    ///
    /// If the source is a [signed time](Source::signed_time), a [signed value](Source::signed_value) or a
    /// [receipt](Source::receipt). The layer must also find the qualifier in a kept request, which it has stored to
    /// process the delivery later. A kept request contains none of these three values.
    #[must_use]
    #[track_caller]
    pub fn event_action(mut self, source: Source) -> Self {
        source.assert_is_in_requests();
        self.identity = self.identity.with_event_action(source);
        self
    }

    /// Sets the forms that event names can have, with one example for each form.
    ///
    /// If [`Events`](crate::Events) or [`only`](crate::IdempotentWebhook::only) lists a name that no event can
    /// have, the name is refused when the layer is created.
    ///
    /// ```
    /// # use http::HeaderName;
    /// # use idempotent_webhook::provider::signature::Hmac;
    /// use idempotent_webhook::{Provider, Secret, Source};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let acme = Provider::custom("acme")
    /// #     .signature(Hmac::hex(HeaderName::from_static("x-acme-signature")), Secret::new("a secret")?)
    /// #     .delivery_id(Source::body_digest())
    ///     // …
    ///     .event_type(Source::json("$.event".parse()?))
    ///     .event_names_like(["invoice.payment_failed"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A name matches an example if its letters have the same case and its words have the same separators. It may
    /// contain more dots than the example, or no dot if it is a single word such as `ping`. Any other separator, such
    /// as the `/` of `orders/create`, must occur as often as in the example. A group ends with `*` after a separator.
    /// The forms apply to names with and without an [action](Self::event_action): to `pull_request.opened` as well as
    /// to `pull_request`.
    ///
    /// Without examples, every name is accepted. Default: the examples of the preset, or none if the sender chooses
    /// the names.
    #[must_use]
    pub fn event_names_like<T: Into<String>>(
        mut self,
        examples: impl IntoIterator<Item = T>,
    ) -> Self {
        self.name_forms = NameForms::like(examples.into_iter().map(Into::into).collect());
        self
    }

    /// Allows these names as well, but no other names of their form.
    #[must_use]
    pub(crate) fn and_event_names(mut self, names: &[&str]) -> Self {
        self.name_forms = self.name_forms.and(names);
        self
    }

    /// Where to find the version of the payload, such as Stripe's `$.api_version`.
    /// [`expect_version`](Self::expect_version) needs it.
    #[must_use]
    pub fn payload_version(mut self, source: Source) -> Self {
        self.identity = self.identity.with_version(source);
        self
    }

    /// Sets the payload version that the handler is written for. If there are several versions, call this method once
    /// for each.
    ///
    /// ```
    /// use idempotent_webhook::{Secret, presets};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stripe = presets::stripe(Secret::new("whsec_…")?).expect_version("2025-09-30.clover");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A delivery with another version is still handled, but it is
    /// [reported](crate::documentation::providers#the-version-of-the-payload). A delivery without a version counts as
    /// expected. A version that cannot be read is reported as `(unreadable)`. The version is read together with the
    /// delivery id, in one pass over the body.
    ///
    /// # Panics
    ///
    /// If the provider sends no version in its requests, or if [`payload_version`](Self::payload_version) is not set;
    /// or if the version is blank, is longer than 255 bytes or contains control characters.
    #[must_use]
    #[track_caller]
    #[expect(clippy::panic, reason = "documented, and only at start")]
    pub fn expect_version(mut self, version: impl Into<Arc<str>>) -> Self {
        let version = version.into();
        assert!(
            self.identity.version().is_some(),
            "the requests of {} have no version that could be {version:?}: if they do, set its place with \
             `Provider::payload_version`",
            self.name
        );
        if let Err(fault) = check_text(&version) {
            panic!("not a usable version: {version:?} is {fault}");
        }
        self.identity = self.identity.with_expected_version(version);
        self
    }

    /// Where the body says, by `true` or `false`, whether an event is live, such as Stripe's `$.livemode`.
    /// [`expect_livemode`](Self::expect_livemode) needs it.
    #[must_use]
    pub fn livemode(mut self, path: JsonPath) -> Self {
        self.identity = self.identity.with_livemode(path);
        self
    }

    /// Sets whether the endpoint expects live events or test events.
    ///
    /// ```
    /// use idempotent_webhook::{Secret, presets};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stripe = presets::stripe(Secret::new("whsec_…")?).expect_livemode(true);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Stripe sends the test events of connected accounts to a live endpoint too, and signs them with the secret of
    /// that endpoint: see [Stripe Connect](crate::documentation::providers#stripe-connect). A delivery of the other
    /// mode is still handled, but it is reported as `test mode` or `live mode`, in the same way as [another
    /// version](Self::expect_version). A delivery that states no mode counts as expected.
    ///
    /// # Panics
    ///
    /// If the bodies of the provider do not state their mode, or if [`livemode`](Self::livemode) is not set.
    #[must_use]
    #[track_caller]
    pub fn expect_livemode(mut self, is_live: bool) -> Self {
        assert!(
            self.identity.has_livemode(),
            "the bodies of {} do not say whether they are live: if they do, set the place with `Provider::livemode`",
            self.name
        );
        self.identity = self.identity.with_expected_livemode(is_live);
        self
    }

    /// The HTTP methods of deliveries. A request with another method is answered with 405. Default: POST.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods = methods.into_iter().collect();
        self
    }

    /// The public base of the URL that the provider calls, for schemes that sign the URL.
    ///
    /// The base is everything before the path that the server sees. Without it, no request that such a scheme signs
    /// can be verified ([`SignatureError::NoPublicUrl`]), and creating a layer panics. It has no effect on other
    /// schemes.
    ///
    /// ```
    /// use idempotent_webhook::{Secret, presets};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let github = presets::github(Secret::new("a secret")?)
    ///     .public_url("https://hooks.example.com".parse()?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn public_url(mut self, base: PublicUrl) -> Self {
        self.public_url = Some(base);
        self
    }

    /// Where the provider's public keys come from, for schemes whose keys rotate and are published at an address: see
    /// [`keys`](super::keys). Those schemes need this setting. It has no effect on other schemes.
    ///
    /// ```
    /// use idempotent_webhook::provider::keys::KeySource;
    /// # use idempotent_webhook::Provider;
    ///
    /// # fn with_keys(provider: Provider) -> Result<Provider, Box<dyn std::error::Error>> {
    /// // In a test, or where the keys are fetched by other means:
    /// let jwks = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1",
    ///     "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    /// # #[cfg(feature = "ed25519")]
    /// let provider = provider.keys(KeySource::given(jwks)?);
    /// # Ok(provider)
    /// # }
    /// ```
    #[must_use]
    pub fn keys(mut self, source: KeySource) -> Self {
        self.keys = Some(source);
        self
    }

    /// How old a signature may be. It has no effect on schemes that do not sign a time.
    ///
    /// Some providers sign a retry with the time of the first attempt. Such a retry is refused once the time of the
    /// first attempt is older than the tolerance allows. If the provider does not sign each retry again, make the
    /// tolerance as long as the [redelivery window](Self::redelivery_window), as the presets do. If the delivery id is
    /// [signed](Self::signs_delivery_id), a replay within the tolerance is a duplicate.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// The largest accepted body, in bytes. A larger body is answered with 413, or with the
    /// [`failure_status`](Self::failure_status) if one is set. axum's own limit does not apply to a body within
    /// this limit.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// How long the provider waits for the response before it counts the attempt as failed.
    ///
    /// A duplicate of a delivery that is still in flight waits for at most three fifths of this deadline, unless
    /// [`in_flight_timeout`](crate::IdempotentWebhook::in_flight_timeout) is set. The deadline is also exported as
    /// a metric, for an [alert](crate::documentation::operating#metrics-and-alerts).
    ///
    /// Default: the deadline of the preset. If the provider publishes none, 5 seconds are assumed, and no metric is
    /// exported.
    #[must_use]
    pub fn response_deadline(mut self, deadline: Duration) -> Self {
        self.response_deadline = deadline;
        self.deadline_is_known = true;
        self
    }

    /// Sets a deadline that is only assumed, because the provider publishes none.
    #[must_use]
    pub(crate) fn assumed_deadline(mut self, deadline: Duration) -> Self {
        self.response_deadline = deadline;
        self.deadline_is_known = false;
        self
    }

    /// How long after the first attempt the provider may deliver again, automatically or on request.
    /// [`prune`](crate::prune) refuses a retention that is shorter than this window.
    ///
    /// At most 1000 years. A longer window is reduced to 1000 years.
    #[must_use]
    pub fn redelivery_window(mut self, window: Duration) -> Self {
        self.redelivery_window = window.min(365_000 * DAY);
        self
    }

    /// The provider's name, such as `stripe`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the signature covers the delivery id.
    ///
    /// If it does not, anyone who has captured one signed request can replay it under a new id.
    pub fn signs_delivery_id(&self) -> bool {
        self.identity.id().is_signed(&*self.scheme)
    }

    /// Whether the signature covers the body.
    ///
    /// If it does not, anyone who has captured one request, or knows the token of a provider that
    /// signs nothing, can send any body.
    pub fn signs_body(&self) -> bool {
        self.scheme.signs_body()
    }

    /// Whether the signature covers a time, so that the [tolerance](Self::tolerance) has an effect.
    pub fn signs_time(&self) -> bool {
        self.scheme.signs_time()
    }

    /// Whether the signed time is the time of this attempt, rather than of the first attempt. A tolerance of at most 15
    /// minutes implies this.
    pub(crate) fn signs_each_attempt(&self) -> bool {
        let past = self.tolerance.past();
        past.is_some_and(|past| past <= LONGEST_TOLERANCE_OF_ATTEMPTS)
    }

    /// Whether the signature covers the URL, so that it depends on [`public_url`](Self::public_url).
    pub fn signs_url(&self) -> bool {
        self.scheme.signs_url()
    }

    /// Whether every request is refused because [`public_url`](Self::public_url) is not set, although the scheme needs
    /// it.
    pub(crate) fn lacks_public_url(&self) -> bool {
        self.public_url.is_none() && self.scheme.needs_public_url()
    }

    /// Checks that the signature scheme can use the secrets.
    /// [`IdempotentWebhook::new`](crate::IdempotentWebhook::new) calls it and panics on an error.
    ///
    /// # Errors
    ///
    /// [`SecretError`] for a secret that can never match a signature: for example one that is not base64, with
    /// [`StandardWebhooks`](crate::provider::signature::StandardWebhooks). The same error is returned if the scheme
    /// needs [keys](Self::keys) that are not set, or if it needs a secret and was only given keys. Secrets from
    /// [`TenantSecrets`](crate::TenantSecrets) are not checked here; an unusable one is logged when it is used.
    pub fn check_secrets(&self) -> Result<(), SecretError> {
        let (none, fixed) = (Secrets::none(), self.secrets.fixed());
        let secrets = fixed.unwrap_or(&none);
        if self.keys.is_none() && self.scheme.needs_keys(secrets) {
            return Err(SecretError::new(
                "the provider signs with keys that are fetched: set `Provider::keys`",
            ));
        }
        if fixed.is_some() && secrets.iter().next().is_none() && self.scheme.takes_secrets() {
            return Err(SecretError::new(
                "only keys were given: give the secret in their place, and the keys to `Provider::keys`",
            ));
        }
        secrets
            .iter()
            .try_for_each(|secret| self.scheme.check_secret(secret))
    }

    pub(crate) fn has_event_type(&self) -> bool {
        self.identity.event_type().is_some()
    }

    /// Whether the event type can have a qualifier.
    pub(crate) fn has_event_action(&self) -> bool {
        self.identity.event_action().is_some()
    }

    /// Why no event of the provider can have this name, which `Events` or [`only`](crate::IdempotentWebhook::only)
    /// lists. `None` if an event can have it.
    pub(crate) fn never_matches(&self, name: &str) -> Option<String> {
        if self.name_forms.allow(name) {
            return None;
        }
        let like: Vec<_> = self
            .name_forms
            .listed()
            .map(|name| format!("`{name}`"))
            .collect();
        let meant = self.name_forms.rewrite(name);
        let meant = meant.map(|meant| format!(". Is `{meant}` meant?"));
        Some(format!(
            "the names of {} are like {}{}",
            self.name,
            like.join(", "),
            meant.unwrap_or_default()
        ))
    }

    /// Whether the signature covers the version of the payload.
    pub(crate) fn signs_payload_version(&self) -> bool {
        let source = self.identity.version();
        match self.identity.expects_livemode() {
            // The mode (live or test) counts as the version, and is in the body.
            true => self.signs_body(),
            false => source.is_some_and(|source| source.is_signed(&*self.scheme)),
        }
    }

    /// The expected versions and the expected mode.
    pub(crate) fn expected_versions(&self) -> Vec<Arc<str>> {
        self.identity.expected_versions()
    }

    /// Whether the signature covers the event type.
    pub(crate) fn signs_event_type(&self) -> bool {
        let source = self.identity.event_type();
        source.is_some_and(|source| source.is_signed(&*self.scheme))
    }

    /// The event type joined with its qualifier, if there is one. Mercado Pago's action already contains the event
    /// type.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it cannot be determined whether there is a qualifier.
    pub(crate) fn qualified_type(
        &self,
        event_type: &str,
        head: &Parts,
        body: &[u8],
    ) -> Result<Option<String>, Unreadable> {
        let action = self.identity.read_action(head, body)?;
        let is_whole = |action: &str| {
            let rest = action.strip_prefix(event_type);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        Ok(action.map(|action| match is_whole(&action) {
            true => action,
            false => format!("{event_type}.{action}"),
        }))
    }

    /// The headers that carry the delivery id, the event type, its qualifier or the version of the payload.
    pub(crate) fn identifying_headers(&self) -> impl Iterator<Item = &HeaderName> {
        let sources = [
            Some(self.identity.id()),
            self.identity.event_type(),
            self.identity.event_action(),
            self.identity.version(),
        ];
        sources.into_iter().flatten().flat_map(Source::headers)
    }

    /// The header with the signature: the header that the scheme reports as missing if a request has no headers.
    pub(crate) fn signature_header(&self) -> Option<HeaderName> {
        let (head, ()) = http::Request::new(()).into_parts();
        match self.scheme.check_head(&head) {
            Err(SignatureError::MissingHeader(name)) => Some(name),
            _ => None,
        }
    }

    /// Whether the provider is known to use a header: the header carries the signature, the delivery id, the event
    /// type or the version, or the signature covers it.
    pub(crate) fn is_known_for(&self, name: &HeaderName) -> bool {
        self.signature_header().as_ref() == Some(name)
            || self.scheme.signed_headers().contains(name)
            || self.identifying_headers().any(|known| known == name)
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// The number of secrets. 0 if they depend on the request.
    pub(crate) fn number_of_secrets(&self) -> usize {
        let fixed = self.secrets.fixed();
        fixed.map_or(0, |secrets| secrets.iter().count())
    }

    /// Whether the provider's secrets belong to tenants.
    pub(crate) fn has_tenants(&self) -> bool {
        self.secrets.fixed().is_none()
    }

    /// Whether the provider's keys are fetched and its secrets belong to tenants.
    pub(crate) fn fetches_keys_of_tenants(&self) -> bool {
        self.has_tenants() && self.keys.as_ref().is_some_and(KeySource::is_fetched)
    }

    pub(crate) fn secrets(&self) -> &SecretSource {
        &self.secrets
    }

    /// The path and the query, without the query parameters that contain a secret.
    pub(crate) fn without_secrets(&self, path_and_query: &str) -> String {
        let names = self.scheme.secret_parameters();
        let Some((path, query)) = path_and_query.split_once('?').filter(|_| !names.is_empty())
        else {
            return path_and_query.to_owned();
        };
        let is_secret = |part: &&str| {
            let mut decoded = form_urlencoded::parse(part.as_bytes());
            decoded.any(|(name, _)| names.contains(&&*name))
        };
        let rest: Vec<_> = query.split('&').filter(|part| !is_secret(part)).collect();
        format!("{path}?{}", rest.join("&"))
    }

    #[cfg(feature = "testing")]
    pub(crate) fn key_source(&self) -> Option<&KeySource> {
        self.keys.as_ref()
    }

    /// The expected versions, without the mode.
    pub(crate) fn expected_payload_versions(&self) -> &[Arc<str>] {
        self.identity.expected_payload_versions()
    }

    pub(crate) fn get_public_url(&self) -> Option<&PublicUrl> {
        self.public_url.as_ref()
    }
}

/// What a test delivery needs: the scheme, a secret, and where to write the identifying values.
#[cfg(feature = "testing")]
impl Provider {
    pub(crate) fn scheme(&self) -> &dyn SignatureScheme {
        &*self.scheme
    }

    /// The first secret. `None` if the secrets belong to tenants. Any text if the provider needs only public keys.
    pub(crate) fn first_secret(&self) -> Option<Secret> {
        let secrets = self.secrets.fixed()?;
        let first = secrets.iter().next().cloned();
        first.or_else(|| Some(self.scheme.dummy_secret()))
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }
}
