//! `quipu migrate` from files: of a real VictoriaMetrics, of Graphite's whisper, and of Quipu's own Parquet.

use anyhow::{Context, Result, ensure};
use e2e::launch::quipu;
use e2e::migration::{lines, migrate, must};
use e2e::programs::python_with;
use e2e::victoria::start_victoria;
use e2e::{Client, Launch, run};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;

#[test]
fn exports_of_a_victoriametrics_are_copied_from_files() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let (_victoria, authority) = start_victoria(directory)?;
    let mut text = String::new();
    for row in 0..9000 {
        for host in 0..3 {
            text += &format!("cpu,host=h{host} v={} {}\n", row as f64 / 7.0, START + row * 15);
        }
    }
    let mut victoria = Client::new(&authority);
    victoria.post("/write?precision=s", &[], text.as_bytes())?;
    victoria.get("/internal/force_flush")?;
    let truth = Launch::new(&directory.join("truth")).start()?;
    must(&truth, directory, &["victoriametrics", &format!("http://{authority}")])?;
    let truth = lines(&truth)?;
    ensure!(truth.len() == 3, "{}", truth.len());

    for (name, path) in [("lines", "/api/v1/export"), ("native", "/api/v1/export/native")] {
        let body = victoria.get(&format!("{path}?match[]=cpu_v"))?.body;
        std::fs::write(directory.join(name), &body)?;
        let packed = format!("{name}.gz");
        let mut file =
            GzEncoder::new(std::fs::File::create(directory.join(&packed))?, Compression::fast());
        file.write_all(&body)?;
        file.finish()?;
        for file in [name, &packed] {
            let server = Launch::new(&directory.join(format!("quipu-{file}"))).start()?;
            let said = must(&server, directory, &["victoriametrics-files", file])?;
            ensure!(said.contains("27000 samples of 1 window sent"), "{said}");
            ensure!(lines(&server)? == truth, "{file}");
            let said = must(&server, directory, &["verify", "victoriametrics-files", file])?;
            ensure!(said.contains("with 27000 samples compared; 0 differ"), "{said}");
            server.stop()?;
        }
    }
    check_damaged(directory)
}

#[test]
fn series_without_a_name_are_counted_and_named() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let line = |labels: &str| {
        format!(
            "{{\"metric\":{{{labels}}},\"values\":[1,2],\"timestamps\":[{START}000,{START}001]}}\n"
        )
    };
    let text = line("\"__name__\":\"up\",\"job\":\"a\"") + &line("\"job\":\"b\"");
    std::fs::write(directory.join("lines"), text)?;
    let server = Launch::new(&directory.join("quipu")).start()?;
    let said = must(&server, directory, &["victoriametrics-files", "lines"])?;
    let words = "1 series without a metric's name, with 2 samples: {job=\"b\"}";
    ensure!(said.contains("2 samples of 1 window sent") && said.contains(words), "{said}");
    let said = must(&server, directory, &["verify", "victoriametrics-files", "lines"])?;
    ensure!(said.contains("with 2 samples compared; 0 differ"), "{said}");
    let named = ["--match", "{job=\"b\"}", "--set-label", "__name__=given"];
    must(&server, directory, &[&["victoriametrics-files", "lines"], &named[..]].concat())?;
    ensure!(server.export("given")?.len() == 2, "with a name it comes");
    server.stop()
}

/// Files that are cut short, or are something else.
fn check_damaged(directory: &Path) -> Result<()> {
    let server = Launch::new(&directory.join("quipu-damaged")).start()?;
    for (name, words) in
        [("native", "the file ends within a block"), ("lines", "1 records cannot be read: 3: ")]
    {
        let whole = std::fs::read(directory.join(name))?;
        let cut = format!("{name}-cut");
        std::fs::write(directory.join(&cut), &whole[..whole.len() - 9])?;
        let said = migrate(&server, directory, &["victoriametrics-files", &cut])?;
        ensure!(said.code == 1 && said.text.contains(words), "{}", said.text);
        ensure!(server.export("cpu_v")?.0.len() >= 2, "the others came");
    }
    std::fs::write(directory.join("else"), "<html>no export</html>")?;
    let said = migrate(&server, directory, &["victoriametrics-files", "else"])?;
    ensure!(said.code == 1 && said.text.contains("neither JSON lines nor"), "{}", said.text);
    let some =
        ["victoriametrics-files", "lines", "--match", "{host=\"h1\"}", "--set-label", "from=vm"];
    must(&server, directory, &some)?;
    ensure!(server.export("cpu_v{from=\"vm\"}")?.len() == 9000, "a part of it");
    server.stop()
}

