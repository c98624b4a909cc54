//! The states of a kept delivery.

/// The state of a kept delivery, which says what happens to it next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeptState {
    /// Nothing happens: its request is not kept, or was erased.
    Recorded,
    /// It runs again. If its endpoint is paused, it waits until the endpoint is resumed.
    Due,
    /// It waits for an operator.
    Dead,
    /// It is processed, and its request is archived for a time ([`processed_for`](crate::Keep::processed_for)).
    Processed,
}

impl KeptState {
    /// The name, such as `due`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Due => "due",
            Self::Dead => "dead",
            Self::Processed => "processed",
        }
    }

    pub(crate) fn read(text: &str) -> sqlx::Result<Self> {
        Ok(match text {
            "recorded" => Self::Recorded,
            "due" => Self::Due,
            "dead" => Self::Dead,
            "processed" => Self::Processed,
            other => {
                let unknown = format!("a kept delivery has the unknown state {other:?}");
                return Err(sqlx::Error::Decode(unknown.into()));
            }
        })
    }
}
