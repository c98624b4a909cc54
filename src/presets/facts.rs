//! Written by `tests/provider/facts` from `facts.json` and what the presets set.

/// What is known of the provider, for the documentation of its preset.
macro_rules! facts {
    ("adyen") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; three times at once, then from a queue with growing pauses of 2 minutes to 8 hours, for up to 30 days. The redelivery window is 30 days.
- Retry: identical (likely), `reason` changes.
- Switched off: unknown.
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Adyen warns that other fields of a retry, such as `reason`, may be newer.
- While a delivery fails, the ones after it wait in the queue of the endpoint.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.adyen.com/development-resources/webhooks/troubleshoot>, checked in 2026-11."#
    };
    ("airtable") => {
        r#"- Success: 200, 204; every success is answered with 200.
- Redelivery: after every failure (likely); automatically; for how long is not known. The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: after 7 days without a refresh of the webhook (second-hand).
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- The answer must have no body, so no answer has one.
- A retry with a new `$.timestamp` runs the handler again.
- Pings are small.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://airtable.com/developers/web/api/webhooks-overview>, checked in 2026-11."#
    };
    ("airwallex") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; over about 3 days, with growing pauses; on request in the web app. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has the same `$.id`; whether it is signed at a new time is not documented.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.airwallex.com/docs/developer-tools/webhooks/listen-for-webhook-events>, checked in 2026-11."#
    };
    ("alchemy") => {
        r#"- Success: 200 (likely); every success is answered with 200.
- Redelivery: after every failure (likely); several times, with growing pauses (likely). The redelivery window is 7 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry likely has the same body.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.alchemy.com/docs/reference/notify-api-faq>, checked in 2026-11."#
    };
    ("anthropic") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; a few times (likely); then the event is dropped (second-hand). The redelivery window is 30 days.
- Retry: signed anew (likely).
- Switched off: after about 20 failures in a row (second-hand).
- Response deadline: 15 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Redirects are failures.
- A retry has the same `$.id` (second-hand), and is likely signed at a new time, as Standard Webhooks has it.
- The deadline is the least that Standard Webhooks asks of senders.
- Events only have types and ids.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://platform.claude.com/docs/en/managed-agents/webhooks>, checked in 2026-11."#
    };
    ("apple-app-store") => {
        r#"- Success: 200-206; every success is answered with 200.
- Redelivery: after every failure; 5 times, 1, 12, 24, 48 and 72 hours after the attempt before; in the sandbox never. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Apple's API lists the notifications of 180 days.
- A retry has the same `notificationUUID`; whether it is signed anew is not documented.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://developer.apple.com/documentation/appstoreservernotifications/responding-to-app-store-server-notifications>, checked in 2026-11."#
    };
    ("asana") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; for up to 24 hours. The redelivery window is 3 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: a POST with `X-Hook-Secret` is answered with that header. Keep the secret with [`secret_exchange`](Provider::secret_exchange), or it is lost.
- Asana does not promise to deliver every event, and sends none again that was delivered.
- A retry with other events beside the same ones runs the handler again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.asana.com/docs/webhooks-guide>, checked in 2026-11."#
    };
    ("auth0-log-streams") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); up to 3 times, at times that are not published. The redelivery window is 7 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- What fails for good is listed in the tab *Health* of the stream.
- A retry in a batch with other logs runs the handler again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://auth0.com/docs/customize/log-streams/custom-log-streams>, checked in 2026-11."#
    };
    ("authorize-net") => {
        r#"- Success: 200 (likely); every success is answered with 200.
- Redelivery: after every failure (likely); 10 times over about 9 days (likely). The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: after the last attempt (likely).
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry is likely the same notification.
- The real notification among the cases comes from the test suite of a third party, and its digits were put in lower case.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.authorize.net/api/reference/features/webhooks.html>, checked in 2026-11."#
    };
    ("awardee") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; after about 30 seconds, 2, 10 and 30 minutes, 2 hours and so on, for about 24 hours; also on request. The redelivery window is 30 days.
- Retry: signed anew.
- Switched off: unknown.
- Response deadline: 30 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A 3xx is a failure.
- A retry has the same id and body, and is signed anew, also one on request.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://api-docs.awardee.dev/webhooks/signing>, checked in 2026-11."#
    };
    ("aws-sns") => {
        r#"- Success: 2xx.
- Redelivery: after 429 and 500 to 599 only; 3 times, 20 seconds apart, or as your delivery policy says, within an hour. The redelivery window is 24 hours. Failures and rejections are answered with 503.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 15 s.
- Body limit: 2 MiB.
- Handshake: the `SubscriptionConfirmation` of the topic, which is signed, is confirmed by a GET of its `SubscribeURL`: by the client of [`Provider::keys`](Provider::keys), or as [`Provider::confirm_subscription`](Provider::confirm_subscription) says. It is answered with 200 afterwards, and with 503 if it fails, so that SNS sends it again. Whoever has captured one can have it confirmed again, once a minute, for as long as SNS takes its token. An `UnsubscribeConfirmation` is answered with 200, and nothing else is done.
- A retry is likely identical.
- A message has at most 256 KiB over HTTP.
- **The tolerance of a day counts from the publishing of the message: one from a backlog that is throttled may be older.**
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html>, checked in 2026-11."#
    };
    ("azure-event-grid") => {
        r#"- Success: 200-204; every success is answered with 200.
- Redelivery: after every failure but 400, 401, 403 and 413; up to 30 times over 24 hours, unless you set another limit; of a namespace up to 10 times over up to 7 days. The redelivery window is 8 days. Failures and rejections are answered with 503.
- Retry: identical (likely), `aeg-delivery-count` changes.
- Switched off: unknown.
- Response deadline: 30 s.
- Body limit: 2 MiB.
- Handshake: a `SubscriptionValidation` with the secret is answered with its `validationCode`, and OPTIONS with the secret by consent to the origin. `validationUrl` is not visited.
- A retry is likely identical but for `aeg-delivery-count`.
- A wrong secret gets the same answer, so that a change of the secret loses nothing.
- A batch has at most 1 MiB.
- What fails for good is dropped, unless the subscription has a place for dead letters.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://learn.microsoft.com/azure/event-grid/delivery-and-retry>, checked in 2026-11."#
    };
    ("bigcommerce") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 11 times over 48 hours, with growing pauses. The redelivery window is 3 days.
- Retry: signed anew (likely).
- Switched off: after the last retry; each failure: a domain is passed over for 3 minutes if less than 90 % of its answers within 2 minutes are a success.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry is likely signed at a new time under the same `webhook-id`, as Standard Webhooks has it.
- The body has only the id of the object, which the handler has to ask for.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.bigcommerce.com/docs/integrations/webhooks/https-webhook-overview>, checked in 2026-11."#
    };
    ("bitbucket") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 500 to 599 only; up to 2 more times, likely at once (likely); also on request. The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: unknown, id unknown, `X-Attempt-Number` changes.
- Switched off: unknown.
- Response deadline: 10 s.
- Body limit: 2 MiB.
- Handshake: none.
- A retry has another `X-Attempt-Number`. Whether `X-Request-UUID` stays is not documented: if it does not, the handler runs again.
- Payloads have at most 256 kB; an event with a larger one is not sent.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://support.atlassian.com/bitbucket-cloud/docs/troubleshoot-webhooks/>, checked in 2026-11."#
    };
    ("box") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; up to 12 times over 2 hours; other pages of Box say 10 times. The redelivery window is 7 days.
- Retry: signed anew (likely), `BOX-DELIVERY-ID` changes.
- Switched off: deleted when the last success is 30 days old and the last event came more than 14 days after it.
- Response deadline: 30 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has a new `BOX-DELIVERY-ID` and likely a new time, and the same `$.id`.
- A webhook that Box deletes is announced with the event `WEBHOOK.DELETED`.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.box.com/guides/webhooks/v2/signatures-v2/>, checked in 2026-11."#
    };
    ("braintree") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; hourly, for 24 hours in production and 3 hours in the sandbox. The redelivery window is 3 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 30 s.
- Body limit: 2 MiB; none is published.
- Handshake: a GET with `bt_challenge` when the webhook is created, to be answered with `<public key>|<hex of the HMAC of the challenge>`.
- A retry with another time in its payload runs the handler again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.paypal.com/braintree/docs/guides/webhooks/overview>, checked in 2026-11."#
    };
    ("brevo") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 429 only; 4 times over about 11 hours, after 10 minutes, 1, 2 and 8 hours. The redelivery window is 3 days. Failures and rejections are answered with 429.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Brevo's page says that any "5xX" ends the event, which is read here as every 5xx.
