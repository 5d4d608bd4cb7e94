//! `COPY`: what comes in, what goes out, and in which format.
//!
//! `COPY .. FROM` is read here, word by word: the options that PostgreSQL 17 added to it are not
//! known to the parser.

use crate::ddl_dml::prometheus::Shapes;
use crate::parse::query::Query;
use crate::parse::token_forms::word;
use crate::tables::metrics::tables::{Column, Table};
use crate::types::dialect::Postgres;
use crate::types::error::SqlError;
use crate::types::names::folded;
use datafusion::sql::sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, Ident,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Span, Token};

/// `COPY table FROM STDIN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyIn {
    /// The table.
    pub table: String,
    /// What comes.
    pub given: Given,
    /// Whether bad lines are left out and counted.
    pub skips_errors: bool,
    /// How many bad lines are too many, with [`CopyIn::skips_errors`].
    pub reject_limit: Option<u64>,
}

/// What comes of a `COPY .. FROM`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Given {
    /// Exposition text as it stands, whatever PostgreSQL would take it for.
    #[default]
    Lines,
    /// Rows of values.
    Rows(RowsIn),
    /// Rows of an ordinary table.
    Table(TableRows),
    /// A Parquet file with samples.
    Parquet(ParquetIn),
}

/// A Parquet file with samples that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParquetIn {
    /// Which of its columns are read, if somebody said so: others are passed over then.
    pub columns: Option<Vec<Column>>,
    /// What it is called on the server; without a name it comes from the client.
    pub file: Option<String>,
}

/// Rows of values that go into an ordinary table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// Whose the values are, in order; all columns for none.
    pub columns: Option<Vec<String>>,
    /// What a row looks like.
    pub format: RowFormat,
}

/// Rows of values, each value a column's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsIn {
    /// Whose the values are, in order.
    pub columns: Vec<Column>,
    /// What a row looks like.
    pub format: RowFormat,
}

/// What rows look like that come (<https://www.postgresql.org/docs/15/sql-copy.html>).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Lines in which backslashes escape.
    Text {
        /// Between two values.
        delimiter: u8,
        /// What stands for no value.
        null: String,
        /// Whether the first line has names.
        has_header: bool,
    },
    /// Lines in which quotes do.
    Csv {
        /// Between two values.
        delimiter: u8,
        /// What stands for no value, without quotes.
        null: String,
        /// Around values.
        quote: u8,
        /// Before a quote, or another of itself, within quotes.
        escape: u8,
        /// Whether the first line has names.
        has_header: bool,
    },
    /// Lengths and bytes.
    Binary,
}

/// `COPY (query) TO STDOUT`.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyOut {
    /// Whose rows.
    pub query: Query,
    /// As what, and where to.
    pub to: CopyTo,
}

/// What becomes of rows that are copied out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyTo {
    /// Lines for the client.
    Lines(CopyFormat),
    /// Lengths and bytes for the client.
    Binary,
    /// A Parquet file for the client.
    Parquet,
    /// A Parquet file on the server.
    File {
        /// What it is called there.
        name: String,
        /// Whether it takes the place of one that is called so.
        overwrites: bool,
    },
}

/// What the lines of a `COPY` look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFormat {
    /// Whether values that need it stand in quotes, as in CSV, or are escaped.
    pub is_csv: bool,
    /// Between two values.
    pub delimiter: char,
    /// What stands for no value.
    pub null: String,
    /// Whether the first line has the names.
    pub has_header: bool,
}

