//! Pseudonyms for texts and numbers.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::name::Name;
use super::permutation::{Digit, Permutation};
use super::timestamp::{Date, Timestamp};

/// A top-level domain that [RFC 2606](https://www.rfc-editor.org/rfc/rfc2606) reserves, so that nobody owns names in
/// it.
const NOBODYS: &str = ".example";

/// A calling code that is not assigned to any country.
const NOWHERE: &str = "999";

/// URI schemes that are followed by a colon and a phone number.
const PHONE_SCHEMES: [&str; 5] = ["callto", "sms", "tel", "viber", "whatsapp"];

/// The longest word that can count as structure.
const LONGEST_WORD: usize = 64;

/// An id keeps its prefix only if its random part has at least this many characters. If the letters of the random part
/// are all of one case, it also needs at least this many digits.
const RANDOM_PART: usize = 14;
const DIGITS_OF_RANDOM_PART: usize = 3;

/// The longest id prefix that stays. Most personal names are longer.
const LONGEST_PREFIX: usize = 5;

/// A number with at least this many digits counts as an id, unless it is an amount or a time.
const ID_DIGITS: usize = 8;

/// The largest number of digits that an amount can have.
const AMOUNT_DIGITS: usize = 12;

/// From 2010 to the end of 2035, in seconds since 1970.
const UNIX_SECONDS: std::ops::Range<u64> = 1_262_304_000..2_082_758_400;

/// How many digits a phone number can have.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// A part of a word counts as random if it has at least this many characters, letters of both cases, and a digit.
const RANDOM_WORD: usize = 12;

/// The largest values of the integer types that programs use.
const MAX_INTEGERS: [u128; 4] = [
    i32::MAX as u128,
    u32::MAX as u128,
    i64::MAX as u128,
    u64::MAX as u128,
];

/// The context of a value.
pub(super) struct About<'a> {
    pub(super) name: &'a Name,
    /// Whether the names of the members around the value make it an identifier.
    pub(super) is_identifying: bool,
    /// Whether a person has entered the value, so that it can be anything.
    pub(super) is_given: bool,
    pub(super) is_in_array: bool,
}

impl About<'_> {
    /// Whether a text stays, because it does not describe anybody.
    pub(super) fn text_stays(&self, text: &str) -> bool {
        let name = self.name;
        let has_time = Timestamp::read(text).is_some_and(|time| time.is_recent());
        matches!(text, "" | "true" | "false" | "null")
            // Git writes a hash of all zeros for "no commit".
            || text.len() == 40 && text.bytes().all(|byte| byte == b'0')
            || name.is_of_structure() && is_word(name, text) && !(self.is_given && is_number(text))
            || has_time && !name.is_birth() && (!self.is_given || name.is_time())
            || is_number(text) && self.is_amount_or_time(text)
    }

    /// Whether a number stays, because it does not describe anybody: for example an amount, a count or a time.
    pub(super) fn number_stays(&self, number: &str) -> bool {
        let is_identifying = self.is_given
            || self.is_identifying
            || self.name.is_identifying()
            || self.name.is_person(self.is_in_array);
        self.is_amount_or_time(number) || !is_identifying && number_of_digits(number) < ID_DIGITS
    }

    fn is_amount_or_time(&self, number: &str) -> bool {
        self.name.is_amount() && number_of_digits(number) <= AMOUNT_DIGITS
            || self.name.is_time() && is_unix_time(number)
    }
}

fn number_of_digits(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_digit).count()
}

fn is_word(name: &Name, text: &str) -> bool {
    // A version may have as many digits as `2025-03-31.basil`.
    let most = if name.is_version() { 8 } else { 3 };
    text.len() <= LONGEST_WORD
        && number_of_digits(text) <= most
        && !text.contains("//")
        && !text.split(['_', '-', '.', ':', '/']).any(is_random)
        && (name.is_type() || !is_capitalized(text))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte))
}

/// Whether a text looks like the random part of an id, such as `1IkvozFFYxHXGyKxpLVmZO9x`.
fn is_random(part: &str) -> bool {
    let has = |is: fn(&u8) -> bool| part.bytes().any(|byte| is(&byte));
    part.len() >= RANDOM_WORD
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
}

