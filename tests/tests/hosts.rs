//! Names by which a server on loopback may be called, against the real binary: no site's page may
//! read what is here through a name that it makes mean this machine.

use anyhow::{Result, ensure};
use e2e::http::{connect, read_response};
use e2e::{Launch, Server};
use std::io::{BufReader, Write};

/// The answer to a request with these lines of a head.
fn ask(server: &Server, version: &str, host: &str) -> Result<(u16, String)> {
    let mut stream = connect(server.authority())?;
    write!(stream, "GET /api/v1/labels HTTP/{version}\r\n{host}Connection: close\r\n\r\n")?;
    let response = read_response(&mut BufReader::new(stream))?;
    Ok((response.status, response.text()))
}

#[test]
fn foreign_names_are_refused_where_everybody_is_trusted() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let allowed = "metrics.test, other.test";
    let server = Launch::new(directory.path()).flag("http-allowed-hosts", allowed).start()?;
    let with = |host: &str| ask(&server, "1.1", &format!("Host: {host}\r\n"));
    for good in ["localhost", "127.0.0.1:1", "[::1]:8428", server.authority(), "metrics.test:80"] {
        ensure!(with(good)?.0 == 200, "{good}");
    }
    for bad in ["evil.test", "evil.test:8428", "192.0.2.1", "localhost.evil.test", ""] {
        let (status, text) = with(bad)?;
        ensure!(status == 403 && text.contains("--http-allowed-hosts"), "{bad}: {text}");
    }
    ensure!(ask(&server, "1.1", "")?.0 == 403, "browsers say a host");
    ensure!(ask(&server, "1.0", "")?.0 == 200);
    ensure!(ask(&server, "1.0", "Host: evil.test\r\n")?.0 == 403);
    ensure!(
        server.metric("quipu_http_requests_total{path=\"/api/v1/labels\",code=\"403\"}")? == 7.0
    );
    server.stop()
}

#[test]
fn credentials_are_enough() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("bearer-token", "t").start()?;
    let (status, _) = ask(&server, "1.1", "Host: evil.test\r\nAuthorization: Bearer t\r\n")?;
    ensure!(status == 200, "{status}");
    server.stop()
}

#[test]
fn all_names_can_be_allowed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("http-allowed-hosts", "*").start()?;
    ensure!(ask(&server, "1.1", "Host: evil.test\r\n")?.0 == 200);
    server.stop()
}

/// Paths that change something.
const ORDERS: [&str; 9] = [
    "/snapshot/create",
    "/snapshot/delete?snapshot=x",
    "/internal/force_flush",
    "/internal/force_merge",
    "/api/v1/admin/tsdb/snapshot",
    "/api/v1/admin/tsdb/clean_tombstones",
    "/api/v1/admin/tsdb/delete_series?match[]=m_v",
    "/api/v1/status/active_queries/0/kill",
    "/api/v2/buckets",
];

#[test]
fn pages_of_other_ports_change_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    server.write("/write", "m v=1 1600000000000000000")?;
    let own = format!("http://{}", server.authority());
    for path in ORDERS {
        let send = |method: &str, headers: &[(&str, &str)]| {
            server.client().send(method, path, headers, &[])
        };
        if path != "/api/v2/buckets" {
            for headers in
                [&[][..], &[("Sec-Fetch-Site", "same-site")], &[("Sec-Fetch-Site", "none")]]
            {
                let link = send("GET", headers)?;
                ensure!(link.status == 405, "{path}: {}", link.excerpt());
                ensure!(link.text().contains("POST"), "{path}: {}", link.excerpt());
            }
        }
        for header in [
            ("Origin", "http://127.0.0.1:1"),
            ("Origin", "http://localhost"),
            ("Origin", "null"),
            ("Origin", "http://\u{e4}"),
            ("Sec-Fetch-Site", "same-site"),
            ("Sec-Fetch-Site", "cross-site"),
        ] {
            let foreign = send("POST", &[header])?;
            ensure!(foreign.status == 403, "{path} {header:?}: {}", foreign.excerpt());
        }
    }
    let created = server.get("/query?q=CREATE+DATABASE+x")?.text();
    ensure!(created.contains("send it by POST"), "{created}");
    ensure!(server.get("/query?q=SHOW+DATABASES")?.text().contains("[[\"quipu\"]]"));
    ensure!(server.get("/snapshot/list")?.text().contains("\"snapshots\":[]"));
    ensure!(server.export("m_v")?.len() == 1);
    let as_page = [("Origin", own.as_str()), ("Sec-Fetch-Site", "same-origin")];
    for headers in [&[][..], &as_page, &[("Sec-Fetch-Site", "none")]] {
        let made = server.post_with("/snapshot/create", headers, "")?;
        ensure!(made.status == 200, "{headers:?}: {}", made.excerpt());
    }
    server.stop()
}
