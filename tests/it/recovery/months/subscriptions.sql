insert into months.types values
    ('invoice.paid', 40, 'billing', 0, 1000),
    ('invoice.payment_failed', 12, 'billing', 0, 57.4),
    ('customer.subscription.updated', 30, 'shop', 0, 70.4),
    ('customer.subscription.changed', 30, 'shop', 70.4, 1000),
    ('customer.subscription.deleted', 8, 'shop', 0, 1000),
    ('charge.refunded', 3, 'shop', 0, 1000),
    ('charge.dispute.created', 0.2, 'always', 0, 1000),
    ('charge.succeeded', 60, 'billing', 0, 1000),
    ('customer.updated', 20, 'shop', 0, 1000),
    ('payout.paid', 1, 'always', 0, 1000);
insert into months.types select 'rare.'||n, 1.0/n^1.5, 'shop' from generate_series(1, 25) n;
insert into months.pauses values (40, 44, '{billing,shop,always}', 0);
insert into months.versions values
    ('1', 0, 72.5, 1, '{invoice.paid,invoice.payment_failed,customer.subscription.updated,customer.subscription.deleted,charge.refunded,charge.dispute.created}'),
    ('2', 72.5, 1000, 1, '{invoice.paid,invoice.payment_failed,customer.subscription.changed,customer.subscription.deleted,charge.refunded,charge.dispute.created}');
insert into months.expected values
    ('new event type', 'customer.subscription.changed', 70.4, 1),
    ('event type stopped', 'customer.subscription.updated', 70.4, 2),
    ('event type stopped', 'invoice.payment_failed', 57.4, 2);