/// Reads the rest of `COPY .. TO STDOUT`.
///
/// # Errors
/// When an option is not known, or lines could not be read again.
pub fn copy_out(
    source: CopySource,
    mut options: Vec<CopyOption>,
    older: Vec<CopyLegacyOption>,
) -> Result<CopyOut, SqlError> {
    for option in older {
        options.extend(match option {
            CopyLegacyOption::Binary => vec![CopyOption::Format(Ident::new("binary"))],
            CopyLegacyOption::Csv(csv) => {
                let has_header = csv.iter().any(|one| matches!(one, CopyLegacyCsvOption::Header));
                vec![CopyOption::Format(Ident::new("csv")), CopyOption::Header(has_header)]
            }
            CopyLegacyOption::Delimiter(delimiter) => vec![CopyOption::Delimiter(delimiter)],
            CopyLegacyOption::Null(null) => vec![CopyOption::Null(null)],
            other => {
                return Err(SqlError::unsupported(format!("COPY: option {other} is not known")));
            }
        });
    }
    let query = match source {
        CopySource::Query(query) => query,
        CopySource::Table { table_name, columns } => {
            let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
            let columns = if columns.is_empty() { "*".to_string() } else { columns.join(", ") };
            let text = format!("SELECT {columns} FROM {table_name}");
            let dialect = Postgres::new(text.len());
            let mut parser = Parser::new(&dialect).try_with_sql(&text).map_err(invalid)?;
            parser.parse_query().map_err(invalid)?
        }
    };
    let is_csv = options.iter().any(|option| match option {
        CopyOption::Format(name) => name.value.eq_ignore_ascii_case("csv"),
        _ => false,
    });
    if is_binary(&options)? {
        return Ok(CopyOut { query: Query::of(query)?, to: CopyTo::Binary });
    }
    let mut format = CopyFormat {
        is_csv,
        delimiter: if is_csv { ',' } else { '\t' },
        null: if is_csv { String::new() } else { "\\N".to_string() },
        has_header: false,
    };
    for option in options {
        match option {
            CopyOption::Format(name)
                if ["csv", "text"].iter().any(|one| name.value.eq_ignore_ascii_case(one)) => {}
            CopyOption::Delimiter(delimiter) => format.delimiter = delimiter,
            CopyOption::Null(null) => format.null = null,
            CopyOption::Header(has_header) => format.has_header = has_header,
            other => {
                return Err(SqlError::unsupported(format!("COPY: option {other} is not known")));
            }
        }
    }
    let CopyFormat { is_csv, delimiter, null, .. } = &format;
    check_marks(*delimiter, null, is_csv.then_some('"'))?;
    Ok(CopyOut { query: Query::of(query)?, to: CopyTo::Lines(format) })
}

/// Whether rows go out in binary, of which nothing else may be said.
fn is_binary(options: &[CopyOption]) -> Result<bool, SqlError> {
    let says = |option: &CopyOption| match option {
        CopyOption::Format(name) => name.value.eq_ignore_ascii_case("binary"),
        _ => false,
    };
    if !options.iter().any(says) {
        return Ok(false);
    }
    match options.iter().find(|option| !says(option)) {
        None => Ok(true),
        Some(option) => {
            let text = option.to_string();
            let name = text.split_whitespace().next().unwrap_or_default();
            Err(invalid(format!("cannot specify {name} in BINARY mode")))
        }
    }
}

/// Whether lines with such marks can be read, by PostgreSQL's rules; CSV has a quote.
fn check_marks(delimiter: char, null: &str, quote: Option<char>) -> Result<(), SqlError> {
    let wrong = |words: &str| Err(SqlError::wrong_value(words));
    if !delimiter.is_ascii() {
        return wrong("COPY delimiter must be a single one-byte character");
    }
    if ['\n', '\r'].contains(&delimiter) {
        return wrong("COPY delimiter cannot be newline or carriage return");
    }
    let means_something =
        |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || "\\.".contains(one);
    if quote.is_none() && means_something(delimiter) {
        return wrong("COPY delimiter cannot be a small letter, a digit, a dot or a backslash");
    }
    if quote == Some(delimiter) {
        return wrong("COPY delimiter and quote must be different");
    }
    if null.contains(['\n', '\r']) {
        return wrong("COPY null representation cannot use newline or carriage return");
    }
    if null.contains(delimiter) {
        return wrong("COPY delimiter must not appear in the NULL specification");
    }
    if quote.is_some_and(|quote| null.contains(quote)) {
        return wrong("CSV quote character must not appear in the NULL specification");
    }
    Ok(())
}

fn invalid(words: impl std::fmt::Display) -> SqlError {
    SqlError::invalid(words.to_string())
}

/// The options of a `COPY .. FROM`, as far as they are said.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Names of those that were said.
    said: Vec<String>,
    format: Option<String>,
    delimiter: Option<String>,
    null: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
    has_header: bool,
    pub(crate) overwrites: bool,
    skips_errors: bool,
    reject_limit: Option<u64>,
}

impl CopyIn {
    /// The Parquet file on the server that it reads; none where the client sends what is copied.
    pub fn file(&self) -> Option<&str> {
        match &self.given {
            Given::Parquet(parquet) => parquet.file.as_deref(),
            _ => None,
        }
    }
}

