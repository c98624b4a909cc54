//! The signatures of a request: which headers carry them, and how they are listed.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use super::builder::{Hmac, Place, TimestampSource};
use crate::provider::signature::encoding::PresentedMac;
use crate::provider::signature::{SignatureError, first_value, only_value};

/// How many lists are checked. With more lists, a sender could make the layer hash a large body
/// again and again.
const MAX_LISTS: usize = 8;

impl Hmac {
    /// The signatures of a request as they are written, and the name of the header that carries
    /// them.
    pub(super) fn signatures<'a>(
        &'a self,
        headers: &'a HeaderMap,
    ) -> Result<Signatures<'a>, SignatureError> {
        let every = |named: Vec<(&'a HeaderName, &'a HeaderValue)>, missing: &'a HeaderName| {
            let (name, _) = *named
                .first()
                .ok_or_else(|| SignatureError::MissingHeader(missing.clone()))?;
            let texts = named.into_iter().map(|(name, value)| {
                let malformed = |_| SignatureError::MalformedHeader(name.clone());
                value.to_str().map_err(malformed)
            });
            Ok(Signatures {
                name,
                texts: Texts::Several(texts.collect::<Result<_, _>>()?),
            })
        };
        match &self.place {
            Place::First(names) => {
                let (name, text) = match &**names {
                    [name] => (name, only_value(headers, name)?),
                    names => first_value(headers, names)?,
                };
                Ok(Signatures {
                    name,
                    texts: Texts::One(text),
                })
            }
            Place::Every(names) => {
                let values = |name| headers.get_all(name).iter().map(move |value| (name, value));
                let first = names.first().ok_or(SignatureError::NoMatch)?;
                every(names.iter().flat_map(values).collect(), first)
            }
            Place::Numbered(name) => {
                let is_numbered = |(other, _): &(&HeaderName, _)| {
                    let number = other.as_str().strip_prefix(name.as_str());
                    number
                        .and_then(|rest| rest.strip_prefix('-'))
                        .is_some_and(|number| {
                            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                        })
                };
                every(headers.iter().filter(is_numbered).collect(), name)
            }
        }
    }

    /// The items of a list: signatures, a time, and other items.
    pub(super) fn items<'a>(&'a self, list: &'a str) -> Items<'a> {
        Items {
            rest: Some(list),
            separator: &self.separator,
            trimmed: self.trimmed,
        }
    }

    /// The lists that are checked.
    pub(super) fn lists<'a>(
        &'a self,
        signatures: &'a Signatures<'a>,
    ) -> impl Iterator<Item = &'a str> {
        let lists = signatures.texts.iter().flat_map(|text| Items {
            rest: Some(text),
            separator: &self.list_separator,
            trimmed: false,
        });
        lists.take(match self.timestamp {
            Some(TimestampSource::Field(_)) => MAX_LISTS,
            _ => usize::MAX,
        })
    }

    /// The well-formed signatures in a list.
    pub(super) fn candidates<'a>(
        &'a self,
        list: &'a str,
    ) -> impl Iterator<Item = PresentedMac> + 'a {
        let mut items = self.items(list);
        if let Some(TimestampSource::Field(prefix)) = &self.timestamp
            && prefix.is_empty()
        {
            items.next();
        }
        let mut is_after_first = false;
        items.filter_map(move |item| {
            let signature = match item.strip_prefix(&*self.prefix) {
                Some(signature) if !is_after_first => signature,
                _ if self.prefix_is_optional || is_after_first => item,
                _ => return None,
            };
            is_after_first = self.prefix_is_once;
            self.encoding.decode(signature, self.hash.len())
        })
    }
}

/// The signatures as they are written, and the header that carries them.
pub(super) struct Signatures<'a> {
    name: &'a HeaderName,
    texts: Texts<'a>,
}

enum Texts<'a> {
    One(&'a str),
    Several(Vec<&'a str>),
}

impl Signatures<'_> {
    pub(super) fn malformed(&self) -> SignatureError {
        SignatureError::MalformedHeader(self.name.clone())
    }
}

impl Texts<'_> {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let texts = match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        };
        texts.iter().copied()
    }
}

/// The items of a list.
pub(super) struct Items<'a> {
    rest: Option<&'a str>,
    separator: &'a str,
    trimmed: bool,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let split = match self.separator.as_bytes() {
            [] => None,
            // A single byte is found much faster than a text.
            [byte] if byte.is_ascii() => rest.split_once(char::from(*byte)),
            _ => rest.split_once(self.separator),
        };
        let item = match split {
            Some((item, rest)) => {
                self.rest = Some(rest);
                item
            }
            None => rest,
        };
        Some(if self.trimmed { item.trim() } else { item })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_at_its_separator() {
        let items = |list, separator| -> Vec<&str> {
            let rest = Some(list);
            let trimmed = false;
            Items {
                rest,
                separator,
                trimmed,
            }
            .collect()
        };
        assert_eq!(items("a,b", ""), ["a,b"]);
        assert_eq!(items("a,b,,", ","), ["a", "b", "", ""]);
        assert_eq!(items("a, b,c", ", "), ["a", "b,c"]);
        assert_eq!(items("", ","), [""]);
        assert_eq!(items("é;é", ";"), ["é", "é"]);
    }
}
