//! The JSON of Graphite's index, written piece by piece.

use crate::http::answer::PIECE_SIZE;
use crate::http::answer::{Answer, JSON};
use std::collections::HashSet;
use std::io::{self, Write};
use wire::prom_json::push_string;
use wire::prom_json::string::push_escaped;

/// How `/metrics/find` tells of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// For trees that unfold: `[{"id":...,"text":...,"allowChildren":1,...}]`
    Tree,
    /// For input fields: `{"metrics":[{"path":...,"name":...,"is_leaf":0}]}`
    Completer,
}

/// What `/metrics/find` found.
pub struct Found {
    /// What stands before each node: the pattern's text up to its last part.
    pub head: String,
    /// The nodes' names, sorted, each once; inner nodes end with the delimiter.
    pub pieces: Vec<String>,
    /// Between the parts of a path.
    pub delimiter: char,
    /// Whether an entry for all nodes together is wanted.
    pub has_wildcard: bool,
}

/// The end of a node that other paths lead on from.
const UNFOLDS: &str = "\",\"allowChildren\":1,\"expandable\":1,\"leaf\":0}";
/// The end of any other.
const LEAF: &str = "\",\"allowChildren\":0,\"expandable\":0,\"leaf\":1}";

/// A buffer that is handed on whenever it is large.
struct Pieces<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    is_first: bool,
}

impl<'a> Pieces<'a> {
    fn new(out: &'a mut dyn Write) -> Pieces<'a> {
        Pieces { out, buffer: Vec::with_capacity(2 * PIECE_SIZE), is_first: true }
    }

    fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    fn begin(&mut self, bracket: &str) {
        self.text(bracket);
        self.is_first = true;
    }

    /// Before each entry of a list.
    fn separate(&mut self) -> io::Result<()> {
        if !self.is_first {
            self.text(",");
        }
        self.is_first = false;
        if PIECE_SIZE <= self.buffer.len() {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn string(&mut self, text: &str) {
        push_string(&mut self.buffer, text);
    }

    fn strings(&mut self, list: &[String]) -> io::Result<()> {
        self.begin("[");
        for text in list {
            self.separate()?;
            self.string(text);
        }
        self.text("]");
        Ok(())
    }

    fn end(self, bracket: &str) -> io::Result<()> {
        let Pieces { out, mut buffer, .. } = self;
        buffer.extend_from_slice(bracket.as_bytes());
        out.write_all(&buffer)
    }
}

fn json(write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Answer {
    Answer::stream(JSON, Box::new(write))
}

/// `["a","b"]`
pub fn strings(list: Vec<String>) -> Answer {
    json(move |out| {
        let mut pieces = Pieces::new(out);
        pieces.strings(&list)?;
        pieces.end("")
    })
}

/// `{"results":{"a.*":["a.b"]}}`
pub fn groups(by_query: Vec<(String, Vec<String>)>) -> Answer {
    json(move |out| {
        let mut pieces = Pieces::new(out);
        pieces.begin("{\"results\":{");
        for (query, list) in &by_query {
            pieces.separate()?;
            pieces.string(query);
            pieces.text(":");
            pieces.strings(list)?;
            pieces.is_first = false;
        }
        pieces.end("}}")
    })
}

/// `[{"tag":"host"}]`
pub fn tags(list: Vec<String>) -> Answer {
    json(move |out| {
        let mut pieces = Pieces::new(out);
        pieces.begin("[");
        for tag in &list {
            pieces.separate()?;
            pieces.text("{\"tag\":");
            pieces.string(tag);
            pieces.text("}");
        }
        pieces.end("]")
    })
}

/// `{"tag":"host","values":[{"count":1,"value":"a"}]}`; nobody counts, as in VictoriaMetrics.
pub fn values(tag: String, list: Vec<String>) -> Answer {
    json(move |out| {
        let mut pieces = Pieces::new(out);
        pieces.text("{\"tag\":");
        pieces.string(&tag);
        pieces.begin(",\"values\":[");
        for value in &list {
            pieces.separate()?;
            pieces.text("{\"count\":1,\"value\":");
            pieces.string(value);
            pieces.text("}");
        }
        pieces.end("]}")
    })
}

/// The answer of `/metrics/find`.
pub fn nodes(found: Found, listing: Listing) -> Answer {
    json(move |out| match listing {
        Listing::Tree => write_tree(out, &found),
        Listing::Completer => write_completer(out, &found),
    })
}

/// A path that is a leaf and an inner node is one node, which can be unfolded.
fn write_tree(out: &mut dyn Write, found: &Found) -> io::Result<()> {
    let inner = |piece: &&String| piece.ends_with(found.delimiter);
    let nodes: HashSet<&str> =
        found.pieces.iter().filter(inner).map(|piece| found.name(piece)).collect();
    let is_mixed = !nodes.is_empty() && nodes.len() < found.pieces.len();
    let leaves: HashSet<&str> = match is_mixed {
        true => found.pieces.iter().filter(|p| !inner(p)).map(String::as_str).collect(),
        false => HashSet::new(),
    };
    let mut pieces = Pieces::new(out);
    pieces.begin("[");
    let mut count = 0;
    for piece in &found.pieces {
        let (name, is_inner) = (found.name(piece), piece.ends_with(found.delimiter));
        if is_inner && leaves.contains(name) {
            continue;
        }
        count += 1;
        pieces.separate()?;
        let unfolds = is_inner || (is_mixed && nodes.contains(name));
        push_node(&mut pieces, found, piece, if unfolds { UNFOLDS } else { LEAF });
    }
    if found.has_wildcard && 1 < count {
        pieces.separate()?;
        push_node(&mut pieces, found, "*", if nodes.is_empty() { LEAF } else { UNFOLDS });
    }
    pieces.end("]")
}

fn push_node(pieces: &mut Pieces<'_>, found: &Found, piece: &str, kind: &str) {
    let name = found.name(piece);
    pieces.text("{\"id\":\"");
    push_escaped(&mut pieces.buffer, &found.head);
    // Escaped once, copied the second time.
    let start = pieces.buffer.len();
    push_escaped(&mut pieces.buffer, name);
    let end = pieces.buffer.len();
    push_escaped(&mut pieces.buffer, &piece[name.len()..]);
    pieces.text("\",\"text\":\"");
    pieces.buffer.extend_from_within(start..end);
    pieces.text(kind);
}

fn write_completer(out: &mut dyn Write, found: &Found) -> io::Result<()> {
    let mut pieces = Pieces::new(out);
    pieces.begin("{\"metrics\":[");
    let (inner, leaves): (Vec<&String>, Vec<&String>) =
        found.pieces.iter().partition(|piece| piece.ends_with(found.delimiter));
    for (list, end) in [(inner, ",\"is_leaf\":0}"), (leaves, ",\"is_leaf\":1}")] {
        for piece in list {
            pieces.separate()?;
            pieces.text("{\"path\":\"");
            push_escaped(&mut pieces.buffer, &found.head);
            push_escaped(&mut pieces.buffer, piece);
            pieces.text("\",\"name\":");
            pieces.string(found.name(piece));
            pieces.text(end);
        }
    }
    if found.has_wildcard && 1 < found.pieces.len() {
        pieces.separate()?;
        pieces.text("{\"name\":\"*\"}");
    }
    pieces.end("]}")
}

impl Found {
    /// A node's name without the delimiter behind it.
    fn name<'a>(&self, piece: &'a str) -> &'a str {
        piece.strip_suffix(self.delimiter).unwrap_or(piece)
    }
}