impl Options {
    /// Takes an option, which may lack a value.
    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        let name = match name.to_ascii_lowercase().as_str() {
            "delimiters" => "delimiter".to_string(),
            other => other.to_string(),
        };
        if self.said.contains(&name) {
            return Err(invalid("conflicting or redundant options"));
        }
        let value = match value {
            Some(value) => value,
            None if ["header", "freeze", "overwrite"].contains(&name.as_str()) => "true",
            None => return Err(invalid(format!("{name} requires a parameter"))),
        };
        self.set_value(&name, value)?;
        self.said.push(name);
        Ok(())
    }

    fn set_value(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let plain = value.to_ascii_lowercase();
        match (name, plain.as_str()) {
            ("format", "text" | "csv" | "binary" | "parquet") => self.format = Some(plain),
            ("delimiter", _) => self.delimiter = Some(value.to_string()),
            ("null", _) => self.null = Some(value.to_string()),
            ("quote", _) => self.quote = Some(value.to_string()),
            ("escape", _) => self.escape = Some(value.to_string()),
            ("header", "true" | "on" | "1") => self.has_header = true,
            ("header", "false" | "off" | "0") => self.has_header = false,
            ("header", other) if other != "match" => {
                return Err(invalid("header requires a Boolean value or \"match\""));
            }
            ("overwrite", "true" | "on" | "1") => self.overwrites = true,
            ("overwrite", "false" | "off" | "0") => self.overwrites = false,
            ("encoding", "utf8" | "utf-8" | "unicode") | ("freeze" | "log_verbosity", _) => {}
            ("on_error", "stop") => self.skips_errors = false,
            ("on_error", "ignore") => self.skips_errors = true,
            ("reject_limit", limit) => {
                let limit = limit.parse().ok().filter(|limit| 0 < *limit);
                let words = "COPY: REJECT_LIMIT is a number from 1 on";
                self.reject_limit = Some(limit.ok_or_else(|| invalid(words))?);
            }
            (name, value) => {
                let words = format!("COPY: option \"{name} {value}\" is not known");
                return Err(SqlError::unsupported(words));
            }
        }
        Ok(())
    }

    /// Whether a Parquet file is meant, by its format or by its name where no format is said; checks
    /// what is said beside it. `may` are the options that go with it.
    pub(crate) fn is_parquet(&self, file: Option<&str>, may: &[&str]) -> Result<bool, SqlError> {
        let is_called_so = file.is_some_and(|name| name.to_ascii_lowercase().ends_with(".parquet"));
        let is_parquet = match self.format.as_deref() {
            Some(format) => format == "parquet",
            None => is_called_so,
        };
        if !is_parquet && file.is_some() {
            let words =
                "COPY knows Parquet files on the server, WITH (FORMAT parquet), and no others";
            let hint = "Others are the client's, as with psql's \\copy and FROM STDIN, TO STDOUT.";
            return Err(SqlError::unsupported(words).with_hint(hint));
        }
        let may = if is_parquet { may } else { return Ok(false) };
        match self.said.iter().find(|said| *said != "format" && !may.contains(&said.as_str())) {
            Some(name) => {
                let name = name.to_ascii_uppercase();
                Err(invalid(format!("cannot specify {name} in PARQUET mode")))
            }
            None => Ok(true),
        }
    }

    /// What a row looks like, if there can be such rows.
    fn row_format(&self) -> Result<RowFormat, SqlError> {
        self.check_format()?;
        let (delimiter, null) = (self.delimiter.as_deref(), self.null.clone());
        let has_header = self.has_header;
        Ok(match self.format.as_deref() {
            Some("binary") => RowFormat::Binary,
            Some("csv") => {
                let quote = one_byte("quote", self.quote.as_deref().unwrap_or("\""))?;
                let escape = match &self.escape {
                    Some(escape) => one_byte("escape", escape)?,
                    None => quote,
                };
                let delimiter = one_byte("delimiter", delimiter.unwrap_or(","))?;
                let null = null.unwrap_or_default();
                check_marks(char::from(delimiter), &null, Some(char::from(quote)))?;
                RowFormat::Csv { delimiter, null, quote, escape, has_header }
            }
            _ => {
                let delimiter = one_byte("delimiter", delimiter.unwrap_or("\t"))?;
                let null = null.unwrap_or_else(|| "\\N".to_string());
                check_marks(char::from(delimiter), &null, None)?;
                RowFormat::Text { delimiter, null, has_header }
            }
        })
    }

    /// Whether all that was said is said of such a format.
    fn check_format(&self) -> Result<(), SqlError> {
        let format = self.format.as_deref();
        let is_said = |name: &&str| self.said.iter().any(|said| said == name);
        if is_said(&"overwrite") {
            return Err(invalid("COPY: OVERWRITE is said of files that are written on the server"));
        }
        if format == Some("binary")
            && let Some(name) = ["delimiter", "null", "header"].iter().find(|name| is_said(name))
        {
            let name = name.to_ascii_uppercase();
            return Err(invalid(format!("cannot specify {name} in BINARY mode")));
        }
        if format != Some("csv")
            && let Some(name) = ["quote", "escape"].iter().find(|name| is_said(name))
        {
            let words = format!("COPY {name} available only in CSV mode");
            return Err(SqlError::unsupported(words));
        }
        Ok(())
    }

    /// What comes into a table whose columns are named, or are all of them.
    fn given(
        &self,
        table: &str,
        named: Option<Vec<String>>,
        file: Option<String>,
        shapes: Shapes<'_>,
    ) -> Result<Given, SqlError> {
        let is_parquet = self.is_parquet(file.as_deref(), &["on_error", "reject_limit"])?;
        let shape = shapes(table);
        let of_samples = shape.is_some();
        if is_parquet && !of_samples {
            let words = format!("Parquet is copied into tables of samples, {table} is none");
            return Err(SqlError::unsupported(words));
        }
        let columns = |names: Vec<String>| names.iter().map(|name| sample_column(name)).collect();
        if is_parquet {
            let columns = named.map(columns).transpose()?;
            return Ok(Given::Parquet(ParquetIn { columns, file }));
        }
        let format = self.row_format()?;
        if !of_samples {
            return Ok(Given::Table(TableRows { columns: named, format }));
        }
        let named: Option<Vec<Column>> = named.map(columns).transpose()?;
        let is_text = self.format.as_deref().is_none_or(|format| format == "text");
        let is_line = named.as_ref().is_none_or(|named| *named == [Column::Sample]);
        // As tools write lines, who may say how they would be cut into values.
        if is_text && is_line {
            return Ok(Given::Lines);
        }
        let columns = named.unwrap_or_else(|| columns_of(shape));
        let has_parts = columns.contains(&Column::Name) && columns.contains(&Column::Value);
        if columns != [Column::Sample] && !has_parts {
            let words = "a sample is copied as a line, COPY metrics (sample), or by its parts, COPY \
                         metrics (time, name, value, labels)";
            return Err(SqlError::unsupported(words));
        }
        Ok(Given::Rows(RowsIn { columns, format }))
    }
}

