"""Parquet with pyarrow and DuckDB, against a server at the port that the first argument says, whose files are in the
directory that the second says; the third is where `quipu export` wrote. Silent when all is well."""

import datetime
import io
import math
import os
import sys

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

PORT, FILES, EXPORT = int(sys.argv[1]), sys.argv[2], sys.argv[3]
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)
DSN = f"host=127.0.0.1 port={PORT} user=me dbname=metrics"
LABELS = pa.map_(pa.string(), pa.string())
connection = psycopg.connect(DSN, autocommit=True)


def out(query):
    with connection.cursor().copy(query) as copy:
        return b"".join(bytes(piece) for piece in copy)


def put(query, data):
    cursor = connection.cursor()
    with cursor.copy(query) as copy:
        for start in range(0, len(data), 100_000):
            copy.write(data[start:start + 100_000])
    return cursor.statusmessage


def refused(code, act):
    try:
        act()
    except psycopg.Error as error:
        assert error.sqlstate == code, (error.sqlstate, error)
        return str(error)
    raise AssertionError(f"{code} was expected")


def written(table, **options):
    data = io.BytesIO()
    pq.write_table(table, data, **options)
    return data.getvalue()


def count(where="true"):
    return connection.execute(f"SELECT count(*) FROM metrics WHERE {where}").fetchone()[0]


def values_go_out():
    query = ("SELECT 1::int AS i, 2.5::float8 AS f, 'NaN'::float8 AS n, 'x' AS t, timestamptz '2024-02-29 12:00:00.123456+00' AS z, "
             "12.50::numeric(10,2) AS d, '{\"a\": 1}'::jsonb AS j, interval '1 day' AS v, true AS b, date '2024-02-29' AS day, "
             "NULL AS nothing, ARRAY[1, 2] AS a")
    data = out(f"COPY ({query}) TO STDOUT (FORMAT parquet)")
    row = pq.read_table(io.BytesIO(data)).to_pylist()[0]
    assert (row["i"], row["f"], row["t"], row["b"], row["a"]) == (1, 2.5, "x", True, [1, 2]), row
    assert math.isnan(row["n"]) and row["nothing"] is None, row
    assert row["z"] == NOON.replace(microsecond=123456), row
    assert str(row["d"]) == "12.50" and row["j"] == '{"a": 1}' and row["v"] == "1 day", row
    assert row["day"] == datetime.date(2024, 2, 29), row
    path = os.path.join(FILES, "types.parquet")
    assert connection.execute(f"COPY ({query}) TO 'types.parquet'").statusmessage == "COPY 1"
    found = duckdb.sql(f"SELECT i, f, t, d::text, v, b, a FROM '{path}'").fetchall()
    assert found == [(1, 2.5, "x", "12.50", "1 day", True, [1, 2])], found
    refused("42701", lambda: out("COPY (SELECT 1 AS a, 2 AS a) TO STDOUT (FORMAT parquet)"))


def many_rows_go_out():
    query = "SELECT g AS id, g * 0.5 AS half, 'text ' || (g % 7) AS t FROM generate_series(1, 300000) AS s(g) ORDER BY g"
    file = pq.ParquetFile(io.BytesIO(out(f"COPY ({query}) TO STDOUT (FORMAT parquet)")))
    assert file.metadata.num_rows == 300_000, file.metadata
    table = file.read()
    assert table["id"].to_pylist() == list(range(1, 300_001)) and table["t"][299_999].as_py() == "text 1"


def samples_go_out_and_come_in():
    assert put("COPY metrics FROM STDIN", b'up{job="a"} 1 1709208000000\nup{job="b"} NaN 1709208000000\n') == "COPY 2"
    data = out("COPY (SELECT time, name, value, labels FROM metrics WHERE name = 'up') TO STDOUT (FORMAT parquet)")
    labels = sorted(row["labels"] for row in pq.read_table(io.BytesIO(data)).to_pylist())
    assert labels == ['{"job": "a"}', '{"job": "b"}'], labels
    assert put("COPY metrics FROM STDIN (FORMAT parquet)", data) == "COPY 2"
    assert count("name = 'up'") == 2
    whole = out("COPY metrics TO STDOUT (FORMAT parquet)")
    assert put("COPY metrics FROM STDIN (FORMAT parquet)", whole).startswith("COPY ")


