//! `LISTEN` and `NOTIFY` (<https://www.postgresql.org/docs/15/sql-notify.html>): a notification reaches the connections
//! that listen to its channel when the transaction of its sender is committed. It is not stored.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// Bytes of a payload, as in PostgreSQL.
const PAYLOAD_SIZE_MAX: usize = 7_999;
/// Bytes of a channel's name, as in PostgreSQL.
const CHANNEL_SIZE_MAX: usize = 63;
/// Channels of a connection.
const CHANNELS_MAX: usize = 10_000;
/// Statements about notifications in a transaction.
const ACTIONS_MAX: usize = 10_000;
/// Bytes of notifications that wait for a connection.
const WAITING_SIZE_MAX: usize = 4 << 20;
/// Bytes that a notification takes beside its texts.
const OVERHEAD: usize = 96;

/// A statement that is done when its transaction is committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Listen(String),
    /// All channels for none.
    Unlisten(Option<String>),
    Notify {
        channel: String,
        payload: String,
    },
}

/// A notification on its way to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The number of the connection that sent it.
    pub pid: i32,
    pub channel: String,
    pub payload: String,
}

impl Notification {
    fn size(&self) -> usize {
        OVERHEAD + self.channel.len() + self.payload.len()
    }
}

/// The statements of a transaction.
#[derive(Debug, Default)]
pub struct Actions(Mutex<Vec<Action>>);

impl Actions {
    fn all(&self) -> MutexGuard<'_, Vec<Action>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a statement.
    ///
    /// # Errors
    /// Returns the SQLSTATE and the message for names and payloads beyond PostgreSQL's limits, and for too many statements.
    pub fn add(&self, action: Action) -> Result<(), (&'static str, String)> {
        let channel = match &action {
            Action::Listen(channel) | Action::Notify { channel, .. } => channel,
            Action::Unlisten(_) => "x",
        };
        if channel.is_empty() {
            return Err(("22023", "channel name cannot be empty".into()));
        }
        if CHANNEL_SIZE_MAX < channel.len() {
            return Err(("22023", "channel name too long".into()));
        }
        if matches!(&action, Action::Notify { payload, .. } if PAYLOAD_SIZE_MAX < payload.len()) {
            return Err(("22023", "payload string too long".into()));
        }
        let mut all = self.all();
        if ACTIONS_MAX <= all.len() {
            let words =
                format!("a transaction has at most {ACTIONS_MAX} LISTEN, UNLISTEN and NOTIFY");
            return Err(("54000", words));
        }
        all.push(action);
        Ok(())
    }

    /// Forgets the statements of a transaction that is rolled back.
    pub fn clear(&self) {
        self.all().clear();
    }

    /// Takes the statements; equal notifications are one.
    fn take(&self) -> Vec<Action> {
        let mut seen = HashSet::new();
        let mut all = std::mem::take(&mut *self.all());
        all.retain(|one| !matches!(one, Action::Notify { .. }) || seen.insert(one.clone()));
        all
    }
}

