//! Pushgateway's requests, against the real binary.

use anyhow::{Result, ensure};
use e2e::{Launch, Server};

fn status(server: &Server, method: &str, path: &str, body: &str) -> Result<u16> {
    Ok(server.client().send(method, path, &[], body.as_bytes())?.status)
}

#[test]
fn a_group_is_pushed_and_deleted() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let push = |path: &str| status(&server, "PUT", path, "runs 1\ntook{phase=\"a\"} 2\n");
    for path in [
        "/metrics/job/backup",
        "/metrics/job/backup/instance/a",
        "/metrics/job@base64/L3Zhci90bXA/instance/a",
        "/metrics/job/other",
    ] {
        ensure!(push(path)? == 200, "{path}");
    }
    ensure!(server.export("runs")?.0.len() == 4);
    ensure!(status(&server, "DELETE", "/metrics/job/backup", "")? == 202);
    let left = server.export("{__name__=~\"runs|took\"}")?;
    ensure!(left.0.len() == 6, "{left:?}");
    ensure!(server.export("runs{job=\"backup\",instance=\"a\"}")?.0.len() == 1, "{left:?}");
    ensure!(status(&server, "DELETE", "/metrics/job@base64/L3Zhci90bXA/instance/a", "")? == 202);
    ensure!(server.export("runs{job=\"/var/tmp\"}")?.is_empty());
    ensure!(status(&server, "DELETE", "/metrics/job/nobody", "")? == 202, "as Pushgateway");
    for bad in [
        "/metrics/job/",
        "/metrics/job//instance/a",
        "/metrics/job@base64/=",
        "/metrics/job/backup/instance",
    ] {
        ensure!(status(&server, "DELETE", bad, "")? == 400, "{bad}");
        ensure!(status(&server, "PUT", bad, "runs 1\n")? == 400, "{bad}");
    }
    ensure!(server.export("runs")?.0.len() == 2);
    // What is pushed again is there again.
    ensure!(push("/metrics/job/backup")? == 200);
    ensure!(server.export("runs{job=\"backup\",instance=\"\"}")?.0.len() == 1);
    server.stop()
}
