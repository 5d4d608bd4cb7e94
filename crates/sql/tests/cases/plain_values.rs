//! Values of functions and operators of numbers, arrays and times.

#[rustfmt::skip]
pub const ALL: &[(&str, &str)] = &[
    ("select -2^2, 2 ^ -1, -2^2^3, -(2^2), 3-2^2",
     "4|0.5|64|-4|-1"),
    ("select (array[1,2,3])[-1], (array[1,2,3])[0], (array[1,2,3])[3]",
     "||3"),
    ("select to_hex(-1), to_hex(255), to_hex((-1)::bigint)",
     "ffffffff|ff|ffffffffffffffff"),
    ("select 1e6::float4::text, 1234567::float4::text, 123456::float4::text",
     "1e+06|1.234567e+06|123456"),
    ("select '10:20:30.5'::time::text, '10:20:00'::time || 'x'",
     "10:20:30.5|10:20:00x"),
    ("select lag(id, 1, 7) over (order by id) from fa where id < 3",
     "1; 7"),
];
