//! What a session sees of ordinary tables: what is durable, or what its own transaction has made of that.

use crate::tables::heap::isolation::Isolation;
use crate::tables::heap::kept::is_kept;
use crate::tables::heap::lookups::Lookups;
use crate::tables::heap::prometheus_tables::PrometheusTable;
use crate::tables::heap::stored_views;
use crate::tables::heap::stored_views::StoredView;
use crate::tables::hypertables::append::{Series, SeriesRows};
use crate::types::error::{ErrorObject, SqlError};
use datafusion::catalog::TableProvider;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tables::{Change, Counts, Error, Savepoint, Table, TableSet, Tables, Transaction};

/// Savepoints that a transaction may have at a time.
const SAVEPOINTS_MAX: usize = 1000;
/// What to do where somebody else was faster.
const AGAIN: &str =
    "Do the whole transaction again: its tables were changed by somebody else meanwhile.";

/// What a session sees of ordinary tables.
pub struct View {
    /// Rows by values of columns.
    lookups: Arc<Lookups>,
    tables: Option<Arc<Tables>>,
    /// Where the rows of hypertables are.
    series: Arc<Series>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    transaction: Option<Transaction>,
    savepoints: Vec<(String, Saved)>,
    /// Rows of hypertables that the transaction adds when it is committed.
    pending: Vec<SeriesRows>,
    /// Whether the transaction is of one statement.
    is_alone: bool,
    isolation: Isolation,
    /// Whether a statement has seen anything in the transaction.
    has_looked: bool,
    /// Whether it relies on what it has seen.
    relies: bool,
    /// Tables that are there while one statement is planned, by their names.
    handed: HashMap<&'static str, Arc<dyn TableProvider>>,
}

/// What a transaction has come to.
#[derive(Clone)]
struct Saved {
    tables: Savepoint,
    /// How many of `State::pending` there are.
    pending: usize,
}

impl State {
    fn saved(&self) -> Option<Saved> {
        let pending = self.pending.len();
        self.transaction.as_ref().map(|one| Saved { tables: one.savepoint(), pending })
    }

    fn back_to(&mut self, saved: Saved) {
        if let Some(transaction) = &mut self.transaction {
            transaction.back_to(saved.tables);
        }
        self.pending.truncate(saved.pending);
    }
}

/// A statement that reads ordinary tables.
pub trait ReadsTables {
    /// Returns true if it locks the rows that it reads (`FOR UPDATE`).
    fn locks(&self) -> bool;
    /// Returns the names of its tables.
    fn tables(&self) -> Vec<Arc<str>>;
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("View")
    }
}

impl View {
    /// Of tables; there are none where the server has none. The rows of some are in the store.
    pub fn new(tables: Option<Arc<Tables>>, series: Arc<Series>, lookups: Arc<Lookups>) -> View {
        View { tables, series, lookups, state: Mutex::default() }
    }

