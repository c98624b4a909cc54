//! Reads the secret, and keeps it out of the output.

use std::ffi::OsString;

use clap::Args;

use crate::input;
use crate::visible::visible;

const DEFAULT: &str = "WEBHOOK_SECRET";

#[derive(Args)]
pub struct SecretArguments {
    /// The secret as the provider shows it; - for standard input. Other users of this machine can see an argument
    #[arg(long, value_name = "SECRET", allow_hyphen_values = true)]
    #[arg(conflicts_with = "secret_env")]
    secret: Option<OsString>,

    /// The environment variable that contains the secret [default: WEBHOOK_SECRET]
    #[arg(long, value_name = "NAME")]
    secret_env: Option<OsString>,
}

impl SecretArguments {
    pub fn is_given(&self) -> bool {
        self.secret.is_some() || self.secret_env.is_some()
    }

    pub fn is_stdin(&self) -> bool {
        self.secret.as_ref().is_some_and(|secret| secret == "-")
    }

    /// Reads the exact bytes of the secret. White space around it is kept, because it is one of the mistakes to find.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        if self.is_stdin() {
            let mut secret = input::read_stdin()?;
            // `echo` adds a line break.
            if secret.ends_with(b"\n") {
                secret.pop();
            }
            return Ok(secret);
        }
        if let Some(secret) = &self.secret {
            return Ok(secret.clone().into_encoded_bytes());
        }
        let name = self.secret_env.clone().unwrap_or_else(|| DEFAULT.into());
        match std::env::var_os(&name) {
            Some(secret) => Ok(secret.into_encoded_bytes()),
            None => Err(format!(
                "the secret is missing: give it in the environment variable {}, or with --secret",
                name.to_string_lossy()
            )),
        }
    }
}

/// Texts that must not be shown.
pub struct Masked {
    /// Longest first.
    texts: Vec<String>,
}

const MASK: &str = "<secret>";

impl Masked {
    /// Hides these secrets, with or without the white space, quotes and prefixes around them.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut texts = Vec::new();
        for secret in secrets {
            let text = String::from_utf8_lossy(secret);
            let bare = bare(&text);
            texts.push(bare.to_owned());
            // The secret as it is encoded in forms and queries.
            texts.push(form_urlencoded::byte_serialize(bare.as_bytes()).collect());
            texts.push(without_prefix(bare).to_owned());
            texts.push(text.into_owned());
        }
        texts.retain(|text| !text.trim().is_empty());
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self { texts }
    }

    /// Shows a text of a request, with escapes for invisible characters. If the text has more than `max` characters,
    /// its middle is left out.
    pub fn show(&self, bytes: &[u8], max: usize) -> String {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        // Secrets are masked before the text is cut, so that no part of a secret remains.
        for secret in &self.texts {
            text = text.replace(secret, MASK);
        }
        let count = text.chars().count();
        if count <= max {
            return visible(&text);
        }
        let half = max / 2;
        let start: String = text.chars().take(half).collect();
        let end: String = text.chars().skip(count - half).collect();
        let (start, end, left_out) = (visible(&start), visible(&end), count - 2 * half);
        format!("{start} [... {left_out} characters ...] {end}")
    }
}

/// A secret without white space and quotes around it.
pub fn bare(text: &str) -> &str {
    let text = text.trim();
    // A settings file may contain a line break as an escape.
    let text = text.strip_suffix("\\n").unwrap_or(text);
    let text = text.strip_suffix("\\r").unwrap_or(text);
    for quote in ['"', '\'', '`'] {
        let inner = text.strip_prefix(quote);
        if let Some(inner) = inner.and_then(|inner| inner.strip_suffix(quote)) {
            return bare(inner);
        }
    }
    text
}

pub const PREFIXES: [&str; 2] = ["whsec_", "v1,whsec_"];

pub fn without_prefix(text: &str) -> &str {
    let mut prefixes = PREFIXES.iter();
    let bare = prefixes.find_map(|prefix| text.strip_prefix(prefix));
    bare.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_in_part_where_a_text_is_cut() {
        let masked = Masked::new([&b" 'whsec_abcdef'\n"[..]]);
        assert_eq!(masked.show(b"a whsec_abcdef b", 99), "a <secret> b");
        assert_eq!(masked.show(b"a abcdef b", 99), "a <secret> b");
        let masked_form = Masked::new([&b"a+b/c"[..]]);
        assert_eq!(masked_form.show(b"t=a%2Bb%2Fc&u", 99), "t=<secret>&u");
        let cut = masked.show(b"0123abcdef0123456789", 12);
        assert_eq!(cut, "0123<s [... 10 characters ...] 456789");
    }

    #[test]
    fn what_is_around_a_secret_is_taken_off() {
        for text in ["a", " a\n", "\"a\"", "'a' ", "' a'", "a\\n", "`a`"] {
            assert_eq!(bare(text), "a", "{text:?}");
        }
        assert_eq!(bare("a'"), "a'");
    }
}
