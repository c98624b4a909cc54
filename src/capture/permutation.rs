//! A keyed permutation of the texts of one shape.
//!
//! A text of a shape is a number with a digit for each place, each digit with a base of its own: 26 for a letter. A Feistel
//! network adds to one half of the digits what a MAC makes of the other half, and so on in turn. Each round can be
//! undone, so different texts get different ones, also if there are few. Only the key says which.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::random::random;

const ROUNDS: u8 = 8;

/// A digit, and how many there are at its place.
#[derive(Clone, Copy)]
pub(super) struct Digit {
    pub(super) value: u32,
    pub(super) base: u32,
}

#[derive(Clone)]
pub(super) struct Permutation(Hmac<Sha256>);

impl Permutation {
    pub(super) fn new(key: &[u8]) -> Self {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
        Self(Hmac::new_from_slice(key).expect("a key"))
    }

    /// The keys of the hashers of the standard library are from the operating system.
    pub(super) fn random() -> Self {
        let words = [random(), random(), random(), random()];
        Self::new(&words.map(u64::to_be_bytes).concat())
    }

    /// Replaces the digits. Each `shape` has a permutation of its own.
    pub(super) fn apply(&self, shape: &[u32], digits: &mut [Digit]) {
        let (left, right) = digits.split_at_mut(digits.len() / 2);
        for round in 0..ROUNDS {
            match round % 2 {
                0 => self.shift(round, shape, left, right),
                _ => self.shift(round, shape, right, left),
            }
        }
    }

    /// Adds to the digits of one half what follows from the other half.
    fn shift(&self, round: u8, shape: &[u32], seen: &[Digit], changed: &mut [Digit]) {
        let mut mac = self.0.clone().chain_update([round]);
        for code in shape {
            mac.update(&code.to_be_bytes());
        }
        // A shape has no such code.
        mac.update(&u32::MAX.to_be_bytes());
        for digit in seen {
            mac.update(&digit.value.to_be_bytes());
        }
        let stream = Self::new(&mac.finalize().into_bytes());
        for (block, digits) in (0_u64..).zip(changed.chunks_mut(8)) {
            let mac = stream.0.clone().chain_update(block.to_be_bytes());
            let bytes = mac.finalize().into_bytes();
            for (digit, bytes) in digits.iter_mut().zip(bytes.chunks_exact(4)) {
                let added = bytes
                    .iter()
                    .fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
                digit.value = (digit.value + added % digit.base) % digit.base;
            }
        }
    }
}