- A retry likely has the same body.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.brevo.com/docs/retry-mechanism>, checked in 2026-11."#
    };
    ("brex") => {
        r#"- Success: 2xx (likely).
- Redelivery: after which answers is not known. The redelivery window is 30 days.
- Retry: signed anew (likely).
- Switched off: unknown.
- Response deadline: 15 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry is likely signed at a new time under the same id, as Standard Webhooks has it.
- The deadline is the least that Standard Webhooks asks of senders.
- Basis: third parties describe the signature; **the provider's word is missing**. Source: <https://developer.brex.com/docs/webhooks/>, checked in 2026-11."#
    };
    ("buildkite") => {
        r#"- Success: 2xx (likely).
- Redelivery: after which answers is not known. The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry that is signed anew runs the handler again, and so does every one with the token.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://buildkite.com/docs/apis/webhooks/pipelines>, checked in 2026-11."#
    };
    ("cal") => {
        r#"- Success: 2xx.
- Redelivery: never by itself (likely): **what fails is lost, unless it is [kept](crate::Keep)**; none, unless the server sends through its queue of tasks (`TASKER_ENABLE_WEBHOOKS=1`); whether cal.com itself does is not known. The redelivery window is 7 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none. A test from the dashboard is a delivery like any other.
- A retry from the queue likely has the same body, with the `$.createdAt` of the first attempt.
- **A delivery that fails may be lost**, unless the layer keeps it.
- A test from the dashboard is a delivery like any other.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://cal.com/docs/developing/guides/automation/webhooks>, checked in 2026-11."#
    };
    ("calendly") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; for 24 hours, or until 24 hours after the booked event, with growing pauses. The redelivery window is 3 days.
- Retry: unknown, id unknown.
- Switched off: after 24 hours without a success; a new webhook has to be made then.
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A 3xx is a failure.
- The connection has 10 seconds of its own.
- Calendly does not say so when it disables a webhook.
- A retry with another body runs the handler again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.calendly.com/api-docs/overview/webhooks/webhook-signatures>, checked in 2026-11."#
    };
    ("cashfree") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; by default 3 times, after 2, 10 and 30 minutes; up to 10 times if the endpoint is configured so; on request in the dashboard. The redelivery window is 30 days.
- Retry: unknown, `x-webhook-attempt` changes.
- Switched off: of payouts after more than five failures in a row.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has another `x-webhook-attempt` and likely the same body. If the body differs, the handler runs again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.cashfree.com/docs/payments/online/webhooks/signature-verification>, checked in 2026-11."#
    };
    ("chargebee") => {
        r#"- Success: 2xx; every success is answered with 200.
- Redelivery: after every failure; 7 times over about 3 days, after 2, 6 and 30 minutes, 1 and 5 hours, 1 and 2 days; on request later. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- An older page has 200 alone as success, so every success gets it.
- A retry has the same `$.id`; nothing else is documented.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://apidocs.chargebee.com/docs/api/events>, checked in 2026-11."#
    };
    ("checkout") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 8 times over about 30 hours; on request later. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: 10 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- The deadline is from an older page.
- The id is that of the event, so a retry likely has the same.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.checkout.com/docs/developer-resources/event-notifications/receive-webhooks>, checked in 2026-11."#
    };
    ("circle") => {
        r#"- Success: 2xx; every success is answered with 200.
- Redelivery: after every failure; of CPN 11 times over about 36 hours, in the sandbox 6 times; of others not known; on request, too. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: a HEAD request when the endpoint is registered, to be answered with success.
- Some pages have 200 alone as success, so every success gets it.
- A retry has the same `$.notificationId`; whether the rest stays is not documented.
- With tests, the id is the zero UUID, so that the second one is a duplicate.
- Basis: an example in the provider's documents verifies. Source: <https://developers.circle.com/api-reference/verify-webhook-signatures>, checked in 2026-11."#
    };
    ("circleci") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; automatically, later. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has the same `$.id`, and is likely the very same request.
- Basis: an example in the provider's documents verifies. Source: <https://circleci.com/docs/guides/integration/outbound-webhooks/>, checked in 2026-11."#
    };
    ("clerk") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; as of Svix: for about 28 hours, with growing pauses; on request later. The redelivery window is 30 days.
- Retry: signed anew.
- Switched off: after all attempts have failed for 5 days (likely, as of Svix).
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has the same id and body, and is signed anew.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://clerk.com/docs/guides/development/webhooks/overview>, checked in 2026-11."#
    };
    ("clickup") => {
        r#"- Success: 2xx.
- Redelivery: after every failure but 410; up to 5 times; over how long is not known, and an event that has failed is not sent later. The redelivery window is 7 days. Failures and rejections are answered with 503.
- Retry: identical (likely).
- Switched off: suspended after 100 events that failed; 410: suspended at once.
- Response deadline: 7 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry likely has the same body. If it differs, the handler runs again.
- The count of failures starts again after a success.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.clickup.com/docs/webhookhealth>, checked in 2026-11."#
    };
    ("cloudevents") => {
        r#"- Success: 200, 201, 202, 204.
- Redelivery: after every failure but 410 (likely). The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: unknown.
- Switched off: after a 410; 410: the sender should send nothing more.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: OPTIONS with `WebHook-Request-Origin` is answered with consent to that origin, with any number of requests. It is not authenticated, as the specification has it.
- The specification leaves the retries to the sender, which has to observe the `Retry-After` of a 429, and follows no redirect.
- An event that is sent again may have the same id.
- The specification asks receivers to take events of 64 KiB at least.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md>, checked in 2026-11."#
    };
    ("cloudflare-stream") => {
        r#"- Success: 2xx (likely).
- Redelivery: after which answers is not known. The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry with another body runs the handler again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/>, checked in 2026-11."#
    };
    ("cloudinary") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); 3 times, after 3, 6 and 9 minutes (second-hand). The redelivery window is 24 hours.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 4 MiB; none is published.
- Handshake: none.
- A retry with another body runs the handler again.
- One notification can have many assets.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://cloudinary.com/documentation/notification_signatures>, checked in 2026-11."#
    };
    ("coinbase") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); up to 60 times (second-hand). The redelivery window is 30 days.
- Retry: signed anew (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry is likely signed at a new time under the same `X-Event-Id`.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.cdp.coinbase.com/webhooks/verify-signatures>, checked in 2026-11."#
    };
    ("coinbase-commerce") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; for 3 days, with growing pauses of up to an hour. The redelivery window is 30 days.
- Retry: signed anew (likely), `$.attempt_number` changes.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has another `$.attempt_number`, so it is signed anew. That `$.event.id` stays is likely.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.cdp.coinbase.com/commerce/api-arcitecture/webhooks-overview>, checked in 2026-11."#
    };
    ("contentful") => {
        r#"- Success: 2xx.
- Redelivery: after 429 and 500 to 599 (likely) only; twice, 30 seconds apart; up to 99 times over about 24 hours, if the space is set so. The redelivery window is 2 days. Failures and rejections are answered with 503.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: 30 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- The key of the delivery belongs to the call, so a retry likely has the same.
- A user once found that timeouts alone were retried, and no status (contentfulcommunity.com, years ago).
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.contentful.com/developers/docs/webhooks/retry-policy/>, checked in 2026-11."#
    };
    ("customerio") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; for 7 days, with growing pauses. The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: unknown.
- Switched off: unknown; 400, 401, 402, 403, 404, 405, 410, 429, 500, 502 and 521: the next attempt comes an hour later.
- Response deadline: 4 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- **Until a failed delivery succeeds or its 7 days are over, Customer.io holds back the webhooks that follow.**
- The id is that of the event, so a retry likely has the same.
- Basis: third parties describe the signature; **the provider's word is missing**. Source: <https://docs.customer.io/api/webhooks/>, checked in 2026-11."#
    };
    ("discord") => {
        r#"- Success: 204 to webhook events, 200 to interactions.
- Redelivery: after every failure (likely); interactions never; webhook events several times, with growing pauses, for up to 10 minutes. The redelivery window is 24 hours.
- Retry: unknown.
- Switched off: no more webhook events if too many fail; the URL is removed if a wrong signature is not answered with 401.
- Response deadline: 3 s.
- Body limit: 2 MiB; none is published.
- Handshake: a signed `PING`, again and again. That of interactions is answered with `{"type":1}`, that of webhook events with 204 and a content type. Discord also sends wrong signatures on purpose, and removes the URL unless they are answered with 401.
- Duplicates, and deliveries that are kept or accepted, get 204. An interaction wants 200 and JSON, so the handler's own answer is left as it is: answer events with 204.
- Discord sends wrong signatures on purpose, again and again.
- Whether a retry is signed at a new time is not documented.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.discord.com/developers/events/webhook-events>, checked in 2026-11."#
    };
    ("documenso") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; a few times, by the job queue of the installation; on request in the log of the webhook. The redelivery window is 30 days.
