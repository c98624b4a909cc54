//! Mistakes in the secret: the characters around it, its prefix, and whether it is decoded.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::Mistake;
use crate::secret::{PREFIXES, bare, without_prefix};
use crate::verify::case::Case;

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

pub fn mistakes(case: &Case) -> Vec<Mistake> {
    let Ok(text) = std::str::from_utf8(&case.secret) else {
        return Vec::new();
    };
    let mistake = |(secret, change, cure): (Vec<u8>, String, &str)| Mistake {
        case: Case {
            secret,
            ..case.clone()
        },
        change: format!("the secret is {change}"),
        cure: cure.to_owned(),
    };
    let mut changes = Vec::new();
    let clean = bare(text);
    let around = around(text);
    if let Some(around) = around {
        changes.push((
            clean.as_bytes().to_vec(),
            format!("without the {around} around it"),
            "Remove these characters from the file or variable with the secret, or trim the secret where it is read.",
        ));
    }
    if !text.ends_with('\n') {
        changes.push((
            format!("{text}\n").into_bytes(),
            "with a line break at its end".to_owned(),
            "The provider was given the secret with a line break, as `openssl rand -hex 32 | ...` pipes it: set a new one.",
        ));
    }
    for (secret, change, cure) in other_forms(clean) {
        let change = match around {
            Some(around) => format!("without the {around} around it, and {change}"),
            None => change,
        };
        changes.push((secret, change, cure));
    }
    changes.into_iter().map(mistake).collect()
}

fn around(text: &str) -> Option<&'static str> {
    let (trimmed, clean) = (text.trim(), bare(text));
    match (trimmed != text, clean != trimmed) {
        (false, false) => None,
        (true, false) => Some("white space"),
        (false, true) => Some("quotes or escapes"),
        (true, true) => Some("white space and the quotes"),
    }
}

fn other_forms(text: &str) -> Vec<(Vec<u8>, String, &'static str)> {
    let mut forms = Vec::new();
    let core = without_prefix(text);
    if core != text {
        forms.push((
            core.as_bytes().to_vec(),
            "without its prefix".to_owned(),
            "Give the secret without its prefix.",
        ));
    } else {
        for prefix in PREFIXES {
            forms.push((
                [prefix, text].concat().into_bytes(),
                format!("with the prefix {prefix} before it"),
                "Give the secret as the provider shows it, with its prefix.",
            ));
        }
    }
    let decoded = [
        ("base64", BASE64.decode(core).ok()),
        ("base64", BASE64_URL.decode(core).ok()),
        ("hex", hex::decode(core).ok()),
    ];
    for (encoding, secret) in decoded {
        forms.extend(secret.map(|secret| {
            (
                secret,
                format!("decoded from {encoding}"),
                "The key is the decoded bytes: decode the text before `Secret::new`.",
            )
        }));
    }
    for (encoding, secret) in [("base64", BASE64.encode(text)), ("hex", hex::encode(text))] {
        forms.push((
            secret.into_bytes(),
            format!("encoded in {encoding}"),
            "The preset decodes the secret: give it in the encoding in which the provider shows it.",
        ));
    }
    forms
}
