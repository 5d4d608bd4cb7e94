//! Prometheus' API besides queries: series, labels, metadata.

use crate::http::answer::{Answer, JSON, PIECE_SIZE};
use crate::http::partial::Partial;
use crate::http::request::selection;
use crate::http::request::{Request, decode_percent};
use app::App;
use model::Metadata;
use net::failure::Failure;
use serde_json::json;
use std::borrow::Cow;
use std::io::{self, Write};
use std::iter::{from_fn, once};
use std::sync::Arc;
use store::Store;
use wire::prom_json::{List, Notes};

/// Metrics whose texts are read at one time.
const METADATA_PAGE: usize = 256;

/// `/api/v1/series`
pub fn series(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let sets = selection::required_listing_sets(app, request)?;
    let range = selection::time_range(request)?;
    let limit = selection::limit(request)?;
    let partial = Partial::of(app, request)?;
    let limits = selection::limits(app, request)?;
    let mut found = partial.noting(app).series(&sets, range, &limits)?;
    let notes = cut(&mut found, limit, &partial);
    let answer = list(found, notes, |list, out, labels| list.labels(out, labels));
    partial.finish(app, answer)
}

/// `/api/v1/labels`
pub fn labels(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let sets = selection::listing_sets(app, request)?;
    let range = selection::time_range(request)?;
    let limit = selection::limit(request)?;
    let partial = Partial::of(app, request)?;
    let limits = selection::limits(app, request)?;
    let mut found = partial.noting(app).label_names(&sets, range, &limits)?;
    let notes = cut(&mut found, limit, &partial);
    partial.finish(app, list(found, notes, |list, out, name| list.string(out, name)))
}

/// `/api/v1/label/{name}/values`
pub fn label_values(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let name = decode_percent(request.captured.as_bytes());
    let name = unescape_name(&name);
    let sets = selection::listing_sets(app, request)?;
    let range = selection::time_range(request)?;
    let limit = selection::limit(request)?;
    let limits = selection::limits(app, request)?;
    let partial = Partial::of(app, request)?;
    let mut found = partial.noting(app).label_values(&name, &sets, range, &limits)?;
    let notes = cut(&mut found, limit, &partial);
    partial.finish(app, list(found, notes, |list, out, value| list.string(out, value)))
}

/// `U__a_2e_b` is `a.b`: how clients write names that are no identifiers into a path.
fn unescape_name(name: &str) -> Cow<'_, str> {
    let Some(rest) = name.strip_prefix("U__") else { return Cow::Borrowed(name) };
    let mut text = String::new();
    let mut pieces = rest.split('_');
    text.push_str(pieces.next().unwrap_or(""));
    // Between two underscores stands nothing (an underscore) or a code point in hexadecimal.
    while let Some(code) = pieces.next() {
        let character = match code {
            "" => Some('_'),
            code => u32::from_str_radix(code, 16).ok().and_then(char::from_u32),
        };
        let (Some(character), Some(after)) = (character, pieces.next()) else {
            return Cow::Borrowed(name);
        };
        text.push(character);
        text.push_str(after);
    }
    Cow::Owned(text)
}

fn cut<T>(list: &mut Vec<T>, limit: Option<usize>, partial: &Partial) -> Notes {
    let mut notes = Notes::default();
    partial.note(&mut notes);
    if limit.is_some_and(|limit| limit < list.len()) {
        list.truncate(limit.unwrap_or(usize::MAX));
        notes.warnings.push("results truncated due to limit".to_string());
    }
    notes
}

/// Streams a list, piece by piece.
fn list<T: Send + 'static>(
    items: Vec<T>,
    notes: Notes,
    push: fn(&mut List, &mut Vec<u8>, &T),
) -> Answer {
    Answer::stream(
        JSON,
        Box::new(move |out: &mut dyn Write| {
            let mut buffer = Vec::with_capacity(PIECE_SIZE * 2);
            let mut list = List::begin(&mut buffer);
            for item in &items {
                push(&mut list, &mut buffer, item);
                if PIECE_SIZE <= buffer.len() {
                    out.write_all(&buffer)?;
                    buffer.clear();
                }
            }
            list.end(&mut buffer, &notes);
            out.write_all(&buffer)
        }),
    )
}

/// `/api/v1/metadata?metric=...&limit=...&limit_per_metric=...`
pub fn metadata(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let limit = selection::limit(request)?.unwrap_or(usize::MAX);
    // A metric has one.
    selection::count(request, "limit_per_metric")?;
    let partial = Partial::of(app, request)?;
    partial.note_side_file(app, "metadata");
    let mut notes = Notes::default();
    partial.note(&mut notes);
    let metric = request.params.filled("metric").map(str::to_string);
    let store = app.store.clone();
    let write = move |out: &mut dyn Write| match metric {
        Some(metric) => write_metadata(out, &notes, once(store.metadata(Some(&metric), limit))),
        None => write_metadata(out, &notes, metadata_pages(&store, limit)),
    };
    partial.finish(app, Answer::stream(JSON, Box::new(write)))
}

/// Metrics in order of their names, [`METADATA_PAGE`] at a time: their texts may be long.
fn metadata_pages(store: &Store, limit: usize) -> impl Iterator<Item = Vec<Metadata>> + '_ {
    let (mut last, mut left) = (String::new(), limit);
    from_fn(move || {
        let page = store.metadata_after(&last, METADATA_PAGE.min(left));
        last = page.last()?.metric.clone();
        left -= page.len();
        Some(page)
    })
}

fn write_metadata(
    out: &mut dyn Write,
    notes: &Notes,
    pages: impl Iterator<Item = Vec<Metadata>>,
) -> io::Result<()> {
    out.write_all(b"{\"status\":\"success\",\"data\":{")?;
    let mut separator = "";
    for Metadata { metric, kind, help, unit } in pages.flatten() {
        let one = json!([{ "type": kind.as_str(), "help": help, "unit": unit }]);
        write!(out, "{separator}{}:{one}", json!(metric))?;
        separator = ",";
    }
    match notes.is_partial {
        false => out.write_all(b"}}"),
        true => write!(out, "}},\"isPartial\":true,\"warnings\":{}}}", json!(notes.warnings)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_paths() {
        for (text, expected) in [
            ("job", "job"),
            ("U__job", "job"),
            ("U__a_2e_b", "a.b"),
            ("U__a__b", "a_b"),
            ("U___1F600_", "\u{1F600}"),
            ("U__a_zz_b", "U__a_zz_b"),
            ("U__a_2e", "U__a_2e"),
        ] {
            assert_eq!(unescape_name(text), expected);
        }
    }
}
