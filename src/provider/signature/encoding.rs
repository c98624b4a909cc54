//! How a MAC is written.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64_URL};

/// How a MAC is written. Nothing is trimmed or skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// Lower-case hexadecimal digits.
    Hex,
    /// Hexadecimal digits, in lower or upper case.
    HexOfAnyCase,
    /// Base64 (RFC 4648, section 4, padded).
    Base64,
    /// Base64 with the URL-safe alphabet, without padding (RFC 4648, section 5).
    Base64Url,
}

/// A decoded MAC, at most as long as a MAC by SHA-512.
pub(super) struct PresentedMac {
    bytes: [u8; Self::MAX_LEN],
    len: usize,
}

impl PresentedMac {
    const MAX_LEN: usize = 64;

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Encoding {
    pub(super) fn encode(self, mac: &[u8]) -> String {
        match self {
            Self::Hex | Self::HexOfAnyCase => hex::encode(mac),
            Self::Base64 => BASE64.encode(mac),
            Self::Base64Url => BASE64_URL.encode(mac),
        }
    }

    /// The MAC in `text`, if it has `len` bytes.
    pub(super) fn decode(self, text: &str, len: usize) -> Option<PresentedMac> {
        let mut bytes = [0; PresentedMac::MAX_LEN];
        let mac = bytes.get_mut(..len)?;
        let decoded = match self {
            Self::Hex if text.bytes().any(|byte| byte.is_ascii_uppercase()) => return None,
            Self::Hex | Self::HexOfAnyCase => {
                hex::decode_to_slice(text, mac).ok()?;
                len
            }
            Self::Base64 => BASE64.decode_slice(text, mac).ok()?,
            Self::Base64Url => BASE64_URL.decode_slice(text, mac).ok()?,
        };
        (decoded == len).then_some(PresentedMac { bytes, len })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hex | Self::HexOfAnyCase => "hex",
            Self::Base64 => "base64",
            Self::Base64Url => "base64url",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 32;

    fn decode(encoding: Encoding, text: &str) -> Option<Vec<u8>> {
        Some(encoding.decode(text, LEN)?.as_bytes().to_vec())
    }

    #[test]
    fn hex_is_strict() {
        let hex = "00".repeat(31) + "ff";
        assert!(decode(Encoding::Hex, &hex).is_some());
        for wrong in [
            format!(" {hex}"),
            format!("{hex}00"),
            hex.chars().skip(2).collect(),
            String::new(),
            "é".repeat(32),
        ] {
            assert_eq!(decode(Encoding::Hex, &wrong), None, "{wrong:?}");
            assert_eq!(decode(Encoding::HexOfAnyCase, &wrong), None, "{wrong:?}");
        }
        assert_eq!(decode(Encoding::Hex, &hex.to_uppercase()), None);
        assert_eq!(
            decode(Encoding::HexOfAnyCase, &hex.to_uppercase()),
            decode(Encoding::Hex, &hex)
        );
    }

    #[test]
    fn base64_is_strict() {
        let mac = [0xfb; LEN];
        for (encoding, other) in [
            (Encoding::Base64, Encoding::Base64Url),
            (Encoding::Base64Url, Encoding::Base64),
        ] {
            let text = encoding.encode(&mac);
            assert_eq!(decode(encoding, &text).as_deref(), Some(&mac[..]));
            for wrong in [
                other.encode(&mac),
                format!("{text}\n"),
                encoding.encode(&[0; LEN - 1]),
                encoding.encode(&[0; LEN + 1]),
                "A".repeat(100_000),
                String::new(),
            ] {
                assert_eq!(decode(encoding, &wrong), None);
            }
        }
        assert_eq!(
            decode(Encoding::Base64, BASE64.encode(mac).trim_end_matches('=')),
            None
        );
    }

    #[test]
    fn a_mac_is_read_as_it_is_written() {
        for len in [16, 20, 32, 64] {
            let mac = vec![0xa5; len];
            for encoding in [Encoding::Hex, Encoding::Base64, Encoding::Base64Url] {
                let presented = encoding.decode(&encoding.encode(&mac), len);
                assert_eq!(
                    presented.map(|mac| mac.as_bytes().to_vec()),
                    Some(mac.clone())
                );
            }
        }
    }
}
