//! The official Python client of InfluxDB writes; what it wrote is read back over the other doors.

use anyhow::{Context, Result, ensure};
use e2e::programs::python_with;
use e2e::{Launch, run};

/// Prints nothing when all is well; its parts are told by the names of the measurements.
const SCRIPT: &str = r#"
import sys
from datetime import datetime, timezone
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS, WriteOptions
from influxdb_client.rest import ApiException

url, token = sys.argv[1], sys.argv[2]
noon = datetime(2024, 2, 29, 12, 0, 0, tzinfo=timezone.utc)
seconds = int(noon.timestamp())

def client(token, gzip):
    return InfluxDBClient(url=url, token=token, org="o", enable_gzip=gzip)

with client(token, False) as plain, client(token, True) as packed:
    assert plain.ping()
    assert plain.health().status == "pass"
    for gzip, connection in (("no", plain), ("yes", packed)):
        api = connection.write_api(write_options=SYNCHRONOUS)
        for precision, factor in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
            point = (Point("precise").tag("gzip", gzip).tag("precision", precision)
                     .field("v", 1.5).time(seconds * factor + (factor > 1), precision))
            api.write("b", record=point, write_precision=precision)
        odd = (Point("odd name,x").tag("tag key", "a b,c=d").tag("city", "Zürich ☃").tag("back\\slash", "x\\y")
               .tag("gzip", gzip)
               .field("int", -7).field("float", 0.1).field("true", True).field("false", False)
               .field("big", 2**53).field("comma,field", 3)
               .time(noon, WritePrecision.MS))
        api.write("b", record=odd)
        api.write("b", record=[Point("many").tag("gzip", gzip).tag("n", str(n)).field("v", n).time(noon)
                               for n in range(1000)])
        api.write("b", record=f"raw,gzip={gzip} v=1 {seconds}000000000\nraw,gzip={gzip} v=2 {seconds + 1}000000000")
        api.write("b", record={"measurement": "dict", "tags": {"gzip": gzip}, "fields": {"v": 4}, "time": noon})

    with packed.write_api(write_options=WriteOptions(batch_size=100, flush_interval=100)) as batching:
        for n in range(1000):
            batching.write("b", record=Point("batch").field("v", n).time(seconds + n, "s"), write_precision="s")

    api = plain.write_api(write_options=SYNCHRONOUS)
    try:
        api.write("b", record=f"good v=1 {seconds}000000000\nbad line\ngood v=2 {seconds + 1}000000000")
        sys.exit("a bad line passed")
    except ApiException as error:
        assert error.status == 400, error.status
        assert "bad line" in error.body and '"line":2' in error.body.replace(" ", ""), error.body

with client("wrong", False) as stranger:
    try:
        stranger.write_api(write_options=SYNCHRONOUS).write("b", record="m v=1")
        sys.exit("a wrong token passed")
    except ApiException as error:
        assert error.status == 401, error.status
"#;

#[test]
fn the_official_python_client() -> Result<()> {
    let python = python_with("influxdb_client")?;
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("bearer-token", "secret").start()?;
    let script = directory.path().join("client.py");
    std::fs::write(&script, SCRIPT)?;
    let script = script.to_str().context("UTF-8")?;
    let output = run(&python, &[script, server.url(), "secret"])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{said}");
    // The reading half of this test comes without the token.
    let launch = Launch::new(directory.path());
    server.stop()?;
    let server = launch.start()?;

    for gzip in ["no", "yes"] {
        let tagged = format!("db=\"b\",gzip=\"{gzip}\"");
        let precise = server.export("precise_v")?;
        let at = |precision: &str| {
            precise.samples(&format!("precise_v{{{tagged},precision=\"{precision}\"}}"))
        };
        assert_eq!(at("s"), ["1709208000000 1.5"]);
        assert_eq!(at("ms"), ["1709208000001 1.5"]);
        assert_eq!(at("us"), ["1709208000000.001000 1.5"]);
        assert_eq!(at("ns"), ["1709208000000.000001 1.5"]);
        let odd = format!(
            "back\\slash=\"x\\\\y\",city=\"Zürich ☃\",db=\"b\",gzip=\"{gzip}\",tag key=\"a b,c=d\""
        );
        let odd_export = server.export("{tag_key!=\"\", __name__=~\"odd name,x_.*\"}")?;
        assert!(odd_export.is_empty(), "the label is called `tag key`, not `tag_key`");
        let odd_export = server.export("{__name__=~\"odd name,x_.*\"}")?;
        let values = [
            ("int", "-7"),
            ("float", "0.1"),
            ("true", "1"),
            ("false", "0"),
            ("big", "9007199254740992"),
            ("comma,field", "3"),
        ];
        for (field, value) in values {
            let found = odd_export.samples(&format!("odd name,x_{field}{{{odd}}}"));
            assert_eq!(found, [format!("1709208000000 {value}")], "{field}: {odd_export:?}");
        }
        let many = format!("sum(many_v{{gzip=\"{gzip}\"}})");
        assert_eq!(server.vector(&many, 1_709_208_000.0)?["{}"], "499500");
        assert_eq!(server.export(&format!("raw_v{{gzip=\"{gzip}\"}}"))?.len(), 2);
        assert_eq!(server.export(&format!("dict_v{{gzip=\"{gzip}\"}}"))?.len(), 1);
    }
    let batch = server.vector("sum_over_time(batch_v[1h])", 1_709_209_000.0)?;
    assert_eq!(batch["{db=\"b\"}"], "499500");
    assert_eq!(server.export("good_v")?.len(), 2, "the good lines beside the bad one");
    server.stop()
}
