//! `quipu migrate influxdb` from a real InfluxDB, and `influx-lines` from files as its tools write them: what
//! comes is what the same lines would have been at Quipu's own door.

use anyhow::{Context, Result, ensure};
use e2e::influx::start_influx;
use e2e::migration::{lines, migrate, must};
use e2e::{Client, Launch, Server, percent};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::path::Path;

/// 2026-08-30 00:00:00 UTC in nanoseconds.
const START: i64 = 1_788_048_000_000_000_000;
const DAY: i64 = 86_400_000_000_000;

/// Lines for one database or policy: three days of a fleet, with all that fields and names can be.
fn fleet(seed: i64) -> String {
    let mut text = String::new();
    for row in 0..300i64 {
        let at = START - 2 * DAY + row * 600_000_000_000 * 14 / 10 + seed;
        for host in 0..3 {
            let value = (row * (host + 2) + seed) as f64 / 7.0;
            text += &format!(
                "cpu\\ load,host=h{host},zone=é\\,\\ {host} user={value},n={row}i,on={},note=\"a \\\"b\\\"\" {at}\n",
                row % 2 == 0
            );
        }
        text +=
            &format!("plain value={row} {}\nodd,t=\\=x n\\ m={}i {at}\n", at + 1, i64::MAX - row);
    }
    // Within a millisecond, in lines of different fields.
    text += &format!("twice v=1,w=2 {}\ntwice v=3 {}\n", START + 2, START + 3);
    text + &format!("once,host=a v=-0.0,w=1e300,tiny=5e-324 {}\n", START + 1)
}

/// What is where: the database as both sides call it, and what is said to InfluxDB.
const PLACES: [(&str, &str); 4] =
    [("x", "db=x"), ("x.long", "db=x&rp=long"), ("my db", "db=my%20db"), ("mixed", "db=mixed")];

/// Shards of different weeks that say different types.
fn mixed() -> String {
    let old = START - 30 * DAY;
    format!("m f=1i,b=t {old}\nm f=1.5,b=\"text\" {}\n", START - DAY)
}

fn ask(influx: &mut Client, question: &str) -> Result<()> {
    let answer = influx.post(&format!("/query?q={}", percent(question)), &[], b"")?;
    ensure!(answer.status == 200 && !answer.excerpt().contains("error"), "{}", answer.excerpt());
    Ok(())
}

/// Writes the same to an InfluxDB and to Quipu's own door.
fn fill(influx: &mut Client, truth: &Server) -> Result<()> {
    for name in ["x", "my db", "mixed"] {
        ask(influx, &format!("CREATE DATABASE \"{name}\""))?;
    }
    ask(influx, "CREATE RETENTION POLICY long ON x DURATION 0s REPLICATION 1")?;
    for ((label, place), seed) in PLACES.iter().zip(0..) {
        let text = if *label == "mixed" { mixed() } else { fleet(seed) };
        let answer = influx.post(&format!("/write?{place}"), &[], text.as_bytes())?;
        ensure!(answer.status == 204, "{place}: {}", answer.excerpt());
        truth.write(&format!("/write?db={}", percent(label)), text)?;
    }
    Ok(())
}

/// The fields and types that a server knows of a database or policy.
fn fields(server: &Server, place: &str) -> Result<String> {
    let path = format!("/query?{place}&q=SHOW%20FIELD%20KEYS");
    Ok(String::from_utf8(server.get(&path)?.body)?)
}

/// What a server answers to a question.
fn answer_of(server: &Server, place: &str, question: &str) -> Result<String> {
    ask_of(&mut server.client(), place, question)
}

fn ask_of(client: &mut Client, place: &str, question: &str) -> Result<String> {
    let answer = client.get(&format!("/query?{place}&epoch=ns&q={}", percent(question)))?;
    ensure!(answer.status == 200, "{question}: {}", answer.excerpt());
    Ok(answer.text().trim_end().to_string())
}

