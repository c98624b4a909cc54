use http::HeaderName;

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

/// [HCP Terraform](https://developer.hashicorp.com/terraform/cloud-docs/api-docs/notification-configurations),
/// formerly Terraform Cloud, and Terraform Enterprise: generic notifications.
///
/// - Signature: `X-TFE-Notification-Signature: <hex>`, an HMAC-SHA512 of the body under the token
///   of the notification configuration. The header is only sent if there is a token.
/// - Delivery id: none is sent. The preset uses `$.run_id` of a run, `$.details.new_assessment_result.id` of a
///   health assessment, or `$.change_request_created_at` of a change request, together with the SHA-256 of the
///   body; all are covered by the signature. The remaining notifications, for automatic destroy runs, contain
///   nothing that is known to make their bodies unique. They get a [receipt](Source::receipt) as their id, so **a
///   retry of such a notification runs the handler again**. Event type: `$.notifications[0].trigger` for runs,
///   such as `run:completed`, and `$.trigger` for workspaces. None is documented for change requests.
/// - Groups: `run:*`.
#[doc = include_str!("facts/terraform-cloud.md")]
pub fn terraform_cloud(secrets: impl Into<SecretSource>) -> Provider {
    let scheme =
        Hmac::hex(HeaderName::from_static("x-tfe-notification-signature")).hash(Hash::Sha512);
    #[expect(clippy::unwrap_used, reason = "a constant that parses")]
    let of_run: JsonPath = OF_RUN.parse().unwrap();
    let with_body = |id: JsonPath| Source::json(id).and(Source::body_digest());
    let assessment = JsonPath::member("details")
        .then("new_assessment_result")
        .then("id");
    Provider::custom("terraform-cloud")
        .signature(scheme, secrets)
        .delivery_id(
            with_body(JsonPath::member("run_id"))
                .or(with_body(assessment))
                .or(with_body(JsonPath::member("change_request_created_at")))
                .or(Source::receipt()),
        )
        .event_type(Source::json(of_run).or(Source::json(JsonPath::member("trigger"))))
        .event_names_like(["run:needs_attention"])
        .and_event_names(&["verification"])
        .payload_version(Source::json(JsonPath::member("payload_version")))
        .signed_handshake(verification)
}

/// The trigger of a run notification. The list always has one notification.
const OF_RUN: &str = "$.notifications[0].trigger";

fn verification(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    const TRIGGER: &str = "verification";
    let trigger = request.json(&OF_RUN.parse().ok()?)?;
    (trigger == TRIGGER).then(|| Handshake::empty(TRIGGER))
}
