//! `quipu migrate` moves the `until` of the legacy backend that it copies from: what is copied is not
//! asked for any more, and whatever was not copied whole still is.

use anyhow::{Context, Result, ensure};
use e2e::launch::quipu;
use e2e::migration::{migrate, must};
use e2e::victoria::start_victoria;
use e2e::{Client, Launch, Server, percent, poll};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PATIENCE: Duration = Duration::from_secs(60);
/// 2026-08-30 00:00:00 UTC in seconds: days before are in the old server.
const START: i64 = 1_788_048_000;
const DAY: i64 = 86_400;
/// Days that the old server has.
const DAYS: i64 = 6;
/// Rows of a day, of five series each.
const ROWS: i64 = 96;

fn lines(days: std::ops::Range<i64>) -> String {
    let mut text = String::new();
    for row in days.start * ROWS..days.end * ROWS {
        for host in 0..5 {
            text +=
                &format!("cpu,host=h{host} v={} {}\n", row * 7 + host, START + row * DAY / ROWS);
        }
    }
    text
}

/// A server with everything, and the old one with what is before `START`.
struct Sides {
    victoria: Client,
    url: String,
    whole: Server,
}

fn sides(directory: &Path, authority: &str) -> Result<Sides> {
    let mut victoria = Client::new(authority);
    let written = victoria.post("/write?precision=s", &[], lines(-DAYS..0).as_bytes())?;
    ensure!(written.status == 204, "{}", written.excerpt());
    victoria.get("/internal/force_flush")?;
    let whole = Launch::new(&directory.join("whole")).start()?;
    whole.write("/write?precision=s", lines(-DAYS..1))?;
    Ok(Sides { victoria, url: format!("http://{authority}"), whole })
}

/// A copy that moves `until`.
fn moving(server: &Server, directory: &Path, arguments: &[&str]) -> Result<String> {
    must(server, directory, &[arguments, &["--move-until"]].concat())
}

fn launch(directory: &Path, url: &str) -> Launch {
    let legacy = format!("url={url} kind=victoriametrics until={START}");
    Launch::new(&directory.join("quipu")).flag("legacy", &legacy)
}

fn state(server: &Server) -> Result<Value> {
    Ok(server.get("/api/v1/status/legacy")?.data()?["backends"][0].clone())
}

fn until(server: &Server) -> Result<String> {
    Ok(state(server)?["until"].as_str().context("no until")?.to_string())
}

/// A day's samples, days after `START`; a range query, which is kept, so that it is asked twice.
fn day(server: &Server, day: i64) -> Result<(String, bool)> {
    // The window of a step is an hour, and none begins before the day.
    let (start, end) = (START + day * DAY + 3600, START + (day + 1) * DAY - 900);
    let query = percent("sum by (host) (sum_over_time(cpu_v[1h]))");
    let path = format!("/api/v1/query_range?query={query}&start={start}&end={end}&step=900");
    let once = || -> Result<(String, bool)> {
        let json: Value = serde_json::from_slice(&server.get(&path)?.body)?;
        let mut all = json["data"]["result"].as_array().context(json.to_string())?.clone();
        all.sort_by_key(Value::to_string);
        Ok((Value::from(all).to_string(), json["isPartial"] == true))
    };
    let (first, again) = (once()?, once()?);
    ensure!(first == again, "{path}: {first:?} {again:?}");
    Ok(first)
}

/// Fails unless a day is told whole.
fn whole_day(sides: &Sides, server: &Server, number: i64) -> Result<()> {
    let (expected, found) = (day(&sides.whole, number)?, day(server, number)?);
    ensure!(expected.0.len() > 100 && expected == found, "day {number}: {expected:?} {found:?}");
    Ok(())
}

fn requests(server: &Server, url: &str) -> Result<f64> {
    server.metric(&format!("quipu_legacy_requests_total{{backend=\"{url}\",outcome=\"ok\"}}"))
}

