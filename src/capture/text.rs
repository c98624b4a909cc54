//! Pseudonyms of texts and numbers.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::name::Name;
use super::permutation::{Digit, Permutation};

/// The domain of [RFC 2606](https://www.rfc-editor.org/rfc/rfc2606) that nobody has.
const NOBODYS: &str = ".example";

/// A country code that no country has.
const NOWHERE: &str = "+999";

/// The longest word that can be one of structure.
const LONGEST_WORD: usize = 64;

/// The shortest random part of an id whose prefix stays, and how many digits it has at least, if it is of one case.
const RANDOM_PART: usize = 14;
const DIGITS_OF_RANDOM_PART: usize = 3;

/// From so many digits on, a number counts as an id, unless it is a time.
const ID_DIGITS: usize = 8;

/// 2001 to 2033, in seconds since 1970.
const UNIX_SECONDS: std::ops::Range<u64> = 1_000_000_000..2_000_000_000;

/// The largest values of the integers that programs read.
const MAX_INTEGERS: [u128; 4] = [
    i32::MAX as u128,
    u32::MAX as u128,
    i64::MAX as u128,
    u64::MAX as u128,
];

/// Whether a text says nothing of anybody.
pub(super) fn text_stays(name: &Name, text: &str) -> bool {
    matches!(text, "" | "true" | "false" | "null")
        // The commit that is none.
        || text.len() == 40 && text.bytes().all(|byte| byte == b'0')
        || name.is_of_structure() && is_word(name, text)
        || is_time(text) && !name.is_birth()
        || is_number(text) && number_stays(name, text)
}

/// Whether a number does: an amount, a count or a time.
pub(super) fn number_stays(name: &Name, number: &str) -> bool {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    !name.is_identifying() && (digits < ID_DIGITS || is_unix_time(number))
}

fn is_word(name: &Name, text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    // `2025-03-31.basil`.
    let most = if name.is_version() { 8 } else { 3 };
    text.len() <= LONGEST_WORD
        && digits <= most
        && !text.contains("//")
        && (name.is_type() || !is_capitalized(text))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte))
}

/// As a name is, such as `Ada`.
fn is_capitalized(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next().is_some_and(|byte| byte.is_ascii_uppercase())
        && text.len() > 1
        && letters.all(|byte| byte.is_ascii_lowercase())
}

/// As JSON writes numbers, without an exponent.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    are_digits(whole) && are_digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

/// In seconds, or a thousandth of them. Ids of 16 and 19 digits look like times in smaller units.
fn is_unix_time(number: &str) -> bool {
    let whole = number.split('.').next().unwrap_or_default();
    let seconds = whole.get(..10).and_then(|seconds| seconds.parse().ok());
    [10, 13].contains(&whole.len())
        && seconds.is_some_and(|seconds| UNIX_SECONDS.contains(&seconds))
}

/// A date and a time of ISO 8601, or a date that is too young to be a birthday of most people.
fn is_time(text: &str) -> bool {
    let Some((date, time)) = split_date(text) else {
        return false;
    };
    match time {
        "" => date.year >= 2015,
        time => {
            date.year >= 2001
                && time.len() <= 30
                && time.starts_with(['T', ' '])
                && time
                    .get(1..3)
                    .is_some_and(|hour| hour.parse::<u8>().is_ok())
                && time
                    .chars()
                    .all(|char| char.is_ascii_digit() || "T:.+-Z UTC".contains(char))
        }
    }
}

struct Date {
    year: u32,
    month: u32,
    day: u32,
}

fn split_date(text: &str) -> Option<(Date, &str)> {
    let (date, time) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let mut part = |length| {
        let part = parts.next().filter(|part| part.len() == length)?;
        let are_digits = part.bytes().all(|byte| byte.is_ascii_digit());
        are_digits.then(|| part.parse().ok()).flatten()
    };
    let date = Date {
        year: part(4)?,
        month: part(2)?,
        day: part(2)?,
    };
    let is_one = (1..=12).contains(&date.month) && (1..=31).contains(&date.day);
    is_one.then_some((date, time))
}

/// Replaces texts by other texts of the same shape.
#[derive(Clone)]
pub(super) struct Texts(Permutation);

impl Texts {
    pub(super) fn new(permutation: Permutation) -> Self {
        Self(permutation)
    }

