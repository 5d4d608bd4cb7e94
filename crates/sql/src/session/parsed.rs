//! Statements as clients send them.

use crate::copy::statement::{CopyIn, CopyOut};
use crate::ddl_dml::definitions::define::Definition;
use crate::ddl_dml::insert::Insert;
use crate::ddl_dml::rows::writes::Write;
use crate::ddl_dml::upkeep::Upkeep;
use crate::parse::query::Query;
use crate::session::prepared::Template;
use crate::tables::heap::isolation::Isolation;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// One that DataFusion plans.
    Query(Query),
    /// `COPY .. FROM STDIN`.
    CopyIn(CopyIn),
    /// `COPY .. TO STDOUT`.
    CopyOut(CopyOut),
    /// `INSERT INTO table` of samples.
    Insert(Insert),
    /// `INSERT`, `UPDATE` or `DELETE` of an ordinary table.
    Write(Write),
    /// A statement about ordinary tables themselves.
    Define(Definition),
    /// `DECLARE name CURSOR FOR query`.
    Declare {
        /// The cursor.
        name: String,
        /// The text of its query.
        text: String,
        /// True for a cursor that outlives its transaction (`WITH HOLD`).
        is_held: bool,
    },
    /// `FETCH count FROM name`; all without a count.
    Fetch {
        /// The cursor.
        name: String,
        /// How many rows.
        count: Option<usize>,
    },
    /// `CLOSE name`; all without one.
    Close(Option<String>),
    /// `LISTEN channel`.
    Listen(String),
    /// `UNLISTEN channel`; all for none.
    Unlisten(Option<String>),
    /// `NOTIFY channel, payload`.
    Notify {
        /// The channel.
        channel: String,
        /// The text that listeners get.
        payload: String,
    },
    /// `SET name = value`.
    Set {
        /// The setting, in small letters.
        name: String,
        /// None for `DEFAULT`.
        value: Option<String>,
        /// Whether it holds for the transaction alone.
        is_local: bool,
    },
    /// `SHOW name`.
    Show(String),
    /// `SHOW ALL`.
    ShowAll,
    /// `RESET name`; none for all.
    Reset(Option<String>),
    /// `BEGIN`.
    Begin {
        /// The command tag of its answer.
        tag: &'static str,
        /// Whether nothing may be written in it; none where it does not say.
        is_read_only: Option<bool>,
        /// What it sees; none where it does not say.
        isolation: Option<Isolation>,
    },
    /// `SET TRANSACTION`, or `SET SESSION CHARACTERISTICS`.
    SetTransaction {
        /// Whether nothing may be written; none where it does not say.
        is_read_only: Option<bool>,
        /// What is seen; none where it does not say.
        isolation: Option<Isolation>,
        /// Whether it is of this transaction, and not of those to come.
        is_local: bool,
    },
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `SAVEPOINT name`.
    Savepoint(String),
    /// `RELEASE name`.
    Release(String),
    /// `ROLLBACK TO name`.
    RollbackTo(String),
    /// `PREPARE name AS statement`.
    Prepare {
        /// What it is called.
        name: String,
        /// The statement.
        template: Template,
    },
    /// `EXECUTE name (values)`.
    Execute {
        /// The statement that was prepared.
        name: String,
        /// Expressions, as they were written.
        values: Vec<String>,
    },
    /// `DEALLOCATE name`; none for all.
    Deallocate(Option<String>),
    /// `DISCARD ALL`: settings and prepared statements are forgotten.
    DiscardAll,
    /// `CREATE EXTENSION name`.
    CreateExtension(String),
    /// `SELECT drop_metric('name')`: its samples are deleted.
    DropMetric(String),
    /// What is done already.
    Upkeep(Upkeep),
    /// Something that has no meaning here and does no harm; what is answered.
    Nothing(&'static str),
}
