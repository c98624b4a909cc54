insert into months.types values
    ('signed', 1.2, 'always', 0, 60.4),
    ('declined', 0.8, 'always', 0, 1000),
    ('opened', 0.4, 'always', 0, 40.4),
    ('viewed', 0.4, 'always', 40.4, 1000),
    ('rare', 0.05, 'always', 0, 1000);
insert into months.pauses values (30, 34, '{always}', 0);
insert into months.versions values
    ('1', 0, 1000, 1, '{signed,declined,opened}');
insert into months.expected values
    ('new event type', 'viewed', 40.4, 7),
    ('event type stopped', 'opened', 40.4, 30),
    ('event type stopped', 'signed', 60.4, 30);
