//! TimescaleDB's options of tables, which the parser does not know: `CREATE TABLE .. WITH (tsdb.hypertable, ..)` and
//! `ALTER TABLE .. SET (timescaledb.compress, ..)`.

use crate::tables::hypertables::declare::Asking;
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::tokenizer::Token;

/// What such options are called before the point.
const SPACES: &[&str] = &["tsdb", "timescaledb"];

/// Options, and where they stand: the first parenthesis, and what is behind the last.
pub struct Options {
    all: Vec<(String, Option<String>)>,
    /// Among the words of the statement.
    pub behind: usize,
}

impl Options {
    /// Reads them from a parenthesis on; none where they are others.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn of(words: &[&Token], open: usize) -> Result<Option<Options>, SqlError> {
        let is_own = |at: usize| {
            let space = text(words.get(at));
            space.is_some_and(|one| SPACES.contains(&one.to_ascii_lowercase().as_str()))
                && words.get(at + 1) == Some(&&Token::Period)
        };
        if words.get(open) != Some(&&Token::LParen) || !is_own(open + 1) {
            return Ok(None);
        }
        let (mut all, mut at) = (Vec::new(), open + 1);
        loop {
            let Some(name) = text(words.get(at + 2)).filter(|_| is_own(at)) else {
                let hint = "Options are tsdb.name, or tsdb.name = 'value'.";
                return Err(
                    SqlError::new("42601", "an option of TimescaleDB is missing").with_hint(hint)
                );
            };
            at += 3;
            let mut value = None;
            if words.get(at) == Some(&&Token::Eq) {
                value = text(words.get(at + 1)).map(str::to_string);
                at += 2;
            }
            all.push((name.to_ascii_lowercase(), value));
            match words.get(at) {
                Some(Token::Comma) => at += 1,
                Some(Token::RParen) => return Ok(Some(Options { all, behind: at + 1 })),
                _ => return Err(SqlError::new("42601", "options of TimescaleDB end with \")\"")),
            }
        }
    }

    fn get(&self, names: &[&str]) -> Option<Option<&str>> {
        let found = self.all.iter().find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| value.as_deref())
    }

    /// Whether they are those of a continuous aggregate.
    pub fn is_continuous(&self) -> bool {
        self.get(&["continuous"]).is_some()
    }

    /// The columns that rows are told apart by, if they are said.
    pub fn segment_by(&self) -> Option<Vec<String>> {
        let said = self.get(&["segmentby", "compress_segmentby"])??;
        let name =
            |one: &str| match one.trim().strip_prefix('"').and_then(|one| one.strip_suffix('"')) {
                Some(quoted) => quoted.replace("\"\"", "\""),
                None => one.trim().to_ascii_lowercase(),
            };
        Some(said.split(',').map(name).filter(|one| !one.is_empty()).collect())
    }

    /// The hypertable that they make of a table, if they do.
    pub fn hypertable(&self, table: &str) -> Option<Asking> {
        let is_one = self.get(&["hypertable"])?;
        let is_one = is_one.is_none_or(|value| !["false", "off", "0"].contains(&value));
        is_one.then(|| Asking {
            table: table.to_string(),
            time: self.get(&["partition_column"]).flatten().map(str::to_string),
            segment_by: self.segment_by(),
            ..Asking::default()
        })
    }
}

fn text<'t>(token: Option<&&'t Token>) -> Option<&'t str> {
    match token? {
        Token::Word(word) => Some(&word.value),
        Token::SingleQuotedString(text) | Token::Number(text, _) => Some(text),
        _ => None,
    }
}

/// The statement without its options, and the options, of a `CREATE TABLE` that has them at its end. `words` are
/// `tokens` without spaces.
///
/// # Errors
/// When they make no sense.
pub fn created(
    tokens: &[Token],
    words: &[&Token],
) -> Result<Option<(Vec<Token>, Options)>, SqlError> {
    let is =
        |at: usize, one: &str| text(words.get(at)).is_some_and(|w| w.eq_ignore_ascii_case(one));
    if !is(0, "create") {
        return Ok(None);
    }
    for at in 1..words.len() {
        let Some(options) =
            is(at, "with").then(|| Options::of(words, at + 1)).transpose()?.flatten()
        else {
            continue;
        };
        let is_rest = |(nth, _): &(usize, &Token)| !(at..options.behind).contains(nth);
        let said = tokens.iter().filter(|one| !matches!(one, Token::Whitespace(_)));
        // Spaces mean nothing to the parser.
        let rest = said.enumerate().filter(is_rest).map(|(_, token)| token.clone()).collect();
        return Ok(Some((rest, options)));
    }
    Ok(None)
}
