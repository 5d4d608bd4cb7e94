"""Makes statements that are not valid: typos, wrong types and numbers of arguments, clauses in wrong places."""

import re

from sql_nodes import Node, join_tokens, replace_at, tokenize, walk
from sql_types import MALFORMED, TYPES, quote

WORDS = ["select", "from", "where", ",", "(", ")", "and", "group", "by", "order", "limit", "null", "on", "join", "as", "*", "::", "1",
         "'a'", "union", "having", "over", "case", "end", "in", "distinct", "not", ";", "$1", "@", "..", "\"", "'"]
KEYWORDS = set("""select from where group by order limit offset having union all intersect except and or not is null true false in as on
    join left right full inner outer cross natural using case when then else end distinct between like ilike similar to any some exists with recursive
    values over partition rows range groups preceding following unbounded current row exclude ties window filter within cast array interval
    date time timestamp timestamptz desc asc nulls first last lateral materialized insert into update set delete returning conflict do nothing
    default at zone for placing collate escape symmetric unknown both leading trailing ordinality rollup cube grouping sets fetch next only
    generate_series unnest""".split())

# Whole statements whose fault is where a clause stands, or what it refers to. Their tables are `a`, `b`, `c`, `w`.
MISPLACED = """
select k from a where count(*) > 1 | select sum(count(*)) from a | select k, count(*) from a | select k from a group by w | select * from a group by k
select k from a having w > 1 | select rank() over (order by k) from a where rank() over (order by k) = 1 | select k from a limit -1 | select k from a offset -2
select k from a order by 9 | select k from a group by 9 | select k, count(*) from a group by 2 | select distinct k from a order by w | select k from a union select k, w from b
select k from a union select s from b | select (select k, w from b limit 1) from a | select (select id from b) from a | select k from a, b | select * from a, a
select * from a as t, b as t | with q as (select 1), q as (select 2) select * from q | select * from a join b using (nothing) | select * from a join b on a.k
select * from a join b | select * from a where s | select case when 1 then 2 end | select case when true then 1 else 'x'::text end | select nothing(1) | select abs() | select abs(1, 2)
select abs('a'::text) | select upper(1, 2) | select upper(5) | select 1 + 'a'::text | select 'a'::text + 'b'::text | select true + 1 | select not 1 | select - 'a'::text | select date '2024-01-01' + date '2024-01-01'
select 1 = 'a' | select 1 = true | select 1::int4 = 'x'::text | select array[1, 'a'] | select array[1, true] | select array[]; | select '{1}'::int4[] = array['a'] | select coalesce(1, 'x'::text) | select coalesce()
select greatest() | select nullif(1) | select least(1, 'a'::text) | select 1 in ('a'::text) | select 1 in () | select 1 in (select 1, 2) | select (1, 2) = (1, 2, 3) | select (1, 2) in (select 1)
select k in (select s from b) from a | select 1 / 0 | select 1 % 0 | select 1.5 / 0 | select mod(1, 0) | select k / (k - k) from c | select 2147483647 + 1 | select -2147483648 - 1 | select 9223372036854775807 + 1
select 32767::int2 + 1::int2 | select (-2147483648) / (-1) | select abs(-2147483648) | select 1e308::float8 * 10 | select 1e308::float8 * 1e308::float8 | select 1e-300::float8 * 1e-300::float8
select 3e9::int4 | select 40000::int2 | select 'NaN'::float8::int4 | select 1e20::int8 | select 'Infinity'::float8::numeric(5,2) | select 1000::numeric(3,0) | select 'abcd'::varchar(0)
select sqrt(-1) | select ln(0) | select ln(-1::numeric) | select log(0::float8) | select 0 ^ -1 | select (-8) ^ 0.5 | select power(0::float8, -1) | select exp(1000::float8) | select factorial(-1) | select asin(2)
select acos(-1.5) | select 'x'::regclass | select 1::nothing | select cast(1 as nothing) | select 1::date | select true::date | select now()::int4 | select '1 day'::interval::int4
select date_trunc('foo', now()) | select extract(foo from now()) | select date_part('foo', now()) | select extract(hour from date '2024-01-01') | select extract(day from time '10:00')
select make_date(2024, 2, 30) | select make_date(2024, 13, 1) | select make_time(25, 0, 0) | select make_timestamp(2024, 1, 1, 24, 60, 0) | select make_interval(x => 1) | select timestamp '2024-01-01' at time zone 'Nowhere'
select split_part('a', 'b', 0) | select chr(0) | select chr(-1) | select substring('abc' from 1 for -1) | select repeat('a') | select left('a') | select lpad('a') | select overlay('a' placing 'b' from 0)
select 'a' like 'b' escape 'cd' | select 'a' ~ '(' | select 'a' ~ '[' | select 'a' similar to '(' | select regexp_replace('a', 'a', 'b', 'q') | select regexp_match('a', 'a', 'g') | select 'a' ~ '*' | select 'a' like 'a\\'
select decode('zz', 'hex') | select decode('a', 'base64') | select encode('a', 'foo') | select convert_from('\\xff', 'UTF8') | select '\\xzz'::bytea | select get_byte('\\x00', 5) | select set_byte('\\x', 0, 1)
select to_date('2024-13-01', 'YYYY-MM-DD') | select to_date('x', 'YYYY') | select to_timestamp('x', 'YYYY') | select to_number('x', '999') | select to_char(1, 2) | select to_char('a'::text, 'YYYY')
select '{'::jsonb | select '{}'::jsonb -> | select jsonb_array_length('{}') | select jsonb_array_length('1') | select jsonb_object('{a}') | select jsonb_build_object('a') | select jsonb_set('1', '{a}', '2') | select '[1]'::jsonb - 'x'
select jsonb_build_object(null, 1) | select '"a"'::jsonb::int4 | select '{}'::jsonb::bool | select 'null'::jsonb::int4 | select jsonb_path_query('{}', '$[') | select '1'::json = '1'::json | select j.* from a
select array_fill(1, array[-1]) | select array[1,2][1:2:3] | select trim_array(array[1], 5) | select array[[1],[2,3]] | select array_append(1, 2) | select array[1] \\|\\| 'a'::text | select unnest(1) | select array_length(1, 1)
select * from generate_series(1, 10, 0) | select * from generate_series(1, 'a'::text) | select * from nothing(1) | select * from nothing | select nothing.k from a | select a.nothing from a | select a.k from a as t
select k from a where k = any(5) | select k from a where k = any(select s from b) | select k from a where exists (select) | select k from a where k in (1, 'x') | select k from a where d = 'x' | select k from a where d > 5
select sum(s) from a | select sum(k, w) from a | select avg(d) from a | select max(*) from a | select count() from a | select bool_and(k) from a | select string_agg(s) from a | select array_agg() from a
select percentile_cont(2) within group (order by x) from a | select percentile_cont(0.5) from a | select percentile_cont('a') within group (order by x) from a | select mode() from a
select sum(distinct) from a | select count(distinct *) from a | select sum(k) filter (where k) from a | select sum(k) filter (where sum(k) > 1) from a | select upper(distinct s) from a | select abs(k) filter (where true) from a
select rank() from a | select row_number(1) over () from a | select sum(k) over w from a | select sum(k) over (w2 order by k) from a window w as (order by k) | select sum(k) over (order by k rows between 1 following and current row) from a
select sum(k) over (order by k rows -1 preceding) from a | select sum(k) over (order by k rows 'a' preceding) from a | select sum(k) over (range 1 preceding) from a | select sum(k) over (order by s range 1 preceding) from a
select sum(k) over (order by k groups between unbounded following and current row) from a | select sum(k) over (groups 1 preceding) from a | select ntile(0) over (order by k) from a | select nth_value(k, 0) over () from a
select count(distinct k) over () from a | select upper(s) over () from a | select sum(rank() over ()) over () from a | select k from a group by rank() over () | select sum(k) over (partition by sum(w)) from a
select sum(k) over (w order by k) from a window w as (partition by k order by w) | select lag() over () from a | select lag(k, 'a') over () from a | select 1 from a window w as (), w as () | select lead(k, 1, 'x'::text) over () from a
select grouping(k) from a | select grouping(w) from a group by k | select k from a group by rollup (9) | select k, w from a group by grouping sets ((k), (w)) having s > 'a' | select distinct on (k) k from a order by w | select distinct on (9) k from a
select k from a order by nothing | select k as x1 from a where x1 = 1 | select k as x1, w as x1 from a order by x1 | select k from a union select k from b order by k + 1 | select k from a union select k from b order by s
select 1 union select 2 limit 1 union select 3 | select k from a limit k | select k from a limit 'a' | select k from a limit 1.5 | select k from a offset 'x' | select k from a limit (select id from b) | select k from a fetch first -1 rows only
values (1), (1, 2) | values (1), ('a') | values () | select * from (values (1, 2)) as t(x, y, z) | select * from (select 1, 2) as t(x, y, z) | select * from (select 1) where true | with q(x, y) as (select 1) select * from q
with recursive r as (select * from r) select * from r | with recursive r(n) as (select 1 union all select n + 1 from r where n < (select max(n) from r)) select * from r | with recursive r(n) as (select 1 union all select 'a'::text from r) select * from r
with q as (select 1) select * from p1 | with q as (select k from a) select nothing from q | with q as (insert into w values (1)) select * from q | select * from a where row(k) = row(1, 2) | select (a).nothing from a | select (k).x from a
select a.k from a left join b on a.k = c.k | select * from a, lateral (select b.k from b where b.k = z.k) as l | select * from (select t.k) as q, a as t | select * from a right join lateral (select a.k) as l on true
select a.k from a natural join using (k) | select * from a cross join b on true | select * from a full join b on a.k < b.k | select * from a left join b | select k from a natural join b
insert into w values (1) | insert into w (id, t) values (100, null) | insert into w (id, t) values (1, 'x') | insert into w (id, nothing) values (1, 2) | insert into w (id, id) values (1, 2) | insert into w (id) values (1, 2)
insert into w (id, t) values (100) | insert into w (id, t) select 100 | insert into w (id) select s from a | insert into w (id) values ('x') | insert into w (id, v) values (100, 'abcdef') | insert into w (id, n) values (100, 1000000)
insert into w (id, k) values (100, 10), (101, 10) | insert into w (id, s) values (100, 40000) | insert into w (id, d) values (100, '2024-02-30') | insert into w (id, jb) values (100, '{') | insert into w (id, ai) values (100, 'x')
insert into w (id) values (100) on conflict (t) do nothing | insert into w (id) values (100), (100) on conflict (id) do update set t = 'a' | insert into w (id) values (1) on conflict do update set t = 'a' | insert into nothing values (1)
insert into w (id) values (100) on conflict (nothing) do nothing | insert into w (id) values (1) on conflict (id) do update set t = nothing.t | insert into w (id) values (1) on conflict (id) do update set id = excluded.nothing
insert into w (id) values (100) returning nothing | insert into w (id, f) values (100, 'abc') | insert into w (id, b) values (100, 5) | insert into w (id, d) values (100, 5) | insert into w (id, k) values (100, 1.5) | insert into w (id, ts) values (100, true)
insert into w default values | insert into w (id) values (sum(1)) | insert into w (id) values (default, 1) | insert into w (id, t) values (1, default) | insert into w (id) values (100) on conflict on constraint nothing do nothing
update w set nothing = 1 | update w set k = 1, k = 2 | update w set id = 1 | update w set t = null | update w set k = 'x' | update w set d = 5 | update w set k = k / 0 | update nothing set k = 1 | update w set k = sum(k) | update w set (k, t) = (1)
update w set k = (select id from b) | update w set (k, s) = (select 1) | update w set k = rank() over () | update w set v = 'abcdef' where id = 1 | update w set n = 1e7 | update w set s = 100000 | update w set k = nothing.k from a | update w set w.k = 1
update w set k = b.k from b where w.id = x.id | update w set k = 1 where nothing | update w set k = 1 where sum(k) > 1 | update w set k = default(1) | update w set k = 2147483647 + id | update w as z set k = w.k
delete from nothing | delete from w where nothing = 1 | delete from w where id = 'x' | delete from w where sum(id) > 1 | delete from w using nothing | delete w | delete from w where id | delete from w returning nothing | delete from w where id / 0 = 1
select set_config('a') | select pg_typeof() | select current_setting('nothing.x') | select ('a' \\|\\| 1) + 1 | select 'a'::char(0) | select 1::varchar(0) | select 1::numeric(0) | select 1::numeric(2000) | select now()::timestamp(-1) | select 5::bit(0)
select interval '1 day' * interval '1 day' | select interval '1 day' / 0 | select time '10:00' + time '10:00' | select timestamp '2024-01-01' + 1 | select date '2024-01-01' * 2 | select timestamp '294276-12-31' + interval '1 year' | select date '5874897-12-31' + 1
select uuid 'x' | select 'a'::uuid | select 1::uuid | select row(1, 2).x | select * | select from a | select a. from a | select .k from a | select "k from a | select 'abc | select 1 as from a | select all distinct k from a | select k k k from a
select | from a | where | select 1 from | select 1 where | selct 1 | select 1; select nothing | explain select nothing | table nothing | table | fetch nothing | execute nothing | deallocate nothing | close nothing | release nothing | rollback to nothing
drop table nothing | truncate nothing | alter table nothing add column x int | create table a (x int) | create table z1 (x int, x int) | create table z1 (x nothing) | create index on nothing (x) | create index on a (nothing) | drop view nothing | drop index nothing
alter table w add column t text | alter table w drop column nothing | alter table w rename column nothing to z | alter table w alter column nothing set not null | create table z1 (x int primary key, y int primary key) | create table z1 (primary key (x)) | set nothing = 1
show nothing | set statement_timeout = 'x' | savepoint | select pg_sleep('x') | select $1 | select $2::int4 | select count(*) from a group by k having | copy nothing to stdout | comment on table nothing is 'x' | analyze nothing | vacuum nothing | select * from a for update of z
"""


