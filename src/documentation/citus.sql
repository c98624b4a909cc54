-- Run it once, on the coordinator, after the migration, best while the tables are empty.
select create_distributed_table('idempotent_webhook.deliveries', 'delivery_id');
select create_distributed_table('idempotent_webhook.bodies', 'digest');
select create_distributed_table('idempotent_webhook.subjects', 'subject');
-- Each node must have them, if the application connects to several.
select create_reference_table('idempotent_webhook.redelivery_windows');
select create_reference_table('idempotent_webhook.activity');
select create_reference_table('idempotent_webhook.event_types');
select create_reference_table('idempotent_webhook.rejections');
select create_reference_table('idempotent_webhook.endpoint_settings');
-- Kept deliveries are on the coordinator. A claim through a worker looks for them, too, and finds none.
select run_command_on_workers($$
    create table idempotent_webhook.kept_deliveries (
        endpoint text, tenant text, delivery_id text, state text, takes bigint, taken_by bigint,
        reprocessed boolean, next_attempt_at timestamptz, archived_for interval, processed_at timestamptz, processed_version text,
        archived_until timestamptz, unreached_at timestamptz, unreached_status smallint, unfinished integer
    )
$$);