#[test]
fn copied_days_are_told_without_the_old_server() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (victoria, authority) = start_victoria(directory.path())?;
    let mut sides = sides(directory.path(), &authority)?;
    let server = launch(directory.path(), &sides.url).start()?;
    server.write("/write?precision=s", lines(0..1))?;
    let asked = sides.url.clone();
    let url = asked.as_str();
    (-DAYS..1).try_for_each(|number| whole_day(&sides, &server, number))?;
    ensure!(until(&server)? == "2026-08-30T00:00:00Z", "the flag's");

    let start = (START - 2 * DAY).to_string();
    let said = moving(&server, directory.path(), &["victoriametrics", url, "--start", &start])?;
    ensure!(said.contains("is asked up to 2026-08-28T00:00:00Z from now on"), "{said}");
    let now = state(&server)?;
    ensure!(now["flagUntil"] == "2026-08-30T00:00:00Z" && now["url"] == *url, "{now}");
    ensure!(now["movedUntil"] == "2026-08-28T00:00:00Z" && now["isAway"] == false, "{now}");

    // What comes there late is not asked for: and that nobody is asked is counted.
    let late = format!("cpu,host=h1 v=1000000 {}\n", START - 2 * DAY + 5000);
    sides.victoria.post("/write?precision=s", &[], late.as_bytes())?;
    sides.victoria.get("/internal/force_flush")?;
    let before = requests(&server, url)?;
    (-2..1).try_for_each(|number| whole_day(&sides, &server, number))?;
    ensure!(requests(&server, url)? == before, "nobody was asked");
    (-DAYS..-2).try_for_each(|number| whole_day(&sides, &server, number))?;
    ensure!(before < requests(&server, url)?, "it was asked");

    drop(victoria);
    let check = |server: &Server| -> Result<()> {
        (-2..1).try_for_each(|number| whole_day(&sides, server, number))?;
        let (_, is_partial) = day(server, -3)?;
        ensure!(is_partial, "what is not copied is missing");
        Ok(())
    };
    check(&server)?;
    server.kill()?;
    let server = launch(directory.path(), url).start()?;
    server.wait_for_log("was moved there from until=")?;
    check(&server)?;
    poll("that it is away is told", PATIENCE, || {
        day(&server, -3)?;
        ensure!(state(&server)?["isAway"] == true, "not yet");
        Ok(())
    })?;
    server.stop()?;
    rot_is_named(directory.path(), url)
}

/// What was moved and cannot be read is said, and the old one is asked as before.
fn rot_is_named(directory: &Path, url: &str) -> Result<()> {
    let file = directory.join("quipu/legacy");
    let good = std::fs::read(&file)?;
    let mut rotten = good.clone();
    rotten[12] ^= 1;
    for bytes in [&rotten[..], &good[..good.len() / 2]] {
        std::fs::write(&file, bytes)?;
        let mut verify = quipu(&["verify", "--dry-run", "--data-dir"])?;
        let verified = verify.arg(directory.join("quipu")).output()?;
        let words = String::from_utf8_lossy(&verified.stdout).into_owned();
        ensure!(!verified.status.success() && words.contains("legacy"), "{verified:?}");
        let server = launch(directory, url).start()?;
        ensure!(until(&server)? == "2026-08-30T00:00:00Z", "the flag's");
        let problem = server.get("/api/v1/status/legacy")?.data()?["problem"].clone();
        ensure!(problem.as_str().is_some_and(|words| words.contains("quipu/legacy")), "{problem}");
        server.wait_for_log("quipu/legacy")?;
        let (_, is_partial) = day(&server, -1)?;
        ensure!(is_partial, "more is asked for, never less");
        server.stop()?;
    }
    Ok(())
}

#[test]
fn it_follows_a_copy_that_is_killed_and_goes_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_victoria, authority) = start_victoria(directory.path())?;
    let sides = sides(directory.path(), &authority)?;
    let server = launch(directory.path(), &sides.url).start()?;
    server.write("/write?precision=s", lines(0..1))?;
    let rate = (ROWS * 5).to_string();
    let mut command =
        quipu(&["migrate", "victoriametrics", &sides.url, "--rate", &rate, "--move-until"])?;
    command.args(["--url", server.url()]).current_dir(directory.path());
    let mut slow = command.spawn()?;
    let reached = poll("a day is moved over", PATIENCE, || {
        let now = until(&server)?;
        ensure!(now != "2026-08-30T00:00:00Z", "not yet");
        Ok(now)
    })?;
    slow.kill()?;
    slow.wait()?;
    ensure!(reached.starts_with("2026-08-2") && reached.ends_with("T00:00:00Z"), "{reached}");
    (-DAYS..1).try_for_each(|number| whole_day(&sides, &server, number))?;
    server.kill()?;
    let server = launch(directory.path(), &sides.url).start()?;
    ensure!(until(&server)? <= reached, "{reached}, then {}", until(&server)?);
    // It looks by itself whether the old one is there.
    poll("the look at start", PATIENCE, || {
        server.wait_for_log("answers; it is asked up to")?;
        Ok(())
    })?;
    let before = requests(&server, &sides.url)?;
    whole_day(&sides, &server, -1)?;
    ensure!(requests(&server, &sides.url)? == before, "nobody was asked");
    // The progress file is of another port of the new server: the copy begins anew there.
    let said = moving(&server, directory.path(), &["victoriametrics", &sides.url])?;
    ensure!(said.contains("is not asked any more: all of it is here"), "{said}");
    ensure!(until(&server)? == "none", "{}", until(&server)?);
    (-DAYS..1).try_for_each(|number| whole_day(&sides, &server, number))?;
    server.get("/api/v1/series?match[]=cpu_v&start=0")?;
    ensure!(requests(&server, &sides.url)? == before, "nobody was asked");
    let server = server.restart()?;
    ensure!(until(&server)? == "none", "{}", server.log());
    server.wait_for_log("is not asked any more")?;
    server.stop()
}

