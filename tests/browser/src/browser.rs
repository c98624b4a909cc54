use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chromiumoxide::browser::Browser as Connection;
use chromiumoxide::error::CdpError;
use chromiumoxide::handler::HandlerConfig;
use futures_util::StreamExt;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::chromium::Chromium;
use crate::watch::WATCHED;
use crate::{Look, Page};

/// A separate browser with a fresh profile. When this value is dropped, even by a panic, its processes end and its
/// folder is removed.
///
/// Each test starts its own browser, because each test has its own runtime, and the connection to the browser cannot
/// outlive the runtime.
pub struct Browser {
    connection: Connection,
    reader: JoinHandle<()>,
    not_understood: NotUnderstood,
    chromium: Chromium,
}

/// The watched events that the client could not parse. The client is generated from the protocol of an older browser,
/// so it does not know all forms of the events.
pub(crate) type NotUnderstood = Arc<Mutex<Vec<String>>>;

impl Browser {
    pub async fn start() -> Self {
        let mut chromium = Chromium::start().unwrap_or_else(|error| panic!("{error}"));
        let address = match chromium.address().await {
            Ok(address) => address,
            Err(error) => panic!("{error}\n{}", chromium.end().unwrap_or_default()),
        };
        let settings = HandlerConfig {
            ignore_https_errors: false,
            ignore_invalid_messages: false,
            viewport: None,
            request_timeout: Duration::from_secs(60),
            ..HandlerConfig::default()
        };
        let (connection, mut messages) = Connection::connect_with_config(address, settings)
            .await
            .unwrap();
        let not_understood = NotUnderstood::default();
        let reader = tokio::spawn({
            let not_understood = Arc::clone(&not_understood);
            async move {
                while let Some(read) = messages.next().await {
                    if let Err(CdpError::InvalidMessage(message, error)) = read
                        && is_awaited(&message)
                    {
                        let short: String = message.chars().take(500).collect();
                        not_understood
                            .lock()
                            .unwrap()
                            .push(format!("{error}: {short}"));
                    }
                }
            }
        });
        Self {
            connection,
            reader,
            not_understood,
            chromium,
        }
    }

    /// An empty page, with this `look`.
    pub async fn page(&self, look: Look) -> Page {
        let tab = self.connection.new_page("about:blank").await.unwrap();
        Page::open(tab, look, Arc::clone(&self.not_understood)).await
    }

    /// The folder with all its files, which exists as long as the browser does.
    pub fn folder(&self) -> &Path {
        self.chromium.folder()
    }
}

/// Whether somebody waits for this message of the browser, which is the case for watched events and for answers. If an
/// answer were ignored, its command would seem to take too long.
fn is_awaited(message: &str) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message["method"]
        .as_str()
        .is_none_or(|method| WATCHED.contains(&method))
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