/// Fields of all types, with what their texts and numbers can be.
fn typed() -> String {
    let texts = ["open", "shut", "", "é \\\"quoted\\\" \\\\ back", "two\nlines, a=b", "open"];
    let mut lines = String::new();
    for (row, text) in (0..).zip(texts.iter().cycle().take(60)) {
        let at = START + row * 10_000_000_000;
        let whole = (1i64 << 53) - row;
        let long = "x".repeat(1000);
        lines += &format!(
            "door,host=h{},zone=a\\ b state=\"{text}\",note=\"n{row}\",n={whole}i,m=-{whole}i,v={},on={} {at}\n",
            row % 2,
            row as f64 / 7.0,
            row % 3 == 0
        );
        lines += &format!("only,host=h{} text=\"{long}{row}\" {at}\n", row % 2);
    }
    lines
}

/// Questions whose answers are to be the same.
const QUESTIONS: [&str; 11] = [
    "SHOW FIELD KEYS",
    "SHOW MEASUREMENTS",
    "SELECT * FROM door",
    "SELECT * FROM only",
    "SELECT state, n FROM door WHERE host = 'h1' ORDER BY time DESC LIMIT 7",
    "SELECT n, m, \"on\" FROM door WHERE state = 'open'",
    "SELECT note FROM door WHERE state =~ /^(shut|é)/ AND \"on\" = true",
    "SELECT last(state), first(note) FROM door GROUP BY host",
    "SELECT count(state), count(\"on\"), count(n) FROM door WHERE time < 1788048600000000000 GROUP BY time(1m), host",
    "SELECT distinct(state) FROM door",
    "SELECT max(n), min(m) FROM door",
];

#[test]
fn answers_with_strings_are_those_of_the_influxdb() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let (_influx, authority) = start_influx(directory)?;
    let mut influx = Client::new(&authority);
    ask(&mut influx, "CREATE DATABASE x")?;
    let answer = influx.post("/write?db=x", &[], typed().as_bytes())?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    let url = format!("http://{authority}");
    let of_server = Launch::new(&directory.join("of-server")).start()?;
    let said = must(&of_server, directory, &["influxdb", &url])?;
    ensure!(said.contains("420 samples of 7 windows sent; 0 requests"), "{said}");
    let head = "# DDL\n# DML\n# CONTEXT-DATABASE:x\n# CONTEXT-RETENTION-POLICY:autogen\n";
    std::fs::write(directory.join("export.lp"), format!("{head}{}", typed()))?;
    let of_file = Launch::new(&directory.join("of-file")).start()?;
    let said = must(&of_file, directory, &["influx-lines", "export.lp"])?;
    ensure!(said.contains("420 samples of ") && !said.contains("left out"), "{said}");
    for question in QUESTIONS {
        let expected = ask_of(&mut influx, "db=x", question)?;
        ensure!(!expected.contains("error"), "{question}: {expected}");
        for server in [&of_server, &of_file] {
            let found = answer_of(server, "db=x", question)?;
            ensure!(found == expected, "{question}:\n{found}\n{expected}");
        }
    }
    check_chosen_strings(directory, &url)
}

/// A part of them, what is over a limit, and what no line can say.
fn check_chosen_strings(directory: &Path, url: &str) -> Result<()> {
    let some = Launch::new(&directory.join("some")).start()?;
    must(&some, directory, &["influxdb", url, "--match", "door_state:text{host=\"h0\"}"])?;
    let found = answer_of(&some, "db=x", "SHOW FIELD KEYS")?;
    ensure!(found.contains("\"state\"") && !found.contains("\"note\""), "{found}");
    let found = answer_of(&some, "db=x", "SELECT count(state) FROM door")?;
    ensure!(found.contains(",30]"), "{found}");
    let few = Launch::new(&directory.join("few")).flag("influx.max-strings", "3").start()?;
    let said = migrate(&few, directory, &["influxdb", url])?;
    ensure!(said.code == 1 && said.text.contains("(influx.max-strings)"), "{}", said.text);
    let found = answer_of(&few, "db=x", "SELECT count(n) FROM door")?;
    ensure!(found.contains(",60]"), "numbers come: {found}");
    let named = Launch::new(&directory.join("named")).start()?;
    let said = must(&named, directory, &["influxdb", url, "--set-label", "__name__=was"])?;
    ensure!(
        said.contains("left out: 180 values of text fields, which only lines can say"),
        "{said}"
    );
    ensure!(said.contains("x.door (120), x.only (60)"), "{said}");
    Ok(())
}

