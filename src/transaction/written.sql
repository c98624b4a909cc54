-- How many rows a session has written, by table: in the current transaction, and in earlier transactions that Postgres
-- has not yet added to its shared statistics. `null` if Postgres does not count rows.
--
-- The numbers are the same as in `pg_stat_xact_user_tables`. This statement reads only `pg_class`, because the view
-- also looks at each index, and planning the view's join would take time in each rehearsal session. Object ids below
-- 16384 belong to Postgres' own tables.
--
-- The rows of a partition are counted under its partitioned table, so a new partition each month changes nothing.
-- Temporary tables and the tables of this schema are left out.
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
