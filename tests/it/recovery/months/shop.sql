insert into months.types values
    ('orders/create', 40, 'shop', 0, 1000),
    ('orders/updated', 60, 'shop', 0, 1000),
    ('orders/cancelled', 12, 'shop', 0, 75.4),
    ('products/update', 10, 'shop', 0, 1000),
    ('refunds/create', 15, 'shop', 0, 50.4),
    ('refunds/issue', 15, 'shop', 50.4, 1000),
    ('customers/create', 20, 'shop', 0, 1000),
    ('app/uninstalled', 0.05, 'always', 0, 1000),
    ('checkouts/create', 30, 'shop', 0, 1000);
insert into months.types select 'rare/'||n, 0.5/n, 'shop' from generate_series(1, 10) n;
insert into months.pauses values (33.1, 33.4, '{shop,always}', 0),
    (46, 48, '{shop,always}', 0),
    (60, 62, '{shop}', 0.3);
insert into months.versions values
    ('1', 0, 22.4, 1, '{orders/create,orders/updated,orders/cancelled,products/update,refunds/create,customers/create,app/uninstalled}'),
    ('2', 20.4, 22.4, 0.1, '{orders/create,orders/updated,orders/cancelled,products/update,refunds/create,customers/create,app/uninstalled,checkouts/create}'),
    ('1', 22.4, 52.5, 1, '{orders/create,orders/updated,orders/cancelled,products/update,refunds/create,customers/create,app/uninstalled}'),
    ('3', 52.5, 1000, 1, '{orders/create,orders/updated,orders/cancelled,products/update,refunds/issue,customers/create,app/uninstalled}');
insert into months.expected values
    ('new event type', 'refunds/issue', 50.4, 1),
    ('event type stopped', 'refunds/create', 50.4, 2),
    ('event type stopped', 'orders/cancelled', 75.4, 2);
