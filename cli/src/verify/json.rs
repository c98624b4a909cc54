//! JSON, as different programs write it. Numbers and the order of members stay the same, unless a style changes them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

pub enum Json {
    /// A number, or a literal such as `true`.
    Scalar(String),
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

#[derive(Clone, Copy)]
pub struct Style {
    layout: Layout,
    escapes: Escapes,
    sorted: bool,
    numbers: Numbers,
}

#[derive(Clone, Copy)]
enum Numbers {
    AsTheyAre,
    /// Writes `1.5` as `1.50`, for amounts whose last zero a parser has dropped.
    TwoDecimals,
}

#[derive(Clone, Copy)]
enum Layout {
    Compact,
    Spaced,
    Indented(usize),
}

#[derive(Clone, Copy)]
enum Escapes {
    None,
    /// Characters that are not ASCII.
    NonAscii,
    /// Characters that are not ASCII, and slashes.
    NonAsciiAndSlashes,
    Slashes,
    /// `<`, `>` and `&`.
    Html,
    /// Characters that are not ASCII, with digits in upper case.
    UpperNonAscii,
    /// Characters that are not ASCII, quotes, and characters with a meaning in HTML, with digits in upper case.
    DotNet,
}

/// All styles, the most common ones first.
pub fn styles() -> impl Iterator<Item = Style> {
    const ESCAPES: [Escapes; 7] = [
        Escapes::None,
        Escapes::NonAscii,
        Escapes::NonAsciiAndSlashes,
        Escapes::Slashes,
        Escapes::Html,
        Escapes::UpperNonAscii,
        Escapes::DotNet,
    ];
    const LAYOUTS: [Layout; 4] = [
        Layout::Compact,
        Layout::Spaced,
        Layout::Indented(2),
        Layout::Indented(4),
    ];
    let numbers = [Numbers::AsTheyAre, Numbers::TwoDecimals].into_iter();
    let orders = numbers.flat_map(|numbers| [false, true].map(|sorted| (numbers, sorted)));
    orders.flat_map(|(numbers, sorted)| {
        ESCAPES.into_iter().flat_map(move |escapes| {
            LAYOUTS.map(|layout| Style {
                layout,
                escapes,
                sorted,
                numbers,
            })
        })
    })
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layout {
            Layout::Compact => {
                f.write_str("without any white space, as JSON.stringify writes it")?
            }
            Layout::Spaced => {
                f.write_str(
                    "with a space after each comma and each colon, as Python's json.dumps writes it",
                )?;
            }
            Layout::Indented(by) => write!(f, "with lines that are indented by {by}")?,
        }
        f.write_str(match self.escapes {
            Escapes::None => "",
            Escapes::NonAscii => ", with \\u escapes for what is not ASCII",
            Escapes::NonAsciiAndSlashes => {
                ", with escapes for slashes and for what is not ASCII, as PHP does"
            }
            Escapes::Slashes => ", with escapes for slashes",
            Escapes::Html => ", with \\u escapes for <, > and &, as Go does",
            Escapes::UpperNonAscii => {
                ", with \\u escapes in upper case for what is not ASCII, as Java does"
            }
            Escapes::DotNet => {
                ", with \\u escapes in upper case for quotes, HTML and what is not ASCII, as .NET does"
            }
        })?;
        f.write_str(match self.numbers {
            Numbers::AsTheyAre => "",
            Numbers::TwoDecimals => ", with two digits after each decimal point",
        })?;
        f.write_str(match self.sorted {
            true => ", with its keys sorted",
            false => "",
        })
    }
}

impl Json {
    pub fn parse(text: &str) -> Option<Self> {
        match serde_json::from_str::<&RawValue>(text).ok()?.get() {
            text if text.starts_with('{') => {
                let members = serde_json::from_str::<Members<'_>>(text)
                    .ok()?
                    .0
                    .into_iter();
                let member =
                    |(key, value): (String, &RawValue)| Some((key, Self::parse(value.get())?));
                members.map(member).collect::<Option<_>>().map(Self::Object)
            }
            text if text.starts_with('[') => {
                let elements = serde_json::from_str::<Vec<&RawValue>>(text)
                    .ok()?
                    .into_iter();
                let element = |value: &RawValue| Self::parse(value.get());
                elements
                    .map(element)
                    .collect::<Option<_>>()
                    .map(Self::Array)
            }
            text if text.starts_with('"') => serde_json::from_str(text).ok().map(Self::Text),
            text => Some(Self::Scalar(text.to_owned())),
        }
    }

    pub fn write(&self, style: Style) -> String {
        let mut text = String::new();
        self.write_to(&mut text, style, 0);
        text
    }

