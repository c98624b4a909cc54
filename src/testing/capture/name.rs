//! What the name of a member, field or header reveals about its value.

/// If one of these is the last word of a name, its value may be a word that programs compare, such as a status.
const STRUCTURE: [&str; 25] = [
    "action", "brand", "country", "currency", "event", "interval", "kind", "language", "level",
    "locale", "method", "mode", "object", "reason", "result", "role", "severity", "state",
    "status", "timezone", "topic", "type", "unit", "version", "zone",
];

/// If a name contains one of these words, its number is an amount, a count or a version, even if it is written as a
/// text.
const AMOUNT: [&str; 45] = [
    "amount",
    "attempt",
    "balance",
    "bytes",
    "cent",
    "cost",
    "count",
    "counter",
    "decimal",
    "discount",
    "duration",
    "earnings",
    "fee",
    "gross",
    "index",
    "installment",
    "instalment",
    "length",
    "limit",
    "net",
    "num",
    "offset",
    "page",
    "paid",
    "percent",
    "percentage",
    "position",
    "price",
    "quantity",
    "qty",
    "rate",
    "ratio",
    "refund",
    "refunded",
    "remaining",
    "retries",
    "revision",
    "seconds",
    "segment",
    "shipping",
    "size",
    "subtotal",
    "tax",
    "tip",
    "total",
];

/// If a name contains one of these words, its number may be a Unix time.
const TIME: [&str; 63] = [
    "anchor",
    "at",
    "attempt",
    "began",
    "begin",
    "bounced",
    "canceled",
    "cancelled",
    "changed",
    "clicked",
    "closed",
    "completed",
    "created",
    "date",
    "datetime",
    "deleted",
    "delivered",
    "due",
    "emitted",
    "end",
    "ended",
    "epoch",
    "exp",
    "expiration",
    "expire",
    "expires",
    "expiry",
    "finished",
    "iat",
    "instant",
    "issued",
    "millis",
    "modified",
    "ms",
    "nbf",
    "occurred",
    "opened",
    "paid",
    "period",
    "processed",
    "published",
    "pushed",
    "received",
    "removed",
    "scheduled",
    "seen",
    "sent",
    "since",
    "start",
    "started",
    "stopped",
    "submitted",
    "tdate",
    "time",
    "timestamp",
    "triggered",
    "ts",
    "unix",
    "until",
    "updated",
    "utc",
    "valid",
    "when",
];

/// If one of these is the last word of a name, its number identifies a person or a thing.
const IDENTIFIER: [&str; 34] = [
    "barcode",
    "cid",
    "code",
    "digits",
    "extension",
    "first4",
    "first6",
    "first8",
    "four",
    "gid",
    "hash",
    "id",
    "identifier",
    "iid",
    "key",
    "last4",
    "mask",
    "mcc",
    "name",
    "no",
    "num",
    "number",
    "oid",
    "pid",
    "ref",
    "reference",
    "rid",
    "serial",
    "sid",
    "tid",
    "uid",
    "uuid",
    "vid",
    "wid",
];

/// Words that end in `id` like `userid`, but do not mean an identifier.
const NO_IDENTIFIER: [&str; 8] = [
    "android", "avoid", "covid", "hybrid", "invalid", "prepaid", "unpaid", "valid",
];

/// If one of these is the last word of a name, its number identifies that person or account.
const PERSON: [&str; 49] = [
    "account",
    "admin",
    "agent",
    "applicant",
    "assignee",
    "attendee",
    "author",
    "beneficiary",
    "buyer",
    "candidate",
    "cardholder",
    "child",
    "client",
    "contact",
    "creator",
    "customer",
    "donor",
    "driver",
    "guardian",
    "guest",
    "holder",
    "invitee",
    "lead",
    "manager",
    "member",
    "merchant",
    "organizer",
    "owner",
    "participant",
    "partner",
    "passenger",
    "payee",
    "payer",
    "person",
    "player",
    "profile",
    "recipient",
    "requester",
    "reviewer",
    "seller",
    "sender",
    "spouse",
    "staff",
    "student",
    "subscriber",
    "tenant",
    "user",
    "vendor",
    "visitor",
];

