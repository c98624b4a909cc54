//! The usual mistakes. For each of them, the command changes the request accordingly, and verifies the changed request.

mod body;
mod headers;
mod secret;
mod url;

use super::case::{Case, Step};
use crate::preset::Provider;

/// A change that may make a request valid.
pub struct Mistake {
    pub case: Case,
    /// The change in words, to follow "It verifies if".
    pub change: String,
    pub cure: String,
}

/// Finds the first change that makes a request valid.
pub fn find(case: &Case) -> Option<Mistake> {
    secret::mistakes(case)
        .into_iter()
        .chain(headers::mistakes(case))
        .chain(body::mistakes(case))
        .chain(url::mistakes(case))
        .find(|mistake| mistake.case.is_authentic())
        .or_else(|| other_provider(case))
}

/// Tries the other providers. Several providers sign in the same way, but few of these providers have the delivery id
/// in the same place.
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
        _ => ", or another one that signs in the same way",
    };
    Some(Mistake {
        case: of(*first),
        change: format!("the provider is {named}{more}"),
        cure: "Use the preset of the provider that sends the request.".to_owned(),
    })
}
