//! Reads an action and its target (deliveries, an endpoint or the database) from the parameters of
//! a request.

use super::super::Access;
use super::super::error::PageError;
use super::super::params::Params;
use super::super::rows::Key;
use super::super::selection::{Selection, State};
use super::action::Action;
use crate::recovery::operator::Operation;
use crate::transaction::environment;

/// The largest number of deliveries that can be selected one by one.
const MAX_KEYS: usize = 1000;

/// The target of an action.
#[derive(Clone, Debug)]
pub(in crate::dashboard) enum Target {
    Endpoint(String),
    /// The database, which is given this environment.
    Database(String),
    /// Deliveries that were selected one by one.
    Deliveries(Vec<Key>),
    /// All deliveries of a selection.
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

    /// All deliveries of a selection. Parameters are required explicitly, so that a lost parameter
    /// never selects all deliveries of an endpoint.
    fn all(action: Action, params: &Params, access: &Access) -> Result<Self, PageError> {
        let missing = |text| Err(PageError::bad_request(text));
        let selection = Selection::of(params, access)?;
        let operation = match (action, selection.state) {
            _ if params.get("state").is_none() => {
                return missing(
                    "No delivery is selected. For an action on all deliveries in a state, `state` is missing.",
                );
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
                return missing(
                    "No delivery is selected. This action works only on selected deliveries.",
                );
            }
        };
        if !selection.is_for_bulk_actions() {
            return missing(match selection.state {
                State::Processed if selection.endpoint.is_some() => {
                    "An action cannot change all processed deliveries of a tenant. Select them one by one."
                }
                State::Processed => {
                    "No delivery is selected. For an action on all processed deliveries, `endpoint` is missing."
                }
                _ => {
                    "No delivery is selected. For an action on all deliveries in a state, `endpoint` is missing, or a \
                     `reason`."
                }
            });
        }
        if selection.before.is_none() {
            return missing(
                "No delivery is selected. For an action on all deliveries in a state, `before` is missing: the \
                 time when they were shown.",
            );
        }
        Ok(Self::All(operation, selection))
    }
}
