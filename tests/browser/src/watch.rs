use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use chromiumoxide::Page as Tab;
use chromiumoxide::cdp::IntoEventKind;
use chromiumoxide::cdp::browser_protocol::log::{EventEntryAdded, LogEntryLevel, LogEntrySource};
use chromiumoxide::cdp::browser_protocol::network::{
    EventRequestWillBeSent, EventResponseReceived, EventWebSocketCreated, ResourceType,
};
use chromiumoxide::cdp::browser_protocol::page::{
    DialogType, EventJavascriptDialogOpening, EventLoadEventFired, HandleJavaScriptDialogParams,
};
use chromiumoxide::cdp::js_protocol::runtime::{
    ConsoleApiCalledType, EventConsoleApiCalled, EventExceptionThrown, RemoteObject,
};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use reqwest::Url;
use tokio::sync::watch::{Receiver, Sender, channel};

use crate::Finding;

/// The text that the harness passes to `console.debug`. When the event with this text arrives, all earlier events are
/// known.
pub const MARK: &str = "harness: seen until here";

/// The URL that the browser shows for an error without a body.
const NO_BODY: &str = "chrome-error://chromewebdata/";

/// The events that are watched.
pub const WATCHED: [&str; 8] = [
    EventConsoleApiCalled::IDENTIFIER,
    EventExceptionThrown::IDENTIFIER,
    EventEntryAdded::IDENTIFIER,
    EventJavascriptDialogOpening::IDENTIFIER,
    EventRequestWillBeSent::IDENTIFIER,
    EventWebSocketCreated::IDENTIFIER,
    EventResponseReceived::IDENTIFIER,
    EventLoadEventFired::IDENTIFIER,
];

/// Follows the events of a page in a task that ends with the page.
pub struct Watch {
    seen: Arc<Mutex<Seen>>,
    pub progress: Receiver<Progress>,
}

/// How many events there were, for each kind of event that a test can wait for.
#[derive(Clone, Copy, Default)]
pub struct Progress {
    pub loads: u64,
    pub marks: u64,
    pub others: u64,
}

#[derive(Default)]
struct Seen {
    findings: Vec<Finding>,
    /// The URLs of all requests, in order.
    requests: Vec<String>,
    /// The origins that the test went to.
    origins: HashSet<String>,
    /// The URL and the status of the last received document.
    document: Option<(String, u16)>,
}

enum Event {
    Console(Arc<EventConsoleApiCalled>),
    Exception(Arc<EventExceptionThrown>),
    Log(Arc<EventEntryAdded>),
    Dialog(Arc<EventJavascriptDialogOpening>),
    Request(Arc<EventRequestWillBeSent>),
    WebSocket(Arc<EventWebSocketCreated>),
    Response(Arc<EventResponseReceived>),
    Load,
}

async fn events<T: IntoEventKind + Unpin>(
    tab: &Tab,
    event: impl Fn(Arc<T>) -> Event + Send + 'static,
) -> BoxStream<'static, Event> {
    tab.event_listener::<T>().await.unwrap().map(event).boxed()
}

impl Watch {
    pub async fn start(tab: &Tab) -> Self {
        let events: [_; WATCHED.len()] = [
            events(tab, Event::Console).await,
            events(tab, Event::Exception).await,
            events(tab, Event::Log).await,
            events(tab, Event::Dialog).await,
            events(tab, Event::Request).await,
            events(tab, Event::WebSocket).await,
            events(tab, Event::Response).await,
            events(tab, |_: Arc<EventLoadEventFired>| Event::Load).await,
        ];
        let seen = Arc::default();
        let (advance, progress) = channel(Progress::default());
        // A page lives until its browser ends, and the streams end at the same time.
        tokio::spawn(follow(events, tab.clone(), Arc::clone(&seen), advance));
        Self { seen, progress }
    }

    pub fn allow(&self, url: &str) {
        let origin = origin(url).unwrap_or_else(|| panic!("{url} has no host"));
        self.seen.lock().unwrap().origins.insert(origin);
    }

    pub fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }

    pub fn status(&self) -> Option<u16> {
        let seen = self.seen.lock().unwrap();
        seen.document.as_ref().map(|(_, status)| *status)
    }

    /// The findings since the last call.
    pub fn take(&self) -> Vec<Finding> {
        std::mem::take(&mut self.seen.lock().unwrap().findings)
    }
}

