//! A thread for each core, with an event loop of its own. A connection is given to the one that has
//! the fewest, and stays there (`docs/decisions/0026`).
//!
//! What is short is answered where it arrives (`docs/decisions/0007`). In one event loop that several
//! threads share, the thread that looks for events is often the one that answers: two connections then
//! wait for each other while a core idles.

use crate::admission::{CONTROLS_MAX, SUSPENDED_MAX};
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// Bytes of a thread's stack: a thousand steps into an expression, in a build without optimisation.
const STACK_SIZE: usize = 32 << 20;
/// How long the end of a core waits for what its connections left behind on worker threads.
const END_PATIENCE: Duration = Duration::from_millis(100);

/// The threads that serve connections; they end when this is dropped.
pub struct Cores(Vec<Core>);

struct Core {
    loop_: Handle,
    /// How many connections it serves.
    open: Arc<AtomicUsize>,
    /// Dropped to end it.
    _end: oneshot::Sender<()>,
}

impl Cores {
    /// Starts as many as the process may use at a time, for `requests_max` requests that run at a time.
    ///
    /// # Errors
    /// When there are no more threads or files to be had.
    pub fn start(requests_max: usize) -> io::Result<Cores> {
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        let workers_max = workers_max(requests_max);
        Ok(Cores((0..count).map(|at| Core::start(at, workers_max)).collect::<io::Result<_>>()?))
    }

    /// Serves a connection. `serving` is called on its core, with nothing when the socket did not
    /// survive the way there.
    pub fn serve<F>(
        &self,
        socket: TcpStream,
        serving: impl FnOnce(Option<TcpStream>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let fewest = self.0.iter().min_by_key(|core| core.open.load(Relaxed));
        let core = fewest.expect("there is at least one");
        let place = Place::taken(&core.open);
        // Events of a socket are heard where it was registered.
        let socket = socket.into_std();
        core.loop_.spawn(async move {
            let socket = socket.and_then(TcpStream::from_std);
            let socket = socket.inspect_err(|error| tracing::warn!(%error, "a connection is lost"));
            serving(socket.ok()).await;
            drop(place);
        });
    }
}

/// A place among a core's connections, free again when dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn taken(open: &Arc<AtomicUsize>) -> Place {
        open.fetch_add(1, Relaxed);
        Place(open.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Relaxed);
        assert!(0 < before, "a place was taken before it is free again");
    }
}

impl Core {
    fn start(at: usize, workers_max: usize) -> io::Result<Core> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .thread_name("quipu-worker")
            .max_blocking_threads(workers_max)
            .build()?;
        let loop_ = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new()
            .name(format!("quipu-core-{at}"))
            // A short statement is read and planned here; pages are taken that are touched.
            .stack_size(STACK_SIZE)
            .spawn(move || run(runtime, ended))?;
        Ok(Core { loop_, open: Arc::default(), _end: end })
    }
}

fn run(runtime: Runtime, ended: oneshot::Receiver<()>) {
    // Nothing is ever sent: the sender is dropped.
    let _ = runtime.block_on(ended);
    runtime.shutdown_timeout(END_PATIENCE);
}

/// Workers of a core: one for each request that may run at a time or waits for its client, and some for
/// short orders.
fn workers_max(requests_max: usize) -> usize {
    requests_max.saturating_add(SUSPENDED_MAX + CONTROLS_MAX + 16).min(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::mpsc;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    fn cores(count: usize) -> Cores {
        let start = |at| Core::start(at, 4).expect("a core");
        Cores((0..count).map(start).collect())
    }

    async fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).await.expect("a connection");
        (client, listener.accept().await.expect("a connection").0)
    }

    /// Serves a connection until its client goes; says the thread that does.
    fn serve(cores: &Cores, socket: TcpStream, named: &mpsc::Sender<String>) {
        let named = named.clone();
        cores.serve(socket, |socket| async move {
            let name = thread::current().name().expect("a name").to_owned();
            named.send(name).expect("somebody hears");
            let _ = socket.expect("a socket").read(&mut [0]).await;
        });
    }

    #[test]
    fn a_connection_goes_to_the_core_that_has_fewest_and_is_served_there() {
        let runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let (cores, (named, names)) = (cores(2), mpsc::channel());
            let mut clients = Vec::new();
            for expected in ["quipu-core-0", "quipu-core-1", "quipu-core-0"] {
                let (client, socket) = pair(&listener).await;
                clients.push(client);
                serve(&cores, socket, &named);
                assert_eq!(names.recv().expect("a name"), expected);
            }
            let open = |at: usize| cores.0[at].open.load(Relaxed);
            assert_eq!((open(0), open(1)), (2, 1));
            clients.clear();
            while 0 < open(0) + open(1) {
                thread::yield_now();
            }
        });
    }

    #[test]
    fn a_machine_has_a_core() {
        assert!(!Cores::start(4).expect("threads").0.is_empty());
    }
}