- Retry: identical, **new id**, `$.createdAt` changes.
- Switched off: unknown.
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has a new `$.createdAt`, as has one on request, so that the handler runs again. With `$.deliveryId`, which is proposed, it would have the same id.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.documenso.com/docs/developers/webhooks/verification>, checked in 2026-11."#
    };
    ("docuseal") => {
        r#"- Success: below 400.
- Redelivery: after every failure; 10 or 12 times, each after twice as long, for up to 6 days; on request. The redelivery window is 30 days.
- Retry: signed anew, `$.data` changes.
- Switched off: unknown.
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A redirect counts as a success.
- A retry is signed at a new time with the same event; `$.data` is read anew, and may be newer.
- In DocuSeal's cloud, retries are likely for paid plans alone.
- The test of a webhook is not signed, so that this preset rejects it.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://github.com/docusealco/docuseal>, checked in 2026-11."#
    };
    ("docusign") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); for up to 15 days (likely); on request by the API. The redelivery window is 30 days.
- Retry: signed anew (likely), `$.retryCount` changes.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 25 MiB; none is published.
- Handshake: none.
- A retry is likely the same message with another `$.retryCount`.
- **Set `requiresAcknowledgement` in the configuration of Connect**: likely nothing is tried again without it.
- A body can have documents.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.docusign.com/platform/webhooks/connect/hmac/>, checked in 2026-11."#
    };
    ("dropbox") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; for about ten minutes, with growing pauses (from an older page). The redelivery window is 24 hours.
- Retry: unknown, **new id**.
- Switched off: if too many notifications fail (likely).
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: the GET with `challenge` is answered with its text.
- Each retry runs the handler again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.dropbox.com/developers/reference/webhooks>, checked in 2026-11."#
    };
    ("dropbox-sign") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; for about 3 days, with growing pauses. The redelivery window is 7 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 4 MiB; none is published.
- Handshake: the `callback_test` of a new URL, which is signed.
- Only the text `Hello API Event Received` counts as success, so every success gets it, and the text of the handler is dropped.
- A retry with other JSON runs the handler again.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://developers.hellosign.com/docs/events/overview/>, checked in 2026-11."#
    };
    ("dwolla") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 8 times over 72 hours, after 15 and 45 minutes, 2, 3, 6, 12, 24 and 24 hours; on request. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: paused after 400 failures in a row and 24 hours without a success.
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Redirects are failures.
- A retry is likely the same event.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.dwolla.com/docs/api-reference/webhook-subscriptions>, checked in 2026-11."#
    };
    ("easypost") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; for 24 hours, with growing pauses. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: 7 s (likely).
- Body limit: 4 MiB; none is published.
- Handshake: none.
- The deadline is second-hand.
- The id is that of the event, so a retry likely has the same.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.easypost.com/guides/webhooks-guide>, checked in 2026-11."#
    };
    ("ebay") => {
        r#"- Success: 200, 201, 202, 204 (likely); every success is answered with 200.
- Redelivery: after every failure (likely); until it is acknowledged, for up to 30 days (likely). The redelivery window is 30 days.
- Retry: signed anew (likely), `$.notification.publishAttemptCount` changes.
- Switched off: marked as down after 24 hours without an acknowledgement, with 30 days to mend it (likely).
- Response deadline: 3 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: a GET with `challenge_code`, which anyone can send, is answered with `{"challengeResponse": "<hex>"}`, a SHA-256 of the code, the verification token and the URL without its query. So let the token be random: whoever has an answer can try any number of guesses.
- A retry has the same id, and in its body another `$.notification.publishAttemptCount` and `$.notification.publishDate`, so it is likely signed anew.
- The deadline is that of eBay's older notifications.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://developer.ebay.com/marketplace-account-deletion>, checked in 2026-11."#
    };
    ("ecwid") => {
        r#"- Success: 200, 201, 202, 204, 209; every success is answered with 200.
- Redelivery: after every failure; 27 times over 24 hours. The redelivery window is 3 days.
- Retry: identical (likely).
- Switched off: blocked after 2 weeks without a success.
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Redirects and each other 2xx are failures, and older pages have 200 alone, so every success gets it.
- The connection must stand within 3 seconds.
- A retry is likely the same event.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.ecwid.com/build-apps/webhook-automations/setup-webhooks/how-to-process-webhooks>, checked in 2026-11."#
    };
    ("elevenlabs") => {
        r#"- Success: 200 (likely); every success is answered with 200.
- Redelivery: after 408, 429 and 500 to 599 only; none by default; if retries are switched on for the webhook, `post_call_transcription` up to 5 times over about 40 minutes, and nothing else. The redelivery window is 24 hours. Failures and rejections are answered with 503.
- Retry: unknown, id unknown.
- Switched off: after 10 failures in a row, if the last success is more than 7 days ago or there was none; it has to be switched on again by hand.
- Response deadline: not published; 10 s are assumed.
- Body limit: 25 MiB; none is published.
- Handshake: none.
- Body limit: a body can have the sound of a call (not confirmed).
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://elevenlabs.io/docs/eleven-api/resources/webhooks>, checked in 2026-11."#
    };
    ("fal") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); 10 times over 2 hours; by a newer note up to 31 attempts, until the result expires (likely). The redelivery window is 3 days.
- Retry: signed anew (likely).
- Switched off: unknown.
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://fal.ai/docs/model-apis/webhooks>, checked in 2026-11."#
    };
    ("figma") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure but 400 (likely); 3 times, after 5 minutes, an hour and 3 hours (likely). The redelivery window is 2 days. Failures and rejections are answered with 503.
- Retry: unknown, `$.retries` changes.
- Switched off: at once, by a 400; 400: stops the webhook at once.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: an event `PING` when the webhook is created, to be answered with 200.
- Figma asks for a 400 where the passcode is wrong, which stops the webhook. The preset answers otherwise, so that a passcode that was changed there first loses nothing.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.figma.com/docs/rest-api/webhooks-security>, checked in 2026-11."#
    };
    ("fireblocks") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after 408, 429 and 500 to 599 only; 10 attempts over about 8 hours, with pauses that grow from 10 seconds to 4 hours; later on request. The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.fireblocks.com/docs/webhooks-notifications>, checked in 2026-11."#
    };
    ("flutterwave") => {
        r#"- Success: 200 (likely); every success is answered with 200.
- Redelivery: after every failure (likely); only if retries are switched on in the dashboard: 3 times, 30 minutes apart (likely). The redelivery window is 7 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A deadline of 60 seconds is reported, but not confirmed.
- The scheme of version 4 is second-hand; that of version 3 is documented.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.flutterwave.com/docs/webhooks>, checked in 2026-11."#
    };
    ("forgejo") => {
        r#"- Success: 2xx.
- Redelivery: never by itself: **what fails is lost, unless it is [kept](crate::Keep)**; on request only, as long as Forgejo keeps the delivery, which is 7 days by default (likely). The redelivery window is 30 days.
- Retry: none, **new id**.
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- What is delivered again on request has a new id.
- The setting `DELIVER_TIMEOUT` of the instance changes the deadline.
- Forgejo has no limit of the body.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://forgejo.org/docs/latest/user/webhooks/>, checked in 2026-11."#
    };
    ("front") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); up to 3 times (likely); over how long is not documented. The redelivery window is 3 days.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: 5 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: the signed `sync` with `X-Front-Challenge`, when the webhook is saved, is answered with `{"challenge": "<its value>"}`.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://dev.frontapp.com/docs/application-webhooks>, checked in 2026-11."#
    };
    ("gitea") => {
        r#"- Success: 2xx.
- Redelivery: never by itself: **what fails is lost, unless it is [kept](crate::Keep)**; on request only, as long as Gitea keeps the delivery, which is 7 days by default (likely). The redelivery window is 30 days.
- Retry: none, **new id**.
- Switched off: never.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- What is delivered again on request has a new id.
- The setting `DELIVER_TIMEOUT` of the instance changes the deadline.
- Gitea has no limit of the body.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.gitea.com/usage/repository/webhooks>, checked in 2026-11."#
    };
    ("github") => {
        r#"- Success: 2xx.
- Redelivery: never by itself: **what fails is lost, unless it is [kept](crate::Keep)**; on request only, for 3 days. The redelivery window is 3 days.
- Retry: none.
- Switched off: never.
- Response deadline: 10 s.
- Body limit: 25 MiB.
- Handshake: none.
- A delivery that is requested again has the same id.
- GitHub Enterprise Server waits for 30 seconds.
- Events above 25 MB are never sent.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.github.com/webhooks>, checked in 2026-11."#
    };
    ("github-secret-scanning") => {
        r#"- Success: 2xx (likely).
- Redelivery: after which answers is not known. The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 16 MiB; none is published.
- Handshake: none.
- The answer may have a list of what became of the tokens, which a duplicate does not get.
- Body limit: an alert may have many tokens.
- Basis: an example in the provider's documents verifies. Source: <https://docs.github.com/en/code-security/secret-scanning/secret-scanning-partnership-program/secret-scanning-partner-program>, checked in 2026-11."#
    };
    ("gitlab") => {
        r#"- Success: 2xx.
- Redelivery: never by itself: **what fails is lost, unless it is [kept](crate::Keep)**; on request only, for 7 days (likely). The redelivery window is 30 days.
- Retry: none.
- Switched off: a hook of a project or group: after 4 failures in a row, for 1 minute to 24 hours; after 40 for good; 4xx: before GitLab 17.11, after 4 in a row the hook was disabled for good, and after 5xx only for a time.
- Response deadline: 10 s.
- Body limit: 25 MiB.
- Handshake: none.
- What is sent again on request, or by a job of GitLab that was interrupted, has the same id.
- **What happens while a hook is disabled is never sent.**
- A self-managed instance can set another deadline (`webhook_timeout`).
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.gitlab.com/user/project/integrations/webhooks/>, checked in 2026-11."#
    };
    ("gocardless") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; up to 8 times, after 1, 2 and 10 minutes and then longer pauses; later on request. The redelivery window is 30 days. A wrong signature is answered with 498.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 10 s.
