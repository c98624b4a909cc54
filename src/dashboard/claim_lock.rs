//! The advisory locks of claims, as `pg_locks` has them: the session that holds one has the delivery in flight.

/// The number of the lock of a claim, as in `transaction/claim.sql`.
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

/// A query for the numbers of all held locks. `pg_locks` has each in two halves.
macro_rules! held_locks {
    () => {
        "select (classid::int8 << 32) | objid::int8
        from pg_locks
        where locktype = 'advisory' and objsubid = 1 and granted
            and database = (select oid from pg_database where datname = current_database())"
    };
}
pub(super) use held_locks;
