//! Why is it 401? What does each answer mean, and what is the cure?
//!
//! The sender is told little: a status, and the outcome in the header [`x-webhook-outcome`](crate::OUTCOME_HEADER). The
//! log says why. A request that is refused is one line of it, at WARN, in the span `webhook`, which has the endpoint and
//! the provider:
//!
//! ```text
//! WARN webhook{endpoint="deployments" provider="github"}: webhook rejected status=401
//!     reason="signature matches none of the secrets: another secret, or a body that was changed on the way"
//! ```
//!
//! `status` is what the sender got. The dashboard's page *Rejected* counts the same reasons, and the metric
//! `idempotent_webhook_rejections_total` has them as labels.
//!
//! # From the answer to the cure
//!
//! | status | outcome | the log | cure |
//! |---|---|---|---|
//! | 2xx | `processed`, `verified` | at DEBUG | none: the handler has run |
//! | 200, empty | `duplicate` | at DEBUG; at WARN if its body is another one than the first | none. If it should run again: [the dashboard](crate::dashboard), or another delivery id |
//! | 200, empty | `ignored` | at DEBUG, with the type | add the type to [`Events`](crate::Events) or [`only`](crate::IdempotentWebhook::only), or take it off the provider's subscription |
//! | 200, empty | `accepted`, `kept` | at DEBUG; the failure at WARN or ERROR | [`recovery`](super::recovery) |
//! | 2xx | `handshake` | at INFO | none: the provider has checked the endpoint |
//! | 400 | `rejected` | `webhook rejected`: no delivery id where the provider has it, or a body that is not JSON | the request is not of the kind that the preset is for: compare it with [`webhook providers NAME`](#the-command). Another place of the id: [`Provider::delivery_id`](crate::Provider::delivery_id) |
//! | 400 | `rejected` | the body broke off | the sender or a proxy has ended the connection |
//! | 401 | `rejected` | `webhook rejected`, with what is wrong | [below](#401) |
//! | 405 | `rejected` | `webhook rejected`, once | browsers and scanners, a webhook that is set to GET ([`Provider::methods`](crate::Provider::methods)), or a layer that is around more than the webhook's route |
//! | 408 | `rejected` | the body came too slowly | the sender's line, or [`body_timeout`](crate::IdempotentWebhook::body_timeout) |
//! | 413 | `rejected` | more bytes than `body_limit` | [`Provider::body_limit`](crate::Provider::body_limit); with axum also its `DefaultBodyLimit`, if you have set one |
//! | 500 | `failed` | `webhook failed`, at ERROR, with the mistake of the handler | [`handling`](super::handling): return SQL errors, leave `DedupeTx` in the handler, one layer for a route |
//! | any other | `failed` | `webhook rolled back`, with the handler's own reason | the handler has answered it |
//! | 503 | `in-flight` | `webhook still in flight`, at INFO | none: it comes again. If often, the handler is slow, or hangs |
//! | 503 | `failed` | `webhook failed`: no connection, no claim, no commit, the handler's time | Postgres, the pool ([`operating`](super::operating)) |
//! | 503 | `rejected` | `no key of HOST` | the key could not be fetched: the way out of your network, [`Provider::keys`](crate::Provider::keys) |
//! | 404, or no outcome at all | none | nothing | the request did not reach the layer: the path, a proxy, another middleware |
//!
//! Some providers give up after a 400 or 401. Their presets answer with another status, after which they deliver again:
//! Zendesk gets a 503 for a wrong signature, too. The log has the reason all the same, and
//! [a table](super::provider_table#what-each-answer-makes-the-provider-do) what each status makes each provider do.
//!
//! # 401
//!
//! | the reason in the log | cure |
//! |---|---|
//! | `header ... is missing` | The request is not from the provider, is of another kind (a test button that signs nothing), or a proxy has dropped the header. nginx drops names with `_`. |
//! | `header ... is malformed`, repeated included | Something between has changed it or added it again. |
//! | `signature matches none of the secrets` | Another secret, or another body than the one that was signed. The command below tells them apart. |
//! | the same, `or another URL than ...` | The URL is signed: [`Provider::public_url`](crate::Provider::public_url), or [`trust_forwarded_headers`](crate::Provider::trust_forwarded_headers) behind a proxy. |
//! | `the signature covers the URL ... not known` | Set [`Provider::public_url`](crate::Provider::public_url). |
//! | `one of them is unusable` | A secret of [`TenantSecrets`](crate::TenantSecrets) is not of the provider's form. |
//! | `signed ... s ago` | A clock is off, or it is a retry with its first signature: [`Provider::tolerance`](crate::Provider::tolerance). A replay, otherwise. |
//! | `signed by another algorithm`, `no key of the id`, certificates | The provider is set to another scheme, or has a key that is not fetched yet. |
//! | `not for us` | It is for another receiver: the audience, the topic, the account. |
//! | `TenantSecrets` | No tenant in the request, or one that the lookup does not know. |
//! | `only be verified with this crate's feature` | Switch the feature on. |
//!
//! The usual causes of `signature matches none of the secrets`:
//!
//! - the secret of another endpoint, of test in place of live mode, or of before a rotation: give both
//!   ([`Secrets`](crate::Secrets));
//! - a line break or quotes around the secret, from a file or an `.env`. [`Secret::new`](crate::Secret::new) refuses
//!   white space;
//! - a middleware outside of the layer that reads the body and writes it again. The layer has to see the raw bytes;
//! - a proxy that changes the body: it decompresses it, or rewrites JSON.
//!
//! # The command
//!
//! `webhook verify` says which of them it is. It takes a captured request, and the secret from the environment:
//!
//! ```sh
//! cargo install idempotent-webhook --no-default-features --features command
//! read -rs WEBHOOK_SECRET; export WEBHOOK_SECRET
//! ```
//!
//! A capture is a raw HTTP request, in a file:
//!
//! ```http
//! POST /webhooks/github HTTP/1.1
//! Host: hooks.example.com
//! Content-Type: application/json
//! X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958
//! X-GitHub-Event: pull_request
//! X-Hub-Signature-256: sha256=4106e73fde30412620dabe442549eefdc60ed51cc8dfbf211b047750b020811c
//!
//! {"action": "opened", "number": 7, "title": "caf\u00e9"}
//! ```
//!
//! ```text
//! $ webhook verify github capture.http
//! github: HMAC-SHA256 in hex, x-hub-signature-256
//! POST /webhooks/github, a body of 55 bytes, the last of which are 22 7d
//!
//! method     ok
//! headers    ok
//! body       ok
//! secret     ok
//! signature  FAILS: it does not match
//!
//! What is signed, 55 bytes:
//!   {"action": "opened", "number": 7, "title": "caf\u00e9"}
//!
//! It verifies if the body is written without any white space, as JSON.stringify writes it.
//! Something has parsed the body and written it again: a body parser before the verification, a proxy,
//! or the tool that took the capture. Verify the bytes as they came.
//! ```
//!
//! With another secret it does not guess:
//!
//! ```text
//! $ WEBHOOK_SECRET=another webhook verify github capture.http
//! ...
//!
//! None of the usual mistakes makes it right. It is another secret (of another endpoint, of test
//! instead of live mode, or one that was replaced), the request was changed in another way, or it is
//! not from github.
//! ```
//!
//! It verifies with each of the usual mistakes mended: what is around the secret, its prefix and its encoding; renamed,
//! repeated and quoted headers; line breaks, and JSON that was written again; the URL; the provider. It names the one
//! that makes the request right. The secret is never shown. `--at` is the time of receipt, for an old capture, and
//! `--public-url` what the provider calls. Where keys are fetched, it cannot tell: it has no network.
//!
//! # How to take a capture
//!
//! The body counts to the byte, so the tool has to keep it as it came:
//!
//! - mitmproxy between the proxy and the server: `mitmproxy --mode reverse:http://127.0.0.1:3000`, then
//!   `:export.file raw_request @focus capture.http`;
//! - `nc -l 3000 > capture.http` in the place of the server. The provider gets no answer, and sends it again;
//! - a request bin on the internet, if it shows the raw request. Whatever is sent there is no longer secret;
//! - a packet capture of the plain HTTP behind the proxy.
//!
//! The dashboard's pages of kept deliveries have a command for curl, to be copied. It has the headers and the body, but
//! not the signature, which is never kept: such a request can be
//! [signed anew and replayed](super::testing#against-a-running-server), and not be verified. The trace of tower-http has no
//! bodies.
