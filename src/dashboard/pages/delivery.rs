//! A delivery: its state, its attempts, its request.

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use maud::{Markup, html};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::super::claim_lock::{claim_lock, held_locks};
use super::super::error::PageError;
use super::super::html::{
    Timestamp, button, code, empty, facts, hidden_code, short, state, status, visible,
};
use super::super::operate::audit::{self, Recorded};
use super::super::params::Params;
use super::super::rows::{self, Key, grouped};
use super::super::view::View;
use super::super::{Access, Shared};
use super::curl::curl;
use super::settings;

/// How much of a payload is shown, in bytes.
const SHOWN: i32 = 64 * 1024;

const PROCESSED: &str = "
    select extract(epoch from received_at)::float8 as processed_at, event_type
    from idempotent_webhook.deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
";

/// What else is known of a delivery. It is in flight if somebody holds the lock of its claim.
const DELIVERY: &str = concat!(
    "
    select
        kept.state,
        kept.tenant_name,
        kept.event_type,
        kept.attempts,
        kept.status,
        kept.reason,
        exists (
            select from idempotent_webhook.processes where number = kept.taken_by
        ) as running,
        kept.reconciled,
        extract(epoch from kept.first_received_at)::float8 as first_received_at,
        extract(epoch from kept.first_failed_at)::float8 as first_failed_at,
        extract(epoch from kept.last_failed_at)::float8 as last_failed_at,
        extract(epoch from kept.next_attempt_at)::float8 as next_attempt_at,
        extract(epoch from kept.unreached_at)::float8 as unreached_at,
        kept.unreached_status,
        state.paused_at is not null as paused,
        request.method,
        request.uri,
        request.headers,
        octet_length(request.body) as body_bytes,
        ",
    claim_lock!("$1", "$2", "$3"),
    " in (",
    held_locks!(),
    ") as in_flight
    from (select) as one
    left join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = $1 and kept.tenant = $2 and kept.delivery_id = $3
    left join idempotent_webhook.kept_requests as request
        on request.endpoint = $1 and request.tenant = $2 and request.delivery_id = $3
    left join idempotent_webhook.kept_endpoints as state
        on state.endpoint = $1
"
);

/// The failed attempts, the latest first.
const HISTORY: &str = "
    select attempt.at, attempt.by, attempt.status, attempt.reason
    from idempotent_webhook.kept_deliveries as kept
    cross join lateral rows from (
        jsonb_to_recordset(kept.history) as (at float8, by text, status int2, reason text)
    ) with ordinality as attempt (at, by, status, reason, number)
    where kept.endpoint = $1 and kept.tenant = $2 and kept.delivery_id = $3
    order by attempt.number desc
";

const BODY: &str = "
    select case when $4::int4 is null then body else substring(body from 1 for $4) end
    from idempotent_webhook.kept_requests
    where endpoint = $1 and tenant = $2 and delivery_id = $3
";

/// What is known of a delivery.
#[derive(Serialize)]
struct Delivery {
    processed: Option<Timestamp>,
    event_type: Option<String>,
    is_paused: bool,
    is_in_flight: bool,
    kept: Option<Kept>,
    request: Option<Request>,
}

/// A row of `kept_deliveries`.
#[derive(Serialize)]
struct Kept {
    state: String,
    tenant_name: Option<String>,
    attempts: i32,
    status: Option<i16>,
    reason: Option<String>,
    is_running: bool,
    /// Whether reconciliation has received it, from the provider's list of events.
    is_reconciled: bool,
    first_received: Timestamp,
    first_failed: Option<Timestamp>,
    last_failed: Option<Timestamp>,
    next_attempt: Option<Timestamp>,
    /// When the last attempt has reached no layer of the endpoint, and the status of what has answered instead.
    unreached: Option<Timestamp>,
    unreached_status: Option<i16>,
    failed_attempts: Vec<Attempt>,
}

#[derive(Serialize)]
struct Attempt {
    at: Timestamp,
    by: String,
    status: Option<i16>,
    reason: Option<String>,
}

/// A row of `kept_requests`, without its body.
#[derive(Serialize)]
struct Request {
    method: String,
    body_bytes: i32,
    /// These for those who may see payloads.
    uri: Option<String>,
    headers: Option<Vec<(String, String)>>,
}

