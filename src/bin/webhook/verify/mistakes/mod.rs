//! The usual mistakes. Each is tried: the request is verified with that one change.

mod body;
mod headers;
mod secret;
mod url;

use super::case::Case;
use crate::preset::Provider;

/// A change that may make a request right.
pub struct Mistake {
    pub case: Case,
    /// What is otherwise then: "it verifies if ...".
    pub change: String,
    pub cure: String,
}

/// The first change that makes a request right.
pub fn find(case: &Case) -> Option<Mistake> {
    secret::mistakes(case)
        .into_iter()
        .chain(headers::mistakes(case))
        .chain(body::mistakes(case))
        .chain(url::mistakes(case))
        .find(|mistake| mistake.case.is_authentic())
        .or_else(|| other_provider(case))
}

/// Several may sign alike.
fn other_provider(case: &Case) -> Option<Mistake> {
    let of = |provider| Case {
        provider,
        ..case.clone()
    };
    let others: Vec<_> = Provider::all()
        .filter(|provider| provider.name() != case.provider.name())
        .filter(|provider| of(*provider).is_authentic())
        .collect();
    let names: Vec<_> = others.iter().map(|provider| provider.name()).collect();
    let first = others.first()?;
    Some(Mistake {
        case: of(*first),
        change: format!("the provider is {}", names.join(" or ")),
        cure: "Take the preset of the provider that sends it.".to_owned(),
    })
}