#[test]
fn an_influxdb_becomes_what_its_lines_would_have_been() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let (_influx, authority) = start_influx(directory)?;
    let mut influx = Client::new(&authority);
    let truth = Launch::new(&directory.join("truth")).start()?;
    fill(&mut influx, &truth)?;
    let url = format!("http://{authority}");

    let server = Launch::new(&directory.join("quipu")).start()?;
    server.write("/write?db=x", format!("once,host=b v=1 {START}\n"))?;
    let told = must(&server, directory, &["influxdb", &url, "--dry-run"])?;
    ensure!(told.contains("x/long/2026-08-30: ") && told.contains("nothing was copied"), "{told}");
    ensure!(told.contains("2026-08-30: 1 are here"), "{told}");
    let said = must(&server, directory, &["influxdb", &url])?;
    ensure!(said.contains("0 requests had some that were refused"), "{said}");
    ensure!(!said.contains("left out"), "{said}");
    ensure!(said.contains("days of which both had samples:\n2026-08-30: "), "{said}");
    truth.write("/write?db=x", format!("once,host=b v=1 {START}\n"))?;
    let (here, there) = (lines(&server)?, lines(&truth)?);
    ensure!(here.len() == there.len(), "{} and {} series", here.len(), there.len());
    for (here, there) in here.iter().zip(&there) {
        ensure!(here == there, "{here}\n{there}");
    }
    for (database, place) in PLACES {
        let alone = format!("db={}", percent(database));
        let (here, there) = (fields(&server, place)?, fields(&truth, &alone)?);
        ensure!(here == there && here.contains("fieldKey"), "{database}: {here}\n{there}");
        let all = "SELECT * FROM /.*/";
        let (here, there) = (answer_of(&server, place, all)?, answer_of(&truth, &alone, all)?);
        ensure!(here == there && here.len() > 100, "{database}: {here}\n{there}");
    }

    let verify = ["verify", "influxdb", &url];
    let said = must(&server, directory, &verify)?;
    ensure!(said.contains("; 0 differ"), "{said}");
    server.post("/api/v1/admin/tsdb/delete_series?match[]=once_w", "")?;
    server.write("/write?db=x", format!("plain value=7 {}\n", START - 2 * DAY + 1))?;
    let said = migrate(&server, directory, &verify)?;
    ensure!(said.code == 1 && said.text.contains("1 samples there, 0 here"), "{}", said.text);
    check_parts(&server, directory, &url)
}