/// If a name contains one of these words, its number is about a person or a place, or is secret. The same applies to
/// the numbers in members inside it.
const PERSONAL: [&str; 78] = [
    "aadhaar",
    "address",
    "authorization",
    "bank",
    "bic",
    "bin",
    "bsn",
    "card",
    "cep",
    "city",
    "cnpj",
    "coord",
    "coordinate",
    "cpf",
    "cpr",
    "curp",
    "cvc",
    "cvv",
    "dni",
    "ein",
    "email",
    "employee",
    "fingerprint",
    "geo",
    "geolocation",
    "gps",
    "house",
    "iban",
    "iccid",
    "iin",
    "imei",
    "imsi",
    "ip",
    "lat",
    "latitude",
    "license",
    "lng",
    "location",
    "login",
    "lon",
    "long",
    "longitude",
    "mail",
    "meid",
    "nhs",
    "nie",
    "nif",
    "nin",
    "nino",
    "otp",
    "pan",
    "passcode",
    "password",
    "patient",
    "pesel",
    "pin",
    "pincode",
    "plate",
    "plz",
    "postal",
    "postalcode",
    "postcode",
    "routing",
    "rut",
    "secret",
    "signature",
    "sin",
    "src",
    "street",
    "swift",
    "tin",
    "token",
    "vin",
    "zip",
    "zipcode",
    "dst",
    "door",
    "apartment",
];

/// If a name contains one of these words, its number is a phone number.
const PHONE: [&str; 14] = [
    "callee",
    "caller",
    "cell",
    "cellphone",
    "fax",
    "landline",
    "mobile",
    "msisdn",
    "phone",
    "phonenumber",
    "sms",
    "tel",
    "telephone",
    "whatsapp",
];

/// If a name consists of exactly these words, its number is a phone number.
const PHONE_NAMES: [&[&str]; 9] = [
    &["destination"],
    &["from"],
    &["originator"],
    &["recipient"],
    &["recipient", "id"],
    &["sender"],
    &["to"],
    &["wa", "id"],
    &["wa", "number"],
];

/// If a name contains one of these words, its value describes a person, and is replaced with all its contents.
const SENSITIVE: [&str; 24] = [
    "age",
    "birth",
    "birthdate",
    "birthday",
    "born",
    "dateofbirth",
    "diagnosis",
    "disability",
    "dob",
    "ethnicity",
    "gender",
    "health",
    "income",
    "marital",
    "nationality",
    "passport",
    "pregnancy",
    "pronoun",
    "race",
    "religion",
    "salary",
    "sex",
    "ssn",
    "wage",
];

/// Names whose values are replaced with all their contents, because an application or a person writes free content into
/// them.
const WRITTEN: [&[&str]; 15] = [
    &["client", "state"],
    &["custom"],
    // These names are also recognized if they are written as one word.
    &["custom", "attributes"],
    &["custom", "data"],
    &["custom", "fields"],
    &["evidence"],
    &["metadata"],
    &["merge", "fields"],
    &["tax", "id"],
    &["tax", "ids"],
    &["traits"],
    &["unique", "args"],
    &["user", "attributes"],
    &["user", "properties"],
    &["user", "variables"],
];

/// Names whose values a person has entered, so that they can be anything.
const GIVEN: [&str; 12] = [
    "answer", "body", "comment", "content", "input", "message", "note", "remark", "response",
    "text", "value", "values",
];

/// Names that reveal nothing about a value. The name of the parent counts instead.
const WRAPPER: [&str; 10] = [
    "after", "before", "current", "display", "new", "old", "original", "previous", "raw", "value",
];

const BIRTH: [&str; 6] = [
    "birth",
    "birthdate",
    "birthday",
    "born",
    "dateofbirth",
    "dob",
];

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

/// The words of a name, in lower case. `dateOfBirth`, `date_of_birth` and `Date-Of-Birth` have the same words.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    words: Vec<String>,
}

impl Name {
    pub(super) fn new(name: &str) -> Self {
        let mut words: Vec<String> = Vec::new();
        let mut before = ' ';
        let mut characters = name.chars().peekable();
        while let Some(character) = characters.next() {
            let next = characters.peek().copied().unwrap_or(' ');
            if !character.is_alphanumeric() {
                before = ' ';
                continue;
            }
            let begins = before == ' '
                || character.is_uppercase() && !before.is_uppercase()
                // `XMLBody` consists of the words `XML` and `Body`. In `userIDs`, `Ds` is not a separate word.
                || character.is_uppercase() && next.is_lowercase() && next != 's';
            match words.last_mut() {
                // In `last_4`, the digit belongs to the word before it.
                Some(word) if before == ' ' && character.is_ascii_digit() => word.push(character),
                Some(word) if !begins => word.extend(character.to_lowercase()),
                _ => words.push(character.to_lowercase().collect()),
            }
            before = character;
        }
        Self { words }
    }