    /// Rows by values of columns.
    pub fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    /// Where the rows of hypertables are.
    pub fn series(&self) -> &Arc<Series> {
        &self.series
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All tables, as they are for the session.
    pub fn set(&self) -> TableSet {
        match (&self.state().transaction, &self.tables) {
            (Some(transaction), _) => transaction.tables().clone(),
            (None, Some(tables)) => TableSet::clone(&tables.now()),
            (None, None) => TableSet::default(),
        }
    }

    /// The tables that clients know of.
    pub fn list(&self) -> Vec<Arc<Table>> {
        let mut all = self.set().list();
        all.retain(|table| !is_kept(table.name()));
        all
    }

    /// A table by its name.
    pub fn get(&self, name: &str) -> Option<Arc<Table>> {
        match (&self.state().transaction, &self.tables) {
            (Some(transaction), _) => transaction.tables().get(name),
            (None, Some(tables)) => tables.get(name),
            (None, None) => None,
        }
    }

    /// A table that must be there.
    ///
    /// # Errors
    /// When it is not, and when it is a view, which has no rows of its own.
    pub fn expect(&self, name: &str) -> Result<Arc<Table>, SqlError> {
        let table = self.get(name).ok_or_else(|| no_such_table(name))?;
        if PrometheusTable::of(table.schema()).is_some() {
            return Err(holds_samples(name));
        }
        match stored_views::View::of(table.schema()) {
            None => Ok(table),
            Some(view) => Err(is_view(name, view.kind)),
        }
    }

    /// A view of that name, as it is stored.
    pub fn stored_view(&self, name: &str) -> Option<StoredView> {
        let table = self.get(name)?;
        let query = stored_views::View::of(table.schema())?.query;
        let columns = table.schema().columns.iter().map(|column| column.name.clone());
        Some(StoredView { query, columns: columns.collect() })
    }

    /// Whether there is a view of that name.
    pub fn is_view(&self, name: &str) -> bool {
        self.get(name).is_some_and(|table| stored_views::View::is_one(table.schema()))
    }

    /// Hands a table to the statements that are planned until it is taken back.
    pub fn hand(&self, name: &'static str, table: Arc<dyn TableProvider>) {
        self.state().handed.insert(name, table);
    }

    /// Takes it back.
    pub fn take_back(&self, name: &'static str) {
        self.state().handed.remove(name);
    }

    /// A table that was handed.
    pub fn handed(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.state().handed.get(name).cloned()
    }

    // ---- transactions ----

    /// A transaction begins; nothing where one is under way.
    pub fn begin(&self, isolation: Isolation) {
        let mut state = self.state();
        if let (None, Some(tables)) = (&state.transaction, &self.tables) {
            state.transaction = Some(tables.begin());
            (state.isolation, state.has_looked, state.relies) = (isolation, false, false);
        }
    }

    /// The transaction under way is isolated so from now on.
    pub fn isolate(&self, isolation: Isolation) {
        self.state().isolation = isolation;
    }

    /// Notes that a statement reads tables: its transaction relies on them if the statement locks rows or the
    /// transaction is serializable.
    pub fn reads(&self, statement: &dyn ReadsTables) {
        let mut state = self.state();
        if !statement.locks() && state.isolation != Isolation::Serializable {
            return;
        }
        let tables = statement.tables();
        state.relies |= !tables.is_empty();
        if let Some(transaction) = &mut state.transaction {
            tables.iter().for_each(|table| transaction.rely_on(table));
        }
    }

    /// A statement begins: as long as its transaction has changed nothing it sees what others have done
    /// since, as `READ COMMITTED` has it.
    pub fn begin_statement(&self) {
        let mut state = self.state();
        let is_unchanged = state.transaction.as_ref().is_some_and(Transaction::is_empty);
        let is_kept = match state.isolation {
            Isolation::ReadCommitted => state.relies,
            Isolation::RepeatableRead | Isolation::Serializable => state.has_looked,
        };
        let may_look_anew = is_unchanged && !is_kept && state.savepoints.is_empty();
        state.has_looked = true;
        if let (true, Some(tables)) = (may_look_anew, &self.tables) {
            state.transaction = Some(tables.begin());
        }
    }

    /// Whether a transaction is under way.
    pub fn has_begun(&self) -> bool {
        self.state().transaction.is_some()
    }

    /// Whether the statement that is being done is a transaction of its own.
    pub fn is_alone(&self) -> bool {
        self.state().is_alone
    }

    /// Whether a transaction is under way that has changed tables.
    pub fn has_changed(&self) -> bool {
        self.state().transaction.as_ref().is_some_and(|one| !one.is_empty())
    }

    /// Whether a transaction is under way that adds rows to hypertables.
    pub fn has_pending(&self) -> bool {
        !self.state().pending.is_empty()
    }

    /// Whether it adds rows to that one.
    pub fn adds_to(&self, table: &str) -> bool {
        self.state().pending.iter().any(|rows| rows.table() == table)
    }

    /// Adds rows to a hypertable when the transaction under way is committed.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn add(&self, mut rows: SeriesRows) -> Result<(), SqlError> {
        rows.account()?;
        self.state().pending.push(rows);
        Ok(())
    }

    /// What the transaction has changed is forgotten.
    pub fn roll_back(&self) {
        let mut state = self.state();
        (state.transaction, state.savepoints) = (None, Vec::new());
        state.pending.clear();
    }

