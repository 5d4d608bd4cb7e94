//! Operators of bits, over the tables of `answers`, and PostgreSQL 15's answers.

#[rustfmt::skip]
pub const ALL: &[(&str, &str)] = &[
    ("select id # id, z & z, z | null::int, id # 0 from fa where id is null",
     "|30||; |||"),
    ("select x, x & -x, x | -x, x # -x from fnn",
     "1|1|-1|-2; 2|2|-2|-4; 3|1|-1|-2"),
    ("select x # y # x, x # (y # x), x & y & x, (x | y) & x from fnn",
     "1|1|1|1; 3|3|3|3; 5|5|0|2"),
    ("select ~x, ~(x::smallint), ~(x::bigint), ~0, ~null::int from fnn where x = 2",
     "-3|-3|-3|-1|"),
    ("select x << 1, x << 33, x >> 1, x::bigint << 33, x::bigint << 65, x::smallint << 15, -8 >> 1 from fnn where x = 3",
     "6|6|1|25769803776|6|-32768|-4"),
    ("select pg_typeof(x & x), pg_typeof(x | x::bigint), pg_typeof(x::smallint # x::smallint), pg_typeof(5 & 3), pg_typeof(~5) from fnn where x = 3",
     "integer|bigint|smallint|integer|integer"),
    ("select 5 & 3, 5 | 3, 5 # 3, 5 & '3', -1 & 9223372036854775807",
     "1|7|6|1|9223372036854775807"),
    ("select 5 & 3.0",
     "42883"),
    ("select true & false",
     "42883"),
    ("select 1::bigint << 1::bigint",
     "42883"),
];
