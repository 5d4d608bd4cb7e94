//! Advisory locks: numbers that sessions hold, so that of several programs one alone changes tables at a
//! time. They protect nothing by themselves.
//!
//! A lock is held until its session gives it back or ends; one of a transaction until that ends. What a
//! session holds it may take again, and has to give back as often.

use crate::types::error::SqlError;
use crate::types::function::function;
use async_trait::async_trait;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Locks that all sessions hold together.
const LOCKS_MAX: usize = 100_000;

/// The numbers of a lock: one of 64 bits, or two of 32, which are other locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    One(i64),
    Two(i32, i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Exclusive,
    Shared,
}

/// How long a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Until {
    SessionEnds,
    TransactionEnds,
}

/// Who holds a lock, and how.
type Holder = (u64, Kind, Until);

/// The locks of all sessions.
#[derive(Debug)]
pub struct Locks {
    /// How often each holder has taken a lock.
    held: Mutex<BTreeMap<Key, BTreeMap<Holder, usize>>>,
    freed: Notify,
    sessions: AtomicU64,
    waiting: AtomicUsize,
    waiting_max: usize,
}

/// What one session holds. Whoever has it gives all back with [`Held::release_all`].
#[derive(Debug)]
pub struct Held {
    locks: Arc<Locks>,
    session: u64,
}

impl Locks {
    /// No locks; so many statements may wait for one at a time.
    pub fn new(waiting_max: usize) -> Locks {
        Locks {
            held: Mutex::default(),
            freed: Notify::new(),
            sessions: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            waiting_max,
        }
    }

    /// A session begins.
    pub fn session(self: &Arc<Locks>) -> Held {
        Held { locks: self.clone(), session: self.sessions.fetch_add(1, Ordering::Relaxed) }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Key, BTreeMap<Holder, usize>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Takes a lock if nobody else has it.
    fn try_take(&self, key: Key, kind: Kind, until: Until) -> Result<bool, SqlError> {
        let mut held = self.locks.held();
        let holders = held.get(&key);
        let is_in_the_way = |(session, other, _): &Holder| {
            *session != self.session && (kind == Kind::Exclusive || *other == Kind::Exclusive)
        };
        if holders.is_some_and(|all| all.keys().any(is_in_the_way)) {
            return Ok(false);
        }
        if holders.is_none() && LOCKS_MAX <= held.len() {
            return Err(SqlError::new("53200", format!("more than {LOCKS_MAX} advisory locks")));
        }
        *held.entry(key).or_default().entry((self.session, kind, until)).or_default() += 1;
        Ok(true)
    }

    /// Takes a lock once it is free.
    async fn take(&self, key: Key, kind: Kind, until: Until) -> Result<(), SqlError> {
        let mut waiter = None;
        loop {
            let freed = self.locks.freed.notified();
            let mut freed = std::pin::pin!(freed);
            // Told of what is freed from here on, so that nothing is missed between looking and waiting.
            freed.as_mut().enable();
            if self.try_take(key, kind, until)? {
                return Ok(());
            }
            if waiter.is_none() {
                waiter = Some(Waiter::begin(&self.locks)?);
            }
            freed.await;
        }
    }

    /// Gives a lock of the session back: whether it was held.
    fn release(&self, key: Key, kind: Kind) -> bool {
        let mut held = self.locks.held();
        let Some(holders) = held.get_mut(&key) else { return false };
        let holder = (self.session, kind, Until::SessionEnds);
        let Some(count) = holders.get_mut(&holder) else { return false };
        *count -= 1;
        if *count == 0 {
            holders.remove(&holder);
        }
        if holders.is_empty() {
            held.remove(&key);
        }
        drop(held);
        self.locks.freed.notify_waiters();
        true
    }

    fn release_where(&self, is_one: impl Fn(Until) -> bool) {
        self.locks.held().retain(|_, holders| {
            holders.retain(|(session, _, until), _| *session != self.session || !is_one(*until));
            !holders.is_empty()
        });
        self.locks.freed.notify_waiters();
    }

    /// The transaction has ended.
    pub fn end_transaction(&self) {
        if !self.locks.held().is_empty() {
            self.release_where(|until| until == Until::TransactionEnds);
        }
    }

    /// Gives back what the session has taken, and not what its transaction has.
    fn release_session(&self) {
        self.release_where(|until| until == Until::SessionEnds);
    }

    /// The session has ended.
    pub fn release_all(&self) {
        self.release_where(|_| true);
    }
}

/// One that waits, as long as it does.
struct Waiter<'a>(&'a Locks);

