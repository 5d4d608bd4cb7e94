//! State of the server of Redis' clients, shared by all its connections.

use crate::acl::User;
use crate::clients::client::{Client, Outbox};
use crate::clients::client_state::State;
use crate::clients::session::Session;
use crate::hub::{Hub, HubGuard, HubMutex};
use crate::memory::client_memory::{CLIENTS_SHARE, ClientMemory};
use crate::memory::room::Room;
use crate::out;
use crate::persistence::durable::Durable;
use crate::persistence::fetching::Flights;
use crate::persistence::saving::Saving;
use crate::replication::Replication;
use crate::scripting::Scripting;
use app::App;
use kv::Kv;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The door.
pub struct Redis {
    /// What all doors share.
    pub app: Arc<App>,
    /// The keys.
    pub kv: Arc<Kv>,
    /// Where it listens.
    pub address: SocketAddr,
    /// Connections that there may be at most, as the flags say.
    pub connections_max: usize,
    /// Time after which silent clients are closed, in milliseconds; 0 never.
    pub idle_timeout_ms: AtomicU64,
    /// Milliseconds since the epoch at the start.
    pub started_ms: i64,
    /// A name of this run.
    pub run_id: String,
    /// Checkpoints that somebody asked for.
    pub saving: Arc<Saving>,
    /// Scripts.
    pub scripting: Scripting,
    /// Who waits for the disk.
    pub durable: Durable,
    /// What is read from disk.
    pub flights: Arc<Flights>,
    /// Replicas, and this server as one.
    pub replication: Arc<Replication>,
    /// Buffers of all clients.
    pub client_memory: Arc<ClientMemory>,
    /// Memory that keys may take.
    pub room: Room,
    /// Itself, for work that outlives a command.
    this: Weak<Redis>,
    /// Damage to a file of credentials, in words. Every client is refused then.
    pub credentials_fault: OnceLock<String>,
    hub: HubMutex,
}

impl Redis {
    /// A door to those keys.
    pub fn new(
        app: Arc<App>,
        kv: Arc<Kv>,
        idle_timeout: Option<Duration>,
        address: SocketAddr,
        connections_max: usize,
    ) -> Arc<Redis> {
        let name = || (0..5).map(|_| format!("{:08x}", app.vfs.random() as u32)).collect();
        let (run_id, replication_id): (String, String) = (name(), name());
        let idle_ms = idle_timeout.map_or(0, |time| time.as_millis() as u64);
        let clients_max = app.config.memory_limit / CLIENTS_SHARE;
        let clients_max = usize::try_from(clients_max).unwrap_or(usize::MAX);
        out::limit_answers(clients_max);
        let client_memory = Arc::new(ClientMemory::new(clients_max));
        let redis = Arc::new_cyclic(|this| Redis {
            this: this.clone(),
            started_ms: kv.now_ms(),
            credentials_fault: OnceLock::new(),
            hub: HubMutex::new(Hub::new(replication_id, client_memory.clone())),
            scripting: Scripting::default(),
            durable: Durable::default(),
            flights: Arc::default(),
            replication: Arc::default(),
            idle_timeout_ms: AtomicU64::new(idle_ms),
            app,
            kv,
            address,
            connections_max,
            run_id,
            saving: Arc::default(),
            client_memory,
            room: Room::default(),
        });
        redis.saving.at_s.store(redis.started_ms / 1000, Relaxed);
        redis
    }

    /// Owning reference, for work that outlives a command; none while the server ends.
    pub fn to_shared(&self) -> Option<Arc<Redis>> {
        self.this.upgrade()
    }

    /// A name that nobody else has: forty letters.
    pub fn new_name(&self) -> String {
        (0..5).map(|_| format!("{:08x}", self.app.vfs.random() as u32)).collect()
    }

    /// Locks what connections share, after the keys. `hub/guard.rs` has the order of locks.
    #[inline]
    pub fn hub(&self) -> HubGuard<'_> {
        self.hub.lock()
    }

    /// Whether who says nothing is the default user.
    pub fn lets_in(&self, default: &User) -> bool {
        !self.app.config.credentials.are_required() && default.is_on && default.needs_no_password
    }

    /// Takes a client in; none if there are as many as may be.
    pub fn enter(&self, peer: Option<SocketAddr>) -> Option<Session> {
        {
            let mut hub = self.hub();
            if hub.settings.hot.clients_max <= hub.clients.len() {
                hub.stats.rejected_count += 1;
                return None;
            }
        }
        Some(self.enter_always(peer))
    }

    /// Takes a client in, however many there are.
    pub fn enter_always(&self, peer: Option<SocketAddr>) -> Session {
        let now_ms = self.kv.now_ms();
        let mut hub = self.hub();
        let outbox = Arc::new(Outbox::new(self.client_memory.clone()));
        let state = Arc::<State>::default();
        state.active_ms.store(now_ms, Relaxed);
        let user = hub.acl.user(b"default").cloned();
        let user = user.unwrap_or_else(|| Arc::new(User::default_one()));
        let id = hub.new_id();
        let client = Client {
            id,
            peer,
            local: self.address,
            outbox,
            is_dirty: Arc::default(),
            state,
            version: 2,
            name: Vec::new(),
            lib_name: Vec::new(),
            lib_version: Vec::new(),
            user: b"default".as_slice().into(),
            since_ms: now_ms,
            tracking: None,
            is_monitor: false,
            is_kept: false,
            is_traceless: false,
        };
        let mut session = Session::of(&client, user, hub.acl.generation);
        session.is_known = self.lets_in(&session.user);
        hub.clients.insert(id, client);
        session
    }

    /// Forgets a client.
    pub fn leave(&self, session: &Session) {
        let mut keys = self.kv.lock();
        self.hub().remove(session.id, &mut keys);
    }
}
