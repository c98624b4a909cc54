//! Remembers which key addresses earlier requests have named.

use std::hash::{BuildHasher, RandomState};

/// The number of slots. With this number, a flood of 300 new addresses a second rarely displaces an address within 20
/// seconds, the time after which AWS SNS sends a message again.
const SLOTS: usize = 1 << 16;

/// Recently named addresses. Each slot holds a part of an address's hash, and the rest of the hash chooses the slot. A
/// newer address replaces an older address in its slot. The hash has a random key, so nobody can choose the slot.
#[derive(Default)]
pub(super) struct Seen {
    hasher: RandomState,
    /// Empty before the first flood.
    slots: Vec<u32>,
}

impl Seen {
    /// Whether an address was named before. From now on, it counts as named.
    pub(super) fn has_been(&mut self, id: &str) -> bool {
        self.slots.resize(SLOTS, 0);
        let hash = self.hasher.hash_one(id);
        let [a, b, c, d, slot @ ..] = hash.to_le_bytes();
        let slot = u32::from_le_bytes(slot) as usize % SLOTS;
        let tag = u32::from_le_bytes([a, b, c, d]);
        let slot = self.slots.get_mut(slot);
        slot.is_some_and(|slot| std::mem::replace(slot, tag) == tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_named_before_is_remembered_beside_many_others() {
        let mut seen = Seen::default();
        let mut remembered = 0;
        for i in 0..100 {
            let authentic = format!("authentic {i}");
            assert!(!seen.has_been(&authentic));
            assert!((0..6000).all(|forged| !seen.has_been(&format!("forged {i} {forged}"))));
            remembered += u32::from(seen.has_been(&authentic));
        }
        // On average, 91 of 100 are remembered.
        assert!(remembered > 70, "{remembered}");
    }
}
