//! The advisory locks of claims, as `pg_locks` shows them. While a session holds the lock of a claim, its delivery is
//! in flight.

/// The lock number of a claim, computed as in `transaction/claim.sql`.
macro_rules! claim_lock {
    ($endpoint:literal, $tenant:literal, $id:literal) => {
        concat!(
            "hashtextextended(",
            $id,
            ", hashtextextended(",
            $tenant,
            ", hashtextextended(",
            $endpoint,
            ", 0)))"
        )
    };
}
pub(super) use claim_lock;

/// A query for the numbers of all held locks. `pg_locks` shows each number in two halves.
macro_rules! held_locks {
    () => {
        "select (classid::int8 << 32) | objid::int8
        from pg_locks
        where locktype = 'advisory' and objsubid = 1 and granted
            and database = (select oid from pg_database where datname = current_database())"
    };
}
pub(super) use held_locks;
