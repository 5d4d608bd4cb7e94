//! Forms of statements that the parser does not know, found in the tokens: `name 'text'` of a type that there is
//! not, and `VALUES` where a query stands in an expression.

use crate::types::error::{SqlError, is_postgres_type};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Whitespace, Word};

fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Whether an expression begins behind a token.
fn begins_expression(token: &Token) -> bool {
    use Keyword::{AND, BETWEEN, CASE, ELSE, HAVING, ON, OR, SELECT, THEN, WHEN, WHERE};
    match token {
        Token::LParen
        | Token::Comma
        | Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::Eq
        | Token::Neq
        | Token::Lt
        | Token::Gt
        | Token::LtEq
        | Token::GtEq
        | Token::StringConcat => true,
        other => matches!(
            keyword(other),
            AND | BETWEEN | CASE | ELSE | HAVING | ON | OR | SELECT | THEN | WHEN | WHERE
        ),
    }
}

/// The first type that there is not before a text between quotes, and the statement without the names of such types.
pub fn unknown_type(tokens: &[Token]) -> Option<(String, Vec<Token>)> {
    use Keyword::{DELETE, INSERT, SELECT, UPDATE, VALUES, WITH};
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !is_space(&tokens[*at])).collect();
    let first = words.first().map(|at| keyword(&tokens[*at]))?;
    if !matches!(first, SELECT | WITH | INSERT | UPDATE | DELETE | VALUES) {
        return None;
    }
    let mut unknown: Vec<(usize, &Word)> = Vec::new();
    for three in words.windows(3) {
        let [before, name, text] = [&tokens[three[0]], &tokens[three[1]], &tokens[three[2]]];
        let is_text = matches!(text, Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_));
        if let Token::Word(word) = name
            && is_text
            && begins_expression(before)
            && word.keyword == Keyword::NoKeyword
            && !is_postgres_type(&word.value)
        {
            unknown.push((three[1], word));
        }
    }
    let (_, first) = *unknown.first()?;
    let is_kept = |(at, _): &(usize, &Token)| unknown.iter().all(|(one, _)| one != at);
    let rest = tokens.iter().enumerate().filter(is_kept).map(|(_, token)| token.clone());
    let name = match first.quote_style {
        Some(_) => first.value.clone(),
        None => first.value.to_lowercase(),
    };
    Some((name, rest.collect()))
}

/// The first type in quotes behind `::` whose name has capital letters: no type of PostgreSQL has, and the parser passes
/// over the quotes.
pub fn capital_type(tokens: &[Token]) -> Option<String> {
    let words: Vec<&Token> = tokens.iter().filter(|token| !is_space(token)).collect();
    words.windows(2).find_map(|two| match (two[0], two[1]) {
        (Token::DoubleColon, Token::Word(word)) if word.quote_style == Some('"') => {
            let is_capital = word.value.bytes().any(|one| one.is_ascii_uppercase());
            is_capital.then(|| word.value.clone())
        }
        _ => None,
    })
}

/// Joins string literals that a line break separates, as the SQL standard has it.
///
/// # Errors
/// 42601 when two literals follow each other on a line.
pub fn join_literals(tokens: Vec<Token>) -> Result<Vec<Token>, SqlError> {
    let is_break = |token: &Token| {
        matches!(
            token,
            Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. })
        )
    };
    let mut made: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in tokens {
        // Only a literal looks back: a run of spaces is passed over once.
        if !matches!(token, Token::SingleQuotedString(_)) {
            made.push(token);
            continue;
        }
        let end = made.iter().rposition(|one| !is_space(one));
        let literal = end.and_then(|end| made.get_mut(end));
        let (
            Token::SingleQuotedString(next),
            Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)),
            Some(end),
        ) = (&token, &literal, end)
        else {
            made.push(token);
            continue;
        };
        let is_escaped = matches!(literal, Some(Token::EscapedStringLiteral(_)));
        if let Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) = literal {
            text.push_str(&if is_escaped { unescape(next) } else { next.clone() });
        }
        if !made[end..].iter().any(is_break) {
            return Err(SqlError::invalid(format!("syntax error at or near \"{token}\"")));
        }
        made.truncate(end + 1);
    }
    Ok(made)
}

/// The text of a literal whose backslashes are escapes.
fn unescape(text: &str) -> String {
    let literal = format!("E'{}'", text.replace('\'', "''"));
    match Tokenizer::new(&PostgreSqlDialect {}, &literal).tokenize().as_deref() {
        Ok([Token::EscapedStringLiteral(read)]) => read.clone(),
        _ => text.to_string(),
    }
}