    /// Each word for another one, with all that is between them.
    pub(super) fn text(&self, name: &Name, text: &str) -> String {
        if let Some((date, rest)) = split_date(text) {
            return self.date(&date) + &self.words(name, rest);
        }
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ipv6Addr::from(self.octets(address.octets())).to_string();
        }
        if let Some(number) = phone_number(text) {
            return NOWHERE.to_owned() + &self.shaped(number, place);
        }
        self.words(name, text)
    }

    /// A number for another one of as many digits, which a program can read if it reads this one.
    pub(super) fn number(&self, number: &str) -> String {
        let mantissa = number.find(['e', 'E']).unwrap_or(number.len());
        let (mantissa, exponent) = number.split_at(mantissa);
        let (sign, mantissa) = match mantissa.strip_prefix('-') {
            Some(mantissa) => ("-", mantissa),
            None => ("", mantissa),
        };
        let replaced = sign.to_owned() + &self.digits(mantissa) + exponent;
        // `1.7e308` may get digits with which it is none.
        match replaced.parse::<f64>() {
            Ok(read) if read.is_finite() => replaced,
            _ => number.to_owned(),
        }
    }

    fn words(&self, name: &Name, text: &str) -> String {
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|char| !is_in_word(char)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let is_scheme = after.starts_with("://") && word.len() <= 10 && !word.contains('@');
            let is_host = replaced.ends_with("://");
            match is_scheme {
                true => replaced.push_str(word),
                false => replaced.push_str(&self.word(name, word, is_host)),
            }
            let next = after.find(is_in_word).unwrap_or(after.len());
            let (between, after) = after.split_at(next);
            replaced.push_str(between);
            rest = after;
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
        } else if is_host && word.parse::<Ipv4Addr>().is_err() {
            self.shaped(word, place) + NOBODYS
        } else {
            self.bare_word(name, word)
        };
        replaced + end
    }

    fn bare_word(&self, name: &Name, word: &str) -> String {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.digits(word);
        }
        if let Ok(address) = word.parse::<Ipv4Addr>() {
            return Ipv4Addr::from(self.octets(address.octets())).to_string();
        }
        if is_uuid(word) {
            // The version and the variant stay.
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

    /// Each character for one of its kind.
    fn shaped(&self, text: &str, place: impl Fn(char) -> Option<Place>) -> String {
        let places: Vec<_> = text.chars().map(|char| (char, place(char))).collect();
        self.at_places(&places)
    }

    /// Digits. The first one is zero if it was. A number and the same one as a text have the same.
    fn digits(&self, digits: &str) -> String {
        const FIRST: Place = Place {
            alphabet: Alphabet::From('1'),
            base: 9,
        };
        let mut places: Vec<_> = digits.chars().map(|char| (char, place(char))).collect();
        if let Some((first, place)) = places.first_mut() {
            *place = (*first != '0').then_some(FIRST);
        }
        let mut replaced = self.at_places(&places);
        // Again, until it is one of the same integers: that is a permutation of them.
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

    /// In the same century, as the day of a month of any length.
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

/// What can be at the place of a character.
#[derive(Clone, Copy)]
struct Place {
    alphabet: Alphabet,
    base: u32,
}

#[derive(Clone, Copy)]
enum Alphabet {
    /// Those from this one on.
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

    /// Beyond what a character can be.
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

/// A digit for a digit, a letter for a letter of the same case, and beyond ASCII a character for one of its block of
/// Unicode. Punctuation stays.
fn place(character: char) -> Option<Place> {
    match character {
        '0'..='9' => Some(Place::new('0', 10)),
        'a'..='z' => Some(Place::new('a', 26)),
        'A'..='Z' => Some(Place::new('A', 26)),
        '\0'..='\u{bf}' | '\u{2000}'..='\u{20ff}' => None,
        '\u{c0}'..='\u{ff}' => Some(Place::new('\u{c0}', 64)),
        // Chinese and Korean are one block each.
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

/// A digest, or an id that looks like one.
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

/// `evt_1NG8Du2eZvKYlo2C`, `cs_test_a1B2...`: random enough to be no name.
fn is_prefixed_id(prefix: &str, rest: &str) -> bool {
    let digits = rest.bytes().filter(u8::is_ascii_digit).count();
    prefix
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && rest.len() >= RANDOM_PART
        && (digits >= DIGITS_OF_RANDOM_PART || digits > 0 && !is_of_one_case(rest))
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What follows the `+` of a phone number.
fn phone_number(text: &str) -> Option<&str> {
    let number = text.strip_prefix('+')?;
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let is_one = digits >= 7
        && number
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b" -().".contains(&byte));
    is_one.then_some(number)
}

/// The number of the first integers that have a number of so many digits as their maximum and that this one is one of.
fn max_integer(digits: &str) -> Option<usize> {
    let number: u128 = digits.parse().ok()?;
    MAX_INTEGERS
        .iter()
        .position(|max| max.to_string().len() == digits.len() && number <= *max)
}
