//! Where history is copied to: requests to a running Quipu, of Prometheus' remote write, or of lines where
//! those say more.

use super::refused;
use crate::exact::Exact;
use crate::nameless::Nameless;
use crate::points::{Lines, LinesPlace, Points};
use crate::series::{Filter, Series};
use crate::source::{Given, Mark};
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http_client::client::{Asked, Client, encode};
use http_client::influxql::quoted;
use hyper::{Method, StatusCode};
use serde_json::Value;
use std::collections::BTreeSet;
use wire::json_lines::StringLine;
use wire::remote_write::encode::RequestV1;

/// Bytes of a request before it is compressed, about.
const REQUEST_SIZE: usize = 4 << 20;
/// Samples of a series in one request, about.
const SAMPLES_AT_ONCE: usize = 64 << 10;

/// By which door a request goes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Door {
    /// Prometheus' remote write.
    RemoteWrite,
    /// Line protocol.
    Lines(LinesPlace),
    /// JSON lines.
    Json,
}

/// A request that is ready to be sent.
pub struct Request {
    /// Where it goes.
    pub door: Door,
    /// Compressed, where the door wants that.
    pub body: Vec<u8>,
    /// How many samples it has.
    pub samples: u64,
    /// All that came before it is in this request, or in those before.
    pub mark: Option<Mark>,
}

/// Takes requests that are full.
pub type Ship<'a> = dyn FnMut(Request) -> anyhow::Result<()> + 'a;

/// What a source gives becomes requests.
pub struct Packer<'f> {
    filter: &'f Filter,
    request: RequestV1,
    samples: u64,
    lines: Lines,
    json: Vec<u8>,
    json_samples: u64,
    mark: Option<Mark>,
    nameless: Nameless,
}

