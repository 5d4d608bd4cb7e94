//! Options of the measurement, and its questions.

use crate::server::Installed;
use crate::tsbs::Scale;
use std::path::PathBuf;
use std::time::Duration;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct LegacyOptions {
    /// Quipu.
    pub quipu: Installed,
    /// The old server.
    pub victoria_metrics: Installed,
    /// TSBS' data set, if its query types are to be asked.
    pub scale: Option<Scale>,
    /// Numbers of series of the index queries.
    pub series: Vec<u64>,
    /// Rounds of a question at most ...
    pub rounds: usize,
    /// ... and no further one is begun after so long; three are made in any case.
    pub time_max: Duration,
    /// Directory for the data of the servers.
    pub work_dir: PathBuf,
    /// Directory for the tables; without it they are only printed.
    pub out: Option<PathBuf>,
}

/// Questions of one kind; rounds take them in turn.
pub struct Question {
    pub name: String,
    pub paths: Vec<String>,
}
