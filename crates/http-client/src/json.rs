//! Small JSON documents of a server.

use crate::client::Client;
use crate::retry::retried;
use anyhow::{Context as _, ensure};
use bytes::Bytes;
use hyper::Method;

/// Bytes of another answer, as of metrics.
const TEXT_SIZE_MAX: usize = 64 << 20;

/// Text that a server answers.
///
/// # Errors
/// When it does not answer, or answers more than 64 MiB.
pub fn text_of(client: &mut Client, path: &str) -> anyhow::Result<String> {
    let mut text = Vec::new();
    let reply = client.send(Method::GET, path, Bytes::new(), &mut |bytes| {
        let size = text.len() + bytes.len();
        ensure!(size <= TEXT_SIZE_MAX, "{path}: an answer of more than {TEXT_SIZE_MAX} bytes");
        text.extend_from_slice(bytes);
        Ok(())
    })?;
    reply.check(path)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// JSON that a server answers; asked for again where the server stumbles.
///
/// # Errors
/// When it does not answer, or answers no JSON.
pub fn json_of(client: &mut Client, path: &str) -> anyhow::Result<serde_json::Value> {
    retried(|| {
        let text = text_of(client, path)?;
        serde_json::from_str(&text).with_context(|| format!("{path}: an answer that is no JSON"))
    })
}
