-- What a session has written in the current transaction, by table, and in those before it that Postgres has not counted
-- elsewhere yet. `null` if Postgres does not count.
--
-- The numbers are those of `pg_stat_xact_user_tables`, without what that view does for each index. Rows of a partition are
-- those of its partitioned table, so that a month that begins changes nothing. The tables of this schema are left out, and
-- temporary ones.
select case when current_setting('track_counts')::boolean then (
    select coalesce(json_object_agg(named.name, named.rows), '{}')::text
    from (
        select
            format('%s.%s', schema.nspname, relation.relname) as name,
            json_build_object(
                'inserted', sum(counted.inserted),
                'updated', sum(counted.updated),
                'deleted', sum(counted.deleted)
            ) as rows
        from (
            select
                coalesce(pg_partition_root(oid), oid) as relation,
                pg_stat_get_xact_tuples_inserted(oid) as inserted,
                pg_stat_get_xact_tuples_updated(oid) as updated,
                pg_stat_get_xact_tuples_deleted(oid) as deleted
            from pg_class
            where relkind in ('r', 'p') and relpersistence <> 't'
        ) as counted
        join pg_class as relation on relation.oid = counted.relation
        join pg_namespace as schema on schema.oid = relation.relnamespace
        where counted.inserted + counted.updated + counted.deleted > 0
            and schema.nspname not in ('idempotent_webhook', 'information_schema', 'pg_catalog')
        group by schema.nspname, relation.relname
    ) as named
) end
