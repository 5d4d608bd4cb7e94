//! The words and signs of InfluxQL.

#![allow(missing_docs, reason = "names are those of the grammar")]

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    Illegal,
    Eof,
    /// Blanks and comments; they matter where a function's parenthesis must follow at once.
    Space,
    Ident,
    BoundParameter,
    Number,
    Integer,
    Duration,
    String,
    BadString,
    BadEscape,
    Regex,
    BadRegex,
    True,
    False,
    /// A word of [`KEYWORDS`], by its place there.
    Keyword(&'static str),
    /// An operator.
    Op(Op),
    LeftParen,
    RightParen,
    Comma,
    Colon,
    DoubleColon,
    Semicolon,
    Dot,
}

/// Operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
    Eq,
    NotEq,
    EqRegex,
    NotEqRegex,
    Less,
    LessEq,
    Greater,
    GreaterEq,
}

impl Op {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::Div => "/",
            Op::Mod => "%",
            Op::BitAnd => "&",
            Op::BitOr => "|",
            Op::BitXor => "^",
            Op::And => "AND",
            Op::Or => "OR",
            Op::Eq => "=",
            Op::NotEq => "!=",
            Op::EqRegex => "=~",
            Op::NotEqRegex => "!~",
            Op::Less => "<",
            Op::LessEq => "<=",
            Op::Greater => ">",
            Op::GreaterEq => ">=",
        }
    }

    /// How tightly it binds; the loosest is 1.
    pub fn precedence(self) -> u8 {
        match self {
            Op::Or => 1,
            Op::And => 2,
            Op::Eq
            | Op::NotEq
            | Op::EqRegex
            | Op::NotEqRegex
            | Op::Less
            | Op::LessEq
            | Op::Greater
            | Op::GreaterEq => 3,
            Op::Add | Op::Sub | Op::BitOr | Op::BitXor => 4,
            Op::Mul | Op::Div | Op::Mod | Op::BitAnd => 5,
        }
    }

    /// Whether its right side is a regular expression.
    pub fn is_regex(self) -> bool {
        matches!(self, Op::EqRegex | Op::NotEqRegex)
    }

    /// The same with its sides swapped.
    pub fn swapped(self) -> Op {
        match self {
            Op::Less => Op::Greater,
            Op::LessEq => Op::GreaterEq,
            Op::Greater => Op::Less,
            Op::GreaterEq => Op::LessEq,
            other => other,
        }
    }
}

/// Words that are no identifiers unless they are quoted.
pub const KEYWORDS: &[&str] = &[
    "ALL",
    "ALTER",
    "ANALYZE",
    "ANY",
    "AS",
    "ASC",
    "BEGIN",
    "BY",
    "CARDINALITY",
    "CREATE",
    "CONTINUOUS",
    "DATABASE",
    "DATABASES",
    "DEFAULT",
    "DELETE",
    "DESC",
    "DESTINATIONS",
    "DIAGNOSTICS",
    "DISTINCT",
    "DROP",
    "DURATION",
    "END",
    "EVERY",
    "EXACT",
    "EXPLAIN",
    "FIELD",
    "FOR",
    "FROM",
    "GRANT",
    "GRANTS",
    "GROUP",
    "GROUPS",
    "IN",
    "INF",
    "INSERT",
    "INTO",
    "KEY",
    "KEYS",
    "KILL",
    "LIMIT",
    "MEASUREMENT",
    "MEASUREMENTS",
    "NAME",
    "OFFSET",
    "ON",
    "ORDER",
    "PASSWORD",
    "POLICY",
    "POLICIES",
    "PRIVILEGES",
    "QUERIES",
    "QUERY",
    "READ",
    "REPLICATION",
    "RESAMPLE",
    "RETENTION",
    "REVOKE",
    "SELECT",
    "SERIES",
    "SET",
    "SHARD",
    "SHARDS",
    "SHOW",
    "SLIMIT",
    "SOFFSET",
    "STATS",
    "SUBSCRIPTION",
    "SUBSCRIPTIONS",
    "TAG",
    "TO",
    "USER",
    "USERS",
    "VALUES",
    "WHERE",
    "WITH",
    "WRITE",
];

/// Bytes of the longest keyword, or more.
const KEYWORD_SIZE_MAX: usize = 16;

const _: () = {
    let (mut at, mut letter) = (0, 0);
    while at < KEYWORDS.len() {
        assert!(KEYWORDS[at].len() <= KEYWORD_SIZE_MAX && letter <= KEYWORDS[at].as_bytes()[0]);
        letter = KEYWORDS[at].as_bytes()[0];
        at += 1;
    }
};

/// The keyword that a word is, or the operator or constant.
pub fn keyword(word: &str) -> Option<Token> {
    let mut buffer = [0; KEYWORD_SIZE_MAX];
    let upper = buffer.get_mut(..word.len())?;
    upper.copy_from_slice(word.as_bytes());
    upper.make_ascii_uppercase();
    let upper = std::str::from_utf8(upper).ok()?;
    match upper {
        "AND" => return Some(Token::Op(Op::And)),
        "OR" => return Some(Token::Op(Op::Or)),
        "TRUE" => return Some(Token::True),
        "FALSE" => return Some(Token::False),
        _ => {}
    }
    let letter = upper.bytes().next()?.checked_sub(b'A')?;
    let letter = usize::from(letter);
    let (start, end) = (*LETTERS.get(letter)?, *LETTERS.get(letter + 1)?);
    let keywords = KEYWORDS.get(usize::from(start)..usize::from(end))?;
    keywords.iter().find(|keyword| **keyword == upper).map(|keyword| Token::Keyword(keyword))
}

/// Where the keywords of each letter begin.
const LETTERS: [u8; 27] = {
    let mut starts = [0; 27];
    let (mut letter, mut at) = (0, 0);
    while letter < 27 {
        while at < KEYWORDS.len() && KEYWORDS[at].as_bytes()[0] < b'A' + letter as u8 {
            at += 1;
        }
        starts[letter] = at as u8;
        letter += 1;
    }
    assert!(KEYWORDS.len() <= u8::MAX as usize);
    starts
};

impl Token {
    /// What an error calls it when there is no text of its own.
    pub fn name(self) -> &'static str {
        match self {
            Token::Illegal => "ILLEGAL",
            Token::Eof => "EOF",
            Token::Space => "WS",
            Token::Ident => "IDENT",
            Token::BoundParameter => "BOUNDPARAM",
            Token::Number => "NUMBER",
            Token::Integer => "INTEGER",
            Token::Duration => "DURATIONVAL",
            Token::String => "STRING",
            Token::BadString => "BADSTRING",
            Token::BadEscape => "BADESCAPE",
            Token::Regex => "REGEX",
            Token::BadRegex => "BADREGEX",
            Token::True => "TRUE",
            Token::False => "FALSE",
            Token::Keyword(word) => word,
            Token::Op(op) => op.as_str(),
            Token::LeftParen => "(",
            Token::RightParen => ")",
            Token::Comma => ",",
            Token::Colon => ":",
            Token::DoubleColon => "::",
            Token::Semicolon => ";",
            Token::Dot => ".",
        }
    }
}
