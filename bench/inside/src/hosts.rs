//! Data of the shape of TSBS' use case cpu-only: hosts with ten tags and ten metrics each.

use rng::Random;
use std::fmt::Write;

/// When the data begin: 2016-01-01T00:00:00Z, in nanoseconds.
pub const START_NS: i64 = 1_451_606_400_000_000_000;
/// The fields of a line.
pub const FIELDS: [&str; 10] = [
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
];

/// Tags of a host, sorted by name.
pub type Tags = Vec<(&'static str, String)>;

const REGIONS: [&str; 9] = [
    "us-east-1",
    "us-west-1",
    "us-west-2",
    "eu-west-1",
    "eu-central-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-northeast-1",
    "sa-east-1",
];

/// The tags of one host.
pub fn tags(host: u64) -> Tags {
    let mut random = Random(host);
    let region = one_of(&mut random, &REGIONS);
    vec![
        ("arch", one_of(&mut random, &["x64", "x86"]).to_string()),
        ("datacenter", format!("{region}{}", one_of(&mut random, &["a", "b", "c"]))),
        ("hostname", format!("host_{host}")),
        ("os", one_of(&mut random, &["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"]).to_string()),
        ("rack", random.scaled(100).to_string()),
        ("region", region.to_string()),
        ("service", random.scaled(20).to_string()),
        (
            "service_environment",
            one_of(&mut random, &["production", "staging", "test"]).to_string(),
        ),
        ("service_version", random.scaled(2).to_string()),
        ("team", one_of(&mut random, &["SF", "NYC", "LON", "CHI"]).to_string()),
    ]
}

/// Tags as the index wants them.
pub fn borrowed(tags: &Tags) -> Vec<(&str, &str)> {
    tags.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// The names of the ten metrics.
pub fn metric_names() -> Vec<String> {
    FIELDS.iter().map(|field| format!("cpu_{field}")).collect()
}

/// A usage in percent.
pub fn usage(host: u64, field: usize, step: u64) -> u64 {
    (host * 31 + field as u64 * 17 + step * 7) % 101
}

/// Line protocol: one line for each host at each step, steps ten seconds apart.
pub fn lines(hosts: u64, steps: u64) -> String {
    let mut text = String::new();
    for step in 0..steps {
        for host in 0..hosts {
            push_line(&mut text, host, step).expect("a string takes all");
        }
    }
    text
}

fn push_line(text: &mut String, host: u64, step: u64) -> std::fmt::Result {
    text.push_str("cpu");
    for (name, value) in tags(host) {
        write!(text, ",{name}={value}")?;
    }
    for (idx, field) in FIELDS.iter().enumerate() {
        let separator = if idx == 0 { ' ' } else { ',' };
        write!(text, "{separator}{field}={}i", usage(host, idx, step))?;
    }
    writeln!(text, " {}", START_NS + 10_000_000_000 * step as i64)
}

fn one_of(random: &mut Random, names: &[&'static str]) -> &'static str {
    names[random.scaled(names.len() as u64) as usize]
}
