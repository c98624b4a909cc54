//! The token that a program sends to the dashboard.

use std::path::PathBuf;

use clap::Args;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::input;

const DEFAULT: &str = "WEBHOOK_TOKEN";

/// A token cannot be an argument, because other users of the machine would see it.
#[derive(Args)]
pub struct TokenArguments {
    /// The environment variable that contains the token [default: WEBHOOK_TOKEN]
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,

    /// The file that contains the token; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "token_env")]
    token_file: Option<PathBuf>,

    /// The header that contains only the token [default: Authorization, with Bearer before the
    /// token]
    #[arg(long, value_name = "NAME")]
    token_header: Option<HeaderName>,
}

impl TokenArguments {
    /// The header with the token. The token is never shown.
    pub fn header(&self) -> Result<(HeaderName, HeaderValue), String> {
        let token = self.token()?;
        let token = token.trim_ascii();
        if token.is_empty() {
            return Err("the token is empty".to_owned());
        }
        let (name, value) = match &self.token_header {
            Some(name) => (name.clone(), token.to_vec()),
            None => (AUTHORIZATION, [b"Bearer ", token].concat()),
        };
        let mut value =
            HeaderValue::from_bytes(&value).map_err(|_| "the token cannot be in a header")?;
        value.set_sensitive(true);
        Ok((name, value))
    }

    fn token(&self) -> Result<Vec<u8>, String> {
        if let Some(file) = &self.token_file {
            return input::read(file);
        }
        let name = self.token_env.as_deref().unwrap_or(DEFAULT);
        match std::env::var_os(name) {
            Some(token) => Ok(token.into_encoded_bytes()),
            None => Err(format!(
                "the token is missing: give it in the environment variable {name}, or with --token-file"
            )),
        }
    }
}
