-- Run this once on the coordinator, after the migration, preferably while the tables are empty.
select create_distributed_table('idempotent_webhook.deliveries', 'delivery_id');
select create_distributed_table('idempotent_webhook.bodies', 'digest');
select create_distributed_table('idempotent_webhook.subjects', 'subject');
-- If the application connects to several nodes, each node needs a copy of these tables.
select create_reference_table('idempotent_webhook.redelivery_windows');
select create_reference_table('idempotent_webhook.activity');
select create_reference_table('idempotent_webhook.event_types');
select create_reference_table('idempotent_webhook.rejections');
select create_reference_table('idempotent_webhook.endpoint_settings');
-- Kept deliveries stay on the coordinator. A claim through a worker also looks for them, and finds this empty table.
select run_command_on_workers($$
    create table idempotent_webhook.kept_deliveries (
        endpoint text, tenant text, delivery_id text, state text, takes bigint, taken_by bigint,
        reprocessed boolean, next_attempt_at timestamptz, archived_for interval, processed_at timestamptz, processed_version text,
        archived_until timestamptz, unreached_at timestamptz, unreached_status smallint, unfinished integer
    )
$$);