#[test]
fn nothing_moves_over_what_is_not_whole() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_victoria, authority) = start_victoria(directory.path())?;
    let sides = sides(directory.path(), &authority)?;
    let server = launch(directory.path(), &sides.url).start()?;
    let copy = ["victoriametrics", sides.url.as_str()];
    let end = (START - DAY - 1).to_string();
    for more in [
        &["--match", "cpu_v"][..],
        &["--set-label", "a=b"],
        &["--drop-label", "x"],
        &["--rename-label", "x=y"],
        &["--end", &end],
        &["--dry-run"],
    ] {
        moving(&server, directory.path(), &[&copy[..], more].concat())?;
        ensure!(until(&server)? == "2026-08-30T00:00:00Z", "{more:?}");
    }
    let said = migrate(&server, directory.path(), &["verify", copy[0], copy[1]])?;
    ensure!(until(&server)? == "2026-08-30T00:00:00Z", "{}", said.text);
    // The day that was left out, then what is behind it.
    let start = (START - DAY).to_string();
    moving(&server, directory.path(), &[&copy[..], &["--start", &start]].concat())?;
    ensure!(until(&server)? == "2026-08-29T00:00:00Z", "{}", until(&server)?);
    moving(&server, directory.path(), &[&copy[..], &["--end", &end]].concat())?;
    ensure!(until(&server)? == "2026-08-29T00:00:00Z", "it ends a second too early");
    let end = format!("{}.999999999", START - DAY - 1);
    moving(&server, directory.path(), &[&copy[..], &["--end", &end]].concat())?;
    ensure!(until(&server)? == "none", "{}", until(&server)?);
    orders(&server, &sides.url)?;
    server.stop()
}

/// What may be said by hand.
fn orders(server: &Server, url: &str) -> Result<()> {
    let order = |more: &str| {
        let path = format!("/api/v1/admin/legacy/until?url={url}&kind=victoriametrics&{more}");
        server.post(&path, "")
    };
    for (more, status, part) in [
        ("until=2026-08-20T00:00:00Z", 400, "say forward=1"),
        ("until=2026-09-20T00:00:00Z&forward=1", 400, "later than the flag's until"),
        ("until=2026-08-20T00:00:00Z&forward=1&from=2026-08-21T00:00:00Z", 400, "it is at none"),
        ("until=soon", 400, "no time such as"),
        ("", 400, "no until parameter"),
        ("until=2026-08-20T00:00:00Z&forward=1", 200, "2026-08-20T00:00:00Z"),
    ] {
        let answer = order(more)?;
        ensure!(answer.status == status && answer.text().contains(part), "{}", answer.excerpt());
    }
    ensure!(until(server)? == "2026-08-20T00:00:00Z", "{}", until(server)?);
    let path = "/api/v1/admin/legacy/until?url=http://x&kind=prometheus&until=1";
    ensure!(server.post(path, "")?.status == 404, "no such backend");
    ensure!(server.get(path)?.status == 405, "no order by GET");
    Ok(())
}

#[test]
fn what_was_refused_is_still_asked_for() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_victoria, authority) = start_victoria(directory.path())?;
    let sides = sides(directory.path(), &authority)?;
    // Of the third day before, and of what is older, some or all is refused.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let retention = format!("{}s", now - (START - 5 * DAY / 2));
    let server = launch(directory.path(), &sides.url).flag("retention", &retention).start()?;
    let copy = ["victoriametrics", &sides.url, "--move-until"];
    let said = migrate(&server, directory.path(), &copy)?;
    ensure!(said.code == 1 && said.text.contains("not done: "), "{}", said.text);
    ensure!(until(&server)? == "2026-08-28T00:00:00Z", "{}", said.text);
    server.stop()
}

