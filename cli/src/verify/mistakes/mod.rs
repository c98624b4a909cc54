//! The usual mistakes. The command tries each: it verifies the request with that one change.

mod body;
mod headers;
mod secret;
mod url;

use super::case::{Case, Step};
use crate::preset::Provider;

/// A change that may make a request right.
pub struct Mistake {
    pub case: Case,
    /// The change in words: "it verifies if ...".
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

/// Several providers sign alike, but few of them have the delivery id at the same place.
fn other_provider(case: &Case) -> Option<Mistake> {
    let of = |provider| Case {
        provider,
        ..case.clone()
    };
    let found: Vec<_> = Provider::all()
        .filter(|provider| provider.name() != case.provider.name())
        .filter(|provider| match of(*provider).judge() {
            Ok(_) => true,
            Err(failure) => failure.step == Step::Time,
        })
        .collect();
    let first = found.first()?;
    let named: Vec<_> = found.iter().take(4).map(|one| one.name()).collect();
    let named = named.join(" or ");
    let more = match found.len() {
        ..=4 => "",
        _ => ", or another one that signs alike",
    };
    Some(Mistake {
        case: of(*first),
        change: format!("the provider is {named}{more}"),
        cure: "Take the preset of the provider that sends it.".to_owned(),
    })
}