impl Packer<'_> {
    /// With the changes of labels that a filter has.
    pub fn new(filter: &Filter) -> Packer<'_> {
        let lines = Lines { place: LinesPlace::default(), text: Vec::new(), samples: 0 };
        let request = RequestV1::default();
        let (json, nameless) = (Vec::new(), Nameless::default());
        Packer { filter, request, samples: 0, lines, json, json_samples: 0, mark: None, nameless }
    }

    /// What it left out, as it has no name.
    pub fn into_nameless(self) -> Nameless {
        self.nameless
    }

    /// Takes a piece; hands on every request that is full.
    ///
    /// # Errors
    /// Those of `ship`.
    pub fn push(&mut self, given: Given, ship: &mut Ship<'_>) -> anyhow::Result<()> {
        let given = match given {
            Given::Points(points) if self.push_points(&points, ship)? => return Ok(()),
            Given::Exact(exact) => return self.push_exact(exact, ship),
            Given::Strings(_) => {
                let all = given.strings(self.filter);
                return all.iter().try_for_each(|line| self.push_strings(line, ship));
            }
            Given::Mark(mark) => {
                // Of what goes by several doors nobody knows what is sent first.
                self.mark = (self.lines.text.is_empty() && self.json.is_empty()).then_some(mark);
                return Ok(());
            }
            other => other,
        };
        let all = given.into_series(self.filter);
        all.iter().try_for_each(|series| self.push_series(series, ship))
    }

    /// Takes points as lines; false where lines cannot say them.
    fn push_points(&mut self, points: &Points, ship: &mut Ship<'_>) -> anyhow::Result<bool> {
        let Some(mut more) = points.lines(self.filter) else { return Ok(false) };
        if more.place != self.lines.place {
            self.ship_lines_if(1, ship)?;
            self.lines.place = std::mem::take(&mut more.place);
        }
        self.lines.text.append(&mut more.text);
        self.lines.samples += more.samples;
        self.ship_lines_if(REQUEST_SIZE, ship)?;
        Ok(true)
    }

    fn push_exact(&mut self, mut exact: Exact, ship: &mut Ship<'_>) -> anyhow::Result<()> {
        exact.labels = self.filter.relabelled(exact.labels);
        if self.nameless.takes(&exact.labels, exact.len()) {
            return Ok(());
        }
        exact.push_lines(&mut self.json);
        self.json_samples += exact.len() as u64;
        self.ship_json_if(REQUEST_SIZE, ship)
    }

    fn push_strings(&mut self, line: &StringLine, ship: &mut Ship<'_>) -> anyhow::Result<()> {
        let mut next = 0;
        while next < line.samples.len() {
            let count = line.push_some(next, &mut self.json);
            next += count;
            self.json_samples += count as u64;
            self.ship_json_if(REQUEST_SIZE, ship)?;
        }
        Ok(())
    }

    fn ship_json_if(&mut self, size: usize, ship: &mut Ship<'_>) -> anyhow::Result<()> {
        if self.json.len() < size {
            return Ok(());
        }
        let samples = std::mem::take(&mut self.json_samples);
        ship(Request {
            door: Door::Json,
            body: std::mem::take(&mut self.json),
            samples,
            mark: None,
        })
    }

    fn push_series(&mut self, series: &Series, ship: &mut Ship<'_>) -> anyhow::Result<()> {
        if self.nameless.takes(&series.labels, series.len()) {
            return Ok(());
        }
        let labels: Vec<(&str, &str)> = series.labels.iter().collect();
        for samples in series.samples.chunks(SAMPLES_AT_ONCE) {
            self.request.series(&labels, samples);
            self.samples += samples.len() as u64;
            self.ship_if(REQUEST_SIZE, ship)?;
        }
        // Each has up to many thousand buckets.
        for histograms in series.histograms.chunks(16) {
            self.request.mixed_series(&labels, &[], histograms);
            self.samples += histograms.len() as u64;
            self.ship_if(REQUEST_SIZE, ship)?;
        }
        Ok(())
    }

    /// Hands on what is left.
    ///
    /// # Errors
    /// Those of `ship`.
    pub fn finish(&mut self, ship: &mut Ship<'_>) -> anyhow::Result<()> {
        self.ship_lines_if(1, ship)?;
        self.ship_json_if(1, ship)?;
        self.ship_if(1, ship)
    }

    fn ship_lines_if(&mut self, size: usize, ship: &mut Ship<'_>) -> anyhow::Result<()> {
        let Lines { place, text, samples } = &mut self.lines;
        if text.len() < size {
            return Ok(());
        }
        let door = Door::Lines(place.clone());
        let (body, samples) = (std::mem::take(text), std::mem::take(samples));
        ship(Request { door, body, samples, mark: None })
    }

    fn ship_if(&mut self, size: usize, ship: &mut Ship<'_>) -> anyhow::Result<()> {
        let bytes = self.request.as_bytes();
        if bytes.len() < size {
            return Ok(());
        }
        let body = snap::raw::Encoder::new().compress_vec(bytes)?;
        let samples = std::mem::take(&mut self.samples);
        self.request.clear();
        ship(Request { door: Door::RemoteWrite, body, samples, mark: self.mark })
    }
}

/// Sends a request; what was refused of it, if anything was: the rest is stored.
///
/// # Errors
/// When the server does not take it.
pub fn send(client: &mut Client, request: Request) -> anyhow::Result<Option<String>> {
    // What is answered is on disk, however the server is set: then a window is done.
    let (path, headers): (String, &[(&str, &str)]) = match &request.door {
        Door::RemoteWrite => ("/api/v1/write?durability=synced".to_string(), REMOTE_WRITE),
        Door::Lines(place) => {
            let path = "/write?durability=synced&precision=ns";
            let (database, policy) = (encode(&place.database), encode(&place.policy));
            (format!("{path}&db={database}&rp={policy}"), LINES)
        }
        Door::Json => ("/api/v1/import?durability=synced".to_string(), &[]),
    };
    let body = Bytes::from(request.body);
    let asked = Asked { method: Method::POST, path: &path, headers, body: body.clone() };
    let reply = client.ask(&asked, &mut |_| Ok(()))?;
    match reply.status {
        // A page that asks who one is has another status.
        StatusCode::NO_CONTENT => Ok(None),
        StatusCode::BAD_REQUEST => Ok(Some(refused::words(&request.door, &body, &reply.error))),
        status => {
            bail!("{path} is answered by {status}, not as a Quipu does: {}", reply.error)
        }
    }
}

