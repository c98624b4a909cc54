use http::HeaderName;

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{
    Handshake, HandshakeRequest, JsonPath, Provider, Retry, SecretSource, Source,
};

/// [HCP Terraform](https://developer.hashicorp.com/terraform/cloud-docs/api-docs/notification-configurations),
/// formerly Terraform Cloud, and Terraform Enterprise: generic notifications.
///
/// - Signature: `X-TFE-Notification-Signature: <hex>`, an HMAC-SHA512 of the body under the token of
///   the notification configuration. It is only sent if there is a token.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature.
///   For runs, the id of the configuration, the trigger, and the run with the time of its update make it
///   unique. **For workspaces, nothing is known to make it unique: of two notifications with the same
///   body, the second is lost.** Set [`Source::receipt`] where that matters. Event type:
///   `$.notifications[0].trigger` for runs, such as `run:completed`, and `$.trigger` for workspaces.
/// - Handshake: the verification when a configuration is saved or tested, whose trigger is
///   `verification`, is signed and answered with 200. A configuration cannot be switched on without.
/// - Redelivery: not documented; the redelivery window is 30 days.
/// - Retry: not documented. One with another body runs the handler again.
/// - Answer: any 2xx.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; HashiCorp publishes none.
pub fn terraform_cloud(secrets: impl Into<SecretSource>) -> Provider {
    let scheme =
        Hmac::hex(HeaderName::from_static("x-tfe-notification-signature")).hash(Hash::Sha512);
    #[expect(clippy::unwrap_used, reason = "a constant that parses")]
    let of_run: JsonPath = OF_RUN.parse().unwrap();
    Provider::custom("terraform-cloud")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(of_run).or(Source::json(JsonPath::member("trigger"))))
        .signed_handshake(verification)
        .retry(Retry::unknown().id_unknown())
}

/// The trigger of a notification of a run. There is always one notification.
const OF_RUN: &str = "$.notifications[0].trigger";

fn verification(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    const TRIGGER: &str = "verification";
    let trigger = request.json(&OF_RUN.parse().ok()?)?;
    (trigger == TRIGGER).then(|| Handshake::empty(TRIGGER))
}
