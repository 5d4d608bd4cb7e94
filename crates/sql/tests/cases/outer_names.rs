//! Names of relations and columns: those of outer queries beside columns of the same name, and those in HAVING.

#[rustfmt::skip]
pub const ALL: &[(&str, &str)] = &[
    ("select x.y from n x where x.y in (select o.y from fnn o where o.x = x.x) order by 1",
     "1; 3"),
    ("select (select max(y.x) from n y where y.y = x.y) from fnn x order by 1",
     "3; 4; "),
    ("select x.x from fnn x where exists (select 1 from n y where y.x = x.x and y.y > x.y) order by 1",
     "1"),
    ("select x.x, l.m from fnn x, lateral (select max(n.y) m from n where n.x = x.x) l order by 1",
     "1|4; 2|3; 3|3"),
    ("select x.y.x from fnn x",
     "42P01"),
    ("select x.x from fnn",
     "42P01"),
    ("select count(*) as w from fa group by w having w > 1",
     "3"),
    ("select count(*) as q from fa having count(*) > 1",
     "6"),
    ("select 1 having true",
     "1"),
    ("select 1 having false",
     ""),
    ("select 1 from fa having true",
     "1"),
    ("select id from fa having true",
     "42803"),
];
