//! The page of a delivery: its state, its attempts and its request.

#[cfg(feature = "testing")]
pub(in crate::dashboard) mod capture;
pub(in crate::dashboard::pages) mod stored;

use std::slice;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use maud::{Markup, html};
use serde::Serialize;

use super::super::database::Reading;
use super::super::error::PageError;
use super::super::html::{
    Table, Timestamp, button, code, empty, facts, hidden_code, short, state, status, visible,
};
use super::super::operate::recorded_actions::{self, Recorded};
use super::super::params::Params;
use super::super::rows::{self, Key, grouped};
use super::super::view::View;
use super::super::{Access, Shared};
use super::curl::curl;
use super::{actions, settings};
use stored::{Delivery, Kept, Request, body};

/// How many bytes of a payload the page shows.
const SHOWN: i32 = 64 * 1024;

#[derive(Serialize)]
pub(in crate::dashboard) struct DeliveryPage {
    now: Timestamp,
    #[serde(flatten)]
    key: Key,
    state: String,
    #[serde(flatten)]
    delivery: Delivery,
    actions: Vec<Recorded>,
    /// The first bytes of the payload, for the page. Programs get the whole payload, unchanged, at `api/payload`.
    #[serde(skip)]
    payload: Option<Vec<u8>>,
    #[serde(skip)]
    signature_header: Option<String>,
}

