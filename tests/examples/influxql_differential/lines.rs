//! Lines for a comparison with InfluxDB, from a seed.

use random::Random;

/// Seconds since the epoch of the first line.
pub const START_SECONDS: i64 = 1_600_000_000;
const SECOND: i64 = 1_000_000_000;
/// Rows of one series.
pub const ROWS: i64 = 60;
/// Seconds from the start to the first line of what goes on for weeks, and between two of them: clocks
/// are changed on 2020-10-25 in Berlin and on 2020-11-01 in New York.
pub const LONG_OFFSET: i64 = 3_000_000;
pub const LONG_STEP: i64 = 7 * 3_600;
/// The greatest whole number of a field: a sum of them is exact in a float.
const BIG_MAX: u64 = 1 << 44;

/// A line's field.
pub struct FieldValue {
    pub name: &'static str,
    /// As line protocol writes it.
    pub text: String,
}

/// A line of line protocol.
pub struct Line {
    pub measurement: &'static str,
    pub tags: Vec<(&'static str, &'static str)>,
    pub fields: Vec<FieldValue>,
    /// Nanoseconds since the epoch.
    pub time: i64,
}

impl Line {
    /// As it is sent.
    pub fn text(&self) -> String {
        let mut out = self.measurement.replace(' ', "\\ ");
        for (name, value) in &self.tags {
            out += &format!(",{name}={}", escaped(value));
        }
        for (idx, field) in self.fields.iter().enumerate() {
            let before = if idx == 0 { ' ' } else { ',' };
            out += &format!("{before}{}={}", escaped(field.name), field.text);
        }
        format!("{out} {}\n", self.time)
    }
}

fn escaped(text: &str) -> String {
    text.replace(' ', "\\ ").replace(',', "\\,").replace('=', "\\=")
}

/// A measurement's series and fields.
struct Kind {
    measurement: &'static str,
    series: &'static [&'static [(&'static str, &'static str)]],
    fields: &'static [(&'static str, char)],
}

const KINDS: &[Kind] = &[
    Kind {
        measurement: "cpu",
        series: &[
            &[("host", "a"), ("region", "eu")],
            &[("host", "b"), ("region", "eu")],
            &[("host", "c"), ("region", "us west")],
            &[("host", "d")],
        ],
        fields: &[("usage", 'f'), ("idle", 'f'), ("n", 'i'), ("up", 'b')],
    },
    Kind {
        measurement: "mem",
        series: &[&[("host", "a")], &[("host", "c")]],
        fields: &[("used", 'i'), ("free", 'f'), ("n", 'f')],
    },
    Kind {
        measurement: "disk io",
        series: &[&[("path", "/"), ("host", "b")], &[("path", "/var lib")]],
        fields: &[("value", 'f')],
    },
    // All series at the same times.
    Kind {
        measurement: "even",
        series: &[
            &[("host", "a"), ("rack", "1")],
            &[("host", "b")],
            &[("host", "b"), ("rack", "2")],
            &[("host", "c"), ("rack", "1")],
            &[("rack", "3")],
        ],
        fields: &[("f", 'f'), ("i", 'i'), ("b", 'b'), ("s", 's')],
    },
    // Weeks of it, and names that are others' or must be quoted.
    Kind {
        measurement: "long",
        series: &[&[("host", "a"), ("zone", "x=1,y")], &[("host", "b")], &[]],
        fields: &[("v", 'f'), ("big", 'B'), ("flag", 'b'), ("odd name", 'i')],
    },
];

/// All lines.
pub fn lines(random: &mut Random) -> Vec<Line> {
    let mut out = Vec::new();
    let mut series_idx = 0;
    for kind in KINDS {
        for tags in kind.series {
            series_idx += 1;
            for row in 0..ROWS {
                let is_even = kind.measurement == "even";
                let jitter = match is_even {
                    true => 0,
                    false => random.below(4) as i64 * SECOND + series_idx * 37_000_000,
                };
                let (first, step) = match kind.measurement {
                    "long" => (LONG_OFFSET, LONG_STEP),
                    _ => (0, 20),
                };
                let time = (START_SECONDS + first + row * step) * SECOND + jitter;
                let mut fields = Vec::new();
                for (name, kind) in kind.fields {
                    if random.below(10) < 8 {
                        fields.push(FieldValue { name, text: value(random, *kind) });
                    }
                }
                if !fields.is_empty() {
                    let (measurement, tags) = (kind.measurement, tags.to_vec());
                    out.push(Line { measurement, tags, fields, time });
                }
            }
        }
    }
    out
}

fn value(random: &mut Random, kind: char) -> String {
    match kind {
        'i' => format!("{}i", random.below(40) as i64 - 10),
        'B' => format!("{}i", random.below(2 * BIG_MAX) as i64 - BIG_MAX as i64),
        's' => ["\"x y\"", "\"a\"", "\"\"", "\"b,=\"", "\"xyz\""][random.index(5)].to_string(),
        'b' => ["true", "false"][random.index(2)].to_string(),
        // Seldom the same twice: of equal ones `percentile` takes any.
        _ => format!("{}", random.below(512_000) as f64 / 1024.0 - 100.0),
    }
}