/// A part of it, under other labels; what is not there.
fn check_parts(server: &Server, directory: &Path, url: &str) -> Result<()> {
    let other = Launch::new(&directory.join("other")).start()?;
    let some = [
        "influxdb",
        url,
        "--database",
        "my db",
        "--match",
        "{__name__=~\"cpu load_.*\",host=\"h1\"}",
        "--rename-label",
        "db=from",
        "--set-label",
        "site=a b",
        "--start",
        "2026-08-29",
    ];
    let said = must(&other, directory, &some)?;
    ensure!(!said.contains("x/"), "{said}");
    let found = lines(&other)?;
    ensure!(found.len() == 3, "{found:?}");
    ensure!(
        found
            .iter()
            .all(|one| one.contains("\"from\":\"my db\"") && one.contains("\"site\":\"a b\"")),
        "{found:?}"
    );
    must(&other, directory, &[&["verify"], &some[..]].concat())?;
    // Names that change go by milliseconds.
    let named =
        ["influxdb", url, "--match", "plain_value{db=\"x\"}", "--set-label", "__name__=level"];
    must(&other, directory, &named)?;
    ensure!(other.export("level")?.len() == 300, "renamed");
    must(&other, directory, &[&["verify"], &named[..]].concat())?;
    let said = migrate(server, directory, &["influxdb", url, "--database", "nowhere"])?;
    ensure!(
        said.code == 1 && said.text.contains("no database nowhere; there are: "),
        "{}",
        said.text
    );
    let two = migrate(server, directory, &["influxdb", url, url])?;
    ensure!(two.code == 1 && two.text.contains("2 places"), "{}", two.text);
    // A Quipu answers in InfluxQL as well, and says no shards: as a version 2 does.
    let said = migrate(&other, directory, &["influxdb", server.url()])?;
    ensure!(said.code == 1 && said.text.contains("say --start"), "{}", said.text);
    Ok(())
}

/// What clients call like things of Quipu's: a tag `db`, a measurement and a field that join to another's
/// name, a policy.
#[test]
fn points_that_differ_in_odd_names_stay_apart() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let (_influx, authority) = start_influx(directory)?;
    let mut influx = Client::new(&authority);
    ask(&mut influx, "CREATE DATABASE telegraf WITH NAME week")?;
    ask(&mut influx, "CREATE RETENTION POLICY autogen ON telegraf DURATION 0s REPLICATION 1")?;
    let database =
        |name, value| format!("postgresql,server=pg1,db={name} numbackends={value}i {START}\n");
    let lines = database("shop", 5) + &database("crm", 6) + &database("hr", 7);
    let docker =
        format!("docker,h=a container_mem=1 {START}\ndocker_container,h=a mem=2 {START}\n");
    for (place, text) in [
        ("db=telegraf", lines.clone() + &docker),
        ("db=telegraf&rp=autogen", lines.replace("i ", "0i ")),
    ] {
        let answer = influx.post(&format!("/write?{place}"), &[], text.as_bytes())?;
        ensure!(answer.status == 204, "{place}: {}", answer.excerpt());
    }
    let server = Launch::new(&directory.join("quipu")).start()?;
    let url = format!("http://{authority}");
    must(&server, directory, &["influxdb", &url])?;
    for question in [
        "SELECT * FROM postgresql",
        "SELECT * FROM telegraf.autogen.postgresql",
        "SELECT * FROM week.postgresql",
        "SELECT container_mem FROM docker",
        "SELECT mem FROM docker_container",
        "SHOW TAG VALUES FROM postgresql WITH KEY = db",
    ] {
        let expected = ask_of(&mut influx, "db=telegraf", question)?;
        let found = answer_of(&server, "db=telegraf", question)?;
        ensure!(!expected.contains("error") && expected.len() > 60, "{question}: {expected}");
        ensure!(found == expected, "{question}:\n{found}\n{expected}");
    }
    let verify = ["verify", "influxdb", &url, "--match", "{__name__=~\"postgresql.*\"}"];
    let said = must(&server, directory, &verify)?;
    ensure!(said.contains("; 0 differ"), "{said}");
    Ok(())
}