/// Starts to read the requested delivery. If the viewer may not see it, the error is the same as if the delivery did
/// not exist.
async fn look(
    shared: &Shared,
    access: &Access,
    params: &Params,
    not_there: PageError,
) -> Result<(Key, Reading), PageError> {
    const MISSING_KEY: PageError = PageError::bad_request("An endpoint and an id are needed.");
    let key = Key::from(params).ok_or(MISSING_KEY)?;
    let mut reading = shared.database.read().await?;
    if !rows::may_see(&mut reading, access, slice::from_ref(&key)).await? {
        reading.end();
        return Err(not_there);
    }
    Ok((key, reading))
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<DeliveryPage, PageError> {
    let (key, mut reading) = look(shared, access, params, UNKNOWN).await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let delivery = Delivery::read(&mut reading, &key, access).await?;
    let mut payload = None;
    let mut signature_header = None;
    if delivery.request.is_some() && access.may_see_payloads() {
        payload = body(&mut reading, &key, Some(SHOWN)).await?;
        let told = settings::told(&mut reading, &key.endpoint).await?;
        let header = told.as_ref().and_then(settings::Told::signature_header);
        signature_header = header.map(str::to_owned);
    }
    // Each action links to a page about all tenants, so only readers who may see all tenants get the actions.
    let actions = match access.tenants() {
        None => recorded_actions::of_delivery(&mut reading, &key).await?,
        Some(_) => Vec::new(),
    };
    reading.end();
    if !delivery.is_known() && actions.is_empty() {
        return Err(UNKNOWN);
    }
    Ok(DeliveryPage {
        now,
        state: delivery.state().to_owned(),
        key,
        delivery,
        actions,
        payload,
        signature_header,
    })
}

const UNKNOWN: PageError = PageError::not_found(
    "There is no such delivery. It was never received, was rejected, or has since been deleted.",
);

impl View for DeliveryPage {
    fn title(&self) -> String {
        "Delivery".into()
    }

    fn content(&self, viewer: &Access) -> Markup {
        let delivery = &self.delivery;
        html! {
            p.lead { (state(delivery.state())) " " (delivery.meaning()) }
            @if viewer.may_operate() { (buttons(delivery, &self.key, viewer)) }
            @if let Some((kept, at)) = delivery.unreached() {
                (unreached(kept, at, delivery.request.as_ref(), self.now))
            }
            @if delivery.is_reconciled() {
                p {
                    "Received by reconciliation: its webhook had not arrived, but the provider's list of events \
                     contains it."
                }
            }
            (about(delivery, &self.key, self.now))
            @if let Some(kept) = &delivery.kept {
                h2 { "Failed attempts" }
                (history(kept, self.now))
            }
            h2 { "Request" }
            (self.request())
            @if !self.actions.is_empty() {
                h2 { "What operators did" }
                (actions::table(&self.actions, self.now))
            }
        }
    }
}

fn about(delivery: &Delivery, key: &Key, now: Timestamp) -> Markup {
    let time = |at: Option<Timestamp>| at.map(|at| at.with_age(now));
    let text = |text: Option<&str>| text.map(|text| html! { (visible(text)) });
    let kept = delivery.kept.as_ref();
    let tenant = kept.and_then(|kept| kept.tenant_name.as_deref());
    // The next attempt is not shown while an attempt is running, or if no attempt will follow.
    let next =
        kept.filter(|kept| kept.state == "due" && !kept.is_running && delivery.processed.is_none());
    facts(&[
        ("Delivery id", Some(html! { code { (visible(&key.id)) } })),
        ("Endpoint", text(Some(&key.endpoint))),
        ("Tenant", text(tenant.or(key.tenant()))),
        ("Event type", text(delivery.event_type.as_deref())),
        ("Processed", time(delivery.processed)),
        ("First received", time(kept.map(|kept| kept.first_received))),
        ("Attempts", kept.map(|kept| html! { (kept.attempts) })),
        (
            "First failed",
            time(kept.and_then(|kept| kept.first_failed)),
        ),
        ("Last failed", time(kept.and_then(|kept| kept.last_failed))),
        (
            "Next attempt",
            time(next.and_then(|kept| kept.next_attempt)),
        ),
        (
            "Last status",
            kept.and_then(|kept| kept.status)
                .map(|code| status(Some(code))),
        ),
        (
            "Last reason",
            kept.and_then(|kept| kept.reason.as_deref())
                .map(|reason| html! { span.reason { (visible(reason)) } }),
        ),
    ])
}

/// Shows what a recovery attempt reached instead of a layer, and what to do.
fn unreached(kept: &Kept, at: Timestamp, request: Option<&Request>, now: Timestamp) -> Markup {
    let uri = request.and_then(|request| request.uri.as_deref());
    let path = uri.map(|uri| uri.split_once('?').map_or(uri, |(path, _)| path));
    html! {
        p.notice {
            "No layer was reached: "
            @match kept.unreached_status {
                Some(status) => { "status " (status) }
                None => { "no answer" }
            }
            @if let Some(path) = path { " at " code { (short(path, 200)) } }
            ", " (at.with_age(now)) ". "
            "Either the application no longer has this route, or a middleware has refused the request. Serve the path \
             again (with a clone of the layer, if its route now has another path), or let recovery requests pass the \
             middleware. Until then, a retry changes nothing."
        }
    }
}

fn buttons(delivery: &Delivery, key: &Key, viewer: &Access) -> Markup {
    let is_processed = delivery.processed.is_some();
    let is_kept = !is_processed && delivery.kept.is_some();
    let has_request = delivery.request.is_some();
    let [endpoint, tenant, id] = key.fields();
    let again = if has_request { "reprocess" } else { "forget" };
    html! {
        div.actions {
            @if is_kept && has_request {
                (button(&html! { "Retry now" }, "act", &[
                    ("action", Some("retry")), endpoint, tenant, id,
                ]))
            }
            @if is_kept {
                a.button.danger href=(key.link("confirm").with("action", "discard")) { "Discard…" }
            }
            @if is_processed {
                a.button href=(key.link("confirm").with("action", again)) { "Process again…" }
            }
            @if delivery.kept.is_some() && viewer.may_erase() {
                a.button.danger href=(key.link("confirm").with("action", "erase")) { "Erase…" }
            }
        }
    }
}

fn history(kept: &Kept, now: Timestamp) -> Markup {
    let shown = i64::try_from(kept.failed_attempts.len()).unwrap_or(0);
    let older = i64::from(kept.attempts) - shown - i64::from(kept.state == "processed");
    html! {
        @if kept.failed_attempts.is_empty() {
            (empty("None."))
        } @else {
            (Table::of(&kept.failed_attempts)
                .column("Failed", |attempt| attempt.at.with_age(now))
                .column("By", |attempt| html! { (attempt.by) })
                .column("Status", |attempt| status(attempt.status))
                .styled("reason", "Reason", |attempt| {
                    short(attempt.reason.as_deref().unwrap_or_default(), 200)
                }))
            @if older > 0 {
                p.muted {
                    (older) " further attempt(s): running, ended without a result, or older than \
                             the last 20."
                }
            }
        }
    }
}

impl DeliveryPage {
    fn request(&self) -> Markup {
        let Some(request) = &self.delivery.request else {
            return empty(
                "The request is not kept. Requests are kept until their delivery is processed, or for \
                 as long as the layer keeps processed deliveries.",
            );
        };
        let size = html! { (grouped(i64::from(request.body_bytes))) " bytes" };
        let uri = request.uri.as_deref();
        let about = [
            ("Method", Some(html! { (visible(&request.method)) })),
            ("URI", uri.map(|uri| html! { code { (visible(uri)) } })),
            ("Body", Some(size)),
        ];
        html! {
            (facts(&about))
            @if let (Some(headers), Some(payload)) = (&request.headers, &self.payload) {
                h3 { "Kept headers" }
                dl.headers {
                    @for (name, value) in headers {
                        div { dt { (visible(name)) } dd { (visible(value)) } }
                    }
                }
                h3 { "Payload" }
                (code(payload))
                p.muted {
                    @if request.body_bytes > SHOWN { "Only the first 64 KiB are shown. " }
                    a href=(self.key.link("payload")) download { "Download the payload as it came" }
                    @if cfg!(feature = "testing") {
                        ", or "
                        a href=(self.key.link("capture")) download { "a capture for tests" }
                        ", with pseudonyms for values that may be personal or secret"
                    }
                }
                h3 { "As a command" }
                (self.command(request, headers, payload))
            } @else {
                (hidden_code("You may not see the payload, the headers and the query."))
            }
        }
    }

    fn command(&self, request: &Request, headers: &[(String, String)], payload: &[u8]) -> Markup {
        let is_whole =
            usize::try_from(request.body_bytes).is_ok_and(|bytes| bytes == payload.len());
        let uri = request.uri.as_deref().unwrap_or_default();
        let command = curl(
            &request.method,
            uri,
            headers,
            self.signature_header.as_deref(),
            is_whole.then_some(payload),
        );
        html! {
            pre.payload.command tabindex="0" role="region" aria-label="Command" {
                code { (visible(&command)) }
            }
            p.muted {
                "The host and the signature are placeholders: signatures are not kept, and most would be too old by \
                 now."
            }
        }
    }
}

/// The unchanged payload, which browsers save instead of showing it.
pub(in crate::dashboard) async fn payload(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Response, PageError> {
    const NOT_KEPT: PageError = PageError::not_found("Its payload is not kept.");
    let (key, mut reading) = look(shared, access, params, NOT_KEPT).await?;
    let body = body(&mut reading, &key, None).await?;
    reading.end();
    let body = body.ok_or(NOT_KEPT)?;
    Ok(file(body, "attachment; filename=\"payload.bin\""))
}

/// A response that browsers save instead of showing it.
fn file(content: Vec<u8>, disposition: &'static str) -> Response {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    let binary = HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, binary);
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static(disposition));
    response
}
