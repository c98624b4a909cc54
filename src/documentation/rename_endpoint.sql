-- Renames `billing` to `payments`. No process may serve either endpoint while this runs.
begin;
update idempotent_webhook.deliveries set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.bodies set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.subjects set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.redelivery_windows set endpoint = 'payments' where endpoint = 'billing';
-- In one statement, because each row of `kept_requests` refers to its row of `kept_deliveries`.
with renamed as (
    update idempotent_webhook.kept_deliveries set endpoint = 'payments' where endpoint = 'billing'
)
update idempotent_webhook.kept_requests set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.kept_endpoints set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.discarded set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.reconciliations set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.sent_again set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.subscriptions set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.turns set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.redelivery_requests set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.pruned set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.activity set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.event_types set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.rejections set endpoint = 'payments' where endpoint = 'billing';
update idempotent_webhook.endpoint_settings set endpoint = 'payments' where endpoint = 'billing';
delete from idempotent_webhook.problems where endpoint = 'billing';
commit;
