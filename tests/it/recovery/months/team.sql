insert into months.types values
    ('push', 40, 'people', 0, 71.4),
    ('push.v2', 40, 'people', 71.4, 1000),
    ('pull_request', 22, 'people', 0, 1000),
    ('issue_comment', 25, 'people', 0, 50.4),
    ('check_run', 24, 'always', 0, 1000),
    ('release', 0.3, 'people', 0, 1000),
    ('issues', 12, 'people', 0, 1000);
insert into months.types select 'team_'||n, 8.0/n^1.5, 'people' from generate_series(1, 20) n;
insert into months.pauses values
    (25, 29, '{people}', 0.05),
    (40, 44, '{people,always}', 0),
    (80, 88, '{people}', 0.05);
insert into months.versions values
    ('1', 0, 74.5, 1, '{push,pull_request,issue_comment,check_run,release,issues}'),
    ('2', 74.5, 1000, 1, '{push.v2,pull_request,issue_comment,check_run,release,issues}');
-- On day 71, `push` is renamed to `push.v2`. On day 50, `issue_comment` stops.
insert into months.expected values
    ('new event type', 'push.v2', 71.4, 1),
    ('event type stopped', 'push', 71.4, 3),
    ('event type stopped', 'issue_comment', 50.4, 2);
