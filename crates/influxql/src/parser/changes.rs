//! Statements that change something, or would.

use super::{Parser, Result};
use crate::ast::{Expr, Policy, Source, Statement};
use crate::error::ParseError;
use crate::token::Token;

impl Parser<'_> {
    /// What follows CREATE, DROP, DELETE, ALTER, GRANT, REVOKE, SET and KILL.
    pub(super) fn change(&mut self, word: &str) -> Result<Statement> {
        match word {
            "CREATE" => self.create(),
            "DROP" => self.drop(),
            "DELETE" => self.delete(),
            "ALTER" => {
                self.expect("RETENTION")?;
                self.expect("POLICY")?;
                let (database, policy) = self.policy_on()?;
                let name = policy.name.clone();
                if policy == (Policy { name, ..Policy::default() }) {
                    return Err(self.unexpected(&["DURATION", "REPLICATION", "SHARD", "DEFAULT"]));
                }
                Ok(Statement::AlterRetentionPolicy { database, policy })
            }
            "GRANT" => self.skipped_to_the_end(Statement::Users { verb: "GRANT" }),
            "REVOKE" => self.skipped_to_the_end(Statement::Users { verb: "REVOKE" }),
            "SET" => {
                self.expect("PASSWORD")?;
                self.skipped_to_the_end(Statement::Users { verb: "SET PASSWORD" })
            }
            _ => {
                self.expect("QUERY")?;
                let id = self.integer(0)?;
                if self.accept("ON") {
                    self.identifier()?;
                }
                Ok(Statement::KillQuery { id: id.unsigned_abs() })
            }
        }
    }

    /// What is not offered is not read either.
    fn skipped_to_the_end(&mut self, statement: Statement) -> Result<Statement> {
        loop {
            match self.peek().token {
                Token::Eof | Token::Semicolon => return Ok(statement),
                Token::Illegal | Token::BadString | Token::BadEscape => {
                    return Err(self.unexpected(&[";", "EOF"]));
                }
                _ => {
                    self.next();
                }
            }
        }
    }

    fn create(&mut self) -> Result<Statement> {
        let things = &["CONTINUOUS", "DATABASE", "USER", "RETENTION", "SUBSCRIPTION"];
        let Token::Keyword(word) = self.peek().token else { return Err(self.unexpected(things)) };
        match word {
            "DATABASE" => {
                self.next();
                let name = self.identifier()?;
                let policy = if self.accept("WITH") { Some(self.policy_words()?) } else { None };
                Ok(Statement::CreateDatabase { name, policy })
            }
            "RETENTION" => {
                self.next();
                self.expect("POLICY")?;
                let (database, policy) = self.policy_on()?;
                if policy.duration.is_none() {
                    return Err(self.unexpected(&["DURATION"]));
                }
                if policy.replication.is_none() {
                    return Err(self.unexpected(&["REPLICATION"]));
                }
                Ok(Statement::CreateRetentionPolicy { database, policy })
            }
            "USER" => {
                self.next();
                self.skipped_to_the_end(Statement::Users { verb: "CREATE USER" })
            }
            "CONTINUOUS" => {
                self.next();
                self.skipped_to_the_end(Statement::Unsupported { what: "CREATE CONTINUOUS QUERY" })
            }
            "SUBSCRIPTION" => {
                self.next();
                self.skipped_to_the_end(Statement::Unsupported { what: "CREATE SUBSCRIPTION" })
            }
            _ => Err(self.unexpected(things)),
        }
    }

    fn policy_on(&mut self) -> Result<(String, Policy)> {
        let name = self.identifier()?;
        self.expect("ON")?;
        let database = self.identifier()?;
        let mut policy = self.policy_words()?;
        policy.name = Some(name);
        Ok((database, policy))
    }

    fn policy_words(&mut self) -> Result<Policy> {
        let mut policy = Policy::default();
        loop {
            if self.accept("DURATION") {
                policy.duration = Some(self.duration()?);
            } else if self.accept("REPLICATION") {
                policy.replication = Some(self.integer(1)?);
            } else if self.accept("SHARD") {
                self.expect("DURATION")?;
                policy.shard_duration = Some(self.duration()?);
            } else if self.accept("NAME") {
                policy.name = Some(self.identifier()?);
            } else if self.accept("DEFAULT") {
                policy.is_default = true;
            } else {
                return Ok(policy);
            }
        }
    }

    fn drop(&mut self) -> Result<Statement> {
        let things = &[
            "CONTINUOUS",
            "DATABASE",
            "MEASUREMENT",
            "RETENTION",
            "SERIES",
            "SHARD",
            "SUBSCRIPTION",
            "USER",
        ];
        let Token::Keyword(word) = self.peek().token else { return Err(self.unexpected(things)) };
        if !things.contains(&word) {
            return Err(self.unexpected(things));
        }
        self.next();
        match word {
            "DATABASE" => Ok(Statement::DropDatabase { name: self.identifier()? }),
            "MEASUREMENT" => Ok(Statement::DropMeasurement { name: self.identifier()? }),
            "RETENTION" => {
                self.expect("POLICY")?;
                let name = self.identifier()?;
                self.expect("ON")?;
                Ok(Statement::DropRetentionPolicy { name, database: self.identifier()? })
            }
            "SERIES" => {
                let (sources, condition) = self.what_is_deleted()?;
                Ok(Statement::DropSeries { sources, condition })
            }
            "USER" => self.skipped_to_the_end(Statement::Users { verb: "DROP USER" }),
            "CONTINUOUS" => {
                self.skipped_to_the_end(Statement::Unsupported { what: "DROP CONTINUOUS QUERY" })
            }
            "SHARD" => self.skipped_to_the_end(Statement::Unsupported { what: "DROP SHARD" }),
            _ => self.skipped_to_the_end(Statement::Unsupported { what: "DROP SUBSCRIPTION" }),
        }
    }

    fn delete(&mut self) -> Result<Statement> {
        let (sources, condition) = self.what_is_deleted()?;
        Ok(Statement::Delete { sources, condition })
    }

    /// Measurements of the request's database: what is deleted may not be another's.
    fn own_measurements(&mut self) -> Result<Vec<Source>> {
        let sources = self.measurements()?;
        for source in &sources {
            match source {
                Source::Measurement(named) if named.policy.is_some() => {
                    let message = "retention policy not supported at line 1, char 1";
                    return Err(ParseError::plain(message));
                }
                Source::Measurement(named) if named.database.is_some() => {
                    return Err(ParseError::plain("database not supported at line 1, char 1"));
                }
                _ => {}
            }
        }
        Ok(sources)
    }

    fn what_is_deleted(&mut self) -> Result<(Vec<Source>, Option<Expr>)> {
        let sources = if self.accept("FROM") { self.own_measurements()? } else { Vec::new() };
        let condition = self.condition()?;
        if sources.is_empty() && condition.is_none() {
            return Err(self.unexpected(&["FROM", "WHERE"]));
        }
        Ok((sources, condition))
    }
}
