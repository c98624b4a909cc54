//! Mistakes in the URL, if it is signed: its scheme, its host, and changes that a proxy makes to
//! its path.

use std::collections::BTreeSet;

use http::uri::PathAndQuery;

use super::Mistake;
use crate::verify::case::Case;

const CURE: &str = "The signature covers the URL that the provider calls. Set `Provider::public_url` to the scheme and \
host of that URL, and to the path that a proxy removes. A proxy must not add anything to the path. If the order of the \
parameters differs, configure the provider with a URL whose parameters are in alphabetical order.";

/// Up to this many parameters are tried in every order. Four parameters have 24 orders.
const MAX_REORDERED: usize = 4;

/// Mistakes with the fewest changes come first.
pub fn mistakes(case: &Case) -> Vec<Mistake> {
    let mut found = Vec::new();
    for (path_changes, path) in with_changes(paths(case)) {
        for (base_changes, base) in with_changes(bases(case)) {
            let mut case = case.clone();
            let mut parts = case.head.uri.clone().into_parts();
            parts.path_and_query = Some(path.clone());
            let Ok(uri) = http::Uri::from_parts(parts) else {
                continue;
            };
            case.head.uri = uri;
            let change = match &base {
                Some(base) => format!("the URL is {}{path}", without_user(base)),
                None => format!("the path is {path}"),
            };
            case.public_url = base;
            let mistake = Mistake {
                case,
                change,
                cure: CURE.to_owned(),
            };
            found.push((path_changes + base_changes, mistake));
        }
    }
    found.sort_by_key(|(changes, _)| *changes);
    found
        .into_iter()
        .skip(1)
        .map(|(_, mistake)| mistake)
        .collect()
}

/// The distinct values. The position of a value in the list counts as its number of changes.
fn with_changes<T: Clone + PartialEq>(values: Vec<T>) -> impl Iterator<Item = (usize, T)> {
    let mut seen = Vec::<T>::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen.into_iter().enumerate()
}

/// The possible base URLs: the given one first, then with another scheme, host or prefix.
fn bases(case: &Case) -> Vec<Option<String>> {
    let Some(given) = &case.public_url else {
        return vec![None];
    };
    let Some((scheme, rest)) = given.split_once("://") else {
        return vec![Some(given.clone())];
    };
    let (host, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let other = match scheme {
        "https" => "http",
        _ => "https",
    };
    let header = |name| case.head.headers.get(name)?.to_str().ok();
    let without_port = host.rsplit_once(':').map(|(host, _)| host);
    let hosts = [
        Some(host),
        header("x-forwarded-host"),
        header("x-original-host"),
        header("host"),
        without_port,
    ];
    let prefixes = [Some(prefix), header("x-forwarded-prefix"), Some("")];
    let mut bases = vec![Some(given.clone())];
    for prefix in prefixes.into_iter().flatten() {
        for host in hosts.into_iter().flatten() {
            for scheme in [scheme, other] {
                bases.push(Some(format!("{scheme}://{host}{prefix}")));
            }
        }
    }
    bases
}

/// The possible paths with the query: as given, then as they may have been before a proxy changed
/// them.
fn paths(case: &Case) -> Vec<PathAndQuery> {
    let given = case.head.uri.path_and_query();
    let given = given.map_or("/", PathAndQuery::as_str);
    let (path, query) = match given.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (given, String::new()),
    };
    let other_end = match path.strip_suffix('/') {
        Some(shorter) => shorter.to_owned(),
        None => format!("{path}/"),
    };
    let mut texts = vec![
        given.to_owned(),
        format!("{other_end}{query}"),
        path.to_owned(),
    ];
    // In these headers, proxies report the path that they received.
    for name in [
        "x-original-uri",
        "x-forwarded-uri",
        "x-original-url",
        "x-rewrite-url",
    ] {
        let value = case
            .head
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok());
        texts.extend(
            value
                .filter(|value| value.starts_with('/'))
                .map(str::to_owned),
        );
    }
    // Twilio sorts the parameters after it has signed the URL.
    for query in orders(query.trim_start_matches('?')) {
        texts.push(format!("{path}?{query}"));
    }
    // The path without a prefix that a proxy may have added.
    let starts: BTreeSet<_> = path.match_indices('/').map(|(at, _)| at).skip(1).collect();
    for rest in starts.into_iter().filter_map(|at| path.get(at..)) {
        texts.push(format!("{rest}{query}"));
    }
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// The parameters of a query in every order, if there are only a few.
fn orders(query: &str) -> Vec<String> {
    let parameters: Vec<_> = query.split('&').collect();
    let mut orders = vec![Vec::new()];
    if !(2..=MAX_REORDERED).contains(&parameters.len()) {
        return Vec::new();
    }
    for parameter in parameters {
        orders = orders
            .iter()
            .flat_map(|order| {
                (0..=order.len()).map(|at| {
                    let mut longer = order.clone();
                    longer.insert(at, parameter);
                    longer
                })
            })
            .collect();
    }
    orders.iter().map(|order| order.join("&")).collect()
}

fn without_user(base: &str) -> String {
    match (base.split_once("://"), base.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://<user>@{host}"),
        _ => base.to_owned(),
    }
}