- Body limit: 4 MiB; none is published.
- Handshake: none.
- A redirect is a failure.
- GoCardless asks for 498 after a wrong signature.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://support.gocardless.com/hc/en-nz/articles/360000989989-Webhook-retries-failures>, checked in 2026-11."#
    };
    ("google-pubsub") => {
        r#"- Success: 102, 200, 201, 202, 204; every success is answered with 200.
- Redelivery: after every failure; until the message is acknowledged or older than the retention of the subscription, which is 7 days unless you set another, up to 31 days. The redelivery window is 31 days.
- Retry: signed anew (likely), `$.deliveryAttempt` changes.
- Switched off: the subscription is deleted 31 days after its last success, unless it has another `expiration_policy`.
- Response deadline: 10 s.
- Body limit: 16 MiB.
- Handshake: none.
- The deadline is the acknowledgement deadline of the subscription, 10 seconds unless you set another.
- A subscription with a dead-letter topic gives up after the number of attempts that it sets.
- Body limit: a message of 10 MB in base64.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://cloud.google.com/pubsub/docs/push>, checked in 2026-11."#
    };
    ("help-scout") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure but 410 (likely); up to 10 times (likely); over how long is not confirmed. The redelivery window is 7 days. Failures and rejections are answered with 503.
- Retry: unknown, **new id**.
- Switched off: at once, by a 410 (likely); 410: switches the webhook off (likely).
- Response deadline: not published; 10 s are assumed.
- Body limit: 10 MiB; none is published.
- Handshake: none.
- **A retry runs the handler again.**
- Body limit: a conversation has its threads in it.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.helpscout.com/webhooks/>, checked in 2026-11."#
    };
    ("heroku") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure; a webhook of the level `notify` never again; one of the level `sync` until it succeeds, for 72 hours. The redelivery window is 30 days.
- Retry: signed anew (likely), `$.webhook_metadata.attempt.id` changes.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- After 72 hours of failures, older deliveries are tried once more and then skipped.
- **With the level `notify`, a delivery that fails is lost unless the layer keeps it.**
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://devcenter.heroku.com/articles/app-webhooks>, checked in 2026-11."#
    };
    ("hook0") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 24 times over 8 days by default; later on request. The redelivery window is 30 days.
- Retry: signed anew.
- Switched off: unknown.
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Services that run Hook0 themselves can set another deadline and another schedule.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://documentation.hook0.com/tutorials/webhook-authentication>, checked in 2026-11."#
    };
    ("hubspot") => {
        r#"- Success: 2xx.
- Redelivery: after 429 and 500 to 599 only; 10 times over about 24 hours; from a workflow for 3 days (likely). The redelivery window is 7 days. Failures and rejections are answered with 503.
- Retry: unknown, id unknown, `$[].attemptNumber` changes.
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- The current documents retry any 4xx; older ones all but 400, 401, 403, 404 and 405, and workflows none but 429.
- `attemptNumber` counts. HubSpot spreads the retries at random: if that makes other batches of the same events, the handler runs again.
- After a 429, HubSpot waits as long as `Retry-After` says.
- The case of HubSpot's own suite is one of version 2.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://developers.hubspot.com/docs/apps/developer-platform/build-apps/authentication/request-validation>, checked in 2026-11."#
    };
    ("hugging-face") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; with growing pauses; on request in the activity tab of the webhook. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: after failures that go on, at a time that is not published.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has the same `Webhook-Id`, and so has a replay on request.
- A webhook sends at most 1,000 events within 24 hours.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://huggingface.co/docs/hub/webhooks>, checked in 2026-11."#
    };
    ("increase") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; in production up to 7 times, with exponentially growing pauses (an older copy of the page has 10). The redelivery window is 30 days.
- Retry: signed anew (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- The body has only the id of the object, which the handler has to ask for.
- Increase lists events for 30 days.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://increase.com/documentation/webhooks>, checked in 2026-11."#
    };
    ("intercom") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure but 410 (likely); once, after a minute (likely). The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: signed anew, `$.delivery_attempts` changes.
- Switched off: paused for 15 minutes after more than 1000 errors in a row within 15 minutes; suspended after a week of errors, with private apps only; 429: throttled, by 1 minute to 2 hours; 410: switches the webhook off (likely).
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: a HEAD request when the webhook is set up (not confirmed), and the signed tests, whose `$.id` is `null`, are answered with 200: that with the topic `ping`, and those with the name of a topic.
- Answers within half a second are preferred; slower endpoints are served later.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.intercom.com/docs/webhooks/webhook-notifications>, checked in 2026-11."#
    };
    ("jira") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 408, 409, 425, 429 and 500 to 599 only; automatically, up to about 30 minutes later, which Atlassian may change. The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: identical (likely), `X-Atlassian-Webhook-Retry` changes.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- `X-Atlassian-Webhook-Retry` counts the retries.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.atlassian.com/cloud/jira/platform/webhooks/>, checked in 2026-11."#
    };
    ("jira-connect") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 408, 409, 425, 429 and 500 to 599 only; automatically, up to about 30 minutes later, which Atlassian may change. The redelivery window is 3 days. Failures and rejections are answered with 503.
- Retry: unknown, `X-Atlassian-Webhook-Retry` changes.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 25 MiB; none is published.
- Handshake: none. The shared secret comes with the `installed` callback, one for each tenant, whose name is the claim `iss`: see [`TenantSecrets`](crate::TenantSecrets).
- `X-Atlassian-Webhook-Retry` counts the retries.
- Atlassian rates apps by the share of webhooks that get 200 or 204.
- Body limit: a cap of 25 MB at Atlassian is not confirmed.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/>, checked in 2026-11."#
    };
    ("klaviyo") => {
        r#"- Success: 200-202 (likely); every success is answered with 200.
- Redelivery: after which answers is not known. The redelivery window is 7 days. Failures and rejections are answered with 503.
- Retry: unknown, id unknown.
- Switched off: after 48 hours of errors (likely).
- Response deadline: 5 s (likely).
- Body limit: 10 MiB; none is published.
- Handshake: none.
- Webhooks of flows, which this preset does not read, are retried after 429, 500, 502 and 503 only, up to 17 times within 24 hours; whether system webhooks do likewise is not documented.
- **If a retry has a new `$.meta.timestamp`, the handler runs again.**
- Body limit: a batch is large.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.klaviyo.com/en/docs/working_with_system_webhooks>, checked in 2026-11."#
    };
    ("knock") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 8 attempts in all; over how long is not documented. The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Give each route an endpoint name of its own.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.knock.app/developer-tools/outbound-webhooks>, checked in 2026-11."#
    };
    ("kofi") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; a number of attempts that is not published. The redelivery window is 7 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has the same `message_id`.
- A test delivery is made of the JSON: its signer makes the form.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://help.ko-fi.com/hc/en-us/articles/360004162298>, checked in 2026-11."#
    };
    ("launchdarkly") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; once. The redelivery window is 24 hours.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- **A delivery that fails twice is lost, unless the layer keeps it.**
- Order is not kept: `$.date` has the time.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://launchdarkly.com/docs/home/infrastructure/webhooks>, checked in 2026-11."#
    };
    ("lemonsqueezy") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; 3 times, for example after 5, 25 and 125 seconds; by hand in the dashboard (likely). The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.lemonsqueezy.com/help/webhooks>, checked in 2026-11."#
    };
    ("line") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure (likely); only if redelivery is switched on in the console (likely); how often is not published. The redelivery window is 30 days.
- Retry: signed anew, `isRedelivery` changes.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- LINE can stop the redelivery of a channel, of which it tells the administrators by mail if they have asked for it.
- `isRedelivery` changes the body of a redelivery.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://developers.line.biz/en/docs/messaging-api/receiving-messages/>, checked in 2026-11."#
    };
    ("linear") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; 3 times, after a minute, an hour and 6 hours. The redelivery window is 24 hours.