impl Delivery {
    async fn read(connection: &mut PgConnection, key: &Key, access: &Access) -> sqlx::Result<Self> {
        let processed = of_key(PROCESSED, key);
        let processed = processed.fetch_optional(&mut *connection).await?;
        let row = of_key(DELIVERY, key).fetch_one(&mut *connection).await?;
        let history = of_key(HISTORY, key).fetch_all(&mut *connection).await?;
        let history = history
            .iter()
            .map(|row| Attempt::read(row, access))
            .collect::<sqlx::Result<_>>()?;
        let mut event_type: Option<String> = row.try_get("event_type")?;
        let mut processed_at = None;
        if let Some(processed) = processed {
            processed_at = Some(Timestamp(processed.try_get("processed_at")?));
            event_type = event_type.or(processed.try_get("event_type")?);
        }
        Ok(Self {
            processed: processed_at,
            event_type,
            kept: Kept::read(&row, history, access)?,
            request: Request::read(&row, access)?,
            is_paused: row.try_get("paused")?,
            is_in_flight: row.try_get("in_flight")?,
        })
    }

    fn is_known(&self) -> bool {
        self.processed.is_some() || self.kept.is_some() || self.is_in_flight
    }

    /// The state in one word. What was processed is done, whatever is kept.
    fn state(&self) -> &str {
        match &self.kept {
            _ if self.processed.is_some() => "processed",
            _ if self.is_in_flight => "in flight",
            Some(kept) if kept.is_running => "running",
            Some(kept) if kept.state == "due" && self.is_paused => "paused",
            Some(kept) => &kept.state,
            None => "unknown",
        }
    }

    /// It was accepted first.
    fn has_not_failed(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| kept.last_failed.is_none())
    }

    /// When its last attempt has reached no layer, if it runs again.
    fn unreached(&self) -> Option<(&Kept, Timestamp)> {
        let waits = matches!(self.state(), "due" | "paused");
        let kept = self.kept.as_ref().filter(|_| waits)?;
        Some((kept, kept.unreached?))
    }

    fn is_reconciled(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| kept.is_reconciled)
    }

    fn meaning(&self) -> &'static str {
        match self.state() {
            "processed" => "Its handler has succeeded, and what it wrote is committed.",
            "in flight" => "An attempt at it is running right now.",
            "running" => {
                "An attempt at it has begun. If its process was killed, the next one comes within seconds."
            }
            "due" if self.unreached().is_some() => {
                "It runs again each minute, and its attempts reach no layer of its endpoint."
            }
            "due" if self.has_not_failed() => "It is accepted, and waits for its first attempt.",
            "due" => {
                "It has failed, and runs again at the time of the next attempt. While its endpoint is \
                 probed, it may have to wait for longer."
            }
            "paused" => "It runs again once its endpoint is resumed.",
            "dead" => "It runs again only if somebody retries it, or the provider sends it again.",
            "recorded" => {
                "It has failed, and its request is not kept. It is processed if the provider \
                 delivers it again."
            }
            _ => "",
        }
    }
}

impl Kept {
    fn read(row: &PgRow, history: Vec<Attempt>, access: &Access) -> sqlx::Result<Option<Self>> {
        let time = |column| -> sqlx::Result<Option<Timestamp>> {
            Ok(row.try_get::<Option<f64>, _>(column)?.map(Timestamp))
        };
        let Some(state) = row.try_get("state")? else {
            return Ok(None);
        };
        Ok(Some(Self {
            state,
            tenant_name: row.try_get("tenant_name")?,
            attempts: row.try_get("attempts")?,
            status: row.try_get("status")?,
            reason: seen(row, access)?,
            is_running: row.try_get::<Option<bool>, _>("running")?.unwrap_or(false),
            is_reconciled: row.try_get("reconciled")?,
            first_received: Timestamp(row.try_get("first_received_at")?),
            first_failed: time("first_failed_at")?,
            last_failed: time("last_failed_at")?,
            next_attempt: time("next_attempt_at")?,
            unreached: time("unreached_at")?,
            unreached_status: row.try_get("unreached_status")?,
            failed_attempts: history,
        }))
    }
}

impl Attempt {
    fn read(row: &PgRow, access: &Access) -> sqlx::Result<Self> {
        Ok(Self {
            at: Timestamp(row.try_get("at")?),
            by: row.try_get("by")?,
            status: row.try_get("status")?,
            reason: seen(row, access)?,
        })
    }
}

/// The reason of a row, as it may be seen.
fn seen(row: &PgRow, access: &Access) -> sqlx::Result<Option<String>> {
    let reason: Option<String> = row.try_get("reason")?;
    Ok(reason.map(|reason| access.reason(reason)))
}

