//! PostgreSQL's dialect as the parser has it, but for what it reads twice.
//!
//! Where a parser tries one reading and then another, statements whose parts stand in each other take
//! time that doubles with each step: [`check_nesting`] bounds the steps that are known, and [`Postgres`]
//! counts the expressions that are read, those that are read again too.

use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use std::any::TypeId;
use std::cell::Cell;

/// Tokens with Promscale's operators, which the tokenizer takes for two, or for others.
pub fn with_matchers(tokens: Vec<Token>) -> Vec<Token> {
    let mut made: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if keyword(&token) == Some(Keyword::FROM) && begins_trim(&made) {
            continue;
        }
        let joined = match (made.last(), &token) {
            (Some(Token::Neq), Token::Eq) => Some("!=="),
            (Some(Token::Neq), Token::Tilde) => Some("!=~"),
            (Some(Token::CustomBinaryOperator(equal)), Token::Tilde) if equal == "==" => {
                Some("==~")
            }
            _ => None,
        };
        match (joined, token) {
            (Some(operator), _) => {
                made.pop();
                made.push(Token::CustomBinaryOperator(operator.to_string()));
            }
            (None, Token::DoubleEq) => made.push(Token::CustomBinaryOperator("==".to_string())),
            (None, other) => made.push(other),
        }
    }
    made
}

/// Whether what comes next is all that `trim(` takes off, as in `trim(leading from x)`: the parser has no FROM there.
fn begins_trim(tokens: &[Token]) -> bool {
    let mut words = tokens.iter().rev().filter(|one| !matches!(one, Token::Whitespace(_)));
    let last = words.next();
    let is_side = |token: &Token| {
        matches!(keyword(token), Some(Keyword::LEADING | Keyword::TRAILING | Keyword::BOTH))
    };
    let open = if last.is_some_and(is_side) { words.next() } else { last };
    open == Some(&Token::LParen) && words.next().and_then(keyword) == Some(Keyword::TRIM)
}

/// How often parts that are read twice may stand in each other.
const READ_TWICE_MAX: usize = 8;
/// PostgreSQL's own bound on the dimensions of an array.
const DIMENSIONS_MAX: usize = 6;

/// PostgreSQL's dialect. Arguments are named by names alone, `f(a => 1)`, as PostgreSQL has it: the
/// parser's own would let expressions name them, and read each argument twice to find out.
#[derive(Debug)]
pub struct Postgres {
    /// Expressions that may still be read.
    left: Cell<usize>,
}

/// Expressions that are read of any statement, and of each of its words.
const READINGS: usize = 10_000;
const READINGS_OF_A_WORD: usize = 100;

impl Postgres {
    /// For a statement of so many words.
    pub fn new(words: usize) -> Postgres {
        Postgres { left: Cell::new(READINGS + READINGS_OF_A_WORD * words) }
    }

    /// One more expression begins, or goes on. Of all errors the parser tries nothing else after this one
    /// alone.
    fn one_more(&self) -> Result<(), ParserError> {
        self.more(1)
    }

    /// As many as an expression is made of, about: it is to stand there twice, and so is what is within it.
    fn as_many(&self, expr: &Expr) -> Result<(), ParserError> {
        self.more(expr.to_string().len())
    }

    fn more(&self, count: usize) -> Result<(), ParserError> {
        let left = self.left.get().checked_sub(count);
        self.left.set(left.ok_or(ParserError::RecursionLimitExceeded)?);
        Ok(())
    }
}

const OF_THE_PARSER: PostgreSqlDialect = PostgreSqlDialect {};

macro_rules! as_the_parser_has_it {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $returned:ty;)*) => {
        $(fn $name(&self $(, $argument: $kind)*) -> $returned {
            OF_THE_PARSER.$name($($argument),*)
        })*
    };
}

impl Dialect for Postgres {
    fn dialect(&self) -> TypeId {
        OF_THE_PARSER.dialect()
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    /// What is no name is not read again as the name of a function: nothing is, in the end.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        self.left.get() == 0
            || keyword == Keyword::NOT
            || OF_THE_PARSER.is_reserved_for_identifier(keyword)
    }