- Retry: identical (likely).
- Switched off: after failures that go on, at a time that is not published; it is switched on again by hand.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry likely has the same body, its time included (reported, not documented).
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://linear.app/developers/webhooks>, checked in 2026-11."#
    };
    ("lithic") => {
        r#"- Success: 2xx.
- Redelivery: after every failure (likely); 7 times over about 28 hours, as Svix has it (likely); later on request. The redelivery window is 30 days.
- Retry: signed anew (likely).
- Switched off: after 5 days of failures, as Svix has it (likely).
- Response deadline: 15 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.lithic.com/docs/events-api>, checked in 2026-11."#
    };
    ("livekit") => {
        r#"- Success: 1xx-4xx but 429, and 501.
- Redelivery: after 429, 500 and 502 to 599 only; 4 times, after 1, 2, 4 and 8 seconds. The redelivery window is 1 hour. Failures and rejections are answered with 503.
- Retry: identical.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- LiveKit sets no deadline by default, but drops events that have waited for 30 seconds behind others of their room.
- LiveKit waits as long as `Retry-After` says: let [`retry_after`](crate::IdempotentWebhook::retry_after) be a few seconds, as the token expires.
- A retry is the very same request.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.livekit.io/home/server/webhooks/>, checked in 2026-11."#
    };
    ("mailgun") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure but 406; after 5, 10 and 15 minutes, 1, 2 and 4 hours, over 8 hours. The redelivery window is 24 hours. Failures and rejections are answered with 503.
- Retry: unknown.
- Switched off: unknown; 406: final.
- Response deadline: not published; 10 s are assumed.
- Body limit: 25 MiB; none is published.
- Handshake: none.
- **A `delivered` event is never sent again: one whose handler fails is lost unless the layer keeps it.**
- Body limit: the largest message fits.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries>, checked in 2026-11."#
    };
    ("mandrill") => {
        r#"- Success: 200 (likely); every success is answered with 200.
- Redelivery: after every failure (likely); with growing pauses, for up to 24 hours (likely), unless the batch is given up by hand. The redelivery window is 7 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 25 MiB; none is published.
- Handshake: a HEAD, and a POST with an empty batch that is signed with the key `test-webhook`, when the webhook is created. Both have to be answered with 200.
- Newer events wait behind a batch that fails.
- Events that are batched otherwise run again.
- Body limit: inbound messages have their attachments in the body.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://mailchimp.com/developer/transactional/docs/webhooks/>, checked in 2026-11."#
    };
    ("maxio") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure (likely); for a time that is not confirmed; later on request. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: paused after 25 failures in a row, then tried with one new webhook every 2 hours; disabled after 48 hours of that, when nothing new is recorded any more.
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- What was held back during a pause is sent on request only.
- A retry has the same id.
- Basis: third parties describe the signature; **the provider's word is missing**. Source: <https://docs.maxio.com/hc/en-us/articles/24266143173901-Webhooks-Overview>, checked in 2026-11."#
    };
    ("mcp-events") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; with exponentially growing pauses, for as long as the server likes. The redelivery window is 30 days.
- Retry: signed anew.
- Switched off: suspended after repeated failures, at a number that the server sets, until the subscription is refreshed; it ends unless it is refreshed in time.
- Response deadline: not published; 15 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: a signed `verification` before the first event, to be answered with its `challenge`.
- Redirects are failures.
- The client persists `$.cursor` of what it was sent last, and of `gap`: do that in the transaction of the delivery.
- `terminated` says that the subscription is over, and why.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://github.com/modelcontextprotocol/experimental-ext-triggers-events>, checked in 2026-11."#
    };
    ("mercadopago") => {
        r#"- Success: 200, 201; every success is answered with 200.
- Redelivery: after every failure; every 15 minutes, less often after the third time, with no published end. The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 22 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- **If a retry has a new `x-request-id`, the handler runs again.**
- Notifications of QR codes are not signed, and are rejected.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.mercadopago.com/developers/en/docs/your-integrations/notifications/webhooks>, checked in 2026-11."#
    };
    ("messagebird") => {
        r#"- Success: 2xx (likely).
- Redelivery: after which answers is not known. The redelivery window is 7 days.
- Retry: signed anew (likely), id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- **If a retry of MessageBird has a new `jti`, the handler runs again.**
- A webhook that is called with GET needs [`methods`](Provider::methods).
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.bird.com/api/notifications-api/api-reference/webhooks/verifying-a-webhook>, checked in 2026-11."#
    };
    ("meta") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure (likely); for up to 36 hours, with WhatsApp for up to 7 days (likely). The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: with Messenger, after failures for an extended time.
- Response deadline: 5 s.
- Body limit: 4 MiB; none is published.
- Handshake: the GET with `hub.challenge` is answered if its `hub.verify_token` is right. Set the token with [`verify_token`](Provider::verify_token).
- The deadline is that of Messenger; for the others it is not confirmed, and the same is assumed.
- **The handler runs again for messages that Meta batches otherwise**: their own ids are in `$.entry[].changes[].value.messages[].id`.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.facebook.com/docs/graph-api/webhooks/getting-started>, checked in 2026-11."#
    };
    ("microsoft-graph") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; for up to 4 hours, with exponentially growing pauses. The redelivery window is 24 hours.
- Retry: unknown, **new id**.
- Switched off: when its subscription expires, a time that depends on the resource, unless it is renewed; slow answers: if many take too long, Graph first delays what follows and then drops it for good.
- Response deadline: 3 s.
- Body limit: 2 MiB; none is published.
- Handshake: a POST with `validationToken` in the query, which anyone can send, is answered with the token as plain text. It is that of the notification URL and of the life-cycle notification URL.
- **Where the handler is slow, let the layer accept deliveries before their first attempt ([`Keep::all`](crate::Keep::all)).**
- **A retry runs the handler again.**
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://learn.microsoft.com/graph/change-notifications-delivery-webhooks>, checked in 2026-11."#
    };
    ("modern-treasury") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; with exponentially growing pauses; for how long is not published. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Modern Treasury can mail when more than 30 % of a day's deliveries failed; that it disables an endpoint is not documented.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.moderntreasury.com/platform/reference/webhooks>, checked in 2026-11."#
    };
    ("mollie") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure; 10 attempts over about 26 hours, as with the classic webhooks (likely). The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Mollie keeps the events for its Webhook Events API.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.mollie.com/reference/webhooks-new>, checked in 2026-11."#
    };
    ("monday") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; once a minute for 30 minutes. The redelivery window is 1 hour.
- Retry: signed anew (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: a POST of `{"challenge": "..."}` and nothing else, which anyone can send, is answered with the same JSON.
- The webhooks of an app's life cycle are rejected with 400 unless [`delivery_id`](Provider::delivery_id) names another source.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.monday.com/api-reference/docs/webhooks>, checked in 2026-11."#
    };
    ("mux") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; for 24 hours, with growing pauses. The redelivery window is 3 days.
- Retry: unknown, `$.attempts` changes.
- Switched off: unknown.
- Response deadline: 5 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Mux warns of duplicates even after a 2xx.
- `$.attempts` likely grows with a retry (not confirmed).
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.mux.com/docs/core/listen-for-webhooks>, checked in 2026-11."#
    };
    ("netlify") => {
        r#"- Success: 2xx (likely).
- Redelivery: after which answers is not known. The redelivery window is 30 days.
- Retry: unknown, **new id**.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- **A retry runs the handler again.**
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.netlify.com/site-deploys/deploy-notifications/>, checked in 2026-11."#
    };
    ("notion") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); up to 8 times, the last about 24 hours after the event. The redelivery window is 30 days.
- Retry: signed anew, `$.attempt_number` changes.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: Notion sends the verification token in a POST, signed with that same token. Keep it with [`secret_exchange`](Provider::secret_exchange).
- `$.attempt_number` counts, from 1 to 8, so the body and its signature are new.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.notion.com/reference/webhooks>, checked in 2026-11."#
    };
    ("npm-hooks") => {
        r#"- Success: 2xx (likely).
- Redelivery: after which answers is not known. The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 4 MiB; none is published.
- Handshake: none.
- A retry with another `$.time` runs the handler again.
- npm no longer develops this product.
- Basis: third parties describe the signature; **the provider's word is missing**. Source: <https://docs.npmjs.com/cli/v6/commands/npm-hook>, checked in 2026-11."#
    };
    ("nylas") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; up to 2 times, the last 10 to 20 minutes after the first attempt. The redelivery window is 7 days.
- Retry: identical (likely), `$.webhook_delivery_attempt` changes.
- Switched off: for a while if most notifications fail, and for good if they fail for days (likely).
- Response deadline: 10 s.
- Body limit: 2 MiB.
- Handshake: the GET with `challenge` is answered with its text.
- A retry goes to all webhooks that have the same trigger, also to those that took the first attempt.
- `$.webhook_delivery_attempt` likely counts.
- Nylas truncates what is larger than 1 MB.
- Leave `compressed_delivery` off: what is signed is the compressed body, which has no id to read.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.nylas.com/docs/cookbook/use-cases/build/retry-failed-webhooks/>, checked in 2026-11."#
    };
    ("okta") => {
        r#"- Success: 200, 204; every success is answered with 200.
- Redelivery: after every failure but 400 to 499; once. The redelivery window is 24 hours. Failures and rejections are answered with 503.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 3 s.
- Body limit: 2 MiB; none is published.
- Handshake: a GET with `X-Okta-Verification-Challenge`, to be answered with `{"verification": "<its value>"}`.
- The answer is empty, as Okta asks.
- **If a retry has a new `$.eventId`, the handler runs again**: Okta tells duplicates by `$.data.events[].uuid`.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.okta.com/docs/concepts/event-hooks/>, checked in 2026-11."#
    };
    ("onfido") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); how often is not confirmed; that of a completed check on request. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://documentation.onfido.com/api/latest/#webhooks>, checked in 2026-11."#
    };
    ("openai") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); for up to 72 hours, with exponentially growing pauses (likely). The redelivery window is 30 days.