/// Takes a sign off the end of an operator, as in `->-1`: operators of PostgreSQL end with a sign only if they contain one
/// of the characters `~!@#%^&|?` and the backquote
/// (<https://www.postgresql.org/docs/15/sql-createoperator.html>).
pub fn split_operators(tokens: Vec<Token>) -> Vec<Token> {
    let split = |token: Token| match &token {
        Token::CustomBinaryOperator(operator) => {
            let sign = match operator.chars().last() {
                Some('-') => Token::Minus,
                Some('+') => Token::Plus,
                _ => return vec![token],
            };
            let known = match &operator[..operator.len() - 1] {
                "->" => Token::Arrow,
                "->>" => Token::LongArrow,
                "<<" => Token::ShiftLeft,
                ">>" => Token::ShiftRight,
                "<" => Token::Lt,
                ">" => Token::Gt,
                "=" => Token::Eq,
                "<=" => Token::LtEq,
                ">=" => Token::GtEq,
                "<>" => Token::Neq,
                "*" => Token::Mul,
                "/" => Token::Div,
                "+" => Token::Plus,
                "-" => Token::Minus,
                _ => return vec![token],
            };
            vec![known, sign]
        }
        _ => vec![token],
    };
    tokens.into_iter().flat_map(split).collect()
}

/// Leaves out words that change nothing here or that the parser reads in another way: `ONLY` before a table, `pg_catalog.`
/// before a type or a function, `OPERATOR(pg_catalog.=)` for `=`. A column may be called `top`.
pub fn plain_forms(tokens: Vec<Token>) -> Vec<Token> {
    let is = |token: &Token, wanted: &str| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted));
    let is_known = |token: &Token| {
        ["top", "only", "operator"].iter().any(|one| is(token, one))
            || matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case("pg_catalog"))
    };
    if !tokens.iter().any(is_known) {
        return tokens;
    }
    let is_space = |token: &Token| matches!(token, Token::Whitespace(_));
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        // Others are not looked around at: a text may have as many spaces as it is long.
        if !is_known(token) {
            out.push(token.clone());
            at += 1;
            continue;
        }
        let before = out.iter().rev().find(|one| !is_space(one));
        let rest: Vec<&Token> =
            tokens[at + 1..].iter().filter(|one| !is_space(one)).take(5).collect();
        let stands_before_table = || {
            let words = ["from", "join", "update", "table"];
            before.is_some_and(|before| words.iter().any(|one| is(before, one)))
                && matches!(rest.first(), Some(Token::Word(_)))
        };
        if is(token, "only") && stands_before_table() {
            at += 1;
            continue;
        }
        if let [Token::LParen, schema, Token::Period, sign, Token::RParen] = rest.as_slice()
            && is(token, "operator")
            && is(schema, "pg_catalog")
            && is_comparison(sign)
        {
            out.extend([Token::Whitespace(Whitespace::Space), (*sign).clone()]);
            out.push(Token::Whitespace(Whitespace::Space));
            at = skip(&tokens, at + 1, 5);
            continue;
        }
        let names_table = ["into", "table", "copy", "on", "exists"]
            .iter()
            .any(|one| before.is_some_and(|before| is(before, one)));
        let is_schema =
            matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case("pg_catalog"));
        if let [Token::Period, Token::Word(_), next @ ..] = rest.as_slice()
            && is_schema
            && !names_table
            && (before == Some(&Token::DoubleColon) || next.first() == Some(&&Token::LParen))
        {
            at = skip(&tokens, at + 1, 1);
            continue;
        }
        out.push(match token {
            Token::Word(word) if is(token, "top") => {
                Token::Word(Word { keyword: Keyword::NoKeyword, ..word.clone() })
            }
            other => other.clone(),
        });
        at += 1;
    }
    out
}

/// Whether an operator compares: the precedence of `OPERATOR()` is between arithmetic and comparisons, so that the plain
/// operator means the same beside AND and OR.
fn is_comparison(sign: &Token) -> bool {
    matches!(
        sign,
        Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::ExclamationMarkDoubleTilde
    )
}

/// The place behind so many tokens that are no spaces.
fn skip(tokens: &[Token], mut at: usize, mut count: usize) -> usize {
    while 0 < count && at < tokens.len() {
        count -= usize::from(!matches!(tokens[at], Token::Whitespace(_)));
        at += 1;
    }
    at
}