    /// The transaction ends: what it has changed is durable when this returns. Waits for the disk.
    ///
    /// # Errors
    /// When somebody else has changed its tables meanwhile, and when the disk does not take it: nothing of
    /// it is there then.
    pub fn commit(&self) -> Result<(), SqlError> {
        let (transaction, pending) = {
            let mut state = self.state();
            state.savepoints.clear();
            (state.transaction.take(), std::mem::take(&mut state.pending))
        };
        let (Some(mut transaction), Some(tables)) = (transaction, &self.tables) else {
            return Ok(());
        };
        let has_changed = !transaction.is_empty();
        // No table is dropped until its rows are there.
        let kept = (!pending.is_empty()).then(|| self.series.kept());
        self.series.check(&pending)?;
        for rows in &pending {
            rely_on(tables, &mut transaction, rows)?;
        }
        tables.commit(transaction).map(drop).map_err(|error| of_tables(&error))?;
        if kept.is_none() {
            return Ok(());
        }
        self.series.append(pending).map_err(|error| match has_changed {
            true => {
                let words = "What the transaction changed in ordinary tables is stored.";
                error.with_detail(words.to_string())
            }
            false => error,
        })
    }

    /// Changes tables within the transaction under way.
    ///
    /// # Errors
    /// When none is, and what is wrong with the changes: nothing of them is there then.
    pub fn apply(&self, changes: Vec<Change>) -> Result<Counts, SqlError> {
        self.try_apply(changes)?.map_err(|error| of_tables(&error))
    }

    /// The same, for who wants to know what is wrong.
    ///
    /// # Errors
    /// When no transaction is under way.
    pub fn try_apply(&self, changes: Vec<Change>) -> Result<Result<Counts, Error>, SqlError> {
        match &mut self.state().transaction {
            Some(transaction) => Ok(transaction.apply(changes)),
            None => Err(no_tables()),
        }
    }

    /// Something that changes tables begins: within the transaction under way, or as one of its own.
    ///
    /// # Errors
    /// When there are no tables.
    pub fn changing(self: &Arc<View>) -> Result<Changing, SqlError> {
        if self.tables.is_none() {
            return Err(no_tables());
        }
        let is_own = !self.has_begun();
        self.begin(Isolation::default());
        let mut state = self.state();
        state.is_alone = is_own;
        let before = state.saved();
        drop(state);
        Ok(Changing { view: Arc::clone(self), is_own, before })
    }

    // ---- savepoints ----

    /// `SAVEPOINT name`.
    ///
    /// # Errors
    /// When there are too many.
    pub fn save(&self, name: &str) -> Result<(), SqlError> {
        let mut state = self.state();
        if SAVEPOINTS_MAX <= state.savepoints.len() {
            return Err(SqlError::limit(format!("more than {SAVEPOINTS_MAX} savepoints")));
        }
        let none = |tables: &Arc<Tables>| Saved { tables: tables.begin().savepoint(), pending: 0 };
        let saved = state.saved().or_else(|| self.tables.as_ref().map(none));
        state.savepoints.extend(saved.map(|saved| (name.to_string(), saved)));
        Ok(())
    }

    /// `RELEASE name`: it and those after it are forgotten.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn release(&self, name: &str) -> Result<(), SqlError> {
        let mut state = self.state();
        let at = self.place(&state, name)?;
        state.savepoints.truncate(at);
        Ok(())
    }

    /// `ROLLBACK TO name`: what was changed since is forgotten, it itself stays.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn back_to(&self, name: &str) -> Result<(), SqlError> {
        let mut state = self.state();
        let at = self.place(&state, name)?;
        state.savepoints.truncate(at + 1);
        let saved = state.savepoints.get(at).map(|(_, saved)| saved.clone());
        if let Some(saved) = saved {
            state.back_to(saved);
        }
        Ok(())
    }

    /// Of the savepoints of a name the last one is meant.
    fn place(&self, state: &State, name: &str) -> Result<usize, SqlError> {
        if self.tables.is_none() {
            return Ok(0);
        }
        let found = state.savepoints.iter().rposition(|(one, _)| one == name);
        found.ok_or_else(|| SqlError::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }
}

/// Whether a statement comes to be, or is forgotten: which of the two is decided once.
#[derive(Debug, Default)]
pub struct Fate(AtomicU8);

const OPEN: u8 = 0;
const DONE: u8 = 1;
const FORGOTTEN: u8 = 2;

impl Fate {
    /// It is to come to be; whether it may.
    fn is_done(&self) -> bool {
        let decided = self.0.compare_exchange(OPEN, DONE, Ordering::AcqRel, Ordering::Acquire);
        decided.is_ok()
    }

    /// It is to be forgotten; whether it is.
    pub fn is_forgotten(&self) -> bool {
        let decided = self.0.compare_exchange(OPEN, FORGOTTEN, Ordering::AcqRel, Ordering::Acquire);
        decided.is_ok() || decided == Err(FORGOTTEN)
    }
}