    fn has(&self, known: &[&str]) -> bool {
        self.words.iter().any(|word| is_one_of(word, known))
    }

    fn ends_with(&self, known: &[&str]) -> bool {
        self.words.last().is_some_and(|word| is_one_of(word, known))
    }

    fn is(&self, words: &[&str]) -> bool {
        self.words.iter().eq(words)
    }

    /// Whether the name contains these words next to each other, or written as one word: `customfields`.
    fn contains(&self, words: &[&str]) -> bool {
        let is_there = |found: &[String]| found.iter().eq(words);
        self.words.windows(words.len()).any(is_there) || self.words.contains(&words.concat())
    }

    pub(super) fn is_of_structure(&self) -> bool {
        let mut words = self.words.iter().rev();
        let last = match words.next() {
            // In `currency_code`, the word before `code` decides.
            Some(code) if code == "code" => words.next(),
            last => last,
        };
        let is_about_person = self.is_personal() && !self.is_version();
        last.is_some_and(|word| is_one_of(word, &STRUCTURE)) && !is_about_person
    }

    pub(super) fn is_type(&self) -> bool {
        self.words.last().is_some_and(|word| word == "type")
    }

    pub(super) fn is_version(&self) -> bool {
        // The word may be joined with another one, as in `specversion`.
        let last = self.words.last();
        last.is_some_and(|word| word.ends_with("version"))
    }

    fn is_personal(&self) -> bool {
        self.has(&PERSONAL) || self.has(&PHONE) || self.has(&SENSITIVE)
    }

    /// Whether a number with this name, or a number in a member inside it, may identify a person or a thing.
    pub(super) fn is_identifying(&self) -> bool {
        !self.is_of_structure() && (self.is_personal() || self.is_identifier())
    }

    fn is_identifier(&self) -> bool {
        // The word `id` may be joined with another one, as in `userid`.
        let is_joined = |word: &String| {
            word.len() > 4 && word.ends_with("id") && !NO_IDENTIFIER.contains(&word.as_str())
        };
        self.ends_with(&IDENTIFIER) || self.words.last().is_some_and(is_joined)
    }

    /// Whether the name means a person, so that a number may be the person's id. If the name is in the plural, the
    /// number is a count, unless it is in an array.
    pub(super) fn is_person(&self, is_in_array: bool) -> bool {
        let is_one = |word: &String| PERSON.contains(&word.as_str());
        self.words.last().is_some_and(is_one) || is_in_array && self.ends_with(&PERSON)
    }

    pub(super) fn is_amount(&self) -> bool {
        let is_expiry =
            self.has(&["exp", "expiry", "expiration"]) && self.ends_with(&["month", "year"]);
        let is_of_one = self.has(&AMOUNT) && !self.is_identifying() && !self.is_person(false);
        // The name may also contain a word for a person or a thing, as in `card_count`.
        let is_amount = self.ends_with(&["amount", "count", "fee", "price", "segment", "total"]);
        !self.has(&SENSITIVE) && (is_expiry || is_of_one || is_amount || self.is_version())
    }

    pub(super) fn is_time(&self) -> bool {
        self.has(&TIME) && !self.has(&BIRTH) && !self.is_identifier()
    }

    /// Whether a number with this name is a phone number, if it has a possible number of digits.
    pub(super) fn is_phone(&self) -> bool {
        let is_one = self.has(&PHONE) && !self.ends_with(&["id"]);
        is_one || PHONE_NAMES.iter().any(|words| self.is(words))
    }

    /// Whether the value and all its contents are replaced.
    pub(super) fn is_replaced(&self) -> bool {
        self.has(&SENSITIVE) || WRITTEN.iter().any(|words| self.contains(words))
    }

    pub(super) fn is_answer(&self) -> bool {
        self.ends_with(&["answer"])
    }

    pub(super) fn is_given(&self) -> bool {
        // Only the listed forms match, because the plural of most of these words means a count.
        let is_one = |word: &String| GIVEN.contains(&word.as_str());
        self.words.last().is_some_and(is_one)
    }