- Retry: signed anew.
- Switched off: unknown.
- Response deadline: 15 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Redirects are failures (likely).
- 15 seconds are the least that Standard Webhooks asks of senders.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://platform.openai.com/docs/guides/webhooks>, checked in 2026-11."#
    };
    ("paddle") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; up to 60 times over 3 days, with exponentially growing pauses; in the sandbox 3 times within 15 minutes (likely); later on request. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://developer.paddle.com/webhooks/about/respond-to-webhooks>, checked in 2026-11."#
    };
    ("pagerduty") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 429 and 500 to 599 only; for up to 48 hours. The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: identical (likely).
- Switched off: for 24 hours, after 3 webhooks in a row were given up (by an older page).
- Response deadline: 5 s.
- Body limit: 2 MiB.
- Handshake: none.
- Newer webhooks of the same object wait behind one that fails.
- PagerDuty sends at most 256 KB.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://developer.pagerduty.com/docs/webhooks-overview>, checked in 2026-11."#
    };
    ("patreon") => {
        r#"- Success: 2xx (likely).
- Redelivery: after which answers is not known. The redelivery window is 30 days.
- Retry: unknown, **new id**.
- Switched off: paused after failures, which `num_consecutive_times_failed` of the webhook counts.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- **A retry runs the handler again.**
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.patreon.com/#webhooks>, checked in 2026-11."#
    };
    ("paypal") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 25 times over 3 days, and on request. The redelivery window is 30 days.
- Retry: signed anew (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry is another transmission of the same event (likely), so it has another transmission id.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.paypal.com/api/rest/webhooks/rest/>, checked in 2026-11."#
    };
    ("paystack") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); every 3 minutes at first, then hourly for 72 hours (likely). The redelivery window is 30 days.
- Retry: identical (likely), the id of a body without `$.data.id` changes.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- **Without `$.data.id`, a retry runs the handler again.**
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://paystack.com/docs/payments/webhooks/>, checked in 2026-11."#
    };
    ("persona") => {
        r#"- Success: 200, 201, 202 and 204; every success is answered with 200.
- Redelivery: after every failure; a few times (5 or 8, by different pages), with growing intervals. The redelivery window is 30 days.
- Retry: signed anew (likely).
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 4 MiB; none is published.
- Handshake: none.
- `Persona-Webhook-Attempts-Left` counts the attempts.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.withpersona.com/webhooks-best-practices>, checked in 2026-11."#
    };
    ("plaid") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; after 30 seconds, and then with intervals of 4 times the one before, for up to 24 hours. The redelivery window is 24 hours.
- Retry: unknown, id unknown.
- Switched off: unknown; retries end while more than 90 % of the webhooks of the last 24 hours were refused (second-hand).
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Whether a retry is signed anew is not documented. **If it is, the handler runs again.**
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://plaid.com/docs/api/webhooks/webhook-verification/>, checked in 2026-11."#
    };
    ("plivo") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; of a message's callback 3 times: after 60, 120 and 240 seconds. The redelivery window is 2 days.
- Retry: signed anew (likely), the id of a call changes.
- Switched off: unknown.
- Response deadline: 8 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- The callback of a call is sent again once, and only if Plivo could not connect or got no answer; `#rc=3&rp=all` at the end of its URL asks for 3 times, after errors as well.
- A retry has another nonce (likely). **For a call, the handler runs again.**
- The deadline is that of messages; calls wait longer.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://www.plivo.com/docs/voice/concepts/signature-validation>, checked in 2026-11."#
    };
    ("polar") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; up to 10 attempts at growing intervals of at most 20 minutes; on request for 90 days, for which Polar has the payload. The redelivery window is 90 days.
- Retry: signed anew.
- Switched off: after 10 events in a row that failed for good.
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Redirects are failures.
- A retry on request is signed anew as well: of what was processed, it is a duplicate.
- Polar asks for an answer within 2 seconds.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://polar.sh/docs/integrate/webhooks/delivery>, checked in 2026-11."#
    };
    ("postmark") => {
        r#"- Success: 2xx, for inbound messages 200; every success is answered with 200.
- Redelivery: after 408, 429 and 500 to 599 only; with growing intervals; inbound messages 10 times over about 10.5 hours, after any failure but 403, and on request. The redelivery window is 7 days. Failures and rejections are answered with 503.
- Retry: identical, `X-PM-Retries-Remaining` changes.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 50 MiB; none is published.
- Handshake: none.
- `X-PM-Retries-Remaining` counts the retries.
- Inbound messages have their attachments in the body.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://postmarkapp.com/developer/webhooks/webhooks-overview>, checked in 2026-11."#
    };
    ("pusher") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; with growing intervals, for 5 minutes. The redelivery window is 24 hours.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 4 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Nothing says that a retry has another body. If `$.time_ms` is new, the handler runs again.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://pusher.com/docs/channels/server_api/webhooks/>, checked in 2026-11."#
    };
    ("quickbooks") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; after 10, 20 and 30 seconds, 5 and 20 minutes, 2, 4 and 6 hours, and then every 6 hours with no published end. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 3 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Newer events may wait behind one that fails.
- Nothing says that a retry has another body. If it has, the handler runs again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks>, checked in 2026-11."#
    };
    ("razorpay") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; with increasing delays for 24 hours, and on request for 15 days. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: after 24 hours of failures.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry keeps the signature under the secret of its event's time, so give the old secret as well after a change.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://razorpay.com/docs/webhooks/validate-test/>, checked in 2026-11."#
    };
    ("recurly") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 10 times over about 3 days. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Whether a retry is signed anew is not documented.
- Only the ports 80 and 443 are called.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.recurly.com/recurly-subscriptions/docs/webhooks>, checked in 2026-11."#
    };
    ("render") => {
        r#"- Success: 2xx.
- Redelivery: after every failure (likely); up to 8 attempts at growing intervals, the last one about 33 hours after the first (second-hand). The redelivery window is 7 days.
- Retry: signed anew (likely).
- Switched off: after all attempts for a webhook have failed (second-hand).
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://render.com/docs/webhooks>, checked in 2026-11."#
    };
    ("replicate") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 400 to 599 only; several times until about a minute after the end of the prediction. The redelivery window is 24 hours.
- Retry: signed anew.
- Switched off: unknown.
- Response deadline: 5 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- **A webhook of an intermediate state is never sent again**, only the last one of a prediction.
- Replicate asks for an answer within "a few seconds".
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://replicate.com/docs/topics/webhooks/verify-webhook>, checked in 2026-11."#
    };
    ("resend") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); after 5 seconds, 5 and 30 minutes, 2, 5, 10 and 10 hours, and by hand. The redelivery window is 30 days.
- Retry: signed anew.
- Switched off: unknown.
- Response deadline: 15 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry by hand is signed anew as well: of what was processed, it is a duplicate.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://resend.com/docs/dashboard/webhooks/introduction>, checked in 2026-11."#
    };
    ("retell") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; up to 3 times. The redelivery window is 24 hours.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 10 s.
- Body limit: 4 MiB; none is published.
- Handshake: none.
- **A retry that is signed at a new time runs the handler again.** In a test, set the time of a delivery that is sent more than once.
- An agent may have another deadline.
- A body can have the transcript of a call.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.retellai.com/features/webhook>, checked in 2026-11."#
    };
    ("revenuecat") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; 5 times, after 5, 10, 20, 40 and 80 minutes, and on request. The redelivery window is 7 days.
- Retry: signed anew (likely).
- Switched off: unknown.
- Response deadline: 60 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: third parties describe the signature; **the provider's word is missing**. Source: <https://www.revenuecat.com/docs/integrations/webhooks>, checked in 2026-11."#
    };
    ("revolut") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure; 3 times, every 10 minutes. The redelivery window is 24 hours.
- Retry: signed anew (likely), **new id**.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- The time is that of sending, so a retry is likely signed anew. **It then runs the handler again.** In a test, set the time of a delivery that is sent more than once.
- Events of the Business API have times of their own, so that for them [`Source::body_digest`](crate::Source::body_digest) as the delivery id takes a retry for a duplicate.
- Basis: an example in the provider's documents verifies. Source: <https://developer.revolut.com/docs/guides/merchant/monitor-and-observe/webhooks/verify-the-payload-signature>, checked in 2026-11."#
    };
    ("sanity") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 429 and 500 to 599 only; twice, after 30 seconds each. The redelivery window is 24 hours. Failures and rejections are answered with 503.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: 30 s.
