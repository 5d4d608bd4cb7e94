//! Work on many pieces by several threads, until all is done or one of them fails.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Does all jobs, `threads` at a time; after the first error no other job begins.
///
/// # Errors
/// The first one of a job.
pub fn in_parallel<T: Sync>(
    jobs: &[T],
    threads: usize,
    work: impl Fn(&T) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let (next, is_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let run = || -> anyhow::Result<()> {
        while !is_failed.load(Ordering::Relaxed) {
            let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            if let Err(error) = work(job) {
                is_failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let count = threads.min(jobs.len());
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(run)).collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_job_is_done_once() {
        for threads in [1, 3, 50] {
            let done = Mutex::new(Vec::new());
            let jobs: Vec<u32> = (0..40).collect();
            in_parallel(&jobs, threads, |job| {
                done.lock().expect("no panic").push(*job);
                Ok(())
            })
            .expect("no errors");
            let mut done = done.into_inner().expect("no panic");
            done.sort_unstable();
            assert_eq!(done, jobs);
        }
    }

    #[test]
    fn an_error_ends_it() {
        let begun = AtomicUsize::new(0);
        let failed = in_parallel(&[1; 100], 1, |_| match begun.fetch_add(1, Ordering::Relaxed) {
            4 => anyhow::bail!("the fifth"),
            _ => Ok(()),
        });
        assert_eq!(failed.expect_err("it fails").to_string(), "the fifth");
        assert_eq!(begun.into_inner(), 5);
    }
}
