//! What an operator asks for.

use super::super::error::PageError;
use super::super::params::Params;
use super::super::rows::Key;
use super::super::selection::Selection;

/// How many deliveries can be selected one by one.
const MAX_KEYS: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dashboard) enum Action {
    Retry,
    Discard,
    /// Process again.
    Forget,
    Pause,
    Resume,
}

impl Action {
    pub(in crate::dashboard) fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Discard => "discard",
            Self::Forget => "forget",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    fn of(params: &Params) -> Option<Self> {
        let name = params.get("action")?;
        [
            Self::Retry,
            Self::Discard,
            Self::Forget,
            Self::Pause,
            Self::Resume,
        ]
        .into_iter()
        .find(|action| action.as_str() == name)
    }
}

/// On what.
#[derive(Clone, Debug)]
pub(in crate::dashboard) enum Target {
    Endpoint(String),
    /// One by one.
    Deliveries(Vec<Key>),
    /// All that are selected, of one endpoint.
    All {
        endpoint: String,
        selection: Selection,
    },
}

/// An action, and on what.
#[derive(Clone, Debug)]
pub(in crate::dashboard) struct Order {
    pub(in crate::dashboard) action: Action,
    pub(in crate::dashboard) target: Target,
}

impl Order {
    pub(in crate::dashboard) fn of(params: &Params) -> Result<Self, PageError> {
        let action = Action::of(params);
        let action = action.ok_or(PageError::bad_request("There is no such action."))?;
        Ok(Self {
            action,
            target: Target::of(action, params)?,
        })
    }
}

impl Target {
    fn of(action: Action, params: &Params) -> Result<Self, PageError> {
        const MISSING: PageError = PageError::bad_request("It is not said on which deliveries.");
        let endpoint = params.get("endpoint").map(str::to_owned);
        if let Action::Pause | Action::Resume = action {
            return endpoint.map(Self::Endpoint).ok_or(MISSING);
        }
        let mut keys = Vec::new();
        for encoded in params.all("key") {
            let key = Key::of(&Params::parse(encoded, b"")?);
            keys.push(key.ok_or(MISSING)?);
        }
        keys.extend(Key::of(params));
        if keys.len() > MAX_KEYS {
            return Err(PageError::bad_request("At most 1,000 can be selected."));
        }
        if !keys.is_empty() {
            return Ok(Self::Deliveries(keys));
        }
        let selection = Selection::of(params)?;
        // Never all of an endpoint because a parameter was lost.
        match endpoint {
            Some(endpoint)
                if action != Action::Forget
                    && selection.is_for_bulk_actions()
                    && selection.before.is_some() =>
            {
                Ok(Self::All {
                    endpoint,
                    selection,
                })
            }
            _ => Err(PageError::bad_request("No delivery is selected.")),
        }
    }
}