/// Writes files by Graphite's own module, and prints what it reads of each: times and values.
const WHISPER: &str = r#"
import json, os, sys, whisper
root, start = sys.argv[1], int(sys.argv[2])
def make(path, archives, points):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    whisper.create(path, archives, xFilesFactor=0.0)
    for at in range(0, len(points), 500):
        some = points[at:at + 500]
        whisper.update_many(path, some, now=some[-1][0])
    now = points[-1][0]
    seen = {}
    for seconds, count in reversed(archives):
        found = whisper.fetch(path, now - seconds * count, now, now=now, archiveToSelect=seconds)
        (first, last, step), values = found
        edge = now - now % seconds - seconds * count + seconds
        for i, value in enumerate(values):
            if value is not None and edge <= first + i * step:
                if seconds == archives[0][0] or first + i * step < now - now % archives[0][0] - archives[0][0] * (archives[0][1] - 1):
                    seen[first + i * step] = value
    return [(at, repr(value)) for at, value in sorted(seen.items())]
points = [(start + i * 60, i / 7.0) for i in range(4000) if i % 100 != 3]
tagged = '_tagged/9f0/0a1/disk_DOT_used;host=a;rack=r1.wsp'
print(json.dumps({
    'servers.a-b.cpu': make('servers/a-b/cpu.wsp', [(60, 1440), (600, 1008)], points),
    'servers.young': make('servers/young.wsp', [(60, 1440), (3600, 1000)], points[:50]),
    'disk.used': make(tagged, [(60, 100)], points),
}))
"#;

#[test]
fn a_tree_of_whisper_is_copied() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let python = python_with("whisper")?;
    let tree = directory.join("tree");
    let place = tree.display().to_string();
    let output = run(&python, &["-c", WHISPER, &place, &START.to_string()])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let truth: serde_json::Value = serde_json::from_slice(&output.stdout)?;

    let server = Launch::new(&directory.join("quipu")).start()?;
    let told = must(&server, directory, &["whisper", &place, "--dry-run"])?;
    ensure!(told.contains("./servers/a-b: ") && told.contains("3 windows; nothing"), "{told}");
    must(&server, directory, &["whisper", &place])?;
    for (name, points) in truth.as_object().context("an object")? {
        let found_of = server.export(&format!("{{__name__=\"{name}\"}}"))?;
        let mut found: Vec<(i64, f64)> = Vec::new();
        for (at, value) in found_of.0.values().flatten() {
            found.push((at.parse()?, value.parse()?));
        }
        let points: Vec<(i64, f64)> = points
            .as_array()
            .context("points")?
            .iter()
            .filter_map(|pair| Some((pair[0].as_i64()? * 1000, pair[1].as_str()?.parse().ok()?)))
            .collect();
        ensure!(
            !points.is_empty() && found == points,
            "{name}: {} and {}",
            found.len(),
            points.len()
        );
    }
    ensure!(lines(&server)?.iter().any(|one| one.contains("\"rack\":\"r1\"")), "tags");
    let said = must(&server, directory, &["verify", "whisper", &place])?;
    ensure!(said.contains("; 0 differ"), "{said}");
    check_lies(&tree, directory)
}