impl Waiter<'_> {
    fn begin(locks: &Locks) -> Result<Waiter<'_>, SqlError> {
        // Counted before it is looked at: two do not both take the last place.
        let waiter = Waiter(locks);
        let before = locks.waiting.fetch_add(1, Ordering::Relaxed);
        if locks.waiting_max <= before {
            let words = format!(
                "{before} statements wait for advisory locks, and who waits has a place among those that \
                 run"
            );
            let hint = "Ask again with pg_try_advisory_lock, or raise --query.max-concurrency.";
            return Err(SqlError::new("55P03", words).with_hint(hint));
        }
        Ok(waiter)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a transaction is under way: what is to be held until it ends is held no longer than its
/// statement else.
pub type HasBegun = Arc<dyn Fn() -> bool + Send + Sync>;

/// The functions of a session.
pub fn functions(held: &Arc<Held>, has_begun: &HasBegun) -> Vec<ScalarUDF> {
    let mut all = Vec::new();
    for (name, try_name, kind, until) in [
        ("pg_advisory_lock", "pg_try_advisory_lock", Kind::Exclusive, Until::SessionEnds),
        (
            "pg_advisory_lock_shared",
            "pg_try_advisory_lock_shared",
            Kind::Shared,
            Until::SessionEnds,
        ),
        (
            "pg_advisory_xact_lock",
            "pg_try_advisory_xact_lock",
            Kind::Exclusive,
            Until::TransactionEnds,
        ),
        (
            "pg_advisory_xact_lock_shared",
            "pg_try_advisory_xact_lock_shared",
            Kind::Shared,
            Until::TransactionEnds,
        ),
    ] {
        let take = Take { name, held: held.clone(), has_begun: has_begun.clone(), kind, until };
        all.push(AsyncScalarUDF::new(Arc::new(take.clone())).into_scalar_udf());
        all.push(answered(try_name, move |key| {
            let taken = take.held.try_take(key, kind, until)?;
            take.end_alone();
            Ok(taken)
        }));
    }
    for (name, kind) in
        [("pg_advisory_unlock", Kind::Exclusive), ("pg_advisory_unlock_shared", Kind::Shared)]
    {
        let held = held.clone();
        all.push(answered(name, move |key| Ok(held.release(key, kind))));
    }
    let held = held.clone();
    let signature = Signature::nullary(Volatility::Volatile);
    let returns = |_: &[DataType]| DataType::Utf8View;
    all.push(function("pg_advisory_unlock_all", signature, returns, move |_, rows| {
        held.release_session();
        Ok(Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n("", rows))) as ArrayRef)
    }));
    all
}

fn numbers() -> Signature {
    let of = |count| TypeSignature::Exact(vec![DataType::Int64; count]);
    Signature::one_of(vec![of(1), of(2)], Volatility::Volatile)
}

