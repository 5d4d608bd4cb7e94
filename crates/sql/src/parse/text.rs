//! Texts of statements: tokens, limits, and the syntax tree of one statement.

use crate::parse::query::Query;
use crate::parse::token_forms::{
    array_types, capital_type, join_literals, name_values_of_settings, plain_forms,
    split_operators, values_as_queries, word,
};
use crate::types::dialect::{Postgres, check_nesting, with_matchers};
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Bytes of a text with statements.
pub const TEXT_SIZE_MAX: usize = 4 << 20;

/// Words and signs of a statement, but for rows of values, commas and spaces.
pub(crate) const WORDS_MAX: usize = 20_000;

/// Steps that the parser takes into a statement; parentheses take two each.
pub(crate) const STEPS_MAX: usize = 200;

/// Tables joined, and queries united, in a statement.
pub(crate) const JOINS_MAX: usize = 200;

/// Bytes of a text that is read and planned where it came in: less than a millisecond's work.
pub(crate) const SHORT_SIZE_MAX: usize = 1 << 10;

pub(crate) fn invalid(error: impl std::fmt::Display) -> SqlError {
    SqlError::from_parser(&error.to_string())
}

pub(crate) fn unreadable(error: ParserError) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => {
            let message = "stack depth limit exceeded: parts stand too deep in each other";
            SqlError::new("54001", message)
        }
        other => invalid(other),
    }
}

/// Statements are trees, and what looks at trees calls itself: the stack has an end.
pub(crate) fn check_size(words: &[&Token]) -> Result<(), SqlError> {
    let is_value = |token: &&&Token| match token {
        Token::Word(word) => word.keyword == Keyword::NULL,
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => true,
        Token::Comma => true,
        _ => false,
    };
    let joins = |token: &&&Token| match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::JOIN | Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT
        ),
        _ => false,
    };
    // A row of values among others: its parentheses, of which the first one is behind a comma.
    let rows = words.windows(2).filter(|two| *two[0] == Token::Comma && *two[1] == Token::LParen);
    let count = words.len() - words.iter().filter(is_value).count();
    let count = count.saturating_sub(2 * rows.count());
    let tables = words.iter().filter(joins).count();
    if WORDS_MAX < count || JOINS_MAX < tables {
        let message = format!(
            "a statement of {count} words and {tables} joins and unions; {WORDS_MAX} and \
             {JOINS_MAX} are the most"
        );
        return Err(SqlError::new("54001", message));
    }
    Ok(())
}

/// Refuses `EXCLUDE` in the frame of a window, which the parser does not know.
pub(crate) fn check_frames(words: &[&Token]) -> Result<(), SqlError> {
    let is =
        |at: usize, one: &str| word(words.get(at)).is_some_and(|w| w.eq_ignore_ascii_case(one));
    let is_frame = |at: usize| {
        is(at, "exclude")
            && (is(at + 1, "ties")
                || is(at + 1, "group")
                || is(at + 1, "current") && is(at + 2, "row")
                || is(at + 1, "no") && is(at + 2, "others"))
    };
    match (0..words.len()).any(is_frame) {
        true => Err(SqlError::unsupported("EXCLUDE in the frame of a window is not known here")),
        false => Ok(()),
    }
}

/// Refuses a query of too many values before it is read: a row of `VALUES` takes a kilobyte then. Plain values of an
/// `INSERT` have no limit.
pub(crate) fn check_values(words: &[&Token]) -> Result<(), SqlError> {
    let is_value = |token: &&&Token| match token {
        Token::Word(word) => {
            matches!(word.keyword, Keyword::NULL | Keyword::TRUE | Keyword::FALSE)
        }
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::Placeholder(_) => true,
        _ => false,
    };
    let kind = words.iter().find_map(|token| match token {
        Token::Word(word) => match word.keyword {
            Keyword::SELECT | Keyword::VALUES | Keyword::INSERT | Keyword::WITH => {
                Some(word.keyword)
            }
            _ => None,
        },
        _ => None,
    });
    match kind {
        Some(Keyword::INSERT) => Ok(()),
        _ => check_written(words.iter().filter(is_value).count() as u64),
    }
}

