//! SHOW.

use super::{Parser, Result};
use crate::ast::{Counted, KeyFilter, Listing, Measurement, MeasurementName, Source, Statement};
use crate::token::{Op, Token};

const THINGS: &[&str] = &[
    "CONTINUOUS",
    "DATABASES",
    "DIAGNOSTICS",
    "FIELD",
    "GRANTS",
    "MEASUREMENT",
    "MEASUREMENTS",
    "QUERIES",
    "RETENTION",
    "SERIES",
    "SHARD",
    "SHARDS",
    "STATS",
    "SUBSCRIPTIONS",
    "TAG",
    "USERS",
];

impl Parser<'_> {
    /// What follows the word SHOW.
    pub(super) fn show(&mut self) -> Result<Statement> {
        let Token::Keyword(word) = self.peek().token else { return Err(self.unexpected(THINGS)) };
        if !THINGS.contains(&word) {
            return Err(self.unexpected(THINGS));
        }
        self.next();
        match word {
            "DATABASES" => Ok(Statement::ShowDatabases),
            "QUERIES" => Ok(Statement::ShowQueries),
            "SHARDS" => Ok(Statement::ShowShards),
            "USERS" => Ok(Statement::ShowUsers),
            "SUBSCRIPTIONS" => Ok(Statement::ShowSubscriptions),
            "STATS" | "DIAGNOSTICS" => {
                if self.accept("FOR") {
                    self.string()?;
                }
                let is_stats = word == "STATS";
                Ok(if is_stats { Statement::ShowStats } else { Statement::ShowDiagnostics })
            }
            "CONTINUOUS" => {
                self.expect("QUERIES")?;
                Ok(Statement::ShowContinuousQueries)
            }
            "SHARD" => {
                self.expect("GROUPS")?;
                Ok(Statement::ShowShardGroups)
            }
            "GRANTS" => {
                self.expect("FOR")?;
                Ok(Statement::ShowGrants { user: self.identifier()? })
            }
            "RETENTION" => {
                self.expect("POLICIES")?;
                Ok(Statement::ShowRetentionPolicies { database: self.on_database()? })
            }
            "FIELD" => self.show_fields(),
            "MEASUREMENT" | "MEASUREMENTS" => self.show_measurements(word),
            "SERIES" => self.show_series(),
            _ => self.show_tags(),
        }
    }

    fn on_database(&mut self) -> Result<Option<String>> {
        if self.accept("ON") { self.identifier().map(Some) } else { Ok(None) }
    }

    fn from(&mut self) -> Result<Vec<Source>> {
        if self.accept("FROM") { self.measurements() } else { Ok(Vec::new()) }
    }

    /// `[ON db] [FROM ...] [WHERE ...] [GROUP BY ...] [ORDER BY ...] [LIMIT ...] [SLIMIT ...]`
    fn listing(&mut self) -> Result<Listing> {
        let database = self.on_database()?;
        let sources = self.from()?;
        let listing = Listing { database, sources, ..Listing::default() };
        self.listing_after_sources(listing)
    }

    fn listing_after_sources(&mut self, listing: Listing) -> Result<Listing> {
        let condition = self.condition()?;
        let dimensions = self.dimensions()?;
        let is_descending = self.order()?;
        let page = self.page("LIMIT", "OFFSET")?;
        let series_page = self.page("SLIMIT", "SOFFSET")?;
        Ok(Listing { condition, dimensions, is_descending, page, series_page, ..listing })
    }

    /// `[EXACT] CARDINALITY`
    fn cardinality(&mut self) -> Result<Option<bool>> {
        let exact = self.accept("EXACT");
        if exact {
            self.expect("CARDINALITY")?;
            return Ok(Some(true));
        }
        Ok(self.accept("CARDINALITY").then_some(false))
    }

    fn counted(&mut self, counted: Counted, exact: bool) -> Result<Statement> {
        Ok(Statement::ShowCardinality { counted, listing: self.listing()?, exact })
    }

    fn show_fields(&mut self) -> Result<Statement> {
        if self.accept("KEY") {
            return match self.cardinality()? {
                Some(exact) => self.counted(Counted::FieldKeys, exact),
                None => Err(self.unexpected(&["EXACT", "CARDINALITY"])),
            };
        }
        if !self.accept("KEYS") {
            return Err(self.unexpected(&["KEY", "KEYS"]));
        }
        // The exact form takes no WHERE clause.
        let database = self.on_database()?;
        let sources = self.from()?;
        let is_descending = self.order()?;
        let page = self.page("LIMIT", "OFFSET")?;
        let listing = Listing { database, sources, is_descending, page, ..Listing::default() };
        Ok(Statement::ShowFieldKeys { listing })
    }

    fn show_series(&mut self) -> Result<Statement> {
        // The word EXACT alone means nothing.
        let exact = self.accept("EXACT");
        match self.accept("CARDINALITY") {
            true => self.counted(Counted::Series, exact),
            false => Ok(Statement::ShowSeries { listing: self.listing()? }),
        }
    }

    fn show_measurements(&mut self, word: &str) -> Result<Statement> {
        if word == "MEASUREMENT" {
            return match self.cardinality()? {
                Some(exact) => self.counted(Counted::Measurements, exact),
                None => Err(self.unexpected(&["EXACT", "CARDINALITY"])),
            };
        }
        let database = self.on_database()?;
        let mut sources = Vec::new();
        if self.accept("WITH") {
            self.expect("MEASUREMENT")?;
            sources.push(Source::Measurement(self.with_measurement()?));
        }
        let listing = Listing { database, sources, ..Listing::default() };
        Ok(Statement::ShowMeasurements { listing: self.listing_after_sources(listing)? })
    }

    fn with_measurement(&mut self) -> Result<Measurement> {
        // Behind either sign stands a name or a regular expression.
        if !self.accept_token(|token| matches!(token, Token::Op(Op::Eq | Op::EqRegex))) {
            return Err(self.unexpected(&["=", "=~"]));
        }
        let name = match self.regex()? {
            Some(regex) => MeasurementName::Matches(regex),
            None => MeasurementName::Is(self.segments()?.pop().unwrap_or_default()),
        };
        Ok(Measurement { database: None, policy: None, name })
    }

    fn show_tags(&mut self) -> Result<Statement> {
        if self.accept("KEY") {
            return match self.cardinality()? {
                Some(exact) => self.counted(Counted::TagKeys, exact),
                None => Err(self.unexpected(&["EXACT", "CARDINALITY"])),
            };
        }
        if self.accept("KEYS") {
            return Ok(Statement::ShowTagKeys { listing: self.listing()? });
        }
        if !self.accept("VALUES") {
            return Err(self.unexpected(&["KEY", "KEYS", "VALUES"]));
        }
        let is_counted = self.cardinality()?.is_some();
        let database = self.on_database()?;
        let sources = self.from()?;
        self.expect("WITH")?;
        self.expect("KEY")?;
        let keys = self.key_filter()?;
        let listing = Listing { database, sources, ..Listing::default() };
        let listing = self.listing_after_sources(listing)?;
        Ok(match is_counted {
            true => Statement::ShowTagValuesCardinality { listing, keys },
            false => Statement::ShowTagValues { listing, keys },
        })
    }

    fn key_filter(&mut self) -> Result<KeyFilter> {
        let lexeme = self.peek();
        if lexeme.token == Token::Keyword("IN") {
            self.next();
            self.expect_token(Token::LeftParen)?;
            let mut names = vec![self.identifier()?];
            while self.accept_token(|token| token == Token::Comma) {
                names.push(self.identifier()?);
            }
            self.expect_token(Token::RightParen)?;
            return Ok(KeyFilter::In(names));
        }
        let Token::Op(op) = lexeme.token else {
            return Err(self.unexpected(&["IN", "=", "=~"]));
        };
        match op {
            Op::Eq | Op::NotEq => {
                self.next();
                let name = self.identifier()?;
                Ok(if op == Op::Eq { KeyFilter::Is(name) } else { KeyFilter::IsNot(name) })
            }
            Op::EqRegex | Op::NotEqRegex => {
                self.next();
                let regex = self.regex()?.ok_or_else(|| self.unexpected(&["regex"]))?;
                let is_positive = op == Op::EqRegex;
                Ok(match is_positive {
                    true => KeyFilter::Matches(regex),
                    false => KeyFilter::DoesNotMatch(regex),
                })
            }
            _ => Err(self.unexpected(&["IN", "=", "=~"])),
        }
    }
}