/// The locks that rows of arguments name; none where one is null.
fn keys(args: &[ArrayRef], rows: usize) -> Result<Vec<Option<Key>>> {
    let number = |at: usize, row: usize| {
        let column: &datafusion::arrow::array::Int64Array = args[at].as_primitive::<Int64Type>();
        column.is_valid(row).then(|| column.value(row))
    };
    let small = |number: i64| {
        i32::try_from(number).map_err(|_| outside(SqlError::new("22003", "integer out of range")))
    };
    let key = |row| match args.len() {
        1 => Ok(number(0, row).map(Key::One)),
        _ => match (number(0, row), number(1, row)) {
            (Some(first), Some(second)) => Ok(Some(Key::Two(small(first)?, small(second)?))),
            _ => Ok(None),
        },
    };
    (0..rows).map(key).collect()
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A function that says at once whether it did something to a lock.
fn answered(
    name: &'static str,
    work: impl Fn(Key) -> Result<bool, SqlError> + Send + Sync + 'static,
) -> ScalarUDF {
    function(
        name,
        numbers(),
        |_| DataType::Boolean,
        move |args, rows| {
            let each = |key: Option<Key>| key.map(&work).transpose().map_err(outside);
            let made: Result<BooleanArray> = keys(args, rows)?.into_iter().map(each).collect();
            Ok(Arc::new(made?) as ArrayRef)
        },
    )
}

/// A function that waits for a lock.
#[derive(Clone)]
struct Take {
    name: &'static str,
    held: Arc<Held>,
    has_begun: HasBegun,
    kind: Kind,
    until: Until,
}

impl Take {
    /// Without a transaction the statement is one, and here it ends at once.
    fn end_alone(&self) {
        if self.until == Until::TransactionEnds && !(self.has_begun)() {
            self.held.end_transaction();
        }
    }
}

impl std::fmt::Debug for Take {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Take {
    fn eq(&self, other: &Take) -> bool {
        self.name == other.name
    }
}

impl Eq for Take {}

impl std::hash::Hash for Take {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Take {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        static NUMBERS: std::sync::LazyLock<Signature> = std::sync::LazyLock::new(numbers);
        &NUMBERS
    }

    /// `void`, which clients show as an empty text.
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        datafusion::common::internal_err!("it waits, and is not called otherwise")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Take {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays: Result<Vec<ArrayRef>> =
            args.args.iter().map(|one| one.to_array(rows)).collect();
        let keys = keys(&arrays?, rows)?;
        for key in keys.iter().flatten() {
            self.held.take(*key, self.kind, self.until).await.map_err(outside)?;
            self.end_alone();
        }
        let made: StringViewArray = keys.iter().map(|key| key.map(|_| "")).collect();
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Exclusive, Shared};
    use Until::{SessionEnds, TransactionEnds};

    const KEY: Key = Key::One(7);

    #[test]
    fn a_lock_is_held_by_one_or_shared_by_many() {
        let locks = Arc::new(Locks::new(1));
        let (first, second) = (locks.session(), locks.session());
        assert!(first.try_take(KEY, Exclusive, SessionEnds).unwrap());
        assert!(first.try_take(KEY, Shared, TransactionEnds).unwrap());
        assert!(!second.try_take(KEY, Shared, SessionEnds).unwrap());
        assert!(second.try_take(Key::Two(0, 7), Exclusive, SessionEnds).unwrap());
        assert!(first.release(KEY, Exclusive) && !first.release(KEY, Exclusive));
        assert!(second.try_take(KEY, Shared, SessionEnds).unwrap());
        assert!(!second.try_take(KEY, Exclusive, SessionEnds).unwrap());
        first.end_transaction();
        assert!(second.try_take(KEY, Exclusive, SessionEnds).unwrap());
        second.release_all();
        assert!(locks.held().is_empty());
    }

    #[tokio::test]
    async fn who_waits_takes_what_is_freed_and_no_more_wait_than_may() {
        let locks = Arc::new(Locks::new(1));
        let (first, second, third) = (locks.session(), Arc::new(locks.session()), locks.session());
        assert!(first.try_take(KEY, Exclusive, SessionEnds).unwrap());
        let waiting = second.clone();
        let waiting = tokio::spawn(async move { waiting.take(KEY, Exclusive, SessionEnds).await });
        while locks.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let refused = third.take(KEY, Exclusive, SessionEnds).await.map_err(|error| error.code);
        assert_eq!(refused, Err("55P03"));
        first.release_all();
        waiting.await.unwrap().unwrap();
        assert_eq!(locks.waiting.load(Ordering::Relaxed), 0);
        assert!(!third.try_take(KEY, Exclusive, SessionEnds).unwrap());
    }
}