/// Writes `type ARRAY` of columns as `type[]`, in `CREATE TABLE` and `ALTER TABLE`.
pub fn array_types(tokens: Vec<Token>) -> Vec<Token> {
    let is = |token: &Token, keyword: Keyword| matches!(token, Token::Word(word) if word.keyword == keyword);
    let plain = |token: &&Token| !matches!(token, Token::Whitespace(_));
    let mut first = tokens.iter().filter(plain);
    let begins =
        first.next().is_some_and(|one| is(one, Keyword::CREATE) || is(one, Keyword::ALTER));
    let has = |keyword: Keyword| tokens.iter().any(|one| is(one, keyword));
    if !begins || !has(Keyword::ARRAY) || has(Keyword::SELECT) || !has(Keyword::TABLE) {
        return tokens;
    }
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut parens = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::LParen => parens += 1,
            Token::RParen => parens = parens.saturating_sub(1),
            _ => {}
        }
        if !is(token, Keyword::ARRAY) {
            out.push(token.clone());
            continue;
        }
        let before = out.iter().rev().find(plain);
        let is_type = before.is_some_and(|one| match one {
            Token::Word(word) => word.keyword != Keyword::DEFAULT,
            Token::RParen => true,
            _ => false,
        });
        let next = tokens[at + 1..].iter().find(plain);
        let ends = matches!(
            next,
            None | Some(Token::Comma | Token::RParen | Token::LBracket | Token::Word(_))
        );
        if !(is_type && ends && parens <= 1) {
            out.push(token.clone());
            continue;
        }
        if next != Some(&Token::LBracket) {
            out.extend([Token::LBracket, Token::RBracket]);
        }
    }
    out
}

/// Makes names of `on` behind `=` or TO in SET, ALTER and CREATE: a setting has such a value, an expression does not.
pub fn name_values_of_settings(tokens: &mut [Token]) {
    use Keyword::{ALTER, CREATE, ON, SET, TO};
    // The first word of the statement, and the word before this one.
    let (mut first, mut before) = (None::<Keyword>, Token::SemiColon);
    for token in tokens.iter_mut().filter(|token| !is_space(token)) {
        match *token == Token::SemiColon {
            true => first = None,
            false => first = first.or(Some(keyword(token))),
        }
        let is_value = before == Token::Eq || keyword(&before) == TO;
        if is_value && keyword(token) == ON && matches!(first, Some(SET | ALTER | CREATE)) {
            *token = Token::Word(Word {
                value: "on".to_string(),
                quote_style: None,
                keyword: Keyword::NoKeyword,
            });
        }
        before = token.clone();
    }
}

/// `ANY (VALUES ..)` and its like as `ANY (SELECT * FROM (VALUES ..) AS "values")`.
pub fn values_as_queries(tokens: Vec<Token>) -> Vec<Token> {
    use Keyword::{ALL, ANY, ELSE, IN, SELECT, SOME, THEN, VALUES};
    if !tokens.iter().any(|token| keyword(token) == VALUES) {
        return tokens;
    }
    let mut made: Vec<Token> = Vec::with_capacity(tokens.len() + 16);
    // Whether each open bracket is one of such values.
    let mut open: Vec<bool> = Vec::new();
    // The last two words.
    let mut before = [None::<Token>, None];
    let space = || Token::Whitespace(Whitespace::Space);
    for token in tokens {
        if is_space(&token) {
            made.push(token);
            continue;
        }
        match &token {
            Token::LParen => open.push(false),
            Token::RParen => {
                let closes_values = open.pop() == Some(true);
                if closes_values {
                    let name = Token::make_word("values", Some('"'));
                    let end = [Token::RParen, space(), Token::make_keyword("AS"), space(), name];
                    made.extend(end);
                }
            }
            other if keyword(other) == VALUES => {
                let is_asked = |one: &Token| match one {
                    Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq => {
                        true
                    }
                    word => matches!(keyword(word), ALL | ANY | IN | SOME | SELECT | THEN | ELSE),
                };
                if before[0].as_ref().is_some_and(is_asked)
                    && before[1] == Some(Token::LParen)
                    && let Some(last) = open.last_mut()
                {
                    *last = true;
                    let words = [Token::make_keyword("SELECT"), space(), Token::Mul, space()];
                    made.extend(words);
                    made.extend([Token::make_keyword("FROM"), space(), Token::LParen]);
                }
            }
            _ => {}
        }
        before = [before[1].take(), Some(token.clone())];
        made.push(token);
    }
    made
}

/// A token's text, where it is a word, a text or a number.
pub(crate) fn word<'t>(token: Option<&&'t Token>) -> Option<&'t str> {
    match token {
        Some(Token::Word(word)) => Some(&word.value),
        Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => Some(text),
        Some(Token::Number(digits, _)) => Some(digits),
        _ => None,
    }
}