def read_misplaced():
    return [piece.replace("\\|", "|") for line in MISPLACED.strip().splitlines() for piece in line.split(" | ")]


READ_MISPLACED = read_misplaced()


def spoil(generator, node):
    """Returns the statement with a fault in it, or another that has one."""
    chance = generator.chance
    form = chance.random()
    if form < 0.3:
        return join_tokens(tokenize(chance.choice(READ_MISPLACED)))
    if form < 0.5:
        return spoil_literal(generator, node)
    if form < 0.68:
        return spoil_type(generator, node)
    if form < 0.85:
        return misspell(chance, node)
    if form < 0.92:
        return spoil_arguments(chance, node)
    return spoil_tokens(chance, node)


def spoil_literal(generator, node):
    """Replaces a literal, or another expression, by a text that is no value of its type."""
    chance = generator.chance
    found = [(path, one) for path, one in walk(node) if MALFORMED.get(one.kind)]
    literals = [(path, one) for path, one in found if one.value is not None] or found
    if not literals:
        return spoil_tokens(chance, node)
    path, one = chance.choice(literals)
    bad, name = chance.choice(MALFORMED[one.kind]), TYPES[one.kind][0]
    form = chance.choice([f"{quote(bad)}::{name}", f"cast({quote(bad)} as {name})", quote(bad)])
    return replace_at(node, path, Node(one.kind, form, value=bad))