def files_of_pyarrow_come_in():
    rows = 5000
    columns = {
        "name": pa.array(["arrow_total"] * rows),
        "time": pa.array([NOON + datetime.timedelta(microseconds=at) for at in range(rows)], pa.timestamp("us", "UTC")),
        "value": pa.array([at / 3 for at in range(rows)]),
        "labels": pa.array([[("job", f"j{at % 3}"), ("empty", "")] for at in range(rows)], LABELS),
    }
    table = pa.table(columns)
    for compression in ("snappy", "zstd", "none"):
        for version in ("1.0", "2.0"):
            data = written(table, compression=compression, data_page_version=version, row_group_size=700)
            assert put("COPY metrics FROM STDIN (FORMAT parquet)", data) == f"COPY {rows}", compression
    assert count("name = 'arrow_total'") == rows
    one = connection.execute("SELECT value, labels FROM metrics WHERE name = 'arrow_total' ORDER BY time DESC LIMIT 1")
    assert one.fetchone() == (4999 / 3, {"job": "j1"})
    pq.write_table(table.set_column(0, "name", pa.array(["from_file"] * rows)), os.path.join(FILES, "in.parquet"))
    assert connection.execute("COPY metrics FROM 'in.parquet'").statusmessage == f"COPY {rows}"
    assert count("name = 'from_file'") == rows
    # A structure, strings of JSON, whole numbers, other names and other columns.
    struct = pa.array([{"job": "x", "host": None}], pa.struct({"job": pa.string(), "host": pa.string()}))
    odd = pa.table({"metric": ["odd"], "ts": pa.array([NOON], pa.timestamp("ns", "UTC")), "value": [7], "labels": struct})
    assert put("COPY metrics FROM STDIN (FORMAT parquet)", written(odd)) == "COPY 1"
    more = odd.append_column("mine", pa.array(["x"]))
    words = refused("42703", lambda: put("COPY metrics FROM STDIN (FORMAT parquet)", written(more)))
    assert "mine" in words, words
    assert put("COPY metrics (time, name, value, labels) FROM STDIN (FORMAT parquet)", written(more)) == "COPY 1"
    assert connection.execute("SELECT value, labels FROM metrics WHERE name = 'odd'").fetchall() == [(7, {"job": "x"})]
    refused("22P04", lambda: put("COPY metrics FROM STDIN (FORMAT parquet)", written(odd, compression="gzip")))


def bad_files_store_nothing():
    before = count()
    rows = 3000
    names = pa.array(["bad"] * (rows - 1) + [None])
    good = pa.table({"name": pa.array(["bad"] * rows), "value": pa.array([1.0] * rows)})
    data, load = written(good), "COPY metrics FROM STDIN (FORMAT parquet)"
    for code, bad in [
        ("22P04", data[:-1]), ("22P04", data[:-100]), ("22P04", b""), ("22P04", b"up 1\n" * 50),
        ("22P04", data[:4] + bytes(200) + data[204:]),
        ("42703", written(pa.table({"name": ["bad"]}))),
        ("42804", written(pa.table({"name": ["bad"], "value": ["x"]}))),
        ("23502", written(good.set_column(0, "name", names))),
        ("22P02", written(pa.table({"name": ["bad"], "value": [1.0], "labels": pa.array([[("__name__", "x")]], LABELS)}))),
        ("54000", written(pa.table({"name": ["bad"], "value": [1.0], "labels": pa.array([[("l", "x" * 300_000)]], LABELS)}))),
    ]:
        refused(code, lambda: put(load, bad))
    assert count() == before and count("name = 'bad'") == 0
    skipped = put("COPY metrics FROM STDIN (FORMAT parquet, ON_ERROR ignore)", written(good.set_column(0, "name", names)))
    assert skipped.startswith("COPY "), skipped
    # A value of 30 MiB in each of a thousand rows, some kilobytes as a file.
    wide = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * (30 << 20)]))
    big = pa.table({"name": wide, "value": pa.array([1.0] * 1000)})
    refused("54000", lambda: put(load, written(big, compression="zstd", dictionary_pagesize_limit=1 << 30, write_statistics=False)))
    # A page of 256 MiB.
    page = pa.table({"name": ["x" * (256 << 20)], "value": [1.0]})
    refused("54000", lambda: put(load, written(page, compression="zstd", use_dictionary=False, write_statistics=False)))