    fn write_to(&self, text: &mut String, style: Style, depth: usize) {
        match self {
            Self::Scalar(scalar) => {
                text.push_str(scalar);
                let decimals = scalar.split_once('.').map(|(_, decimals)| decimals.len());
                if matches!(style.numbers, Numbers::TwoDecimals) && decimals == Some(1) {
                    text.push('0');
                }
            }
            Self::Text(value) => write_text(text, value, style.escapes),
            Self::Array(elements) => {
                let elements = elements.iter().map(|element| (None, element)).collect();
                write_list(text, ['[', ']'], elements, style, depth);
            }
            Self::Object(members) => {
                let members = members.iter().map(|(key, value)| (Some(&**key), value));
                let mut members: Vec<_> = members.collect();
                if style.sorted {
                    members.sort_by_key(|(key, _)| *key);
                }
                write_list(text, ['{', '}'], members, style, depth);
            }
        }
    }
}

fn write_list(
    text: &mut String,
    [open, close]: [char; 2],
    items: Vec<(Option<&str>, &Json)>,
    style: Style,
    depth: usize,
) {
    let new_line = |text: &mut String, depth: usize| {
        if let Layout::Indented(by) = style.layout {
            text.push('\n');
            text.push_str(&" ".repeat(by * depth));
        }
    };
    text.push(open);
    let is_empty = items.is_empty();
    for (at, (key, value)) in items.into_iter().enumerate() {
        if at > 0 {
            text.push_str(match style.layout {
                Layout::Spaced => ", ",
                Layout::Compact | Layout::Indented(_) => ",",
            });
        }
        new_line(text, depth + 1);
        if let Some(key) = key {
            write_text(text, key, style.escapes);
            text.push_str(match style.layout {
                Layout::Compact => ":",
                Layout::Spaced | Layout::Indented(_) => ": ",
            });
        }
        value.write_to(text, style, depth + 1);
    }
    if !is_empty {
        new_line(text, depth);
    }
    text.push(close);
}

fn write_text(text: &mut String, value: &str, escapes: Escapes) {
    text.push('"');
    for char in value.chars() {
        match (char, escapes) {
            ('"' | '&' | '\'' | '+' | '<' | '>' | '`' | '\u{7f}', Escapes::DotNet)
            | ('\u{80}'.., Escapes::DotNet | Escapes::UpperNonAscii) => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04X}"));
                }
            }
            ('"' | '\\', _) => text.extend(['\\', char]),
            ('\n', _) => text.push_str("\\n"),
            ('\r', _) => text.push_str("\\r"),
            ('\t', _) => text.push_str("\\t"),
            ('\u{8}', _) => text.push_str("\\b"),
            ('\u{c}', _) => text.push_str("\\f"),
            ('/', Escapes::Slashes | Escapes::NonAsciiAndSlashes) => text.push_str("\\/"),
            ('<' | '>' | '&' | '\u{2028}' | '\u{2029}', Escapes::Html)
            | ('\u{80}'.., Escapes::NonAscii | Escapes::NonAsciiAndSlashes)
            | (..' ', _) => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => text.push(char),
        }
    }
    text.push('"');
}

/// The members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, layout: Layout, escapes: Escapes, sorted: bool) -> Option<String> {
        let style = Style {
            layout,
            escapes,
            sorted,
            numbers: Numbers::AsTheyAre,
        };
        Json::parse(text).map(|json| json.write(style))
    }

    #[test]
    fn json_is_written_as_others_write_it() {
        let text = r#" {"b" :1.50,"a":[ "\u00e9/<\n", {}, [] ], "c":{"e":null, "d":12345678901234567890}}"#;
        let of =
            |layout, escapes, sorted| written(text, layout, escapes, sorted).unwrap_or_default();
        assert_eq!(
            of(Layout::Compact, Escapes::None, false),
            r#"{"b":1.50,"a":["é/<\n",{},[]],"c":{"e":null,"d":12345678901234567890}}"#
        );
        assert_eq!(
            of(Layout::Spaced, Escapes::NonAsciiAndSlashes, true),
            r#"{"a": ["\u00e9\/<\n", {}, []], "b": 1.50, "c": {"d": 12345678901234567890, "e": null}}"#
        );
        let html = written(r#"["é<",1]"#, Layout::Indented(2), Escapes::Html, false);
        assert_eq!(html.as_deref(), Some("[\n  \"é\\u003c\",\n  1\n]"));
        assert_eq!(
            written("\"\u{1f600}\"", Layout::Compact, Escapes::NonAscii, false).as_deref(),
            Some("\"\\ud83d\\ude00\"")
        );
        assert_eq!(
            written(r#""é\"'a+/""#, Layout::Compact, Escapes::DotNet, false).as_deref(),
            Some(r#""\u00E9\u0022\u0027a\u002B/""#)
        );
    }

    #[test]
    fn what_is_no_json_is_not_written() {
        for text in ["", "a=b", "{", "{}x", "[1,]"] {
            assert!(Json::parse(text).is_none(), "{text}");
        }
    }
}