/// A server that says no shards and wants a token, as a version 2; here a Quipu, which answers the same.
#[test]
fn a_server_with_a_token_is_asked_from_a_start_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let old = Launch::new(&directory.join("old")).flag("bearer-token", "secret").start()?;
    let token = ("authorization", "Token secret");
    let written = old.post_with("/write?db=x", &[token], fleet(0))?;
    ensure!(written.status == 204, "{}", written.excerpt());
    std::fs::write(directory.join("token"), "secret\n")?;
    let server = Launch::new(&directory.join("new")).start()?;
    let start = ["influxdb", old.url(), "--start", "2026-08-25", "--end", "2026-09-10"];
    let said = migrate(&server, directory, &start)?;
    ensure!(said.code == 1 && said.text.contains("401"), "{}", said.text);
    let with_token = [&start[..], &["--from-bearer-token-file", "token"]].concat();
    must(&server, directory, &with_token)?;
    let found = lines(&server)?;
    ensure!(found.len() == 16, "{}: {found:?}", found.len());
    ensure!(fields(&server, "db=x")?.contains("integer"), "types");
    let said = must(&server, directory, &[&["verify"], &with_token[..]].concat())?;
    ensure!(said.contains("; 0 differ"), "{said}");
    Ok(())
}

/// A file as `influx_inspect export` writes it.
fn exported() -> String {
    let mut text = "# INFLUXDB EXPORT: 1677-09-21T00:12:43Z - 2262-04-11T23:47:16Z\n# DDL\nCREATE DATABASE x WITH NAME \
                    autogen\nCREATE DATABASE x WITH NAME long\n# DML\n"
        .to_string();
    for (policy, seed) in [("long", 1), ("autogen", 0)] {
        text += &format!(
            "# CONTEXT-DATABASE:x\n# CONTEXT-RETENTION-POLICY:{policy}\n# writing tsm data\n"
        );
        text += &fleet(seed);
        text += &format!("note,host=a text=\"one\n# CONTEXT-DATABASE:y\n\" {START}\n");
    }
    text
}

fn gzip(path: &Path, text: &[u8]) -> Result<()> {
    let mut file = GzEncoder::new(std::fs::File::create(path)?, Compression::fast());
    file.write_all(text)?;
    Ok(file.finish().map(drop)?)
}

#[test]
fn files_of_lines_are_copied_with_their_contexts() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let truth = Launch::new(&directory.join("truth")).start()?;
    let note = format!("note,host=a text=\"one\n# CONTEXT-DATABASE:y\n\" {START}\n");
    truth.write("/write?db=x.long", fleet(1) + &note)?;
    truth.write("/write?db=x", fleet(0) + &note)?;
    std::fs::write(directory.join("plain"), exported())?;
    gzip(&directory.join("packed.gz"), exported().as_bytes())?;
    for file in ["plain", "packed.gz"] {
        let server = Launch::new(&directory.join(format!("quipu-{file}"))).start()?;
        let told = must(&server, directory, &["influx-lines", file, "--dry-run"])?;
        ensure!(
            told.contains("2026-08-28T00:00:00") && told.contains("2 windows; nothing"),
            "{told}"
        );
        ensure!(!told.contains("left out"), "{told}");
        must(&server, directory, &["influx-lines", file])?;
        ensure!(lines(&server)? == lines(&truth)?, "{file}");
        for (place, alone) in [("db=x", "db=x"), ("db=x&rp=long", "db=x.long")] {
            let all = "SELECT * FROM /.*/";
            let (here, there) = (answer_of(&server, place, all)?, answer_of(&truth, alone, all)?);
            ensure!(here == there && here.contains("CONTEXT"), "{file}: {place}: {here}\n{there}");
        }
        let said = must(&server, directory, &["verify", "influx-lines", file])?;
        ensure!(said.contains("; 0 differ"), "{said}");
        server.stop()?;
    }
    check_large_file(directory)
}

/// How many bytes a packed file may be cut to, so that its last line looks whole and has another time.
fn cut_within_a_time(packed: &[u8]) -> Result<usize> {
    for size in (packed.len() / 3..packed.len() / 2).rev() {
        let mut text = Vec::new();
        let _ = GzDecoder::new(&packed[..size]).read_to_end(&mut text);
        let last = text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let time = last.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        let is_line = last.starts_with(b"once,") && 4 < time.len() && time.len() < 19;
        if is_line && time.iter().all(u8::is_ascii_digit) {
            return Ok(size);
        }
    }
    anyhow::bail!("no cut within a time")
}