/// Refuses a statement that is written with too many values and expressions.
///
/// # Errors
/// `54001`.
pub fn check_written(count: u64) -> Result<(), SqlError> {
    if count <= WRITTEN_NODES_MAX {
        return Ok(());
    }
    let words = format!(
        "statement too complex: it has {count} values and expressions; {WRITTEN_NODES_MAX} are the most"
    );
    Err(SqlError::new("54001", words).with_hint(WRITTEN_HINT))
}

/// Expression nodes of a statement as it is written: values of `VALUES`, of lists and of arrays. The planner takes
/// some three kilobytes and 30 microseconds for each, and nothing interrupts it.
pub(crate) const WRITTEN_NODES_MAX: u64 = 100_000;

pub(crate) const WRITTEN_HINT: &str =
    "Store the values in a table: with COPY, or with INSERT of plain values.";

/// Cuts a text into the tokens of its statements.
///
/// # Errors
/// When the text is too long, is not UTF-8 or has no tokens of SQL.
pub(crate) fn tokens_of(text: &str) -> Result<Vec<Vec<Token>>, SqlError> {
    if TEXT_SIZE_MAX < text.len() {
        let words = format!("a statement has at most {TEXT_SIZE_MAX} bytes: use COPY for data");
        return Err(SqlError::limit(words));
    }
    if text.contains(char::REPLACEMENT_CHARACTER) {
        let words = "invalid byte sequence for encoding \"UTF8\", or the character U+FFFD, which \
                     stands for one here";
        return Err(SqlError::not_text(words));
    }
    let tokens = Tokenizer::new(&Postgres::new(0), text).tokenize().map_err(invalid)?;
    let tokens = array_types(split_operators(plain_forms(join_literals(tokens)?)));
    let mut tokens = values_as_queries(with_matchers(tokens));
    name_values_of_settings(&mut tokens);
    let pieces = tokens.split(|token| *token == Token::SemiColon);
    let is_said = |piece: &&[Token]| piece.iter().any(|one| !matches!(one, Token::Whitespace(_)));
    Ok(pieces.filter(is_said).map(<[Token]>::to_vec).collect())
}

/// Refuses statements that are too large or nested too deep, before they are parsed.
///
/// # Errors
/// `54001`; `0A000` for frames that the parser does not know.
pub(crate) fn check_words(words: &[&Token]) -> Result<(), SqlError> {
    check_size(words)?;
    check_values(words)?;
    check_nesting(words)?;
    check_frames(words)
}

/// Parses one statement with `count` words.
///
/// # Errors
/// When the parser does not know it.
pub(crate) fn read_statement(tokens: &[Token], count: usize) -> Result<Statement, SqlError> {
    let dialect = Postgres::new(count);
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(STEPS_MAX).with_tokens(tokens.to_vec());
    let statement = parser.parse_statement().map_err(unreadable)?;
    if let Some(name) = capital_type(tokens) {
        return Err(SqlError::new("42704", format!("type \"{name}\" does not exist")));
    }
    if matches!(statement, Statement::CreateExtension(_)) {
        // Here before SCHEMA and VERSION alone, in PostgreSQL behind them.
        let _ = parser.parse_keyword(Keyword::CASCADE);
    }
    parser.expect_token(&Token::EOF).map_err(unreadable)?;
    Ok(statement)
}

/// Parses a text that is one query, such as the stored text of a view.
///
/// # Errors
/// When it is none, and when it cannot be rewritten.
pub(crate) fn parse_query(text: &str) -> Result<Query, SqlError> {
    let pieces = tokens_of(text)?;
    let Some(tokens) = pieces.last() else {
        return Err(SqlError::unexpected("no query in a text that is one"));
    };
    let words: Vec<&Token> =
        tokens.iter().filter(|one| !matches!(one, Token::Whitespace(_))).collect();
    check_words(&words)?;
    match read_statement(tokens, words.len())? {
        statement @ (Statement::Query(_) | Statement::Explain { .. }) => Query::new(statement),
        _ => Err(SqlError::unexpected("a query that is none")),
    }
}