    pub(super) fn is_wrapper(&self) -> bool {
        !self.words.is_empty() && self.words.iter().all(|word| is_one_of(word, &WRAPPER))
    }

    pub(super) fn is_birth(&self) -> bool {
        self.has(&BIRTH)
    }

    pub(super) fn is_secret(&self) -> bool {
        self.has(&SECRET)
    }
}

/// Whether a word is in the list. It may be in the plural, or have a number after it, as in `line2`.
fn is_one_of(word: &str, known: &[&str]) -> bool {
    let is_known = |word: &str| {
        let is_plural = |end| {
            word.strip_suffix(end)
                .is_some_and(|word| known.contains(&word))
        };
        known.contains(&word) || is_plural("s") || is_plural("es")
    };
    is_known(word) || is_known(word.trim_end_matches(|char: char| char.is_ascii_digit()))
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
    fn a_name_has_the_same_words_in_each_spelling() {
        for (spellings, words) in [
            (
                &[
                    "dateOfBirth",
                    "date_of_birth",
                    "Date-Of-Birth",
                    "DATE_OF_BIRTH",
                ][..],
                &["date", "of", "birth"][..],
            ),
            (
                &["customerIds", "customerIDs", "customer_ids"],
                &["customer", "ids"],
            ),
            (
                &["userIDNumber", "user-id-number"],
                &["user", "id", "number"],
            ),
            (&["last4", "last_4"], &["last4"]),
        ] {
            for name in spellings {
                assert_eq!(Name::new(name).words, words, "{name}");
            }
        }
    }

    #[test]
    fn a_name_says_what_its_value_is() {
        let all = |names: &[&str], is: fn(&Name) -> bool| {
            for name in names {
                assert!(is(&Name::new(name)), "{name}");
            }
        };
        all(
            &[
                "status",
                "event_types",
                "paymentMethod",
                "currency_code",
                "X-GitHub-Event",
            ],
            Name::is_of_structure,
        );
        all(
            &[
                "name",
                "billing_address_state",
                "card_brand_token",
                "code",
                "postal_code",
                "genderType",
            ],
            |name| !name.is_of_structure(),
        );
        all(
            &[
                "id",
                "customerId",
                "order_number",
                "last_4",
                "first6",
                "ssn_last_4",
                "zip_code",
                "ids",
                "zipCode",
                "mask",
                "pinCode",
                "plz",
                "cep",
                "coords",
                "address2",
                "hs_object_id",
            ],
            Name::is_identifying,
        );
        all(
            &[
                "amount",
                "status_code",
                "quantity",
                "created_at",
                "exp_month",
                "paid",
            ],
            |name| !name.is_identifying(),
        );
        all(
            &[
                "amount_paid",
                "totalPrice",
                "NumMedia",
                "card_count",
                "exp_year",
                "price",
                "tax_rate",
                "payload_version",
            ],
            Name::is_amount,
        );
        all(
            &[
                "tax_id",
                "price_id",
                "discountCode",
                "body",
                "salary_amount",
                "customer",
                "card_amount_ref",
                "account_num",
                "postal_index",
            ],
            |name| !name.is_amount(),
        );
        all(
            &[
                "created",
                "updatedAt",
                "next_payment_attempt",
                "event_ts",
                "period_end",
                "expires",
            ],
            Name::is_time,
        );
        all(
            &[
                "cpr",
                "customer",
                "birth_time",
                "last_seen_id",
                "update",
                "account",
            ],
            |name| !name.is_time(),
        );
        all(
            &[
                "customFields",
                "custom-data",
                "customfields",
                "taxIds",
                "tax_id",
                "public_metadata",
                "dob",
                "dateOfBirth",
                "dateofbirth",
                "user-variables",
                "salary",
            ],
            Name::is_replaced,
        );
        all(
            &["customer", "taxes", "identity", "customs", "page"],
            |name| !name.is_replaced(),
        );
        all(&["customer", "created_by_user", "Account"], |name| {
            name.is_person(false)
        });
        all(&["customers", "users"], |name| {
            name.is_person(true) && !name.is_person(false)
        });
        all(
            &["from", "wa_id", "phone_number", "mobilePhone", "MSISDN"],
            Name::is_phone,
        );
        all(&["from_date", "token", "id", "phone_number_id"], |name| {
            !name.is_phone()
        });
    }
}