def files_stay_in_their_directory():
    secret = os.path.join(os.path.dirname(FILES), "secret.parquet")
    pq.write_table(pa.table({"name": ["secret"], "value": [1.0]}), secret)
    os.symlink(secret, os.path.join(FILES, "link.parquet"))
    os.mkdir(os.path.join(FILES, "folder"))
    os.mkfifo(os.path.join(FILES, "pipe.parquet"))
    for name in ("../secret.parquet", secret, "link.parquet", "folder/x.parquet", "pipe.parquet", ".x.parquet", "..", "",
                 "x" * 300 + ".parquet"):
        refused("42501", lambda: connection.execute(f"COPY metrics FROM '{name}' (FORMAT parquet)"))
    for name in ("../new.parquet", "/tmp/new.parquet", "folder/x.parquet", ".x.parquet", ""):
        refused("42501", lambda: connection.execute(f"COPY (SELECT 1 AS a) TO '{name}' (FORMAT parquet)"))
    refused("58P02", lambda: connection.execute("COPY (SELECT 1 AS a) TO 'link.parquet'"))
    refused("58P01", lambda: connection.execute("COPY metrics FROM 'nowhere.parquet'"))
    connection.execute("COPY (SELECT 1 AS a) TO 'once.parquet'")
    words = refused("58P02", lambda: connection.execute("COPY (SELECT 2 AS a) TO 'once.parquet'"))
    assert FILES not in words, words
    connection.execute("COPY (SELECT 3 AS a) TO 'once.parquet' (FORMAT parquet, OVERWRITE)")
    assert pq.read_table(os.path.join(FILES, "once.parquet")).to_pylist() == [{"a": 3}]
    refused("22012", lambda: connection.execute("COPY (SELECT 1 / (g - 9000) FROM generate_series(1, 10000) AS s(g)) TO 'half.parquet'"))
    left = [name for name in os.listdir(FILES) if "half" in name or name.endswith(".part")]
    assert left == [], left
    assert count("name = 'secret'") == 0


def exports_are_data_sets():
    found = duckdb.sql(f"""SELECT name, epoch_ns(time) + coalesce(nanos, 0), value, labels['job'], day::text, histogram IS NOT NULL
        FROM read_parquet('{EXPORT}/**/*.parquet', hive_partitioning = true) ORDER BY ALL""").fetchall()
    plain = [row for row in found if row[0] == "exact_total"]
    noon = 1_709_208_000_000_000_000
    assert plain[0] == ("exact_total", noon + 1, 0.1, "a", "2024-02-29", False), plain
    assert plain[1][1] == noon + 86_400_000_000_000 and plain[1][4] == "2024-03-01" and plain[1][2] == math.inf, plain
    assert [row[2] for row in found if row[5]] == [None], found
    data = ds.dataset(EXPORT, partitioning="hive")
    days = data.to_table(filter=ds.field("day") == "2024-03-01", columns=["metric", "name", "value", "labels"]).to_pylist()
    assert {row["name"] for row in days} == {"exact_total"} == {row["metric"] for row in days}, days
    assert days[0]["labels"] == [("job", "a")], days
    odd = data.to_table(filter=ds.field("name") == "a:b/c d", columns=["metric", "value"]).to_pylist()
    assert odd == [{"metric": "a:b/c d", "value": 5.0}], odd


exports_are_data_sets()
values_go_out()
many_rows_go_out()
samples_go_out_and_come_in()
files_of_pyarrow_come_in()
bad_files_store_nothing()
files_stay_in_their_directory()
