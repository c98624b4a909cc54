//! Limits on the total size of the request bodies that one transaction deletes, or keeps before the handlers run. (A
//! request with several events is not such a batch. It is one delivery: `provider/delivery.rs`.)

/// The most bytes of bodies that one transaction deletes. Deleting a body takes Postgres as long as writing it. A
/// delivery that waits for one deleted row waits for the whole transaction.
pub(crate) const DELETED_BYTES: usize = 16 * 1024 * 1024;

/// How many bodies, from the first one on, go into one transaction: as many as fit into `limit` bytes together, but at
/// least one.
pub(crate) fn first_within(limit: usize, sizes: impl IntoIterator<Item = usize>) -> usize {
    let mut bytes = 0_usize;
    let fit = sizes.into_iter().take_while(|size| {
        bytes = bytes.saturating_add(*size);
        bytes <= limit
    });
    fit.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_bounded_by_its_bytes_and_has_one_at_least() {
        const MIB: usize = 1024 * 1024;
        for (sizes, expected) in [
            (vec![0; 500], 500),
            (vec![MIB; 500], 16),
            (vec![10 * MIB, 6 * MIB, 1, 0], 2),
            (vec![17 * MIB, 1], 1),
            (vec![usize::MAX, usize::MAX], 1),
        ] {
            assert_eq!(first_within(16 * MIB, sizes), expected);
        }
    }
}