- Body limit: 4 MiB; none is published.
- Handshake: none.
- Whether a retry is signed anew is not documented.
- The body is a projection that you define.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://www.sanity.io/docs/content-lake/webhooks>, checked in 2026-11."#
    };
    ("segment") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 500 to 599 only; for up to 4 hours. The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A destination has up to 5 URLs, and **a success at any of them counts**.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://segment.com/docs/connections/destinations/catalog/webhooks/>, checked in 2026-11."#
    };
    ("sendgrid") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; with growing intervals, for up to 24 hours after the event. The redelivery window is 3 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 10 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Whether a retry is signed anew is not documented, nor whether it is the same batch. **If events are batched otherwise, the handler runs again.**
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features>, checked in 2026-11."#
    };
    ("sentry") => {
        r#"- Success: 2xx (likely).
- Redelivery: never by itself (likely): **what fails is lost, unless it is [kept](crate::Keep)**; what is not of an internal integration perhaps; it is not documented. The redelivery window is 30 days.
- Retry: signed anew, **new id**.
- Switched off: after 1000 timeouts within 24 hours.
- Response deadline: 1 s.
- Body limit: 4 MiB; none is published.
- Handshake: none.
- A retry has another `Request-ID` and another time, neither of which is signed.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.sentry.io/organization/integrations/integration-platform/webhooks/>, checked in 2026-11."#
    };
    ("shippo") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 500 to 599 (likely) only; how often is not confirmed. The redelivery window is 7 days. Failures and rejections are answered with 503.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 3 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- If the body of a retry differs, the handler runs again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.goshippo.com/tracking/webhook-security>, checked in 2026-11."#
    };
    ("shopify") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 8 times over 4 hours. The redelivery window is 24 hours.
- Retry: identical.
- Switched off: a subscription of the Admin API is deleted after 8 failures in a row.
- Response deadline: 5 s.
- Body limit: 8 MiB; none is published.
- Handshake: none.
- A retry goes to the original address, with the original payload and id.
- The deadline includes 1 second to connect.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://shopify.dev/docs/apps/build/webhooks>, checked in 2026-11."#
    };
    ("shopware") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 429 and 500 to 599 (likely) only; since 6.8 by the shop's message queue (likely); before, 3 times within 7 seconds, and with the admin worker not at all. The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: signed anew (likely).
- Switched off: after 10 failures in a row, before 6.8; since 6.8, three answers of 401 or 403 suspend the webhook, and most other 4xx drop the delivery (likely).
- Response deadline: 20 s.
- Body limit: 2 MiB; none is published.
- Handshake: none. The registration of the app is a request of its own, which this preset does not answer.
- **Much of what fails is lost**, unless it is [kept](crate::Keep): with the admin worker of a shop before 6.8, there is one attempt.
- `$.source.eventId` stays, as Shopware documents. `$.timestamp` is that of the attempt (likely).
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://developer.shopware.com/docs/guides/plugins/apps/lifecycle/webhook.html>, checked in 2026-11."#
    };
    ("slack") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 3 times within some minutes or, with delayed events, hourly for a day. The redelivery window is 2 days.
- Retry: signed anew (likely), `X-Slack-Retry-Num` changes.
- Switched off: the subscriptions of the app, when more than 95 % of an hour's events fail.
- Response deadline: 3 s.
- Body limit: 2 MiB; none is published.
- Handshake: `url_verification` is answered with its challenge.
- An answer with `X-Slack-No-Retry: 1` ends it.
- A retry has `X-Slack-Retry-Num`.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.slack.dev/apis/events-api/>, checked in 2026-11."#
    };
    ("square") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 11 times over 24 hours, or for 72 hours: pages differ. The redelivery window is 30 days.
- Retry: identical (likely), `square-retry-number` changes.
- Switched off: after three weeks without a single success.
- Response deadline: 10 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry has `square-retry-number` and `square-retry-reason`.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://developer.squareup.com/docs/webhooks/step3validate>, checked in 2026-11."#
    };
    ("squarespace") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; several times over 48 hours. The redelivery window is 7 days.
- Retry: identical (likely).
- Switched off: after several failures, Squarespace may delete the subscription.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.squarespace.com/webhooks/verifying-notifications>, checked in 2026-11."#
    };
    ("standard-webhooks") => {
        r#"- Success: 2xx.
- Redelivery: after every failure but 410 (likely); up to the provider. The redelivery window is 30 days.
- Retry: signed anew.
- Switched off: by an answer of 410, which the layer never gives.
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- For a provider that keeps the time of the first attempt, set [`tolerance`](Provider::tolerance) to the time over which it retries: the id is signed, so that a replay stays a duplicate.
- The deadline is the least that the specification asks of senders.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://www.standardwebhooks.com>, checked in 2026-11."#
    };
    ("stripe") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; automatically for up to 3 days; with the CLI for up to 30 days. The redelivery window is 30 days.
- Retry: signed anew.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Redirects are failures.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.stripe.com/webhooks>, checked in 2026-11."#
    };
    ("sumsub") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); 4 times, after 5 minutes, 1, 5 and 18 hours, and at any time on request. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry is "the same webhook". If its body differs, the handler runs again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.sumsub.com/docs/webhook-manager>, checked in 2026-11."#
    };
    ("supabase-auth") => {
        r#"- Success: 200, 202 and 204.
- Redelivery: after 429 and 503 only; up to 3 attempts within the deadline, if the answer has `Retry-After`. The redelivery window is 24 hours. Failures and rejections are answered with 503.
- Retry: signed anew, **new id**.
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- 200 and 202 need `Content-Type: application/json`, and at most 200 KiB. Anything else fails what the user does.
- The deadline is that of all attempts together.
- A retry has **a new id**, as in the source of Supabase Auth, so that the handler runs again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://supabase.com/docs/guides/auth/auth-hooks>, checked in 2026-11."#
    };
    ("svix") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; automatically for about 28 hours, and on request later. The redelivery window is 30 days.
- Retry: signed anew.
- Switched off: after all attempts have failed for 5 days.
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://docs.svix.com/receiving/verifying-payloads/how>, checked in 2026-11."#
    };
    ("telegram") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; for a number of attempts that is not published. The redelivery window is 2 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://core.telegram.org/bots/api#setwebhook>, checked in 2026-11."#
    };
    ("telnyx") => {
        r#"- Success: 2xx, for calls 200; every success is answered with 200.
- Redelivery: after every failure; 3 attempts for each of the URL and the failover URL. The redelivery window is 3 days.
- Retry: signed anew (likely), `$.meta.attempt` changes.
- Switched off: unknown.
- Response deadline: 2 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- `$.meta.attempt` counts the attempts.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks>, checked in 2026-11."#
    };
    ("terraform-cloud") => {
        r#"- Success: 2xx.
- Redelivery: after which answers is not known. The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: the verification when a configuration is saved or tested, whose trigger is `verification`, is signed and answered with 200. A configuration cannot be switched on without.
- A retry with another body runs the handler again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.hashicorp.com/terraform/cloud-docs/api-docs/notification-configurations>, checked in 2026-11."#
    };
    ("trello") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure but 410 (likely); 3 times. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: unknown; 410: deletes the webhook.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: the HEAD request when a webhook is created is answered with 200.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/>, checked in 2026-11."#
    };
    ("twilio") => {
        r#"- Success: 2xx (likely).
- Redelivery: never by itself (likely): **what fails is lost, unless it is [kept](crate::Keep)**; by default once, and only if the connection fails (likely); the fragment `#rc=5&rp=all` of the webhook's URL asks for 5 retries after any failure, within 15 seconds. The redelivery window is 2 days.
- Retry: identical (likely).
- Switched off: never.
- Response deadline: 15 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Whether the fragment of the URL is signed is not confirmed.
- The fallback URL of a number is called after the last attempt.
- The deadline is that of all attempts together.
- Basis: a case of the provider's own suite, or a delivery that it has sent, verifies. Source: <https://www.twilio.com/docs/usage/webhooks/webhooks-security>, checked in 2026-11."#
    };
    ("twitch") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; for a time that is not published. The redelivery window is 30 days.
