-- What a session has written, by table: in the current transaction, and in earlier ones that Postgres has not counted
-- elsewhere yet. `null` if Postgres does not count.
--
-- The numbers are the same as in `pg_stat_xact_user_tables`. That view looks at each index, and a join needs a plan in
-- each session of a rehearsal, so this reads `pg_class` alone. Its first 16384 numbers are those of Postgres' own
-- tables.
--
-- Rows of a partition count for its partitioned table, so a new partition each month changes nothing. The tables of
-- this schema are left out, and temporary ones.
select case when current_setting('track_counts')::boolean then (
    select coalesce(json_object_agg(name, rows), '{}')::text
    from (
        select name, json_build_object(
            'inserted', sum(inserted), 'updated', sum(updated), 'deleted', sum(deleted)
        ) as rows
        from (
            select
                (pg_identify_object('pg_class'::regclass, coalesce(pg_partition_root(oid), oid), 0)).identity as name,
                pg_stat_get_xact_tuples_inserted(oid) as inserted,
                pg_stat_get_xact_tuples_updated(oid) as updated,
                pg_stat_get_xact_tuples_deleted(oid) as deleted
            from pg_class
            where oid >= 16384
                and relkind in ('r', 'p')
                and relpersistence <> 't'
                and relnamespace <> 'idempotent_webhook'::regnamespace
                and pg_stat_get_xact_tuples_inserted(oid)
                    + pg_stat_get_xact_tuples_updated(oid)
                    + pg_stat_get_xact_tuples_deleted(oid) > 0
        ) as counted
        group by name
    ) as by_table
) end