/// A column of samples.
fn sample_column(name: &str) -> Result<Column, SqlError> {
    let found = Column::OF_SAMPLES.into_iter().find(|one| one.is_named(name));
    found.ok_or_else(|| SqlError::new("42703", format!("column \"{name}\" does not exist")))
}

fn one_byte(name: &str, text: &str) -> Result<u8, SqlError> {
    match text.as_bytes() {
        [b'\n' | b'\r'] => {
            let words = format!("COPY {name} cannot be newline or carriage return");
            Err(SqlError::wrong_value(words))
        }
        [one] => Ok(*one),
        _ => Err(SqlError::wrong_value(format!("COPY {name} must be a single one-byte character"))),
    }
}

fn columns_of(shape: Option<&Table>) -> Vec<Column> {
    shape.map_or_else(
        || Column::OF_SAMPLES.to_vec(),
        |table| table.columns.iter().map(|(column, _)| *column).collect(),
    )
}

/// Reads what stands behind `COPY` when it is `table .. FROM STDIN ..`; none when it copies elsewhere.
/// `words` are without spaces.
///
/// # Errors
/// When it makes no sense.
pub fn copy_in(words: &[&Token], shapes: Shapes<'_>) -> Result<Option<CopyIn>, SqlError> {
    Words { words, at: 0 }.copy_in(shapes)
}

/// The words of a statement, read from left to right.
pub(crate) struct Words<'t> {
    pub(crate) words: &'t [&'t Token],
    pub(crate) at: usize,
}

