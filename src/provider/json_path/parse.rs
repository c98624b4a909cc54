//! Parsing of JSON paths.

use std::str::FromStr;

use super::{JsonPath, JsonPathError, Step};

impl FromStr for JsonPath {
    type Err = JsonPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parser = Parser { text, position: 0 };
        if !parser.eat('$') {
            return Err(parser.expected("$"));
        }
        let mut steps = Vec::new();
        loop {
            let before_blanks = parser.position;
            parser.skip_blanks();
            if parser.eat('.') {
                steps.push(Step::Member(parser.shorthand()?));
            } else if parser.eat('[') {
                parser.skip_blanks();
                steps.push(parser.selector()?);
                parser.skip_blanks();
                if !parser.eat(']') {
                    return Err(parser.expected("]"));
                }
            } else if parser.rest().is_empty() && parser.position == before_blanks {
                break;
            } else {
                return Err(parser.expected(". or ["));
            }
        }
        if steps.is_empty() {
            return Err(parser.expected(". or ["));
        }
        Ok(Self {
            text: text.into(),
            steps,
        })
    }
}

/// A cursor over the text of a path. The methods are named after the rules of
/// RFC 9535, section 2.
struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or("")
    }

    fn expected(&self, expected: &'static str) -> JsonPathError {
        JsonPathError {
            position: self.position,
            expected,
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.position += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.position += wanted.len_utf8();
        }
        found
    }

    fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !test(c)).unwrap_or(rest.len());
        self.position += end;
        rest.get(..end).unwrap_or("")
    }

    fn skip_blanks(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
    }

    /// `member-name-shorthand`
    fn shorthand(&mut self) -> Result<Box<str>, JsonPathError> {
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.expected("a member name"));
        }
        let name = self.take_while(|c| c == '_' || c.is_ascii_alphanumeric() || !c.is_ascii());
        if name.is_empty() {
            return Err(self.expected("a member name"));
        }
        Ok(name.into())
    }

    /// `name-selector` or `index-selector`
    fn selector(&mut self) -> Result<Step, JsonPathError> {
        for quote in ['\'', '"'] {
            if self.eat(quote) {
                return Ok(Step::Member(self.string_literal(quote)?));
            }
        }
        let start = self.position;
        let digits = self.take_while(|c| c.is_ascii_digit());
        let leading_zero = digits.len() > 1 && digits.starts_with('0');
        match digits.parse() {
            Ok(index) if !leading_zero => Ok(Step::Element(index)),
            _ => {
                self.position = start;
                Err(self.expected("a quoted name or an index"))
            }
        }
    }

    fn string_literal(&mut self, quote: char) -> Result<Box<str>, JsonPathError> {
        let mut name = String::new();
        loop {
            let start = self.position;
            let c = match self.next() {
                Some(c) if c == quote => return Ok(name.into()),
                Some('\\') => self.escaped(quote),
                Some(c) if c >= ' ' => Some(c),
                _ => None,
            };
            let Some(c) = c else {
                self.position = start;
                return Err(self.expected("the rest of a quoted name"));
            };
            name.push(c);
        }
    }

    fn escaped(&mut self, quote: char) -> Option<char> {
        Some(match self.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '/' => '/',
            '\\' => '\\',
            'u' => match self.four_hex_digits()? {
                high @ 0xd800..=0xdbff => {
                    if !(self.eat('\\') && self.eat('u')) {
                        return None;
                    }
                    let low = self.four_hex_digits()?;
                    char::decode_utf16([high, low]).next()?.ok()?
                }
                unit => char::from_u32(unit.into())?,
            },
            c if c == quote => c,
            _ => return None,
        })
    }

    fn four_hex_digits(&mut self) -> Option<u16> {
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.position += 4;
        u16::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    #[test]
    fn paths_follow_rfc_9535() -> TestResult {
        let member = |name: &str| Step::Member(name.into());
        let cases: [(&str, Vec<Step>); 12] = [
            ("$.id", vec![member("id")]),
            ("$._a1", vec![member("_a1")]),
            ("$.ключ", vec![member("ключ")]),
            ("$.a.b", vec![member("a"), member("b")]),
            ("$['event-id']", vec![member("event-id")]),
            ("$[\"it's\"]", vec![member("it's")]),
            (r"$['it\'s']", vec![member("it's")]),
            (r"$['\u0041\uD83D\uDE00\n\/\\']", vec![member("A😀\n/\\")]),
            ("$['']", vec![member("")]),
            ("$.a[0].b", vec![member("a"), Step::Element(0), member("b")]),
            ("$[10]", vec![Step::Element(10)]),
            ("$ [ 'a' ] .b", vec![member("a"), member("b")]),
        ];
        for (path, steps) in cases {
            assert_eq!(path.parse::<JsonPath>()?.steps, steps, "{path}");
        }
        Ok(())
    }

    #[test]
    fn what_is_not_a_singular_path_is_refused() {
        for path in [
            "",
            "id",
            "$",
            "$.",
            "$.*",
            "$..id",
            "$.event-id",
            "$.1a",
            "$. id",
            "$[",
            "$[]",
            "$[*]",
            "$[-1]",
            "$[01]",
            "$[0:1]",
            "$[0,1]",
            "$[?@.a]",
            "$['a",
            "$['a'",
            r"$['\x']",
            r"$['\uD800']",
            r"$['\uDC00']",
            r#"$['\"']"#,
            "$['\n']",
            "$.id ",
            " $.id",
            "$[99999999999999999999999]",
        ] {
            assert!(path.parse::<JsonPath>().is_err(), "{path:?}");
        }
    }
}
