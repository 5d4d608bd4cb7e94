//! Threads of their own for statements: one that keeps a core busy for long keeps nobody waiting but
//! other statements, and their stacks are deep enough for the deepest expression that is let in.

use crate::types::error::SqlError;
use crate::types::runtime::cancellation::Cancellation;
use crate::types::runtime::statement_scope::StatementScope;
use datafusion::execution::memory_pool::MemoryPool;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{JoinError, JoinHandle, block_in_place};
use tokio::time::Sleep;

/// Bytes of a thread's stack, of which pages are taken that are touched: planning calls itself for
/// each step into an expression. A build without optimisation takes some 20 KiB for a step.
const STACK_SIZE: usize = 256 << 20;

/// Threads at least, more than there are cores: the system shares those out among them.
const WORKERS_MIN: usize = 16;
/// Statements that are planned at a time; what comes then waits.
const PLANNING_MAX: usize = 128;

/// Texts that are read one after the other: reading takes a hundred times their bytes.
const LONG_TEXT_SIZE: usize = 256 << 10;
/// Long texts that are read at a time.
const READERS_MAX: usize = 2;

/// The threads.
pub struct Threads {
    runtime: Option<Runtime>,
    memory: Arc<dyn MemoryPool>,
    /// How long reading and planning a statement may take.
    timeout: Duration,
    /// Turns to read long texts.
    readers: Semaphore,
}

/// Work on them, ended when it is dropped, at the next moment at which it yields or checks for cancellation.
pub struct Task<T>(JoinHandle<T>, Cancellation);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        // Tasks that finished work has spawned, such as those of a plan that now runs, inherited its
        // cancellation and go on.
        if !self.0.is_finished() {
            self.1.cancel();
            self.0.abort();
        }
    }
}

impl<T> Task<T> {
    /// Waits for the end of the work. To be called once.
    ///
    /// # Errors
    /// When it panicked.
    pub async fn join(&mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Whoever drops it may be work itself, which must not wait for threads.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Threads {
    /// Some for each core. Their work shares `memory`; planning takes no longer than `timeout`.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn new(memory: Arc<dyn MemoryPool>, timeout: Duration) -> io::Result<Threads> {
        let mut builder = Builder::new_multi_thread();
        builder.thread_name("quipu-sql").thread_stack_size(STACK_SIZE).enable_time();
        // A join of much with much may keep its threads for long between two moments at which it yields.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        builder.worker_threads(WORKERS_MIN.max(2 * cores));
        builder.max_blocking_threads(PLANNING_MAX);
        Ok(Threads {
            runtime: Some(builder.build()?),
            memory,
            timeout,
            readers: Semaphore::new(READERS_MAX),
        })
    }

    /// Memory that their work shares.
    pub fn memory(&self) -> &Arc<dyn MemoryPool> {
        &self.memory
    }

    /// Waits until a text of that size may be read; it may until this is dropped.
    pub async fn turn_to_read(&self, size: usize) -> Option<SemaphorePermit<'_>> {
        match size < LONG_TEXT_SIZE {
            true => None,
            // It is never closed.
            false => self.readers.acquire().await.ok(),
        }
    }