/// A change under way. Who drops it forgets what it has done so far.
pub struct Changing {
    view: Arc<View>,
    /// Whether its transaction is its own.
    is_own: bool,
    before: Option<Saved>,
}

impl Changing {
    /// It is done: durable, if it is a transaction of its own. Waits for the disk.
    ///
    /// # Errors
    /// As [`View::commit`], and when nobody waits for it any more.
    pub fn done(mut self, fate: &Fate) -> Result<(), SqlError> {
        if !fate.is_done() {
            return Err(SqlError::new("57014", "canceling statement due to user request"));
        }
        self.before = None;
        match self.is_own {
            true => self.view.commit(),
            false => Ok(()),
        }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        if self.is_own {
            return self.view.roll_back();
        }
        self.view.state().back_to(before);
    }
}

/// Whether a hypertable is there for rows; nobody alters it until the transaction is committed.
fn rely_on(
    tables: &Tables,
    transaction: &mut Transaction,
    rows: &SeriesRows,
) -> Result<(), SqlError> {
    let found = match transaction.is_empty() {
        true => tables.get(rows.table()),
        false => {
            transaction.rely_on(rows.table());
            transaction.tables().get(rows.table())
        }
    };
    match found.filter(|table| rows.fits(table)) {
        Some(_) => Ok(()),
        None => {
            let words = format!("hypertable \"{}\" was altered meanwhile", rows.table());
            Err(SqlError::new("40001", words).with_hint("Do it again."))
        }
    }
}

/// That what is said is of tables whose rows are no samples.
fn holds_samples(name: &str) -> SqlError {
    let words = format!("\"{name}\" holds samples, of which that is not known here");
    let hint = "COPY and INSERT in a text of their own add some, DELETE takes some out, DROP TABLE all of its values.";
    SqlError::unsupported(words).with_hint(hint)
}

/// That what is said is of tables.
pub fn is_view(name: &str, kind: stored_views::Kind) -> SqlError {
    let words = format!("\"{name}\" is a {}, not a table", kind.word());
    SqlError::new("42809", words).with_hint("Its rows are those of its query: change those.")
}

/// That there is no table of a name.
pub fn no_such_table(name: &str) -> SqlError {
    SqlError::new("42P01", format!("relation \"{name}\" does not exist"))
}

fn no_tables() -> SqlError {
    SqlError::unsupported("this server has no ordinary tables")
}

/// What is wrong, in PostgreSQL's words and codes.
pub fn of_tables(error: &Error) -> SqlError {
    match error {
        Error::DuplicateTable { table } => {
            SqlError::new("42P07", format!("relation \"{table}\" already exists"))
        }
        Error::NoSuchTable { table } => no_such_table(table),
        Error::InvalidSchema { .. } => {
            let text = error.to_string();
            let is_twice = text.contains("two columns are called");
            SqlError::new(if is_twice { "42701" } else { "42P16" }, text)
        }
        Error::ColumnCount { .. } => SqlError::invalid(error.to_string()),
        Error::WrongType { .. } => SqlError::new("42804", error.to_string()),
        Error::InvalidValue { .. } => SqlError::new("22P02", error.to_string()),
        Error::NotNull { table, column } => {
            let words = format!(
                "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
            );
            let column = Some(column.clone());
            let object = ErrorObject { table: table.clone(), column, constraint: None };
            SqlError::new("23502", words).with_object(object)
        }
        Error::UniqueViolation { table, constraint, key } => {
            let words = format!("duplicate key value violates unique constraint \"{constraint}\"");
            let constraint = Some(constraint.clone());
            let object = ErrorObject { table: table.clone(), column: None, constraint };
            let error = SqlError::new("23505", words).with_object(object);
            error.with_detail(format!("Key {key} already exists."))
        }
        Error::Conflict { table } => {
            let words =
                format!("could not serialize access due to concurrent update of table \"{table}\"");
            SqlError::new("40001", words).with_hint(AGAIN)
        }
        Error::TooLarge { .. } => SqlError::limit(error.to_string()),
        Error::ReadOnly { .. } => SqlError::new("53100", error.to_string()),
        Error::Full { .. } => SqlError::new("53200", error.to_string()),
        Error::Wal(_) | Error::Vfs(_) => SqlError::new("58030", error.to_string()),
        _ => SqlError::unexpected(error.to_string()),
    }
}
