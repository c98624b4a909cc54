//! Asks the dashboard's API for programs.

use std::error::Error;
use std::fmt::Display;
use std::time::Duration;

use clap::Args;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::address::Address;
use crate::token::TokenArguments;
use crate::visible::visible;
use crate::{Ended, Failed};

/// The longest accepted answer, in bytes. The history of twenty deliveries is far shorter.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

#[derive(Args)]
pub struct Dashboard {
    /// The address of the dashboard: https://, or http:// on this machine
    #[arg(long, value_name = "URL")]
    dashboard: Address,

    #[command(flatten)]
    token: TokenArguments,

    /// Print the dashboard's answer as JSON, in the format that the guide describes (`api/status`,
    /// `api/why`)
    #[arg(long)]
    pub json: bool,

    /// How long to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

/// An answer of the dashboard.
pub struct Answer {
    text: String,
    value: Value,
}

impl Answer {
    /// Whether the dashboard reports that all is well.
    fn is_well(&self) -> bool {
        self.value.get("well") == Some(&Value::Bool(true))
    }

    /// The JSON, with a line break at the end.
    fn json(&self) -> String {
        format!("{}\n", self.text.trim_end())
    }

    fn parse<T: DeserializeOwned>(self) -> Result<T, String> {
        serde_json::from_value(self.value).map_err(|error| {
            format!("the answer is from another version of the dashboard: {error}")
        })
    }
}

impl Dashboard {
    /// Asks for a page under `api/`, and shows it as JSON, or as the text of `T`.
    pub fn show<T>(&self, name: &str, query: &[(&str, &str)]) -> Result<Ended, Failed>
    where
        T: DeserializeOwned + Display,
    {
        let answer = self.get(name, query)?;
        let is_right = answer.is_well();
        let text = match self.json {
            true => answer.json(),
            false => answer.parse::<T>()?.to_string(),
        };
        Ok(Ended { text, is_right })
    }

    fn get(&self, name: &str, query: &[(&str, &str)]) -> Result<Answer, Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(self.ask(name, query))
    }

    async fn ask(&self, name: &str, query: &[(&str, &str)]) -> Result<Answer, Failed> {
        let (header, token) = self.token.header()?;
        // Redirects are not followed, because they lead to a login page, which must not get the
        // token.
        let client = Client::builder()
            .redirect(Policy::none())
            .timeout(Duration::from_secs(self.timeout));
        let client = match self.dashboard.is_here() {
            true => client.no_proxy(),
            false => client,
        };
        let client = client.build().map_err(|error| error.to_string())?;
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(query)
            .finish();
        let url = format!("{}/api/{name}?{query}", self.dashboard.as_str());
        let away = |error: reqwest::Error| {
            let (address, error) = (self.dashboard.as_str(), chain(&error.without_url()));
            Failed::NotNow(format!("no answer from {address}: {error}"))
        };
        let request = client.get(url).header(header, token);
        let mut response = request.send().await.map_err(away)?;
        let status = response.status();
        let mut text = Vec::new();
        while let Some(part) = response.chunk().await.map_err(away)? {
            if text.len() + part.len() > MAX_ANSWER {
                return Err(Failed::Usage("the answer is longer than 16 MiB".to_owned()));
            }
            text.extend_from_slice(&part);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let value: Option<Value> = serde_json::from_str(&text).ok();
        match value {
            Some(value) if status == StatusCode::OK && value.get("well").is_some() => {
                Ok(Answer { text, value })
            }
            value => Err(self.refused(status, value.as_ref())),
        }
    }

    /// The error for an answer that is not a result of the dashboard's API.
    fn refused(&self, status: StatusCode, value: Option<&Value>) -> Failed {
        let address = self.dashboard.as_str();
        let says = value.and_then(|value| value.get("error")?.as_str());
        let says = says
            .map(|text| format!(": {}", visible(text)))
            .unwrap_or_default();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failed::Usage(format!(
                "{address} has refused the token, or the token lacks the right ({status}){says}"
            )),
            // The answer contains an error text, so it comes from the dashboard.
            StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST if !says.is_empty() => {
                Failed::Usage(format!("{status}{says}"))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Failed::NotNow(format!("{address} has answered {status}{says}"))
            }
            status if status.is_server_error() => {
                Failed::NotNow(format!("{address} has answered {status}{says}"))
            }
            status => Failed::Usage(format!(
                "{address} is not a dashboard, or one of another version: it has answered {status}{says}"
            )),
        }
    }
}

/// The text of an error, followed by its causes.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}
