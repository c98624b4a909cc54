//! Operator actions: their names, the texts that explain them, and what they do. To learn which deliveries an action
//! applies to, `parse_action.rs` reads the parameters of the request.

use super::super::params::Params;
use crate::recovery::operator::Operation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dashboard) enum Action {
    Retry,
    Discard,
    /// Process again from the kept request.
    Reprocess,
    /// Process again once the provider delivers it again.
    Forget,
    /// Delete the kept content.
    Erase,
    Pause,
    Resume,
    /// Give the database another environment. Only processes with this environment then run its deliveries.
    Adopt,
}

impl Action {
    pub(in crate::dashboard) fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Discard => "discard",
            Self::Reprocess => "reprocess",
            Self::Forget => "forget",
            Self::Erase => "erase",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Adopt => "adopt",
        }
    }

    /// Whether the deliveries that the action changes run again.
    pub(super) fn makes_due(self) -> bool {
        matches!(self, Self::Retry | Self::Reprocess)
    }

    pub(super) fn of(params: &Params) -> Option<Self> {
        let name = params.get("action")?;
        [
            Self::Retry,
            Self::Discard,
            Self::Reprocess,
            Self::Forget,
            Self::Erase,
            Self::Pause,
            Self::Resume,
            Self::Adopt,
        ]
        .into_iter()
        .find(|action| action.as_str() == name)
    }

    /// The label of the button.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Retry => "Retry",
            Self::Discard => "Discard",
            Self::Reprocess | Self::Forget => "Process again",
            Self::Erase => "Erase",
            Self::Pause => "Pause",
            Self::Resume => "Resume",
            Self::Adopt => "Adopt",
        }
    }

    /// What the action does to one delivery.
    pub(super) fn meaning_for_one(self) -> &'static str {
        match self {
            Self::Retry => "It runs again now, with a new schedule of attempts.",
            Self::Discard => {
                "It is deleted with its request, and does not run again. If the provider sends it \
                 again, it is a new delivery. This cannot be undone."
            }
            Self::Reprocess => {
                "Its handler runs again now, with the kept request. Undo the effects of the first run before you \
                 start, or make sure that the handler detects them."
            }
            Self::Forget => {
                "Its request is not kept, so it cannot run now. Its record is deleted, so that it is processed when \
                 the provider sends it again. Undo the effects of the first run before that. This cannot be undone."
            }
            Self::Erase => {
                "Its request and the reasons of its failures are deleted. It cannot run again. If it was not \
                 processed, it stays in the state “recorded”. This cannot be undone."
            }
            Self::Pause | Self::Resume | Self::Adopt => "",
        }
    }

    /// What the action does to many deliveries.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Retry => "They run again now, with a new schedule of attempts.",
            Self::Discard => {
                "They are deleted with their requests, and do not run again. If the provider sends \
                 one again, it is a new delivery. This cannot be undone."
            }
            Self::Reprocess => {
                "Their handlers run again now, with the kept requests. Undo the effects of the first run before you \
                 start, or make sure that the handlers detect them."
            }
            Self::Forget => {
                "Their requests are not kept, so they cannot run now. Their records are deleted, so that each is \
                 processed when the provider sends it again. Undo the effects of the first run before that. This \
                 cannot be undone."
            }
            Self::Erase => {
                "Their requests and the reasons of their failures are deleted. They cannot run again. Deliveries that \
                 were not processed stay in the state “recorded”. This cannot be undone."
            }
            Self::Pause | Self::Resume | Self::Adopt => "",
        }
    }

    /// Whether the button is styled as a warning.
    pub(super) fn is_final(self) -> bool {
        matches!(
            self,
            Self::Discard | Self::Reprocess | Self::Forget | Self::Erase | Self::Adopt
        )
    }

    /// Why the action has not changed a delivery, although no attempt at the delivery was running.
    pub(super) fn why_unchanged(self, was_processed: bool) -> &'static str {
        match self {
            Self::Retry if was_processed => "It has been processed in the meantime.",
            Self::Retry => "It is already due or running, or there is nothing to run again.",
            Self::Discard => "It is no longer kept.",
            Self::Reprocess => "It was not processed, or its request is not kept.",
            Self::Erase => "There is no content to erase.",
            _ if was_processed => "Its request is kept, so it can be processed again with it.",
            _ => "It was not processed, or its record has already been deleted.",
        }
    }

    /// The recovery operation that the action applies to each delivery. `None` if the action is not such an operation.
    pub(super) fn operation(self) -> Option<Operation> {
        match self {
            Self::Retry => Some(Operation::Retry),
            Self::Discard => Some(Operation::Discard),
            Self::Reprocess => Some(Operation::Reprocess),
            Self::Erase => Some(Operation::Erase),
            Self::Forget | Self::Pause | Self::Resume | Self::Adopt => None,
        }
    }
}