    /// Begins work of a statement.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        self.spawn_for(StatementScope::default(), work)
    }

    /// Goes on with the work of a statement: when this is dropped, all of it is cancelled.
    pub fn spawn_for<T: Send + 'static>(
        &self,
        mut scope: StatementScope,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let runtime = self.runtime.as_ref().expect("it is there until it is dropped");
        scope.memory.get_or_insert_with(|| self.memory.clone());
        let cancellation = scope.cancellation.clone();
        Task(runtime.spawn(scope.run(work)), cancellation)
    }

    /// Waits for work that may keep its thread busy for long without letting others work, as planning
    /// does: another thread takes over what waits for this one. It is cancelled when its time is over.
    ///
    /// # Errors
    /// Errors of the work; `57014` when its time is over; an error when it panics.
    pub async fn plan<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, SqlError>> + Send + 'static,
    ) -> Result<T, SqlError> {
        let planning = self.run(async { block_in_place(|| Handle::current().block_on(work)) });
        tokio::select! {
            biased;
            planned = planning => planned,
            () = self.wait() => {
                let time = self.timeout;
                let words = format!("canceling statement due to statement timeout ({time:?}; query.timeout)");
                Err(SqlError::new("57014", words))
            }
        }
    }

    /// Waits until the time of a statement that begins now is over.
    fn wait(&self) -> Sleep {
        // Whoever waits for a statement may have no clock.
        let _within = self.runtime.as_ref().map(Runtime::enter);
        tokio::time::sleep(self.timeout)
    }

    /// Waits for work, which ends with whoever waits.
    ///
    /// # Errors
    /// Those of the work, and when it panics.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, SqlError>> + Send + 'static,
    ) -> Result<T, SqlError> {
        let mut task = self.spawn(work);
        match task.join().await {
            Ok(done) => done,
            Err(failure) => Err(SqlError::unexpected(format!("the statement failed: {failure}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use std::sync::mpsc;

    fn threads(timeout: Duration) -> Threads {
        Threads::new(Arc::new(UnboundedMemoryPool::default()), timeout).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn planning_ends_with_its_time_and_is_cancelled() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let threads = threads(Duration::from_millis(10));
        let (told, ended) = mpsc::channel();
        let failed = runtime.block_on(threads.plan(async move {
            while crate::types::runtime::cancellation::check().is_ok() {
                std::thread::yield_now();
            }
            let _ = told.send(());
            Ok(())
        }));
        assert_eq!(failed.map_err(|error| error.code), Err("57014"));
        ended.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn what_nobody_waits_for_ends() {
        let threads = threads(LONG);
        let (told, ended) = mpsc::channel();
        struct Tell(mpsc::Sender<()>);
        impl Drop for Tell {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let tell = Tell(told);
        let task = threads.spawn(async move {
            let _tell = tell;
            std::future::pending::<()>().await;
        });
        drop(task);
        ended.recv_timeout(Duration::from_secs(30)).unwrap();
    }

    #[test]
    fn finished_work_cancels_nothing_that_it_spawned() {
        let threads = threads(LONG);
        let runtime = Builder::new_current_thread().build().unwrap();
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let spawned = runtime.block_on(threads.run(async {
            let later = async {
                let _ = gone.await;
                crate::types::runtime::cancellation::check().map_err(SqlError::from)
            };
            let inherited = crate::types::runtime::statement_scope::current().unwrap_or_default();
            Ok(tokio::spawn(inherited.run(later)))
        }));
        let _ = go.send(());
        assert!(runtime.block_on(spawned.unwrap()).unwrap().is_ok());
    }

    #[test]
    fn who_plans_for_long_keeps_nobody_waiting() {
        let threads = Arc::new(threads(LONG));
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (tell, told) = mpsc::channel::<()>();
        let told = Arc::new(std::sync::Mutex::new(told));
        for _ in 0..16 {
            let (threads, told) = (threads.clone(), told.clone());
            // Each keeps its thread until somebody else has been served.
            runtime.spawn(async move {
                let wait = async move {
                    let _ = told.lock().map(|told| told.recv());
                    Ok(())
                };
                threads.plan(wait).await
            });
        }
        let other = threads.plan(async { Ok(7) });
        assert_eq!(runtime.block_on(other).unwrap(), 7);
        drop(tell);
    }

    #[test]
    fn a_panic_is_an_error() {
        let threads = threads(LONG);
        let runtime = Builder::new_current_thread().build().unwrap();
        let failed: Result<(), _> = runtime.block_on(threads.run(async { panic!("on purpose") }));
        assert_eq!(failed.map_err(|error| error.code), Err("XX000"));
    }
}