/// Retention policies that the server is known to have.
#[derive(Default)]
pub struct KnownPolicies(BTreeSet<(String, String)>);

impl KnownPolicies {
    /// Creates the retention policy that a request is for if the server has none of that name.
    ///
    /// # Errors
    /// When the server does not create it.
    pub fn ensure(&mut self, client: &mut Client, door: &Door) -> anyhow::Result<()> {
        let Door::Lines(place) = door else { return Ok(()) };
        let LinesPlace { database, policy, default_policy } = place;
        let key = (database.clone(), policy.clone());
        let is_usual = default_policy.is_empty() || default_policy == influxql::AUTOGEN;
        if (policy.is_empty() && is_usual) || database.is_empty() || self.0.contains(&key) {
            return Ok(());
        }
        let name = quoted(database);
        let show = format!("SHOW RETENTION POLICIES ON {name}");
        let wanted = if policy.is_empty() { default_policy } else { policy };
        let before = statements(client, &show)?;
        // Without its default policy a database has `autogen` in the place of that.
        let is_there = shown(&before, wanted) && (is_usual || shown(&before, default_policy));
        if !is_there {
            let with = match is_usual {
                true => String::new(),
                false => format!(" WITH NAME {}", quoted(default_policy)),
            };
            let mut create = format!("CREATE DATABASE {name}{with}");
            if !policy.is_empty() {
                let policy = quoted(policy);
                create += &format!(
                    "; CREATE RETENTION POLICY {policy} ON {name} DURATION INF REPLICATION 1"
                );
            }
            let answer = statements(client, &create)?;
            let mut errors = answer["results"].as_array().into_iter().flatten();
            if let Some(error) = errors.find_map(|result| result["error"].as_str()) {
                bail!("{create}: {error}");
            }
            // A server that ignores policies would take the lines for those of the default policy.
            let is_there = shown(&statements(client, &show)?, wanted);
            ensure!(is_there, "the server has no retention policies: its version is too old");
        }
        self.0.insert(key);
        Ok(())
    }
}

/// Whether an answer to SHOW RETENTION POLICIES lists a policy.
fn shown(answer: &Value, policy: &str) -> bool {
    let rows = answer["results"][0]["series"][0]["values"].as_array();
    rows.into_iter().flatten().any(|row| row[0] == policy)
}

/// Asks the server statements of InfluxQL.
fn statements(client: &mut Client, text: &str) -> anyhow::Result<Value> {
    let body = Bytes::from(format!("q={}", encode(text)));
    let asked = Asked { method: Method::POST, path: "/query", headers: FORM, body };
    let mut answer = Vec::new();
    let reply = client.ask(&asked, &mut |bytes| {
        answer.extend_from_slice(bytes);
        Ok(())
    })?;
    ensure!(reply.status.is_success(), "{text}: {}: {}", reply.status, reply.error);
    serde_json::from_slice(&answer).with_context(|| format!("{text}: the answer is no JSON"))
}

const FORM: &[(&str, &str)] = &[("content-type", "application/x-www-form-urlencoded")];
const REMOTE_WRITE: &[(&str, &str)] = &[
    ("content-type", "application/x-protobuf"),
    ("content-encoding", "snappy"),
    ("x-prometheus-remote-write-version", "0.1.0"),
];
const LINES: &[(&str, &str)] = &[("content-type", "text/plain; charset=utf-8")];
