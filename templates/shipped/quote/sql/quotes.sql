-- Idempotent, because every pod runs it at startup. The lock prevents concurrent runs.
begin;
select pg_advisory_xact_lock(20261121);
create schema if not exists quotes;
create table if not exists quotes.quote (
  id integer generated always as identity primary key,
  text text not null unique,
  author text not null
);
insert into quotes.quote (text, author) values
  ('Simplicity is prerequisite for reliability.', 'Edsger W. Dijkstra'),
  ('The most dangerous phrase in the language is: we have always done it this way.', 'Grace Hopper'),
  ('The cheapest, fastest and most reliable components are those that are not there.', 'Gordon Bell')
on conflict do nothing;
do $$
begin
  if not exists (select from pg_roles where rolname = 'quotes_reader') then
    create role quotes_reader nologin;
  end if;
end
$$;
grant quotes_reader to current_user;
grant usage on schema quotes to quotes_reader;
grant select on quotes.quote to quotes_reader;
commit;