impl<'t> Words<'t> {
    fn peek(&self) -> Option<&'t str> {
        word(self.words.get(self.at))
    }

    fn word(&mut self) -> Option<&'t str> {
        let found = self.peek()?;
        self.at += 1;
        Some(found)
    }

    fn name(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.words.get(self.at) else { return None };
        self.at += 1;
        Some(folded(&word.clone().into_ident(Span::empty())))
    }

    fn eat(&mut self, token: &Token) -> bool {
        let is_next = self.words.get(self.at) == Some(&token);
        self.at += usize::from(is_next);
        is_next
    }

    fn eat_word(&mut self, wanted: &str) -> bool {
        let is_next = self.peek().is_some_and(|next| next.eq_ignore_ascii_case(wanted));
        self.at += usize::from(is_next);
        is_next
    }

    /// `table [(columns)] FROM STDIN [[WITH] (option value, ...)]`.
    fn copy_in(mut self, shapes: Shapes<'_>) -> Result<Option<CopyIn>, SqlError> {
        let Some(mut table) = self.name() else { return Ok(None) };
        if self.eat(&Token::Period) {
            if table != "public" {
                let message = format!("schema \"{table}\" does not exist");
                return Err(SqlError::new("3F000", message));
            }
            table = self.name().ok_or_else(|| invalid("COPY needs a table's name"))?;
        }
        let columns = self.columns()?;
        if !self.eat_word("from") {
            return Ok(None);
        }
        let file = self.file("stdin")?;
        let mut options = Options::default();
        self.options(&mut options)?;
        let given = options.given(&table, columns, file, shapes)?;
        let Options { skips_errors, reject_limit, .. } = options;
        Ok(Some(CopyIn { table, given, skips_errors, reject_limit }))
    }

    /// The name of a file on the server; none where the client's stream stands in its place.
    pub(crate) fn file(&mut self, stream: &str) -> Result<Option<String>, SqlError> {
        if let Some(Token::SingleQuotedString(name) | Token::EscapedStringLiteral(name)) =
            self.words.get(self.at)
        {
            self.at += 1;
            return Ok(Some(name.clone()));
        }
        if self.eat_word(stream) {
            return Ok(None);
        }
        let stream = stream.to_ascii_uppercase();
        Err(SqlError::unsupported(format!("COPY knows {stream} and names of files")))
    }

    fn columns(&mut self) -> Result<Option<Vec<String>>, SqlError> {
        if !self.eat(&Token::LParen) {
            return Ok(None);
        }
        let mut all = Vec::new();
        loop {
            let name = self.name();
            let name = name.ok_or_else(|| invalid("COPY: the list of columns does not end"))?;
            if all.contains(&name) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(SqlError::new("42701", message));
            }
            all.push(name);
            if self.eat(&Token::RParen) {
                return Ok(Some(all));
            }
            if !self.eat(&Token::Comma) {
                return Err(invalid("COPY: columns stand apart by commas"));
            }
        }
    }

    pub(crate) fn options(&mut self, options: &mut Options) -> Result<(), SqlError> {
        self.eat_word("with");
        match self.eat(&Token::LParen) {
            true => self.options_in_parentheses(options)?,
            false => self.older_options(options)?,
        }
        match self.words.get(self.at) {
            Some(rest) => Err(invalid(format!("COPY: syntax error at or near \"{rest}\""))),
            None => Ok(()),
        }
    }

    fn options_in_parentheses(&mut self, options: &mut Options) -> Result<(), SqlError> {
        loop {
            let name = self.word().ok_or_else(|| invalid("COPY: an option has no name"))?;
            options.set(name, self.word())?;
            if self.eat(&Token::RParen) {
                return Ok(());
            }
            if !self.eat(&Token::Comma) {
                return Err(invalid("COPY: options stand apart by commas"));
            }
        }
    }

    /// As they were written before PostgreSQL 9.0, and are by older clients still.
    fn older_options(&mut self, options: &mut Options) -> Result<(), SqlError> {
        loop {
            let Some(name) = self.peek() else { return Ok(()) };
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "csv" | "binary" => options.set("format", Some(&name))?,
                "header" => options.set("header", None)?,
                "delimiter" | "delimiters" | "null" | "quote" | "escape" => {
                    self.at += 1;
                    self.eat_word("as");
                    let value =
                        self.peek().ok_or_else(|| invalid("COPY: an option has no value"))?;
                    options.set(&name, Some(value))?;
                }
                _ => return Ok(()),
            }
            self.at += 1;
        }
    }
}