/// Notifications that wait for a connection, and the channels it listens to.
#[derive(Debug, Default)]
pub struct Inbox {
    state: Mutex<InboxState>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct InboxState {
    channels: BTreeSet<String>,
    waiting: VecDeque<Notification>,
    size: usize,
    has_lost: bool,
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, notification: &Notification) {
        let mut state = self.state();
        if !state.channels.contains(&notification.channel) {
            return;
        }
        let size = state.size + notification.size();
        if WAITING_SIZE_MAX < size {
            state.has_lost = true;
        } else {
            state.size = size;
            state.waiting.push_back(notification.clone());
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// Takes what waits, in the order in which it was sent.
    ///
    /// # Errors
    /// If the connection read so slowly that notifications are lost.
    pub fn take(&self) -> Result<VecDeque<Notification>, &'static str> {
        let mut state = self.state();
        if state.has_lost {
            return Err("too many notifications wait for this connection: some are lost");
        }
        state.size = 0;
        Ok(std::mem::take(&mut state.waiting))
    }

    /// Forgets all channels and notifications.
    pub fn clear(&self) {
        *self.state() = InboxState::default();
    }

    fn has_some(&self) -> bool {
        let state = self.state();
        !state.waiting.is_empty() || state.has_lost
    }

    /// Waits until a notification is there.
    pub async fn arrived(&self) {
        loop {
            let arrived = self.arrived.notified();
            if self.has_some() {
                return;
            }
            arrived.await;
        }
    }
}

/// The connections that have listened.
#[derive(Debug, Default)]
pub struct Notifications(Mutex<Vec<Weak<Inbox>>>);

impl Notifications {
    fn all(&self) -> MutexGuard<'_, Vec<Weak<Inbox>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes the statements of a committed transaction.
    ///
    /// # Errors
    /// If the connection listens to too many channels.
    pub fn commit(&self, pid: i32, actions: &Actions, own: &Arc<Inbox>) -> Result<(), String> {
        for action in actions.take() {
            match action {
                Action::Listen(channel) => self.listen(channel, own)?,
                Action::Unlisten(None) => own.state().channels.clear(),
                Action::Unlisten(Some(channel)) => {
                    own.state().channels.remove(&channel);
                }
                Action::Notify { channel, payload } => {
                    let notification = Notification { pid, channel, payload };
                    self.all()
                        .iter()
                        .filter_map(Weak::upgrade)
                        .for_each(|one| one.put(&notification));
                }
            }
        }
        Ok(())
    }

    fn listen(&self, channel: String, own: &Arc<Inbox>) -> Result<(), String> {
        {
            let mut state = own.state();
            if CHANNELS_MAX <= state.channels.len() {
                return Err(format!("a connection listens to at most {CHANNELS_MAX} channels"));
            }
            state.channels.insert(channel);
        }
        let mut all = self.all();
        all.retain(|one| 0 < one.strong_count());
        if !all.iter().any(|one| std::ptr::eq(one.as_ptr(), Arc::as_ptr(own))) {
            all.push(Arc::downgrade(own));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notify(channel: &str, payload: &str) -> Action {
        Action::Notify { channel: channel.into(), payload: payload.into() }
    }

    #[test]
    fn notifications_reach_those_who_listen() {
        let (all, actions) = (Notifications::default(), Actions::default());
        let (one, other) = (Arc::new(Inbox::default()), Arc::new(Inbox::default()));
        actions.add(Action::Listen("a".into())).unwrap();
        all.commit(1, &actions, &one).unwrap();
        actions.add(Action::Listen("b".into())).unwrap();
        all.commit(2, &actions, &other).unwrap();
        for action in [notify("a", "x"), notify("a", "x"), notify("a", "y"), notify("c", "z")] {
            actions.add(action).unwrap();
        }
        all.commit(2, &actions, &other).unwrap();
        let payloads: Vec<_> =
            one.take().unwrap().into_iter().map(|one| (one.pid, one.payload)).collect();
        assert_eq!(payloads, [(2, "x".to_string()), (2, "y".to_string())]);
        assert!(other.take().unwrap().is_empty());
        actions.add(Action::Unlisten(None)).unwrap();
        actions.add(notify("a", "x")).unwrap();
        all.commit(1, &actions, &one).unwrap();
        assert!(one.take().unwrap().is_empty());
    }

    #[test]
    fn limits_are_those_of_postgresql_and_slow_readers_learn_of_losses() {
        let (all, actions) = (Notifications::default(), Actions::default());
        let own = Arc::new(Inbox::default());
        let code = |action| actions.add(action).map_err(|(code, _)| code);
        assert_eq!(code(notify("", "")), Err("22023"));
        assert_eq!(code(notify(&"x".repeat(64), "")), Err("22023"));
        assert_eq!(code(notify("a", &"x".repeat(8_000))), Err("22023"));
        assert_eq!(code(Action::Listen("a".into())), Ok(()));
        for number in 0..WAITING_SIZE_MAX / PAYLOAD_SIZE_MAX + 2 {
            actions.add(notify("a", &format!("{number:0>7999}"))).unwrap();
        }
        all.commit(1, &actions, &own).unwrap();
        assert!(own.take().is_err());
        for _ in 0..ACTIONS_MAX {
            actions.add(Action::Unlisten(None)).unwrap();
        }
        assert_eq!(code(Action::Unlisten(None)), Err("54000"));
    }
}
