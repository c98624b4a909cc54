-- Run it once, on the coordinator, after the migration, best while the tables are empty.
select create_distributed_table('idempotent_webhook.deliveries', 'delivery_id');
select create_distributed_table('idempotent_webhook.bodies', 'digest');
select create_distributed_table('idempotent_webhook.subjects', 'subject');
-- So that each node has them, if the application connects to several.
select create_reference_table('idempotent_webhook.redelivery_windows');
select create_reference_table('idempotent_webhook.activity');
select create_reference_table('idempotent_webhook.rejections');
select create_reference_table('idempotent_webhook.endpoint_settings');