impl Request {
    fn read(row: &PgRow, access: &Access) -> sqlx::Result<Option<Self>> {
        let Some(method) = row.try_get("method")? else {
            return Ok(None);
        };
        let mut request = Self {
            method,
            body_bytes: row.try_get("body_bytes")?,
            uri: None,
            headers: None,
        };
        // A query and a header may have secrets, as a body may.
        if access.may_see_payloads() {
            let headers: Vec<u8> = row.try_get("headers")?;
            let headers = String::from_utf8_lossy(&headers);
            let headers = headers.lines().map(|line| {
                let (name, value) = line.split_once(": ").unwrap_or((line, ""));
                (name.to_owned(), value.to_owned())
            });
            request.headers = Some(headers.collect());
            request.uri = row.try_get("uri")?;
        }
        Ok(Some(request))
    }
}

type KeyQuery<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

/// A statement whose first values are those of a key.
fn of_key<'q>(sql: &'static str, key: &'q Key) -> KeyQuery<'q> {
    sqlx::query(sql)
        .bind(&key.endpoint)
        .bind(&key.tenant)
        .bind(&key.id)
}

async fn body(
    connection: &mut PgConnection,
    key: &Key,
    limit: Option<i32>,
) -> sqlx::Result<Option<Vec<u8>>> {
    let row = of_key(BODY, key)
        .bind(limit)
        .fetch_optional(connection)
        .await?;
    row.map(|row| row.try_get(0)).transpose()
}

#[derive(Serialize)]
pub(in crate::dashboard) struct DeliveryPage {
    now: Timestamp,
    #[serde(flatten)]
    key: Key,
    state: String,
    #[serde(flatten)]
    delivery: Delivery,
    actions: Vec<Recorded>,
    /// The page has its beginning, a program can have it as it came.
    #[serde(skip)]
    payload: Option<Vec<u8>>,
    #[serde(skip)]
    signature_header: Option<String>,
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<DeliveryPage, PageError> {
    let key = Key::from(params).ok_or(MISSING_KEY)?;
    let mut reading = shared.database.read().await?;
    if !rows::may_see(&mut reading, access, &key).await? {
        reading.end();
        return Err(UNKNOWN);
    }
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
    // Each leads to a page about all tenants.
    let actions = match access.tenants() {
        None => audit::of_delivery(&mut reading, &key).await?,
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
    "There is no such delivery. It was never received, or rejected, or has been deleted since.",
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
                    "Received by reconciliation: its webhook had not come, and the provider's list of events \
                     has it."
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
                (super::actions::table(&self.actions, self.now))
            }
        }
    }
}

const MISSING_KEY: PageError = PageError::bad_request("An endpoint and an id are needed.");

fn about(delivery: &Delivery, key: &Key, now: Timestamp) -> Markup {
    let time = |at: Option<Timestamp>| at.map(|at| at.with_age(now));
    let text = |text: Option<&str>| text.map(|text| html! { (visible(text)) });
    let kept = delivery.kept.as_ref();
    let tenant = kept.and_then(|kept| kept.tenant_name.as_deref());
    // Not while an attempt runs, or after the last one.
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

/// What has answered instead of a layer, and what to do.
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
            "The application has no such route any more, or a middleware has refused the request. Serve the \
             path again, with a clone of the layer if it has another one now, or let the middleware pass what \
             recovery sends. A retry changes nothing until then."
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
            div.scroll {
                table.stacked {
                    thead {
                        tr {
                            th scope="col" { "Failed" }
                            th scope="col" { "By" }
                            th scope="col" { "Status" }
                            th scope="col" { "Reason" }
                        }
                    }
                    tbody {
                        @for attempt in &kept.failed_attempts {
                            tr {
                                td data-label="Failed" { (attempt.at.with_age(now)) }
                                td data-label="By" { (attempt.by) }
                                td data-label="Status" { (status(attempt.status)) }
                                td.reason data-label="Reason" {
                                    (short(attempt.reason.as_deref().unwrap_or_default(), 200))
                                }
                            }
                        }
                    }
                }
            }
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
                "It is not kept. Requests are kept until their delivery is processed, or for as long \
                 as the layer keeps processed ones.",
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
                "The host and the signature are placeholders: signatures are not kept, and most of them \
                 are too old by now."
            }
        }
    }
}

/// The payload as it came, which a browser only saves.
pub(in crate::dashboard) async fn payload(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Response, PageError> {
    if !access.may_see_payloads() {
        return Err(PageError::forbidden("You may not see payloads."));
    }
    let key = Key::from(params).ok_or(MISSING_KEY)?;
    let mut reading = shared.database.read().await?;
    let body = match rows::may_see(&mut reading, access, &key).await? {
        true => body(&mut reading, &key, None).await?,
        false => None,
    };
    reading.end();
    let Some(body) = body else {
        return Err(PageError::not_found("Its payload is not kept."));
    };
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    let binary = HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, binary);
    let saved = HeaderValue::from_static("attachment; filename=\"payload.bin\"");
    headers.insert(CONTENT_DISPOSITION, saved);
    Ok(response)
}
