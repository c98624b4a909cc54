create table payments (id serial primary key);
