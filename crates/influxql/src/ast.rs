//! The tree of InfluxQL.

#![allow(missing_docs, reason = "names are those of the grammar")]

use crate::pattern::Pattern;
use crate::token::Op;

/// The type of a column, or of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataType {
    /// A number of 64 bits with a point; the first where measurements disagree.
    Float,
    /// A whole number.
    Integer,
    /// A whole number that is not negative.
    Unsigned,
    /// Text.
    String,
    /// True or false.
    Boolean,
    /// A moment.
    Time,
    /// A span of time.
    Duration,
    /// A tag.
    Tag,
    /// Any field, whatever its type.
    AnyField,
    /// Nobody has said.
    #[default]
    Unknown,
}

impl DataType {
    /// The word after `::`, and in `SHOW FIELD KEYS`.
    pub fn as_str(self) -> &'static str {
        match self {
            DataType::Float => "float",
            DataType::Integer => "integer",
            DataType::Unsigned => "unsigned",
            DataType::String => "string",
            DataType::Boolean => "boolean",
            DataType::Time => "time",
            DataType::Duration => "duration",
            DataType::Tag => "tag",
            DataType::AnyField => "field",
            DataType::Unknown => "unknown",
        }
    }

    /// Whether arithmetic takes it.
    pub fn is_number(self) -> bool {
        matches!(self, DataType::Float | DataType::Integer | DataType::Unsigned)
    }
}

/// What a `*` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Star {
    /// Fields and tags.
    All,
    /// `*::field`
    Fields,
    /// `*::tag`
    Tags,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A field, a tag or `time`.
    Var {
        name: String,
        kind: DataType,
    },
    /// A function; its name is in lower case.
    Call {
        name: String,
        args: Vec<Expr>,
    },
    /// Two sides.
    Binary {
        op: Op,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// In parentheses.
    Paren(Box<Expr>),
    /// `DISTINCT field`
    Distinct(String),
    Number(f64),
    Integer(i64),
    Unsigned(u64),
    Text(String),
    Boolean(bool),
    /// Nanoseconds.
    Duration(i64),
    /// Nanoseconds since the epoch.
    Time(i64),
    Regex(Pattern),
    Star(Star),
}

impl Expr {
    /// A variable whose type nobody has said.
    pub fn var(name: impl Into<String>) -> Expr {
        Expr::Var { name: name.into(), kind: DataType::Unknown }
    }

    /// Whether it needs nothing but itself.
    pub fn is_literal(&self) -> bool {
        matches!(
            self,
            Expr::Number(_)
                | Expr::Integer(_)
                | Expr::Unsigned(_)
                | Expr::Text(_)
                | Expr::Boolean(_)
                | Expr::Duration(_)
                | Expr::Time(_)
                | Expr::Regex(_)
        )
    }

    /// Visits it and all below it.
    pub fn walk<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit(self);
        match self {
            Expr::Call { args, .. } => args.iter().for_each(|arg| arg.walk(visit)),
            Expr::Binary { left, right, .. } => {
                left.walk(visit);
                right.walk(visit);
            }
            Expr::Paren(inner) => inner.walk(visit),
            _ => {}
        }
    }

    /// Changes it and all below it, from below.
    pub fn change(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Call { args, .. } => args.iter_mut().for_each(|arg| arg.change(change)),
            Expr::Binary { left, right, .. } => {
                left.change(change);
                right.change(change);
            }
            Expr::Paren(inner) => inner.change(change),
            _ => {}
        }
        change(self);
    }
}

/// A column of a SELECT.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub expr: Expr,
    pub alias: Option<String>,
}

/// A measurement in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    pub database: Option<String>,
    pub policy: Option<String>,
    pub name: MeasurementName,
}

/// Which measurements.
#[derive(Clone, Debug, PartialEq)]
pub enum MeasurementName {
    Is(String),
    Matches(Pattern),
}

/// What is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    Measurement(Measurement),
    Query(Box<Select>),
}

/// What windows without samples say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fill {
    #[default]
    Null,
    None,
    Previous,
    Linear,
    Number(f64),
    /// A number without a point.
    Integer(i64),
}

/// How much of a list is wanted; 0 is all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub limit: usize,
    pub offset: usize,
}