/// Whether a text is capitalized like a personal name, such as `Ada`.
fn is_capitalized(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next().is_some_and(|byte| byte.is_ascii_uppercase())
        && text.len() > 1
        && letters.all(|byte| byte.is_ascii_lowercase())
}

/// Whether a text is a number in JSON notation, without an exponent.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    are_digits(whole) && are_digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

/// Whether a number is a Unix time in seconds, milliseconds, microseconds or nanoseconds.
fn is_unix_time(number: &str) -> bool {
    let whole = number.split('.').next().unwrap_or_default();
    let seconds = whole.get(..10).and_then(|seconds| seconds.parse().ok());
    [10, 13, 16, 19].contains(&whole.len())
        && seconds.is_some_and(|seconds| UNIX_SECONDS.contains(&seconds))
}

/// Replaces texts with other texts of the same shape.
#[derive(Clone)]
pub(super) struct Texts(Permutation);

impl Texts {
    pub(super) fn new(permutation: Permutation) -> Self {
        Self(permutation)
    }

    /// Replaces each word with another word. Everything between words stays.
    pub(super) fn text(&self, name: &Name, text: &str) -> String {
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ipv6Addr::from(self.octets(address.octets())).to_string();
        }
        if name.is_phone() && is_phone_number(text) {
            return self.phone(text);
        }
        self.words(name, text)
    }

    /// Replaces a phone number with one that nobody has, and any other number with another number.
    pub(super) fn number_of(&self, name: &Name, number: &str) -> String {
        match name.is_phone() && is_phone_number(number) {
            true => self.phone(number),
            false => self.number(number),
        }
    }

    /// Replaces a number with another one that has the same number of digits. A program that can read the original can
    /// also read the replacement.
    fn number(&self, number: &str) -> String {
        let mantissa = number.find(['e', 'E']).unwrap_or(number.len());
        let (mantissa, exponent) = number.split_at(mantissa);
        let (sign, mantissa) = match mantissa.strip_prefix('-') {
            Some(mantissa) => ("-", mantissa),
            None => ("", mantissa),
        };
        let mut digits = self.digits(mantissa);
        // A negative number must not become `-0`, which is not an integer.
        if sign == "-" && digits == "0" && mantissa != "0" {
            digits = self.digits(&digits);
        }
        let replaced = sign.to_owned() + &digits + exponent;
        // `1.7e308` may get digits that make it larger than any finite `f64`.
        match replaced.parse::<f64>() {
            Ok(read) if read.is_finite() => replaced,
            _ => number.to_owned(),
        }
    }

    fn words(&self, name: &Name, text: &str) -> String {
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (found, new) = if let Some(found) = phone_number_at(rest, &replaced) {
                (found, self.phone(found))
            } else if let Some((time, found)) = Timestamp::at(rest) {
                (found, self.timestamp(&time))
            } else if is_in_word(first) {
                let end = rest.find(|char| !is_in_word(char)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                let is_scheme = after.starts_with("://") && word.len() <= 10 && !word.contains('@')
                    || after.starts_with(':') && PHONE_SCHEMES.contains(&word);
                match is_scheme {
                    true => (word, word.to_owned()),
                    false => (word, self.word(name, word, replaced.ends_with("://"))),
                }
            } else {
                let between = rest.split_at(first.len_utf8()).0;
                (between, between.to_owned())
            };
            replaced.push_str(&new);
            rest = rest.strip_prefix(found).unwrap_or_default();
        }
        replaced
    }

    fn word(&self, name: &Name, word: &str, is_host: bool) -> String {
        let bare = word.trim_end_matches(['.', '-', '+', '@']);
        let (word, end) = word.split_at(bare.len());
        if word.is_empty() {
            return end.to_owned();
        }
        let mail = word.split_once('@').filter(|(user, _)| !user.is_empty());
        let replaced = if let Some((user, host)) = mail {
            self.shaped(user, place) + "@" + &self.shaped(host, place) + NOBODYS
        } else if is_host && word.parse::<Ipv4Addr>().is_err() || is_host_name(word) {
            self.shaped(word, place) + NOBODYS
        } else {
            self.bare_word(name, word)
        };
        replaced + end
    }

    /// Replaces the digits of a phone number as in any other number, and puts a prefix before them that no country has.
    fn phone(&self, number: &str) -> String {
        let digits: String = number.chars().filter(char::is_ascii_digit).collect();
        let replaced = self.digits(&digits);
        let mut digits = replaced.chars();
        let new = |char: char| match char.is_ascii_digit() {
            true => digits.next().unwrap_or(char),
            false => char,
        };
        let (plus, bare) = match number.strip_prefix('+') {
            Some(bare) => ("+", bare),
            None => ("", number),
        };
        plus.to_owned() + NOWHERE + &bare.chars().map(new).collect::<String>()
    }

    /// Replaces a time with a time on another day.
    fn timestamp(&self, Timestamp { date, time }: &Timestamp<'_>) -> String {
        let Some(time) = time else {
            return self.date(date);
        };
        let digit = |value, base| Digit { value, base };
        let second = time.second.map(|second| digit(second, 60));
        let mut digits = vec![digit(time.hour, 24), digit(time.minute, 60)];
        digits.extend(second);
        self.0.apply(&[24], &mut digits);
        let digits: Vec<_> = digits
            .iter()
            .map(|digit| format!("{:02}", digit.value))
            .collect();
        let fraction = self.shaped(time.fraction, place);
        format!(
            "{}{}{}{fraction}{}",
            self.date(date),
            time.separator,
            digits.join(":"),
            time.zone
        )
    }

    fn bare_word(&self, name: &Name, word: &str) -> String {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.digits(word);
        }
        if let Ok(address) = word.parse::<Ipv4Addr>() {
            return Ipv4Addr::from(self.octets(address.octets())).to_string();
        }
        if is_uuid(word) {
            // The digits for the UUID version and variant stay.
            return self.hex(word, &[14, 19]);
        }
        if is_hex(word) {
            return self.hex(word, &[]);
        }
        match word.rsplit_once('_') {
            Some((prefix, rest)) if !name.is_secret() && is_prefixed_id(prefix, rest) => {
                format!("{prefix}_{}", self.shaped(rest, place))
            }
            _ => self.shaped(word, place),
        }
    }

    /// Replaces each character with another of the same kind.
    fn shaped(&self, text: &str, place: impl Fn(char) -> Option<Place>) -> String {
        let places: Vec<_> = text.chars().map(|char| (char, place(char))).collect();
        self.at_places(&places)
    }

    /// Replaces digits. If there are several digits, the first one becomes zero only if it was zero before. The same
    /// number gets the same pseudonym, whether it is a JSON number or a text.
    fn digits(&self, digits: &str) -> String {
        const FIRST: Place = Place {
            alphabet: Alphabet::From('1'),
            base: 9,
        };
        let mut places: Vec<_> = digits.chars().map(|char| (char, place(char))).collect();
        if let [(first, place), _, ..] = places.as_mut_slice() {
            *place = (*first != '0').then_some(FIRST);
        }
        let mut replaced = self.at_places(&places);
        // Repeat until the result fits into the same integer types. This is still a permutation of the numbers that fit
        // into these types.
        while max_integer(&replaced) != max_integer(digits) {
            for ((old, _), new) in places.iter_mut().zip(replaced.chars()) {
                *old = new;
            }
            replaced = self.at_places(&places);
        }
        replaced
    }

    fn hex(&self, text: &str, fixed: &[usize]) -> String {
        let is_upper = text.contains(|char: char| char.is_ascii_uppercase());
        let text = text.to_ascii_lowercase();
        let places: Vec<_> = text
            .char_indices()
            .map(|(i, char)| {
                let is_replaced = !fixed.contains(&i) && char != '-';
                (char, is_replaced.then_some(Place::HEX))
            })
            .collect();
        let replaced = self.at_places(&places);
        match is_upper {
            true => replaced.to_ascii_uppercase(),
            false => replaced,
        }
    }

    fn at_places(&self, places: &[(char, Option<Place>)]) -> String {
        let shape: Vec<u32> = places
            .iter()
            .map(|(char, place)| match place {
                None => u32::from(*char),
                Some(place) => place.code(),
            })
            .collect();
        let mut digits: Vec<_> = places
            .iter()
            .filter_map(|(char, place)| place.map(|place| place.digit(*char)))
            .collect();
        self.0.apply(&shape, &mut digits);
        let mut digits = digits.into_iter();
        places
            .iter()
            .map(|(char, place)| {
                let new = place.and_then(|place| place.character(digits.next()?));
                new.unwrap_or(*char)
            })
            .collect()
    }

    fn octets<const N: usize>(&self, octets: [u8; N]) -> [u8; N] {
        let mut digits = octets.map(|octet| Digit {
            value: octet.into(),
            base: 256,
        });
        self.0.apply(&[N as u32], &mut digits);
        digits.map(|digit| u8::try_from(digit.value).unwrap_or_default())
    }

    /// Replaces a date with another one in the same century, with a day of at most 28, which every month has.
    fn date(&self, date: &Date) -> String {
        let digit = |value, base| Digit { value, base };
        let mut digits = [
            digit(date.year % 100, 100),
            digit(date.month - 1, 12),
            digit(date.day.min(28) - 1, 28),
        ];
        self.0.apply(&[date.year / 100], &mut digits);
        let [year, month, day] = digits.map(|digit| digit.value);
        let century = date.year / 100;
        format!("{century:02}{year:02}-{:02}-{:02}", month + 1, day + 1)
    }
}

