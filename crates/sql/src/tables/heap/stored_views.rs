//! Views as the catalog of tables stores them: a table without rows whose properties hold the query.

use tables::Schema;

/// The properties of a table that say so.
pub(crate) const QUERY: &str = "view: query";

pub(crate) const KIND: &str = "view: kind";

pub(crate) const READS: &str = "view: reads";

/// The characters between the names of `READS`, which no client can write.
pub(crate) const BETWEEN: char = '\0';

/// What a view is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `CREATE VIEW`.
    Plain,
    /// `CREATE MATERIALIZED VIEW`.
    Materialized,
    /// The same, `WITH (timescaledb.continuous)`.
    Continuous,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Plain, Kind::Materialized, Kind::Continuous];

    /// What statements call it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Plain => "view",
            Kind::Materialized | Kind::Continuous => "materialized view",
        }
    }

    /// What to say to somebody who would drop it as a table.
    pub fn dropped_by(self) -> &'static str {
        match self {
            Kind::Plain => "Use DROP VIEW to remove a view.",
            Kind::Materialized | Kind::Continuous => {
                "Use DROP MATERIALIZED VIEW to remove a materialized view."
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Materialized => "materialized",
            Kind::Continuous => "continuous",
        }
    }
}

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// Its query, as a text.
    pub query: String,
    /// What it is called.
    pub kind: Kind,
    /// The tables and views that somebody has made and that it names, as often as it does.
    pub reads: Vec<String>,
}

impl View {
    /// Whether a table is one.
    pub fn is_one(schema: &Schema) -> bool {
        schema.properties.iter().any(|(name, _)| name == QUERY)
    }

    /// Of a table, if it is one.
    pub fn of(schema: &Schema) -> Option<View> {
        let property = |name: &str| {
            let mut all = schema.properties.iter();
            all.find(|(one, _)| one == name).map(|(_, value)| value.as_str())
        };
        let kind = property(KIND).unwrap_or_default();
        let reads = property(READS).unwrap_or_default().split(BETWEEN);
        Some(View {
            query: property(QUERY)?.to_string(),
            kind: Kind::ALL.into_iter().find(|one| one.name() == kind).unwrap_or(Kind::Plain),
            reads: reads.filter(|name| !name.is_empty()).map(str::to_string).collect(),
        })
    }

    /// Says so of a table.
    pub(crate) fn say(self, schema: &mut Schema) {
        let reads = self.reads.join(&BETWEEN.to_string());
        schema.properties.extend([
            (QUERY.to_string(), self.query),
            (KIND.to_string(), self.kind.name().to_string()),
            (READS.to_string(), reads),
        ]);
    }
}

/// A view as it is stored.
pub struct StoredView {
    /// The text of its query.
    pub query: String,
    /// The names of its columns.
    pub columns: Vec<String>,
}