    /// The parser asks for it wherever an expression may begin.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        match self.one_more().and_then(|()| check_beginning(parser)) {
            Ok(()) => OF_THE_PARSER.parse_prefix(parser),
            Err(error) => Some(Err(error)),
        }
    }

    /// `x::text COLLATE "C"`, and `x BETWEEN SYMMETRIC a AND b`, which is so of both orders.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        _: u8,
    ) -> Option<Result<Expr, ParserError>> {
        use Keyword::{ASYMMETRIC, BETWEEN, COLLATE, NOT, SYMMETRIC};
        // The parser knows it behind a value, not behind a cast.
        if parser.parse_keyword(COLLATE) {
            let read = parser.parse_object_name(false);
            let of = |collation| Expr::Collate { expr: Box::new(expr.clone()), collation };
            return Some(read.map(of));
        }
        if is_isnull(parser) {
            parser.next_token();
            return Some(Ok(Expr::IsNull(Box::new(expr.clone()))));
        }
        let (negated, is_symmetric) = if parser.parse_keywords(&[BETWEEN, SYMMETRIC]) {
            (false, true)
        } else if parser.parse_keywords(&[NOT, BETWEEN, SYMMETRIC]) {
            (true, true)
        } else if parser.parse_keywords(&[BETWEEN, ASYMMETRIC]) {
            (false, false)
        } else if parser.parse_keywords(&[NOT, BETWEEN, ASYMMETRIC]) {
            (true, false)
        } else {
            return None;
        };
        let read = parser.parse_between(expr.clone(), negated);
        Some(read.and_then(|between| match is_symmetric {
            true => self.as_many(&between).map(|()| in_both_orders(between)),
            false => Ok(between),
        }))
    }

    /// PostgreSQL takes these words for no name of a column without AS.
    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        !matches!(keyword, Keyword::ON | Keyword::RETURNING | Keyword::WITHIN | Keyword::OVER)
            && OF_THE_PARSER.is_column_alias(keyword, parser)
    }

    /// The parser asks for it wherever an expression may go on.
    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match self.one_more() {
            Ok(()) if is_isnull(parser) => Some(Ok(self.prec_value(Precedence::Is))),
            Ok(()) => OF_THE_PARSER.get_next_precedence(parser),
            Err(error) => Some(Err(error)),
        }
    }

    as_the_parser_has_it! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_delimited_identifier_start(character: char) -> bool;
        is_identifier_start(character: char) -> bool;
        is_identifier_part(character: char) -> bool;
        supports_unicode_string_literal() -> bool;
        is_custom_operator_part(character: char) -> bool;
        supports_filter_during_aggregation() -> bool;
        supports_group_by_expr() -> bool;
        prec_value(precedence: Precedence) -> u8;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_listen_notify() -> bool;
        supports_factorial_operator() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_comment_on() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_colon_operator() -> bool;
        supports_empty_projections() -> bool;
        supports_nested_comments() -> bool;
        supports_string_escape_constant() -> bool;
        supports_numeric_literal_underscores() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_geometric_types() -> bool;
        supports_set_names() -> bool;
        supports_alter_column_type_using() -> bool;
        supports_notnull_operator() -> bool;
        supports_interval_options() -> bool;
        supports_insert_table_alias() -> bool;
        supports_create_table_like_parenthesized() -> bool;
        supports_select_wildcard_with_alias() -> bool;
        supports_comma_separated_trim() -> bool;
        supports_xml_expressions() -> bool;
        supports_comment_optimizer_hint() -> bool;
    }
}

/// Returns true before `ISNULL`, which the parser does not know.
fn is_isnull(parser: &Parser<'_>) -> bool {
    matches!(&parser.peek_token_ref().token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("isnull"))
}

/// Refuses words of PostgreSQL's grammar where an expression begins: the parser takes them for names.
fn check_beginning(parser: &Parser<'_>) -> Result<(), ParserError> {
    use Keyword::{
        AND, AS, ELSE, EXCEPT, FETCH, FROM, GROUP, HAVING, IN, INTERSECT, INTO, LIMIT, ON, OR,
        ORDER, RETURNING, THEN, UNION, USING, WHEN, WHERE, WINDOW,
    };
    let next = parser.peek_token();
    let is_reserved = matches!(
        keyword(&next.token),
        Some(
            AND | AS
                | ELSE
                | EXCEPT
                | FETCH
                | FROM
                | GROUP
                | HAVING
                | IN
                | INTERSECT
                | INTO
                | LIMIT
                | ON
                | OR
                | ORDER
                | RETURNING
                | THEN
                | UNION
                | USING
                | WHEN
                | WHERE
                | WINDOW
        )
    );
    match is_reserved {
        true => {
            let words = format!("syntax error at or near \"{}\"", next.token);
            Err(ParserError::ParserError(words))
        }
        false => Ok(()),
    }
}