/// The set of characters that can replace a character.
#[derive(Clone, Copy)]
struct Place {
    alphabet: Alphabet,
    base: u32,
}

#[derive(Clone, Copy)]
enum Alphabet {
    /// Consecutive characters, starting with this one.
    From(char),
    Hex,
}

impl Place {
    const HEX: Self = Self {
        alphabet: Alphabet::Hex,
        base: 16,
    };

    const fn new(first: char, base: u32) -> Self {
        Self {
            alphabet: Alphabet::From(first),
            base,
        }
    }

    /// The code for this set of characters in the shape of a text. It is larger than the code of any character.
    fn code(self) -> u32 {
        let first = match self.alphabet {
            Alphabet::From(first) => u32::from(first),
            Alphabet::Hex => 1,
        };
        0x0100_0000 + first
    }

    fn digit(self, character: char) -> Digit {
        let value = match self.alphabet {
            Alphabet::From(first) => u32::from(character).wrapping_sub(u32::from(first)),
            Alphabet::Hex => character.to_digit(16).unwrap_or_default(),
        };
        Digit {
            value: value % self.base,
            base: self.base,
        }
    }

    fn character(self, digit: Digit) -> Option<char> {
        match self.alphabet {
            Alphabet::From(first) => char::from_u32(u32::from(first) + digit.value),
            Alphabet::Hex => char::from_digit(digit.value, 16),
        }
    }
}

