//! Threads of their own for statements: one that keeps a core busy for long keeps nobody waiting but
//! other statements, and their stacks are deep enough for the deepest expression that is let in.

use crate::error::SqlError;
use std::future::Future;
use std::io;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinHandle, block_in_place};

/// Bytes of a thread's stack, of which pages are taken that are touched: planning calls itself for
/// each step into an expression. A build without optimisation takes some 20 KiB for a step.
const STACK_SIZE: usize = 256 << 20;

/// Threads at least, more than there are cores: the system shares those out among them.
const WORKERS_MIN: usize = 16;
/// Statements that are planned at a time; what comes then waits.
const PLANNING_MAX: usize = 128;

/// The threads.
pub struct Threads(Option<Runtime>);

/// Work on them, ended when it is dropped, at the next moment at which it would let others work.
pub struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Whoever drops it may be work itself, which must not wait for threads.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Threads {
    /// Some for each core.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn new() -> io::Result<Threads> {
        let mut builder = Builder::new_multi_thread();
        builder.thread_name("quipu-sql").thread_stack_size(STACK_SIZE).enable_time();
        // A join of much with much may keep its threads for long between two moments at which it yields.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        builder.worker_threads(WORKERS_MIN.max(2 * cores));
        builder.max_blocking_threads(PLANNING_MAX);
        Ok(Threads(Some(builder.build()?)))
    }

    /// Begins work.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let runtime = self.0.as_ref().expect("it is there until it is dropped");
        Task(runtime.spawn(work))
    }

    /// Waits for work that may keep its thread busy for long without letting others work, as planning
    /// does: another thread takes over what waits for this one.
    ///
    /// # Errors
    /// Those of the work, and when it panics.
    pub async fn plan<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, SqlError>> + Send + 'static,
    ) -> Result<T, SqlError> {
        self.run(async { block_in_place(|| Handle::current().block_on(work)) }).await
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
        match (&mut task.0).await {
            Ok(done) => done,
            Err(failure) => Err(SqlError::unexpected(format!("the statement failed: {failure}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn what_nobody_waits_for_ends() {
        let threads = Threads::new().unwrap();
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
    fn who_plans_for_long_keeps_nobody_waiting() {
        let threads = std::sync::Arc::new(Threads::new().unwrap());
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (tell, told) = mpsc::channel::<()>();
        let told = std::sync::Arc::new(std::sync::Mutex::new(told));
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
        let threads = Threads::new().unwrap();
        let runtime = Builder::new_current_thread().build().unwrap();
        let failed: Result<(), _> = runtime.block_on(threads.run(async { panic!("on purpose") }));
        assert_eq!(failed.map_err(|error| error.code), Err("XX000"));
    }
}
