//! Adyen's two kinds of signatures: one in each item of a payment body, and one of the whole body.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderName;
use serde_json::Value;

use crate::provider::digest::sha256_hex;
use crate::provider::json_path::{JsonPath, Match, Reader};
use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, SecretError, Secrets};

/// The name of the value that identifies the items of a body.
pub(super) const ITEMS: &str = "items";

const SIGNATURE: HeaderName = HeaderName::from_static("hmacsignature");

/// The maximum number of items. Adyen sends one item in JSON, and at most six in other formats.
const MAX_ITEMS: usize = 6;

/// Events of which several may carry the same reference, so their id also contains their time. The reference belongs to
/// a rescue, which may have several attempts; to a capture, whose payout may be rejected more than once; or to a report
/// file, which may be generated again under the same name.
const REPEATED: [&str; 3] = [
    "AUTORESCUE_NEXT_ATTEMPT",
    "PAIDOUT_REVERSED",
    "REPORT_AVAILABLE",
];

/// The dispute events. They carry the reference of the dispute, and the same event may happen in several stages of a
/// dispute. Most dispute events also carry a status, but dispute events about payments in Brazil do not.
const DISPUTES: [&str; 22] = [
    "ARBITRATION_LOST",
    "ARBITRATION_WON",
    "CHARGEBACK",
    "CHARGEBACK_REVERSED",
    "DISPUTE_DEFENSE_PERIOD_ENDED",
    "DISPUTE_OPENED_WITH_CHARGEBACK",
    "INFORMATION_SUPPLIED",
    "ISSUER_COMMENTS",
    "ISSUER_RESPONSE_TIMEFRAME_EXPIRED",
    "NOTIFICATION_OF_CHARGEBACK",
    "NOTIFICATION_OF_FRAUD",
    "PREARBITRATION_ACCEPTED",
    "PREARBITRATION_DECLINED",
    "PREARBITRATION_ISSUER_WITHDRAWN",
    "PREARBITRATION_LOST",
    "PREARBITRATION_OPEN",
    "PREARBITRATION_WON",
    "REQUEST_FOR_INFORMATION",
    "SCHEME_ARBITRATION",
    "SCHEME_ARBITRATION_LOST",
    "SCHEME_ARBITRATION_WON",
    "SECOND_CHARGEBACK",
];

/// The signed fields of an item in their order, followed by its time, the status of its dispute, and its
/// signature.
const FIELDS: [&str; 11] = [
    "pspReference",
    "originalReference",
    "merchantAccountCode",
    "merchantReference",
    "amount.value",
    "amount.currency",
    "eventCode",
    "success",
    "eventDate",
    "additionalData.disputeStatus",
    "additionalData.hmacSignature",
];

#[derive(Debug)]
pub(super) struct Adyen;

/// An item of a payment.
struct Item {
    content: String,
    /// In base64.
    signature: String,
    id: String,
}

