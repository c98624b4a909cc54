//! An action, with its deliveries or its endpoint, from the parameters of a request.

use super::super::Access;
use super::super::error::PageError;
use super::super::params::Params;
use super::super::rows::Key;
use super::super::selection::{Selection, State};
use super::action::Action;
use crate::recovery::operator::Operation;
use crate::transaction::environment;

/// How many deliveries can be selected one by one.
const MAX_KEYS: usize = 1000;

/// Its target.
#[derive(Clone, Debug)]
pub(in crate::dashboard) enum Target {
    Endpoint(String),
    /// The database, for this environment.
    Database(String),
    /// One by one.
    Deliveries(Vec<Key>),
    /// All of a selection.
    All(Operation, Selection),
}

/// An action and its target.
#[derive(Clone, Debug)]
pub(in crate::dashboard) struct Order {
    pub(in crate::dashboard) action: Action,
    pub(in crate::dashboard) target: Target,
}

impl Order {
    pub(in crate::dashboard) fn of(params: &Params, access: &Access) -> Result<Self, PageError> {
        let action = Action::of(params);
        let action = action.ok_or(PageError::bad_request("There is no such action."))?;
        if action == Action::Erase && !access.may_erase() {
            return Err(PageError::forbidden("You may not erase anything."));
        }
        if action == Action::Adopt && !access.may_adopt() {
            return Err(PageError::forbidden("You may not adopt this database."));
        }
        Ok(Self {
            action,
            target: Target::of(action, params, access)?,
        })
    }
}

impl Target {
    fn of(action: Action, params: &Params, access: &Access) -> Result<Self, PageError> {
        const MISSING: PageError = PageError::bad_request("No deliveries are given.");
        let endpoint = params.get("endpoint").map(str::to_owned);
        if let Action::Pause | Action::Resume = action {
            return endpoint.map(Self::Endpoint).ok_or(MISSING);
        }
        if action == Action::Adopt {
            let name = params.get("environment").unwrap_or_default();
            environment::check(name).map_err(PageError::bad_request)?;
            return Ok(Self::Database(name.to_owned()));
        }
        let mut keys = Vec::new();
        for encoded in params.all("key") {
            let key = Key::from(&Params::parse(encoded, b"")?);
            keys.push(key.ok_or(MISSING)?);
        }
        keys.extend(Key::from(params));
        keys.sort();
        keys.dedup();
        if keys.len() > MAX_KEYS {
            return Err(PageError::bad_request("At most 1,000 can be selected."));
        }
        if !keys.is_empty() {
            return Ok(Self::Deliveries(keys));
        }
        Self::all(action, params, access)
    }

    /// All of a selection. Never all of an endpoint because a parameter was lost.
    fn all(action: Action, params: &Params, access: &Access) -> Result<Self, PageError> {
        let missing = |text| Err(PageError::bad_request(text));
        let selection = Selection::of(params, access)?;
        let operation = match (action, selection.state) {
            _ if params.get("state").is_none() => {
                return missing("No delivery is selected: for all in a state, `state` is missing.");
            }
            (Action::Reprocess, State::Processed) => Operation::Reprocess,
            (Action::Erase, _) => Operation::Erase,
            (Action::Retry | Action::Discard, State::Processed) => {
                return missing("Only the action `reprocess` runs processed deliveries again.");
            }
            (Action::Retry, _) => Operation::Retry,
            (Action::Discard, _) => Operation::Discard,
            (Action::Reprocess, _) => {
                return missing(
                    "Only deliveries with the state `processed` can be processed again.",
                );
            }
            (Action::Forget | Action::Pause | Action::Resume | Action::Adopt, _) => {
                return missing("No delivery is selected: this action is for single ones.");
            }
        };
        if !selection.is_for_bulk_actions() {
            return missing(match selection.state {
                State::Processed if selection.endpoint.is_some() => {
                    "Processed deliveries cannot all be chosen by tenant: select them."
                }
                State::Processed => {
                    "No delivery is selected: for all processed ones, `endpoint` is missing."
                }
                _ => {
                    "No delivery is selected: for all in a state, `endpoint` is missing, or a `reason`."
                }
            });
        }
        if selection.before.is_none() {
            return missing(
                "No delivery is selected: for all in a state, `before` is missing, the time when they were \
                 shown.",
            );
        }
        Ok(Self::All(operation, selection))
    }
}