/// A digit is replaced by a digit, and a letter by a letter of the same case. A character beyond ASCII is replaced by
/// one from the same Unicode block. Punctuation stays.
fn place(character: char) -> Option<Place> {
    match character {
        '0'..='9' => Some(Place::new('0', 10)),
        'a'..='z' => Some(Place::new('a', 26)),
        'A'..='Z' => Some(Place::new('A', 26)),
        '\0'..='\u{bf}' | '\u{2000}'..='\u{20ff}' => None,
        '\u{c0}'..='\u{ff}' => Some(Place::new('\u{c0}', 64)),
        // Chinese and Korean characters are one block each.
        '\u{4e00}'..='\u{9fff}' => Some(Place::new('\u{4e00}', 0x5200)),
        '\u{ac00}'..='\u{d7ff}' => Some(Place::new('\u{ac00}', 0x2c00)),
        other => {
            let first = char::from_u32(u32::from(other) & !0xff)?;
            Some(Place::new(first, 256))
        }
    }
}

fn is_in_word(character: char) -> bool {
    place(character).is_some() || "_-.@+".contains(character)
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.char_indices().all(|(i, char)| match i {
            8 | 13 | 18 | 23 => char == '-',
            _ => char.is_ascii_hexdigit(),
        })
        && is_of_one_case(word)
}

/// Whether a word is a hexadecimal digest, or an id that looks like one.
fn is_hex(word: &str) -> bool {
    word.len() >= 16
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.contains(|char: char| char.is_ascii_digit())
        && is_of_one_case(word)
}

fn is_of_one_case(word: &str) -> bool {
    let has = |is: fn(&char) -> bool| word.chars().any(|char| is(&char));
    !(has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase))
}