/// SELECT
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    pub fields: Vec<Field>,
    /// `INTO`
    pub target: Option<Measurement>,
    pub sources: Vec<Source>,
    pub condition: Option<Expr>,
    pub dimensions: Vec<Expr>,
    pub fill: Fill,
    /// Whether the newest come first.
    pub is_descending: bool,
    pub page: Page,
    /// The same for series.
    pub series_page: Page,
    pub zone: Option<String>,
}

impl Select {
    /// How often it names a variable, in its condition each once, subqueries included: it makes about as
    /// many selections, unless it has stars or patterns.
    pub fn variable_count(&self) -> usize {
        let mut count = 0;
        let mut conditions = std::collections::BTreeSet::new();
        let is_variable = |expr: &Expr| matches!(expr, Expr::Var { .. } | Expr::Distinct(_));
        for field in &self.fields {
            field.expr.walk(&mut |expr| count += usize::from(is_variable(expr)));
        }
        if let Some(condition) = &self.condition {
            condition.walk(&mut |expr| {
                if let Expr::Var { name, .. } = expr
                    && name != "time"
                {
                    conditions.insert(name);
                }
            });
        }
        let inner = self.sources.iter().map(|source| match source {
            Source::Query(select) => select.variable_count(),
            Source::Measurement(_) => 0,
        });
        count + conditions.len() + inner.sum::<usize>()
    }
}

/// What SHOW statements about series have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    pub database: Option<String>,
    pub sources: Vec<Source>,
    pub condition: Option<Expr>,
    pub dimensions: Vec<Expr>,
    pub page: Page,
    pub series_page: Page,
    pub is_descending: bool,
}

/// Which tag keys.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyFilter {
    Is(String),
    IsNot(String),
    Matches(Pattern),
    DoesNotMatch(Pattern),
    In(Vec<String>),
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Series,
    Measurements,
    TagKeys,
    FieldKeys,
}

/// A retention policy's words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    pub name: Option<String>,
    /// Nanoseconds; 0 for ever.
    pub duration: Option<i64>,
    pub replication: Option<i64>,
    pub shard_duration: Option<i64>,
    pub is_default: bool,
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Select(Box<Select>),
    Explain {
        select: Box<Select>,
        analyze: bool,
    },
    ShowDatabases,
    ShowRetentionPolicies {
        database: Option<String>,
    },
    ShowMeasurements {
        listing: Listing,
    },
    ShowTagKeys {
        listing: Listing,
    },
    ShowTagValues {
        listing: Listing,
        keys: KeyFilter,
    },
    ShowFieldKeys {
        listing: Listing,
    },
    ShowSeries {
        listing: Listing,
    },
    ShowCardinality {
        counted: Counted,
        listing: Listing,
        exact: bool,
    },
    ShowTagValuesCardinality {
        listing: Listing,
        keys: KeyFilter,
    },
    ShowStats,
    ShowDiagnostics,
    ShowQueries,
    ShowUsers,
    ShowGrants {
        user: String,
    },
    ShowShards,
    ShowShardGroups,
    ShowContinuousQueries,
    ShowSubscriptions,
    CreateDatabase {
        name: String,
        policy: Option<Policy>,
    },
    DropDatabase {
        name: String,
    },
    CreateRetentionPolicy {
        database: String,
        policy: Policy,
    },
    AlterRetentionPolicy {
        database: String,
        policy: Policy,
    },
    DropRetentionPolicy {
        database: String,
        name: String,
    },
    DropMeasurement {
        name: String,
    },
    DropSeries {
        sources: Vec<Source>,
        condition: Option<Expr>,
    },
    Delete {
        sources: Vec<Source>,
        condition: Option<Expr>,
    },
    KillQuery {
        id: u64,
    },
    /// Users, grants, passwords: what credentials are the flags say.
    Users {
        verb: &'static str,
    },
    /// What is not offered.
    Unsupported {
        what: &'static str,
    },
}

impl Statement {
    /// Whether it changes nothing, so that GET may send it.
    pub fn is_read_only(&self) -> bool {
        match self {
            Statement::Select(select) => select.target.is_none(),
            Statement::CreateDatabase { .. }
            | Statement::DropDatabase { .. }
            | Statement::CreateRetentionPolicy { .. }
            | Statement::AlterRetentionPolicy { .. }
            | Statement::DropRetentionPolicy { .. }
            | Statement::DropMeasurement { .. }
            | Statement::DropSeries { .. }
            | Statement::Delete { .. }
            | Statement::KillQuery { .. }
            | Statement::Users { .. }
            | Statement::Unsupported { .. } => false,
            _ => true,
        }
    }
}
