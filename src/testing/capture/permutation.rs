//! A keyed permutation of the texts of one shape.
//!
//! Texts of one shape have the same kinds of characters in the same places. Such a text is treated as a number: each
//! place is a digit with its own base, such as 26 for a letter. In each round of a Feistel network, a MAC computes a
//! value from one half of the digits, and the value is added to the other half. In the next round, the halves swap
//! roles. Each round can be undone, so different texts get different pseudonyms, even if only few texts have this
//! shape. Which pseudonym a text gets depends only on the key.
//!
//! A single digit has no halves, and adding a constant to it would reveal the distance between two letters. It is
//! therefore split into two digits whose bases are about the square root of its base. If the result is not below the
//! base, it is permuted again.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const ROUNDS: u8 = 8;

/// A digit, and the base of its place.
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

    /// Creates a permutation with a random key from the operating system.
    #[expect(clippy::expect_used, reason = "no system that Rust runs on is without")]
    pub(super) fn random() -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("random numbers of the operating system");
        Self::new(&key)
    }

    /// Replaces the digits. Each `shape` has its own permutation.
    pub(super) fn apply(&self, shape: &[u32], digits: &mut [Digit]) {
        let mut shaped = self.0.clone();
        for code in shape {
            shaped.update(&code.to_be_bytes());
        }
        // This code marks the end of the shape. No shape contains it.
        shaped.update(&u32::MAX.to_be_bytes());
        match digits {
            [] => {}
            [single] => apply_to_one(&shaped, single),
            digits => permute(&shaped, digits),
        }
    }
}

fn apply_to_one(shaped: &Hmac<Sha256>, digit: &mut Digit) {
    let lower = digit.base.isqrt().max(2);
    let upper = digit.base.div_ceil(lower);
    loop {
        let of = |value, base| Digit { value, base };
        let mut halves = [
            of(digit.value / lower, upper),
            of(digit.value % lower, lower),
        ];
        permute(shaped, &mut halves);
        let [first, second] = halves;
        digit.value = first.value * lower + second.value;
        // The two digits can form values that are not below the base. If the permutation is repeated, it returns to a
        // value below the base.
        if digit.value < digit.base {
            break;
        }
    }
}

fn permute(shaped: &Hmac<Sha256>, digits: &mut [Digit]) {
    let (left, right) = digits.split_at_mut(digits.len() / 2);
    for round in 0..ROUNDS {
        match round % 2 {
            0 => shift(shaped, round, left, right),
            _ => shift(shaped, round, right, left),
        }
    }
}

/// Adds a number that is computed from one half to the digits of the other half.
fn shift(shaped: &Hmac<Sha256>, round: u8, seen: &[Digit], changed: &mut [Digit]) {
    let mut mac = shaped.clone().chain_update([round]);
    for digit in seen {
        mac.update(&digit.value.to_be_bytes());
    }
    let first = mac.finalize().into_bytes();
    let (start, rest) = changed.split_at_mut(changed.len().min(8));
    add(start, &first);
    if rest.is_empty() {
        return;
    }
    let stream = Permutation::new(&first);
    for (block, digits) in (0_u64..).zip(rest.chunks_mut(8)) {
        let mac = stream.0.clone().chain_update(block.to_be_bytes());
        add(digits, &mac.finalize().into_bytes());
    }
}

fn add(digits: &mut [Digit], bytes: &[u8]) {
    for (digit, bytes) in digits.iter_mut().zip(bytes.chunks_exact(4)) {
        let added = bytes
            .iter()
            .fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
        digit.value = (digit.value + added % digit.base) % digit.base;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn of_one(key: u32, value: u32, base: u32) -> u32 {
        let mut digits = [Digit { value, base }];
        Permutation::new(&key.to_be_bytes()).apply(&[0], &mut digits);
        let [digit] = digits;
        digit.value
    }

    #[test]
    fn one_digit_is_permuted_within_its_base() {
        for base in [2, 9, 10, 16, 26, 64, 256] {
            for key in 0..10 {
                let all: BTreeSet<u32> = (0..base).map(|value| of_one(key, value, base)).collect();
                assert_eq!(all, (0..base).collect(), "{key} {base}");
            }
        }
        assert!(of_one(0, 0x51ff, 0x5200) < 0x5200);
    }

    /// The distance between two pseudonyms differs from key to key. If it did not, somebody who knows one of two
    /// letters could compute the other.
    #[test]
    fn how_far_two_digits_are_apart_follows_from_the_key_alone() {
        for base in [9, 10, 26] {
            let mut distances: BTreeMap<u32, u32> = BTreeMap::new();
            let keys = 200 * base;
            for key in 0..keys {
                let distance = base + of_one(key, 5, base) - of_one(key, 2, base);
                *distances.entry(distance % base).or_default() += 1;
            }
            // All distances occur, except zero.
            assert!(
                distances.keys().copied().eq(1..base),
                "{base}: {distances:?}"
            );
            let mean = keys / (base - 1);
            let mut counts = distances.values();
            assert!(
                counts.all(|count| (mean / 2..mean * 2).contains(count)),
                "{base}: {distances:?}"
            );
        }
    }
}