/// Whether a word is an id with a prefix, such as `evt_1NG8Du2eZvKYlo2C` or `cs_test_a1B2...`. The part after the
/// prefix is too random for a name, and the prefix is too short for a name.
fn is_prefixed_id(prefix: &str, rest: &str) -> bool {
    let kind = ["_live", "_test"]
        .iter()
        .find_map(|mode| prefix.strip_suffix(mode))
        .unwrap_or(prefix);
    let digits = number_of_digits(rest);
    (1..=LONGEST_PREFIX).contains(&kind.len())
        && kind.bytes().all(|byte| byte.is_ascii_lowercase())
        && rest.len() >= RANDOM_PART
        && (digits >= DIGITS_OF_RANDOM_PART || digits > 0 && !is_of_one_case(rest))
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a word looks like a host name, such as `shop.example.com`.
fn is_host_name(word: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .chars()
                .all(|char| char.is_alphanumeric() || char == '-')
    };
    word.rsplit_once('.').is_some_and(|(labels, last)| {
        last.len() >= 2 && last.chars().all(char::is_alphabetic) && labels.split('.').all(is_label)
    })
}

/// Whether a text consists of separators and as many digits as a phone number can have.
fn is_phone_number(text: &str) -> bool {
    PHONE_DIGITS.contains(&number_of_digits(text))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b" -+().,/".contains(&byte))
}

/// The phone number at the start of a text. It starts with a `+`, follows a scheme such as `tel:`, or has groups of
/// digits like a national number: `0151-2345678` or `(415) 555-0123`.
fn phone_number_at<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let is_begin = before
        .chars()
        .next_back()
        .is_none_or(|char| !is_in_word(char));
    if !is_begin || !text.starts_with(|char: char| char.is_ascii_digit() || "+(".contains(char)) {
        return None;
    }
    let is_international = text.starts_with('+')
        || PHONE_SCHEMES.iter().any(|scheme| {
            let before = before.strip_suffix(':');
            before.is_some_and(|before| before.ends_with(scheme))
        });
    // For each group: how many digits it has, and where it ends.
    let mut groups: Vec<(usize, usize)> = Vec::new();
    let mut end = 0;
    for (i, char) in text.char_indices() {
        if !char.is_ascii_digit() {
            let is_between = i == 0 && char == '+' || "(-./) ".contains(char);
            if !is_between || i >= end + 2 {
                break;
            }
            continue;
        }
        let has_all = digits_in(&groups) >= *PHONE_DIGITS.end();
        match groups.last_mut() {
            Some(group) if end == i => *group = (group.0 + 1, i + 1),
            _ if has_all => break,
            _ => groups.push((1, i + 1)),
        }
        end = i + 1;
        if !is_international && is_american(&groups) {
            break;
        }
    }
    while digits_in(&groups) > *PHONE_DIGITS.end() {
        groups.pop();
    }
    let (_, end) = *groups.last()?;
    let (number, after) = text.split_at(end);
    let mut after = after.chars();
    let goes_on = after.next().is_some_and(|char| {
        is_in_word(char) && (!".-+".contains(char) || after.next().is_some_and(is_in_word))
    });
    let is_national = || match groups.as_slice() {
        // The first group must have several digits, because `0.123456789` is not a phone number.
        [(first, _), _, ..] if number.trim_start_matches('(').starts_with('0') => {
            *first > 1 && digits_in(&groups) > 8
        }
        _ => is_american(&groups),
    };
    let is_number = is_international || !goes_on && is_national();
    (is_number && PHONE_DIGITS.contains(&digits_in(&groups))).then_some(number)
}

fn digits_in(groups: &[(usize, usize)]) -> usize {
    groups.iter().map(|(digits, _)| digits).sum()
}

/// Whether the groups look like `415-555-0123`, with or without the country code.
fn is_american(groups: &[(usize, usize)]) -> bool {
    matches!(
        groups,
        [(3, _), (3, _), (4, _)] | [(1, _), (3, _), (3, _), (4, _)]
    )
}

/// The index in `MAX_INTEGERS` of the first maximum that has as many digits as this number and is not smaller than it.
fn max_integer(digits: &str) -> Option<usize> {
    let number: u128 = digits.parse().ok()?;
    MAX_INTEGERS
        .iter()
        .position(|max| max.to_string().len() == digits.len() && number <= *max)
}
