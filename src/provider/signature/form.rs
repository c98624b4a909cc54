//! Form fields and query parameters, with their exact bytes.

use std::borrow::Cow;

/// A decoded name and value.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// More fields than providers send. Without a limit, a body of empty fields, which anyone can send,
/// would take much memory and time.
const MAX_FIELDS: usize = 1000;

/// The decoded fields of `application/x-www-form-urlencoded`, in the order in which they are
/// written. A `%` without two hexadecimal digits is kept unchanged. `None` if there are too many
/// fields.
pub(crate) fn fields(text: &[u8]) -> Option<Vec<Field>> {
    let pairs = || {
        text.split(|byte| *byte == b'&')
            .filter(|pair| !pair.is_empty())
    };
    if pairs().nth(MAX_FIELDS).is_some() {
        return None;
    }
    let fields = pairs().map(|pair| {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let mut next = || decode(halves.next().unwrap_or_default());
        (next(), next())
    });
    Some(fields.collect())
}

/// The decoded fields of a form, sorted by name and then by value.
#[cfg(any(test, feature = "sha1"))]
pub(crate) fn sorted_fields(text: &[u8]) -> Option<Vec<Field>> {
    let mut fields = fields(text)?;
    fields.sort();
    Some(fields)
}

/// The value of a field that occurs once. A repeated field has no value, because readers differ in
/// which of its values they use.
pub(crate) fn only_field<'f>(fields: &'f [Field], name: &str) -> Option<&'f [u8]> {
    let mut found = fields.iter().filter(|(known, _)| known == name.as_bytes());
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Some(value),
        _ => None,
    }
}

fn decode(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        decoded.push(match (first, tail) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    rest = after;
                    high * 16 + low
                }
                _ => b'%',
            },
            _ => *first,
        });
    }
    decoded
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// Percent-encodes everything except letters, digits and the characters of `safe`.
pub(crate) fn encode(text: &[u8], safe: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_alphanumeric() || safe.as_bytes().contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// A form with one field.
pub(crate) fn form(name: &str, value: &[u8]) -> String {
    format!("{name}={}", encode(value, "-_."))
}

/// The values with this name in a query, decoded.
pub(crate) fn query_values<'a>(
    path_and_query: &'a str,
    name: &str,
) -> impl Iterator<Item = Cow<'a, str>> {
    let query = path_and_query.split_once('?').map(|(_, query)| query);
    form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .filter(move |(other, _)| other == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fields: Option<Vec<Field>>) -> String {
        let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pairs = fields.iter().flatten();
        let pairs = pairs.map(|(name, value)| format!("[{}|{}]", show(name), show(value)));
        pairs.collect()
    }

    #[test]
    fn fields_are_decoded_in_order() {
        for (form, expected) in [
            ("", ""),
            ("&&", ""),
            ("a", "[a|]"),
            ("=b", "[|b]"),
            ("b=2&a=1&b=", "[b|2][a|1][b|]"),
            ("a+b=c%20d%2B%3d&x==y", "[a b|c d+=][x|=y]"),
            ("a=%&b=%4&c=%zz&d=%4%41", "[a|%][b|%4][c|%zz][d|%4A]"),
            ("a=%e2%98%95", "[a|☕]"),
        ] {
            assert_eq!(text(fields(form.as_bytes())), expected, "{form}");
        }
        assert_eq!(fields(b"a=%ff"), Some(vec![(b"a".to_vec(), vec![0xff])]));
    }

    #[test]
    fn there_are_not_too_many_fields() {
        let most = "a&".repeat(MAX_FIELDS);
        assert_eq!(
            fields(most.as_bytes()).map(|all| all.len()),
            Some(MAX_FIELDS)
        );
        assert_eq!(fields(format!("{most}a").as_bytes()), None);
    }

    #[test]
    fn a_repeated_field_has_no_value() {
        let form = fields(b"a=1&b=2&b=3").unwrap_or_default();
        assert_eq!(only_field(&form, "a"), Some(b"1".as_slice()));
        assert_eq!(only_field(&form, "b"), None);
        assert_eq!(only_field(&form, "c"), None);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let all = (0..=u8::MAX).collect::<Vec<_>>();
        assert_eq!(
            fields(form("a", &all).as_bytes()),
            Some(vec![(b"a".to_vec(), all)])
        );
        assert_eq!(encode("a b/é~".as_bytes(), "/"), "a%20b/%C3%A9%7E");
    }
}