/// Files that lie are named, and the others come.
fn check_lies(tree: &Path, directory: &Path) -> Result<()> {
    let place = tree.display().to_string();
    let good = std::fs::read(tree.join("servers/young.wsp"))?;
    std::fs::write(tree.join("servers/cut.wsp"), &good[..good.len() - 12])?;
    let mut little = good.clone();
    little[..4].reverse();
    std::fs::write(tree.join("servers/little.wsp"), little)?;
    std::fs::write(tree.join("servers/empty.wsp"), b"")?;
    let server = Launch::new(&directory.join("lies")).start()?;
    let said = migrate(&server, directory, &["whisper", &place])?;
    ensure!(said.code == 1 && said.text.contains("3 files cannot be read: "), "{}", said.text);
    ensure!(
        said.text.contains("little.wsp: ") && said.text.contains("little endian"),
        "{}",
        said.text
    );
    ensure!(said.text.contains("not done: 1 window: ./servers"), "{}", said.text);
    ensure!(lines(&server)?.len() == 3, "the others came");
    for name in ["cut", "little", "empty"] {
        std::fs::remove_file(tree.join(format!("servers/{name}.wsp")))?;
    }
    let said = must(&server, directory, &["whisper", &place])?;
    ensure!(said.contains("going on: 2 of 3 windows are done"), "{said}");
    let some = ["whisper", &place, "--match", "disk.used", "--drop-label", "rack"];
    let said = migrate(&server, directory, &some)?;
    ensure!(said.code == 1, "a name with dots needs quotes: {}", said.text);
    server.stop()
}

#[test]
fn parquet_is_copied_with_all_that_it_says() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let truth = Launch::new(&directory.join("truth")).start()?;
    let histogram = "{\"metric\":{\"__name__\":\"h\",\"job\":\"a\"},\"histograms\":[{\"schema\":1,\"count\":3,\"sum\":4.5,\
                     \"zero_threshold\":0.001,\"zero_count\":1,\"positive\":[[0,2]]}],\"histogram_timestamps\":[1788048000000]}\n";
    let text = format!(
        "{{\"metric\":{{\"__name__\":\"m\",\"job\":\"a\"}},\"values\":[1,\"NaN:7ff0000000000002\",3],\
         \"timestamps\":[1788048000000.000001,1788048000000.000002,1788134400000]}}\n\
         {{\"metric\":{{\"__name__\":\"c\",\"job\":\"a\"}},\"values\":[1,2],\"timestamps\":[1788048000000,1788048001000],\
         \"start_timestamps\":[1788047000000,0]}}\n{histogram}"
    );
    truth.write("/api/v1/import", text)?;
    let folder = directory.join("samples");
    let output = quipu(&["export", "--format", "parquet", "--url", truth.url(), "--output"])?
        .arg(&folder)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let place = folder.display().to_string();

    let server = Launch::new(&directory.join("quipu")).start()?;
    let told = must(&server, directory, &["parquet", &place, "--dry-run"])?;
    ensure!(told.contains("2026-08-31: ") && told.contains("2 windows; nothing"), "{told}");
    let said = must(&server, directory, &["parquet", &place])?;
    ensure!(said.contains("6 samples of 2 windows sent"), "{said}");
    ensure!(lines(&server)? == lines(&truth)?, "{:?}\n{:?}", lines(&server)?, lines(&truth)?);
    let said = must(&server, directory, &["verify", "parquet", &place])?;
    ensure!(said.contains("; 0 differ"), "{said}");
    let other = Launch::new(&directory.join("other")).start()?;
    let some = [
        "parquet",
        &place,
        "--match",
        "m",
        "--end",
        "2026-08-30T12:00:00Z",
        "--rename-label",
        "job=work",
    ];
    must(&other, directory, &some)?;
    let found = lines(&other)?;
    ensure!(
        found.len() == 1 && found[0].contains("\"work\":\"a\"") && found[0].contains(".000001"),
        "{found:?}"
    );
    std::fs::write(folder.join("bad.parquet"), b"PAR1 no such file PAR1")?;
    let said = migrate(&server, directory, &["parquet", &place])?;
    ensure!(said.code == 1 && said.text.contains("bad.parquet"), "{}", said.text);
    other.stop()?;
    server.stop()
}