/// A packed file that is cut within a time: the half line is none, and the whole file brings the rest.
fn check_cut_line(directory: &Path) -> Result<()> {
    let server = Launch::new(&directory.join("cut-quipu")).start()?;
    let line =
        |row: i64| format!("once,host=h{} v={} {}\n", row % 7, row * row, START + row * 1_000_003);
    let text: String = (0..40_000).map(line).collect();
    gzip(&directory.join("all.gz"), text.as_bytes())?;
    let packed = std::fs::read(directory.join("all.gz"))?;
    std::fs::write(directory.join("once.gz"), &packed[..cut_within_a_time(&packed)?])?;
    let said = migrate(&server, directory, &["influx-lines", "once.gz"])?;
    ensure!(said.code == 1, "{}", said.text);
    let samples = |server: &Server| -> Result<usize> {
        let early = server.get("/api/v1/export?match[]=once_v&start=0&end=1700000000")?.export()?;
        ensure!(early.is_empty(), "{early:?}: nobody wrote them");
        Ok(server.export("once_v")?.len())
    };
    ensure!(1_000 < samples(&server)?, "the first part");
    std::fs::rename(directory.join("all.gz"), directory.join("once.gz"))?;
    must(&server, directory, &["influx-lines", "once.gz"])?;
    ensure!(samples(&server)? == 40_000, "{} of 40,000", samples(&server)?);
    server.stop()
}

/// A file of several pieces, in one of which a line is bad: the others are done, and stay so.
fn check_large_file(directory: &Path) -> Result<()> {
    let mut text = String::new();
    for row in 0..160_000i64 {
        let padding = "x".repeat(160);
        text +=
            &format!("m,host=h{},path={padding} v={row} {}\n", row % 10, START + row * 1_000_000);
    }
    let bad = text.replacen(" v=150000 ", " v=soon ", 1);
    let file = directory.join("large");
    std::fs::write(&file, &bad)?;
    let server = Launch::new(&directory.join("large-quipu")).start()?;
    let said = migrate(&server, directory, &["influx-lines", "large"])?;
    ensure!(said.code == 1 && said.text.contains("not done: 1 window: large@"), "{}", said.text);
    ensure!(
        said.text.contains("1 records cannot be read: 150001: unable to parse"),
        "{}",
        said.text
    );
    ensure!(server.export("m_v")?.len() == 159_999, "the others came");
    // The line is mended where it stood.
    std::fs::write(&file, bad.replacen(" v=soon ", " v=1500 ", 1))?;
    let said = must(&server, directory, &["influx-lines", "large"])?;
    ensure!(said.contains("going on: 1 of 2 windows are done"), "{said}");
    ensure!(server.export("m_v")?.len() == 160_000, "all of it");
    // What stands before the end of a file that is cut short comes.
    gzip(&directory.join("whole.gz"), fleet(0).as_bytes())?;
    let packed = std::fs::read(directory.join("whole.gz"))?;
    std::fs::write(directory.join("short.gz"), &packed[..packed.len() / 2])?;
    let said = migrate(&server, directory, &["influx-lines", "short.gz"])?;
    ensure!(said.code == 1 && said.text.contains("short.gz@"), "{}", said.text);
    ensure!(100 < server.export("plain_value")?.len(), "the first half");
    check_cut_line(directory)?;
    std::fs::write(directory.join("cut.gz"), [0x1f, 0x8b, 8, 0, 0])?;
    let said = migrate(&server, directory, &["influx-lines", "cut.gz"])?;
    ensure!(said.code == 1 && said.text.contains("cut.gz"), "{}", said.text);
    let said = migrate(&server, directory, &["influx-lines", "nowhere"])?;
    ensure!(said.code == 1 && said.text.contains("nowhere"), "{}", said.text);
    server.stop().context("the server")
}