def spoil_type(generator, node):
    """Puts an expression of another type in the place of one."""
    chance = generator.chance
    found = [(path, one) for path, one in walk(node) if one.kind in TYPES]
    if not found:
        return spoil_tokens(chance, node)
    path, one = chance.choice(found)
    other = chance.choice([kind for kind in TYPES if kind != one.kind])
    return replace_at(node, path, generator.expr(other, chance.choice([0, 0, 1])))


def misspell(chance, node):
    """Misspells a name: of a column, a table, a function, a type, or a keyword."""
    tokens = tokenize(str(node))
    names = [number for number, token in enumerate(tokens) if re.match(r"[a-z_]\w*$", token, re.IGNORECASE)]
    others = [number for number in names if tokens[number].lower() not in KEYWORDS]
    chosen = chance.choice(others if others and chance.random() < 0.8 else names)
    token = tokens[chosen]
    at = chance.randrange(len(token))
    tokens[chosen] = chance.choice([token + "x", token[:at] + token[at + 1:] or "q", "nothing", token[:at] + "_" + token[at:], f'"{token.upper()}"', token + "." + token])
    return join_tokens(tokens)


def spoil_arguments(chance, node):
    """Adds an argument to a call or takes one away."""
    tokens = tokenize(str(node))
    calls = [number for number in range(1, len(tokens) - 1) if tokens[number] == "(" and re.match(r"[a-z_]\w*$", tokens[number - 1])
             and tokens[number - 1] not in KEYWORDS]
    if not calls:
        return spoil_tokens(chance, node)
    at, depth = chance.choice(calls) + 1, 0
    end = at
    while end < len(tokens) and (depth or tokens[end] not in (",", ")")):
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(tokens[end], 0)
        end += 1
    if chance.random() < 0.5 or end >= len(tokens):
        return join_tokens([*tokens[:at], chance.choice(["1", "'a'", "null", "true", "array[1]", "'a'::text"]), ",", *tokens[at:]])
    return join_tokens([*tokens[:at], *tokens[end + (tokens[end] == ","):]])


def spoil_tokens(chance, node):
    """Drops, doubles, exchanges or adds a token, or cuts the statement off."""
    tokens = tokenize(str(node))
    at, form = chance.randrange(len(tokens)), chance.random()
    if form < 0.35:
        del tokens[at]
    elif form < 0.5:
        tokens.insert(at, tokens[at])
    elif form < 0.65:
        other = chance.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif form < 0.9:
        tokens.insert(at, chance.choice(WORDS))
    else:
        tokens = tokens[:max(at, 1)]
    return join_tokens(tokens or ["select"])