/// `x BETWEEN a AND b OR x BETWEEN b AND a`.
fn in_both_orders(between: Expr) -> Expr {
    let Expr::Between { expr, negated, low, high } = between else { return between };
    let swapped =
        Expr::Between { expr: expr.clone(), negated, low: high.clone(), high: low.clone() };
    let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
    let left = Box::new(Expr::Between { expr, negated, low, high });
    Expr::Nested(Box::new(Expr::BinaryOp { left, op, right: Box::new(swapped) }))
}

/// Words that begin an expression of their own kind: when that cannot be read they are taken for
/// names of functions.
const READ_TWICE: &[Keyword] = &[
    Keyword::ARRAY,
    Keyword::CASE,
    Keyword::CAST,
    Keyword::CEIL,
    Keyword::CONVERT,
    Keyword::EXISTS,
    Keyword::EXTRACT,
    Keyword::FLOOR,
    Keyword::MAP,
    Keyword::MATCH,
    Keyword::OVERLAY,
    Keyword::POSITION,
    Keyword::PRIOR,
    Keyword::SAFE_CAST,
    Keyword::STRUCT,
    Keyword::SUBSTR,
    Keyword::SUBSTRING,
    Keyword::TRIM,
    Keyword::TRY_CAST,
    Keyword::TRY_CONVERT,
];

/// What is open in a statement.
struct Open {
    is_read_twice: bool,
    is_bracket: bool,
    /// Whether tables are named here, and not columns.
    names_tables: bool,
}

/// Whether parts of a statement that the parser reads twice stand in each other too often; its words
/// are without spaces.
///
/// # Errors
/// When they do.
pub fn check_nesting(words: &[&Token]) -> Result<(), SqlError> {
    let (mut all, mut names_tables, mut intervals): (Vec<Open>, _, _) = (Vec::new(), false, 0);
    for (at, token) in words.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| words[before]);
        let is_bracket = **token == Token::LBracket;
        match token {
            Token::LParen | Token::LBracket => {
                let begins_tables = names_tables && before.is_some_and(begins_tables);
                let is_read_twice =
                    before.and_then(keyword).is_some_and(|word| READ_TWICE.contains(&word))
                        || begins_tables
                            && words.get(at + 1).is_some_and(|next| **next == Token::LParen);
                all.push(Open { is_read_twice, is_bracket, names_tables });
                names_tables = begins_tables;
            }
            Token::RParen | Token::RBracket => {
                names_tables = all.pop().is_some_and(|open| open.names_tables);
            }
            other => match keyword(other) {
                Some(Keyword::FROM | Keyword::JOIN | Keyword::USING) => names_tables = true,
                Some(
                    Keyword::SELECT
                    | Keyword::WHERE
                    | Keyword::ON
                    | Keyword::GROUP
                    | Keyword::ORDER
                    | Keyword::HAVING,
                ) => names_tables = false,
                _ => {}
            },
        }
        intervals = match keyword(token) {
            Some(Keyword::INTERVAL) => intervals + 1,
            _ if **token == Token::LParen => intervals,
            _ => 0,
        };
        let twice = all.iter().filter(|open| open.is_read_twice).count() + intervals;
        let dimensions = all.iter().rev().take_while(|open| open.is_bracket).count();
        check(is_bracket, twice, dimensions)?;
    }
    Ok(())
}

fn check(is_bracket: bool, twice: usize, dimensions: usize) -> Result<(), SqlError> {
    if READ_TWICE_MAX < twice {
        let message = format!(
            "calls of CAST and its kin, or joins in parentheses, more than {READ_TWICE_MAX} in each other"
        );
        return Err(SqlError::new("54001", message));
    }
    if is_bracket && DIMENSIONS_MAX < dimensions {
        let words = format!(
            "number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
        );
        return Err(SqlError::limit(words));
    }
    Ok(())
}

fn begins_tables(token: &Token) -> bool {
    matches!(token, Token::LParen | Token::Comma)
        || matches!(keyword(token), Some(Keyword::FROM | Keyword::JOIN | Keyword::LATERAL))
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}
