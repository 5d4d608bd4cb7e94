//! dev
#![allow(missing_docs, dead_code, clippy::all, clippy::pedantic)]
#[path = "../../../tests/tests/influxql_generator.rs"]
mod generator;
use influxql::{Evaluator, Limits, Parameters, Writer, ast::DataType, memory::MemorySource, parse};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
struct Http {
    s: BufReader<TcpStream>,
}
fn pct(t: &str) -> String {
    t.bytes()
        .map(
            |b| {
                if b.is_ascii_alphanumeric() {
                    (b as char).to_string()
                } else {
                    format!("%{b:02X}")
                }
            },
        )
        .collect()
}
impl Http {
    fn req(&mut self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        let h = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.s.get_mut().write_all(h.as_bytes()).unwrap();
        self.s.get_mut().write_all(body).unwrap();
        let mut line = String::new();
        self.s.read_line(&mut line).unwrap();
        let code: u16 = line.split(' ').nth(1).unwrap().parse().unwrap();
        let (mut len, mut chunked) = (0usize, false);
        loop {
            line.clear();
            self.s.read_line(&mut line).unwrap();
            let l = line.trim().to_ascii_lowercase();
            if l.is_empty() {
                break;
            }
            if let Some(v) = l.strip_prefix("content-length: ") {
                len = v.parse().unwrap()
            }
            if l == "transfer-encoding: chunked" {
                chunked = true
            }
        }
        let mut out = Vec::new();
        if chunked {
            loop {
                line.clear();
                self.s.read_line(&mut line).unwrap();
                let n = usize::from_str_radix(line.trim(), 16).unwrap();
                let mut b = vec![0; n + 2];
                self.s.read_exact(&mut b).unwrap();
                if n == 0 {
                    break;
                }
                out.extend_from_slice(&b[..n]);
            }
        } else if code != 204 {
            out.resize(len, 0);
            self.s.read_exact(&mut out).unwrap();
        }
        (code, String::from_utf8(out).unwrap())
    }
}
fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value as V;
    match (a, b) {
        (V::Number(x), V::Number(y)) => {
            let (x, y) = (x.as_f64().unwrap(), y.as_f64().unwrap());
            (x - y).abs() <= 1e-12 * x.abs().max(y.abs()) || (x - y).abs() < 1e-11
        }
        (V::Array(x), V::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(a, b)| same(a, b))
        }
        (V::Object(x), V::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| same(v, w)))
        }
        _ => a == b,
    }
}
fn where_(a: &serde_json::Value, b: &serde_json::Value, p: String) -> Option<String> {
    use serde_json::Value as V;
    if same(a, b) {
        return None;
    }
    match (a, b) {
        (V::Array(x), V::Array(y)) => {
            for (i, (a, b)) in x.iter().zip(y).enumerate() {
                if let Some(w) = where_(a, b, format!("{p}[{i}]")) {
                    return Some(format!(
                        "{w}{}",
                        if w.contains("ROW") {
                            ""
                        } else if x.first().is_some_and(|v| v.is_array()) {
                            ""
                        } else {
                            ""
                        }
                    ));
                }
            }
            Some(format!(
                "{p} len {} vs {} {} | {}",
                x.len(),
                y.len(),
                V::Array(x.iter().skip(x.len().min(y.len())).take(3).cloned().collect()),
                V::Array(y.iter().skip(x.len().min(y.len())).take(3).cloned().collect())
            ))
        }
        (V::Object(x), V::Object(y)) => {
            for (k, v) in x {
                match y.get(k) {
                    None => return Some(format!("{p}.{k} missing")),
                    Some(w) => {
                        if let Some(r) = where_(v, w, format!("{p}.{k}")) {
                            return Some(r);
                        }
                    }
                }
            }
            Some(format!("{p} extra keys {y:?}"))
        }
        _ => Some(format!("{p}: {a} vs {b}")),
    }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seed: u64 = args[1].parse().unwrap();
    let n: usize = args[2].parse().unwrap();
    let show: usize = args.get(3).map_or(10, |x| x.parse().unwrap());
    let mut r = random::Random(seed);
    let lines = generator::lines(&mut r);
    let mut h = Http { s: BufReader::new(TcpStream::connect("127.0.0.1:18086").unwrap()) };
    h.req("POST", &format!("/query?q={}", pct("DROP DATABASE x")), b"");
    h.req("POST", &format!("/query?q={}", pct("CREATE DATABASE x")), b"");
    let text: String = lines.iter().map(|l| l.text()).collect();
    let (code, body) = h.req("POST", "/write?db=x", text.as_bytes());
    assert_eq!(code, 204, "{body}");
    let mut m = MemorySource::default();
    for l in &lines {
        for f in &l.fields {
            let (k, v) = if let Some(i) = f.text.strip_suffix('i') {
                (DataType::Integer, i.parse().unwrap())
            } else if f.text == "true" {
                (DataType::Boolean, 1.0)
            } else if f.text == "false" {
                (DataType::Boolean, 0.0)
            } else {
                (DataType::Float, f.text.parse().unwrap())
            };
            m.add(l.measurement, &l.tags, (f.name, k), (l.time, v));
        }
    }
    let mut q = generator::Queries { random: random::Random(seed.wrapping_mul(77) + 1) };
    let mut bad = 0;
    let mut kinds = std::collections::BTreeMap::new();
    let queries: Vec<String> = if let Some(t) = args.get(4) {
        vec![t.clone()]
    } else {
        (0..n).map(|_| q.next()).collect()
    };
    for (i, text) in queries.iter().enumerate() {
        let (_, theirs) = h.req("GET", &format!("/query?db=x&q={}", pct(text)), b"");
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()
                as i64;
        let ours = match parse(text, &Parameters::new()) {
            Err(e) => {
                format!("{}", serde_json::json!({"error":format!("error parsing query: {e}")}))
            }
            Ok(st) => {
                let e = Evaluator::new(&m, "x", now, Limits { points_max: 10_000_000 });
                let a: Vec<_> = st.iter().map(|s| e.run(s).unwrap_or_default()).collect();
                Writer::default().body(&a)
            }
        };
        let (a, b): (serde_json::Value, serde_json::Value) = (
            serde_json::from_str(&theirs).unwrap_or_else(|_| serde_json::json!(theirs)),
            serde_json::from_str(&ours).unwrap_or_else(|e| panic!("{e} {ours}")),
        );
        if !same(&a, &b) {
            bad += 1;
            let k = text.split(['(', ' ']).take(2).collect::<Vec<_>>().join(" ");
            *kinds.entry(k).or_insert(0) += 1;
            if bad <= show {
                let cut = |s: &str| s.chars().take(1500).collect::<String>();
                println!(
                    "#{i} {text}\n  at {}\n  theirs {}\n  ours   {}",
                    where_(&a, &b, String::new()).unwrap_or_default(),
                    cut(theirs.trim()),
                    cut(ours.trim())
                );
            }
        }
    }
    println!("{bad} of {} differ; {kinds:?}", queries.len());
}
