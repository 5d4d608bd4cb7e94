//! Arrays beside untyped literals, over the tables of `answers`, and PostgreSQL 15's answers.

#[rustfmt::skip]
pub const ALL: &[(&str, &str)] = &[
    ("select a = '{}', a <> '{1,2}', a < '{2}', '{1,2}' = a from (values (array[1,2]), (array[]::int[]), (null)) v(a)",
     "f|f|t|t; t|t|t|f; |||"),
    ("select a = '{x,NULL}', a = '{\"x\",null}' from (values (array['x',null])) v(a)",
     "t|t"),
    ("select array[1,2] = '{a}'",
     "22P02"),
];
