//! The app whose notifications the preset accepts.

use std::str::FromStr;

use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError};

const PRODUCTION: &str = "Production";
const SANDBOX: &str = "Sandbox";

/// The app whose notifications [`apple_app_store`](super::apple_app_store) accepts, in production or in the
/// sandbox.
///
/// Its text form is the bundle id, and `<bundle id> Sandbox` for the sandbox.
#[derive(Clone, Debug)]
pub struct AppStoreApp {
    pub(super) bundle_id: String,
    pub(super) environment: &'static str,
}

impl AppStoreApp {
    /// The app with this bundle id, such as `com.example.app`, in production.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the bundle id is blank or contains a space.
    pub fn new(bundle_id: impl Into<String>) -> Result<Self, SecretError> {
        let bundle_id = bundle_id.into();
        match is_part(&bundle_id, ' ') {
            true => Ok(Self {
                bundle_id,
                environment: PRODUCTION,
            }),
            false => Err(SecretError::new(
                "it is not the bundle id of an app, or `<bundle id> Sandbox`",
            )),
        }
    }

    /// The app in the sandbox instead of in production.
    #[must_use]
    pub fn sandbox(mut self) -> Self {
        self.environment = SANDBOX;
        self
    }
}

impl FromStr for AppStoreApp {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        match text.rsplit_once(' ') {
            Some((bundle_id, SANDBOX)) => Ok(Self::new(bundle_id)?.sandbox()),
            Some((bundle_id, PRODUCTION)) => Self::new(bundle_id),
            Some(_) | None => Self::new(text),
        }
    }
}

impl From<AppStoreApp> for Secret {
    fn from(app: AppStoreApp) -> Self {
        Self::of_text_form(match app.environment {
            SANDBOX => format!("{} {SANDBOX}", app.bundle_id),
            _ => app.bundle_id,
        })
    }
}