- Retry: unknown, `Twitch-Eventsub-Message-Retry` changes.
- Switched off: the subscription is revoked after too many failures.
- Response deadline: 5 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: `webhook_callback_verification`, which is signed, is answered with its challenge.
- A retry has a higher `Twitch-Eventsub-Message-Retry`; whether its time is new is not documented.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://dev.twitch.tv/docs/eventsub/handling-webhook-events/>, checked in 2026-11."#
    };
    ("typeform") => {
        r#"- Success: 2xx.
- Redelivery: after every failure but 404 and 410; every few minutes for 10 hours after 408, 423, 429 and 503, and a few times after other failures. The redelivery window is 30 days. Failures and rejections are answered with 503.
- Retry: identical (likely).
- Switched off: at once by an answer of 404 or 410.
- Response deadline: 30 s.
- Body limit: 4 MiB; none is published.
- Handshake: none.
- 503 has the longer series of retries, and a 404 of the handler would switch the webhook off.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.typeform.com/developers/webhooks/secure-your-webhooks/>, checked in 2026-11."#
    };
    ("vapi") => {
        r#"- Success: 2xx.
- Redelivery: never by itself: **what fails is lost, unless it is [kept](crate::Keep)**; as often as the server's backoff plan says, which is none by default. The redelivery window is 24 hours.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 20 s.
- Body limit: 4 MiB; none is published.
- Handshake: none.
- A retry with another body runs the handler again.
- **Vapi uses the answer to `assistant-request`, `call-endpointing-request`, `campaign-predial`, `handoff-destination-request`, `knowledge-base-request`, `tool-calls`, `transfer-destination-request` and `voice-request`**: have these sent to a route without the layer, as a duplicate would not get it.
- A server may have another deadline.
- A body can have the transcript of a call.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.vapi.ai/server-url/server-authentication>, checked in 2026-11."#
    };
    ("vercel") => {
        r#"- Success: 2xx (likely).
- Redelivery: after every failure (likely); for up to 24 hours (likely). The redelivery window is 30 days.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 30 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Whether a retry has the same `$.id` is not confirmed.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://vercel.com/docs/webhooks/webhooks-api>, checked in 2026-11."#
    };
    ("veriff") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; about hourly for up to 7 days, and on request. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://devdocs.veriff.com/docs/webhooks-guide>, checked in 2026-11."#
    };
    ("vonage") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after 429 and 500 to 599 only; with intervals from 5 seconds to 15 minutes, for 24 hours. The redelivery window is 24 hours. Failures and rejections are answered with 503.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- After an error of its own, Vonage sends a callback unsigned, and sends it again, signed, after a 5xx only.
- **The answer of an `answer_url` of Voice, which a duplicate does not get, is what the call does**: leave that route without the layer.
- If the body of an event without these members differs in a retry, the handler runs again.
- An older page has a deadline of 15 seconds.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.vonage.com/en/getting-started/concepts/webhooks>, checked in 2026-11."#
    };
    ("webflow") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; 3 attempts, 10 minutes apart. The redelivery window is 24 hours.
- Retry: signed anew (likely), **new id**.
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Redirects are failures.
- The time is that of sending, so a retry is likely signed anew. **It then runs the handler again.** In a test, set the time of a delivery that is sent more than once.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.webflow.com/data/docs/working-with-webhooks>, checked in 2026-11."#
    };
    ("websub") => {
        r#"- Success: 2xx.
- Redelivery: after every failure (likely); up to the hub. The redelivery window is 30 days.
- Retry: unknown, **new id**.
- Switched off: unknown; a 410 may end the subscription.
- Response deadline: not published; 10 s are assumed.
- Body limit: 10 MiB; none is published.
- Handshake: the GET by which a hub checks a subscription is **not** answered, since anyone can send it, for any topic. Answer it with [`unsigned_handshake`](Provider::unsigned_handshake): `hub.challenge` as it is, if `hub.mode` and `hub.topic` are what was asked for. Hubs of PubSubHubbub 0.3 send a `hub.verify_token` as well, and [`verify_token`](Provider::verify_token) is enough for them.
- A retry may have newer content. **It runs the handler again.**
- The body is the whole content.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://www.w3.org/TR/websub/>, checked in 2026-11."#
    };
    ("wise") => {
        r#"- Success: 200, or any 2xx: pages differ; every success is answered with 200.
- Redelivery: after every failure; 25 times over about two weeks, with growing intervals, and on request in the Developer Hub; 3 times only after several 4xx, such as 400. The redelivery window is 30 days. Failures and rejections are answered with 500.
- Retry: unknown, id unknown.
- Switched off: unknown.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: none. The test of a new subscription is signed like an event, and has the header `X-Test-Notification`.
- The 500 has no `Retry-After`: Wise retries after that time instead of its own intervals, so that a few seconds would use up all of the retries within minutes. Let the handler send none either.
- If `$.sent_at` differs in a retry, the handler runs again.
- Basis: an example in the provider's documents verifies. Source: <https://docs.wise.com/guides/developer/webhooks/event-handling>, checked in 2026-11."#
    };
    ("wix") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; 12 times over about 47 hours: after a minute, 10 minutes and an hour, and then with intervals of up to 12 hours. The redelivery window is 3 days.
- Retry: signed anew (likely).
- Switched off: unknown.
- Response deadline: 1.25 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Let the layer accept deliveries before their first attempt where the handler is slower ([`Keep::all`](crate::Keep::all)).
- A retry has a new token (likely); **if not, it is refused once the token has expired**.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://dev.wix.com/docs/rest/articles/get-started/webhook-structure>, checked in 2026-11."#
    };
    ("woocommerce") => {
        r#"- Success: 200 to 302.
- Redelivery: never by itself: **what fails is lost, unless it is [kept](crate::Keep)**; neither automatically nor on request. The redelivery window is 24 hours.
- Retry: none.
- Switched off: after more than 5 failures in a row.
- Response deadline: 60 s.
- Body limit: 4 MiB; none is published.
- Handshake: the form `webhook_id=<number>` that WooCommerce sends when a webhook is saved, which is not signed, is answered with 200.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://woocommerce.com/document/webhooks/>, checked in 2026-11."#
    };
    ("workos") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure (likely); up to 12 times over 3 days (likely). The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: not published; 10 s are assumed.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- A retry likely has the time of the first attempt.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://workos.com/docs/events/data-syncing/webhooks>, checked in 2026-11."#
    };
    ("x") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure (likely); with the enterprise tier up to 3 times within 5 minutes, and on request for 5 days. The redelivery window is 7 days.
- Retry: unknown, id unknown.
- Switched off: the webhook becomes invalid if the handshake fails.
- Response deadline: 3 s.
- Body limit: 2 MiB; none is published.
- Handshake: the GET with `crc_token` is answered with `{"response_token": "sha256=<base64>"}`, an HMAC-SHA256 of the token under the first of the secrets. X repeats it about every hour or day. **Such an answer is also the signature of a body with the text of the token, and anyone can ask for it.** So a token of other characters than letters, digits, spaces and `-_.+/=` is not answered, and a body that can be made of these is not accepted.
- If the body of a retry differs, the handler runs again.
- A newer page has a deadline of 10 seconds.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.x.com/x-api/webhooks/introduction>, checked in 2026-11."#
    };
    ("xendit") => {
        r#"- Success: 2xx.
- Redelivery: after every failure; 6 times over 24 hours, and on request in the dashboard. The redelivery window is 30 days.
- Retry: identical (likely).
- Switched off: unknown.
- Response deadline: 30 s.
- Body limit: 2 MiB; none is published.
- Handshake: none.
- If the body of a retry differs, the handler runs again. A payment channel may report the same payment twice.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://docs.xendit.co/apidocs/webhook-behavior>, checked in 2026-11."#
    };
    ("xero") => {
        r#"- Success: 200; every success is answered with 200.
- Redelivery: after every failure; ever less often for 24 hours. The redelivery window is 30 days.
- Retry: unknown.
- Switched off: after 24 hours of failures.
- Response deadline: 5 s.
- Body limit: 2 MiB; none is published.
- Handshake: Xero sends requests with right and with wrong signatures, and expects 200 for the former and 401 for the latter. They reach the handler with an empty list of events.
- Xero takes no body, so every answer is without one. There must be no cookies either: mind what a middleware adds.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.xero.com/documentation/guides/webhooks/overview/>, checked in 2026-11."#
    };
    ("zendesk") => {
        r#"- Success: 2xx (likely).
- Redelivery: after 409, 429 and 503 (likely) only; up to 3 times after a 409; after a 429 or 503, if its `Retry-After` is below 60 seconds; up to 5 times after a timeout. The redelivery window is 24 hours. Failures and rejections are answered with 503.
- Retry: unknown.
- Switched off: for a while, by a circuit breaker (likely).
- Response deadline: 12 s (likely).
- Body limit: 2 MiB; none is published.
- Handshake: none.
- Keep [`retry_after`](crate::IdempotentWebhook::retry_after), and that of your handler, below a minute.
- Whether a retry is signed anew is not documented.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developer.zendesk.com/documentation/webhooks/verifying/>, checked in 2026-11."#
    };
    ("zoom") => {
        r#"- Success: 200 and 204; every success is answered with 200.
- Redelivery: after 500 to 599 (likely) only; 3 times, the last one about an hour and a half after the first attempt. The redelivery window is 3 days. Failures and rejections are answered with 503.
- Retry: unknown.
- Switched off: unknown.
- Response deadline: 3 s.
- Body limit: 2 MiB; none is published.
- Handshake: `endpoint.url_validation`, which is signed, is answered with `plainToken` and `encryptedToken`. Zoom repeats it every 72 hours.
- If the body of a retry differs, the handler runs again.
- Basis: the provider documents the signature; no example of its own was verified. Source: <https://developers.zoom.us/docs/api/webhooks/>, checked in 2026-11."#
    };
}