#[test]
fn who_logs_in_as_somebody_else_moves_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_victoria, authority) = start_victoria(directory.path())?;
    let sides = sides(directory.path(), &authority)?;
    let server = launch(directory.path(), &sides.url).start()?;
    let password = directory.path().join("password");
    std::fs::write(&password, "hunter2hunter2\n")?;
    let password = password.display().to_string();
    let copy = ["victoriametrics", sides.url.as_str()];
    let other = ["--from-user", "guest", "--from-password-file", &password];
    let said = moving(&server, directory.path(), &[&copy[..], &other].concat())?;
    ensure!(said.contains("moves nothing") && said.contains("as somebody else"), "{said}");
    ensure!(!said.contains("hunter2"), "{said}");
    ensure!(until(&server)? == "2026-08-30T00:00:00Z", "{said}");
    moving(&server, directory.path(), &copy)?;
    ensure!(until(&server)? == "none", "{}", until(&server)?);
    server.stop()
}

/// What one run left out of a day that is done is not moved over by the next one.
#[test]
fn what_an_earlier_run_left_out_is_still_asked_for() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_victoria, authority) = start_victoria(directory.path())?;
    let mut sides = sides(directory.path(), &authority)?;
    let at = (START - 2 * DAY + 3600) * 1000;
    let nameless =
        format!("{{\"metric\":{{\"from\":\"x\"}},\"values\":[1],\"timestamps\":[{at}]}}\n");
    sides.victoria.post("/api/v1/import", &[], nameless.as_bytes())?;
    sides.victoria.get("/internal/force_flush")?;
    // Some days are refused, so that the copy is not done and goes on.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let retention = format!("{}s", now - (START - 9 * DAY / 2));
    let server = launch(directory.path(), &sides.url).flag("retention", &retention).start()?;
    let copy = ["victoriametrics", &sides.url, "--move-until"];
    for run in 0..2 {
        let said = migrate(&server, directory.path(), &copy)?;
        ensure!(said.code == 1, "{run}: {}", said.text);
        ensure!(run == 1 || said.text.contains("without a metric's name"), "{run}: {}", said.text);
        ensure!(until(&server)? == "2026-08-29T00:00:00Z", "{run}: {}", said.text);
    }
    server.stop()
}

/// A run without `--move-until` may be anybody's: what it did is not moved over, and the next one says so.
#[test]
fn what_a_run_that_moved_nothing_copied_is_not_believed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_victoria, authority) = start_victoria(directory.path())?;
    let sides = sides(directory.path(), &authority)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let retention = format!("{}s", now - (START - 5 * DAY / 2));
    let server = launch(directory.path(), &sides.url).flag("retention", &retention).start()?;
    let copy = ["victoriametrics", sides.url.as_str()];
    let moving = [&copy[..], &["--move-until"]].concat();
    let said = migrate(&server, directory.path(), &moving)?;
    ensure!(until(&server)? == "2026-08-28T00:00:00Z", "{}", said.text);
    // Another run of the same copy, which may be somebody else's.
    migrate(&server, directory.path(), &copy)?;
    let said = migrate(&server, directory.path(), &moving)?;
    ensure!(said.text.contains("windows of an earlier run that never moved it"), "{}", said.text);
    // Asked for again, it is not moved over once more.
    let order =
        "/api/v1/admin/legacy/until?kind=victoriametrics&until=2026-08-30T00:00:00Z&forward=1";
    let answer = server.post(&format!("{order}&url={}", sides.url), "")?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    let said = migrate(&server, directory.path(), &moving)?;
    ensure!(said.text.contains("later than this copy left it"), "{}", said.text);
    ensure!(until(&server)? == "2026-08-30T00:00:00Z", "{}", said.text);
    server.stop()
}

/// What came last is found a little late: what there is to copy is looked up behind the wait for that.
#[test]
fn days_are_looked_up_when_what_came_last_is_found() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let (looked, looks) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            let Ok(copy) = stream.try_clone() else { return };
            let mut lines = BufReader::new(copy);
            let _ = lines.read_line(&mut line);
            // The server asks for what the other one has itself, the copy for all.
            if line.contains("/api/v1/labels") && !line.contains("nolegacy") {
                let _ = looked.send(SystemTime::now());
            }
            let mut header = String::new();
            while lines.read_line(&mut header).is_ok_and(|size| 2 < size) {
                header.clear();
            }
            // Exports have a line a series, and there is none.
            let (kind, body) = match line.contains("/api/v1/export") {
                true => ("application/stream+json", ""),
                false => ("application/json", "{\"status\":\"success\",\"data\":[]}"),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {kind}\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let until = now - 57;
    let legacy = format!("url={url} kind=victoriametrics until={until}");
    let server = Launch::new(&directory.path().join("quipu")).flag("legacy", &legacy).start()?;
    moving(&server, directory.path(), &["victoriametrics", &url])?;
    let first = looks.recv_timeout(PATIENCE).context("it was never asked which days there are")?;
    let first = first.duration_since(UNIX_EPOCH)?.as_secs() as i64;
    ensure!(until + 60 <= first, "{} s after until", first - until);
    server.stop()
}