impl SignatureScheme for Adyen {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let body = request.body();
        if request.headers().contains_key(SIGNATURE) {
            let signature = BASE64
                .decode(only_value(request.headers(), &SIGNATURE)?)
                .map_err(|_| SignatureError::MalformedHeader(SIGNATURE))?;
            is_signed(secrets, body, &signature)?;
            return Ok(Signed::new().value(ITEMS, sha256_hex(body)));
        }
        let items = read_items(body)?;
        for item in &items {
            let signature = BASE64
                .decode(&item.signature)
                .map_err(|_| SignatureError::MalformedBody)?;
            is_signed(secrets, item.content.as_bytes(), &signature)?;
        }
        let ids = items.into_iter().map(|item| item.id).collect::<Vec<_>>();
        Ok(Signed::new().value(
            ITEMS,
            match ids.as_slice() {
                [id] => id.clone(),
                ids => sha256_hex(ids.join("\n").as_bytes()),
            },
        ))
    }

    fn signs_body(&self) -> bool {
        false
    }

    /// Ids do not count as signed: the id of a report or a dispute contains the time, which is not signed.
    fn signs_value(&self, _: &str) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA256 in base64, in the body or of the body".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        match hex::decode(secret.expose()) {
            Ok(_) => Ok(()),
            Err(_) => Err(SecretError::new("Adyen's keys are hexadecimal digits")),
        }
    }

    /// Signs the first item of a payment or, if there is none, the body.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let key = hex::decode(secret.expose())
            .map_err(|_| SignError::new("the secret is not hexadecimal digits"))?;
        let mac = |content: &[u8]| BASE64.encode(hmac(Hash::Sha256, &key, [content]));
        let body: Option<Value> = serde_json::from_slice(request.body()).ok();
        let Some(mut body) = body.filter(|body| body.get("notificationItems").is_some()) else {
            let signature = mac(request.body());
            return request.insert_header(SIGNATURE, signature);
        };
        let item = read_item(request.body(), 0).ok().flatten();
        let path = paths_of_item(0).pop();
        let signed = item.zip(path).is_some_and(|(item, path)| {
            path.write(&mut body, Value::from(mac(item.content.as_bytes())))
        });
        if !signed {
            return Err(SignError::new("the body has no item that can be signed"));
        }
        request.set_body(body.to_string());
        Ok(())
    }
}

fn is_signed(secrets: &Secrets, content: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
    let mut error = SignatureError::NoMatch;
    for secret in secrets.iter() {
        match hex::decode(secret.expose()) {
            Ok(key) if is_same(&hmac(Hash::Sha256, &key, [content]), signature) => {
                return Ok(());
            }
            Ok(_) => {}
            Err(_) => error = SignatureError::UnusableSecret,
        }
    }
    Err(error)
}

/// The items of a body: at least one. Each item is signed separately.
fn read_items(body: &[u8]) -> Result<Vec<Item>, SignatureError> {
    let mut items = Vec::new();
    while let Some(item) = read_item(body, items.len())? {
        items.push(item);
        if items.len() > MAX_ITEMS {
            return Err(SignatureError::MalformedBody);
        }
    }
    match items.is_empty() {
        true => Err(SignatureError::MalformedBody),
        false => Ok(items),
    }
}

fn item_path(index: usize) -> Option<JsonPath> {
    format!("$.notificationItems[{index}]").parse().ok()
}

fn paths_of_item(index: usize) -> Vec<JsonPath> {
    let parse = |field| {
        let path = format!("$.notificationItems[{index}].NotificationRequestItem.{field}");
        path.parse().ok()
    };
    FIELDS.into_iter().filter_map(parse).collect()
}

/// The item at this index, if the body has that many.
fn read_item(body: &[u8], index: usize) -> Result<Option<Item>, SignatureError> {
    let read = |paths: &[JsonPath]| {
        let matches = Reader::new(paths).read(body);
        matches.map_err(|_| SignatureError::MalformedBody)
    };
    let is_there = item_path(index).map(|path| read(&[path])).transpose()?;
    if is_there.is_none_or(|found| found.contains(&Match::Nothing)) {
        return Ok(None);
    }
    let texts = read(&paths_of_item(index))?
        .into_iter()
        .map(|found| match found {
            Match::Text(text) => Ok(text),
            // An absent field is signed like an empty one.
            Match::Nothing => Ok(String::new()),
            Match::Boolean(_) | Match::Null | Match::Other => Err(SignatureError::MalformedBody),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let [fields @ .., time, status, signature] = texts.as_slice() else {
        return Err(SignatureError::MalformedBody);
    };
    let [reference, _, account, .., code, success] = fields else {
        return Err(SignatureError::MalformedBody);
    };
    let mut id = format!("{code}:{reference}:{success}:{account}");
    if REPEATED.contains(&code.as_str()) {
        id = format!("{id}:{time}");
    } else if DISPUTES.contains(&code.as_str()) || !status.is_empty() {
        id = format!("{id}:{status}:{time}");
    }
    Ok(Some(Item {
        content: fields.join(":"),
        signature: signature.clone(),
        id,
    }))
}
