//! What the name of a member, a field or a header says of its value.

/// Values of these are words that a program compares, such as a status.
const STRUCTURE: [&str; 25] = [
    "action", "brand", "country", "currency", "event", "interval", "kind", "language", "level",
    "locale", "method", "mode", "object", "reason", "result", "role", "severity", "state",
    "status", "timezone", "topic", "type", "unit", "version", "zone",
];

/// Numbers of these, if it is the last word, tell one person or thing from another.
const IDENTIFIER: [&str; 16] = [
    "code",
    "digits",
    "four",
    "gid",
    "id",
    "key",
    "last",
    "last4",
    "name",
    "no",
    "number",
    "pin",
    "ref",
    "reference",
    "uid",
    "uuid",
];

/// Numbers of these are about a person or a place, or secret.
const PERSONAL: [&str; 59] = [
    "address",
    "age",
    "bic",
    "bin",
    "birth",
    "birthdate",
    "birthday",
    "born",
    "card",
    "city",
    "coordinates",
    "cvc",
    "cvv",
    "diagnosis",
    "disability",
    "dob",
    "ein",
    "email",
    "employee",
    "ethnicity",
    "fax",
    "fingerprint",
    "gender",
    "health",
    "iban",
    "iin",
    "imei",
    "income",
    "ip",
    "lat",
    "latitude",
    "lng",
    "login",
    "lon",
    "longitude",
    "mail",
    "marital",
    "mobile",
    "msisdn",
    "nationality",
    "otp",
    "passcode",
    "passport",
    "password",
    "patient",
    "phone",
    "postal",
    "postcode",
    "religion",
    "salary",
    "secret",
    "sex",
    "signature",
    "ssn",
    "street",
    "tel",
    "token",
    "zip",
    "zipcode",
];

const BIRTH: [&str; 5] = ["birth", "birthdate", "birthday", "born", "dob"];

const SECRET: [&str; 8] = [
    "hmac",
    "key",
    "otp",
    "passcode",
    "password",
    "secret",
    "signature",
    "token",
];

/// The words of a name.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    words: Vec<String>,
}

impl Name {
    pub(super) fn new(name: &str) -> Self {
        let mut words: Vec<String> = Vec::new();
        let mut is_in_word = false;
        let mut was_lower = false;
        for character in name.chars() {
            let begins = !is_in_word || was_lower && character.is_uppercase();
            is_in_word = character.is_alphanumeric();
            was_lower = character.is_lowercase() || character.is_numeric();
            if !is_in_word {
                continue;
            }
            if begins {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(character.to_lowercase());
            }
        }
        // `last_4`, `line1`.
        while words.len() > 1 && words.last().is_some_and(|word| is_number(word)) {
            words.pop();
        }
        Self { words }
    }

    fn has(&self, known: &[&str]) -> bool {
        self.words.iter().any(|word| is_one_of(word, known))
    }

    pub(super) fn is_of_structure(&self) -> bool {
        let mut words = self.words.iter().rev();
        let last = match words.next() {
            // `currency_code`.
            Some(code) if code == "code" => words.next(),
            last => last,
        };
        let is_about_person = self.has(&PERSONAL) && !self.is_version();
        last.is_some_and(|word| is_one_of(word, &STRUCTURE)) && !is_about_person
    }

    pub(super) fn is_type(&self) -> bool {
        self.words.last().is_some_and(|word| word == "type")
    }

    pub(super) fn is_version(&self) -> bool {
        self.words.last().is_some_and(|word| word == "version")
    }

    /// Whether a number may tell whom or what it is about.
    pub(super) fn is_identifying(&self) -> bool {
        let last = self.words.last();
        let is_identifier = last.is_some_and(|word| is_one_of(word, &IDENTIFIER));
        !self.is_of_structure() && (self.has(&PERSONAL) || is_identifier)
    }

    pub(super) fn is_birth(&self) -> bool {
        self.has(&BIRTH)
    }

    pub(super) fn is_secret(&self) -> bool {
        self.has(&SECRET)
    }
}

/// Also in the plural.
fn is_one_of(word: &str, known: &[&str]) -> bool {
    let is_plural = |end| {
        word.strip_suffix(end)
            .is_some_and(|word| known.contains(&word))
    };
    known.contains(&word) || is_plural("s") || is_plural("es")
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_the_words_of_structure() {
        let documentation = include_str!("pseudonyms.rs").replace("\n///  ", "");
        let words = STRUCTURE.map(|word| format!("`{word}`")).join(", ");
        assert!(documentation.contains(&words), "{words}");
    }

    #[test]
    fn a_name_says_what_its_value_is() {
        for name in [
            "status",
            "event_types",
            "paymentMethod",
            "currency_code",
            "X-GitHub-Event",
        ] {
            assert!(Name::new(name).is_of_structure(), "{name}");
        }
        for name in [
            "name",
            "billing_address_state",
            "card_brand_token",
            "code",
            "postal_code",
        ] {
            assert!(!Name::new(name).is_of_structure(), "{name}");
        }
        for name in [
            "id",
            "customerId",
            "order_number",
            "last_4",
            "ssn_last_4",
            "zip_code",
            "ids",
        ] {
            assert!(Name::new(name).is_identifying(), "{name}");
        }
        for name in [
            "amount",
            "status_code",
            "quantity",
            "created_at",
            "exp_month",
            "paid",
        ] {
            assert!(!Name::new(name).is_identifying(), "{name}");
        }
    }
}