async fn follow(
    events: [BoxStream<'static, Event>; WATCHED.len()],
    tab: Tab,
    seen: Arc<Mutex<Seen>>,
    advance: Sender<Progress>,
) {
    // The streams have no common order, so all ready events are taken together. Progress is reported only after all of
    // them are recorded.
    let mut events = stream::select_all(events).ready_chunks(usize::from(u16::MAX));
    while let Some(events) = events.next().await {
        let mut progress = *advance.borrow();
        // Handles responses first, because they decide whether a message in the log is about the document itself.
        let (responses, others): (Vec<_>, Vec<_>) = events
            .into_iter()
            .partition(|event| matches!(event, Event::Response(_)));
        for event in responses.into_iter().chain(others) {
            match &event {
                Event::Load => progress.loads += 1,
                Event::Console(call) if is_mark(call) => progress.marks += 1,
                Event::Dialog(dialog) => {
                    progress.others += 1;
                    // The only dialog that a test wants to accept is the one on leaving a page.
                    let accept = dialog.r#type == DialogType::Beforeunload;
                    // This fails if the page is gone.
                    let _ = tab.execute(HandleJavaScriptDialogParams::new(accept)).await;
                }
                _ => progress.others += 1,
            }
            seen.lock().unwrap().record(event);
        }
        advance.send_replace(progress);
    }
}

impl Seen {
    fn record(&mut self, event: Event) {
        match event {
            Event::Console(call) => {
                if let ConsoleApiCalledType::Error
                | ConsoleApiCalledType::Warning
                | ConsoleApiCalledType::Assert = call.r#type
                {
                    let words: Vec<String> = call.args.iter().map(text).collect();
                    self.findings.push(Finding::Console(words.join(" ")));
                }
            }
            Event::Exception(thrown) => {
                let details = &thrown.exception_details;
                let thrown = details.exception.as_ref().map(text).unwrap_or_default();
                self.findings
                    .push(Finding::Exception(format!("{} {thrown}", details.text)));
            }
            Event::Log(logged) => {
                let entry = &logged.entry;
                // If the answer for the page itself is an error, the test already sees this by the status.
                let about_document = entry.source == LogEntrySource::Network
                    && self.document.as_ref().is_some_and(|(url, status)| {
                        *status >= 400
                            && entry
                                .url
                                .as_ref()
                                .is_some_and(|logged| logged == url || logged == NO_BODY)
                    });
                if about_document
                    || matches!(entry.level, LogEntryLevel::Verbose | LogEntryLevel::Info)
                {
                    return;
                }
                let text = match &entry.url {
                    Some(url) => format!("{} ({url})", entry.text),
                    None => entry.text.clone(),
                };
                self.findings.push(match entry.source {
                    LogEntrySource::Security => Finding::Violation(text),
                    _ => Finding::Log(text),
                });
            }
            Event::Dialog(dialog) => {
                self.findings.push(Finding::Dialog(dialog.message.clone()));
            }
            Event::Request(request) => self.request(&request.request.url),
            Event::WebSocket(socket) => self.request(&socket.url),
            Event::Response(response) => {
                if response.r#type == ResourceType::Document {
                    let response = &response.response;
                    let status = u16::try_from(response.status).unwrap_or_default();
                    self.document = Some((response.url.clone(), status));
                }
            }
            Event::Load => {}
        }
    }

    fn request(&mut self, url: &str) {
        self.requests.push(url.to_owned());
        if let Some(origin) = origin(url)
            && !self.origins.contains(&origin)
        {
            self.findings.push(Finding::ForeignRequest(url.to_owned()));
        }
    }
}

/// The host and port of a URL. `None` for a URL without a host, such as a `data:` URL.
fn origin(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let port = url.port_or_known_default().unwrap_or_default();
    Some(format!("{}:{port}", url.host_str()?))
}

fn is_mark(call: &EventConsoleApiCalled) -> bool {
    call.r#type == ConsoleApiCalledType::Debug
        && call.args.first().is_some_and(|word| text(word) == MARK)
}

fn text(object: &RemoteObject) -> String {
    match (&object.value, &object.description) {
        (Some(serde_json::Value::String(text)), _) => text.clone(),
        (_, Some(description)) => description.clone(),
        (Some(value), None) => value.to_string(),
        (None, None) => String::new(),
    }
}
