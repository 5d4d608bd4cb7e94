"""Sends the Flux queries of InfluxData's public templates to a server and counts the refusals.

Usage: python3 influx_templates.py TEMPLATES URL

TEMPLATES is a clone of https://github.com/influxdata/community-templates, URL a running server without
credentials. Each query gets a bucket of its own with invented samples: the measurements, fields and tags
that the query names, as floats, integers, strings or booleans until one of them is answered. Needs PyYAML.
"""

import collections
import json
import pathlib
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

KINDS = ("Dashboard", "Task", "Variable", "CheckThreshold", "CheckDeadman")
OWN_COLUMNS = {"_measurement", "_field", "_value", "_time", "_start", "_stop"}
VARIABLES = {"timeRangeStart": "-1h", "timeRangeStop": "now()", "windowPeriod": "60s", "Units": '"km"',
             "Location": '"X:1.0:2.0"', "Radius": '"100.0"', "Magnitude_Threshold": '"1.0"'}
TASK_NAME = r'"name: \\\\\\\"n%d\\\\\\\""'
# How a value is written, and whether the columns that functions read are fields and not tags.
SAMPLES = [("%d", False), ("%di", False), ('"%d"', False), ("true", False), ("%d", True), (TASK_NAME, True)]
IMPORT = re.compile(r'^\s*(?:package \w+|import (?:\w+ )?"[^"]+").*$', re.MULTILINE)


def queries(node, kind, path):
    """Yields kind, file and text of each query in a document."""
    if isinstance(node, dict):
        kind = node["kind"] if node.get("kind") in KINDS else kind
        for key, value in node.items():
            if key == "query" and isinstance(value, str) and value.strip():
                yield kind, path, value
            else:
                yield from queries(value, kind, path)
    elif isinstance(node, list):
        for value in node:
            yield from queries(value, kind, path)


def compared(query, column):
    """Returns the strings that a query compares a column with."""
    name = re.escape(column)
    return re.findall(rf'r(?:\.{name}|\[\s*"{name}"\s*\])\s*==\s*"([^"]*)"', query)


def columns(query):
    """Returns the columns that a query names beside those of all series."""
    found = set(re.findall(r"\br\.(\w+)", query)) | set(re.findall(r'\br\[\s*"([^"]+)"\s*\]', query))
    for names in re.findall(r"(?:columns|on|rowKey|columnKey|groupColumns)\s*:\s*\[([^\]]*)\]", query):
        found |= set(re.findall(r'"([^"]+)"', names))
    return found - OWN_COLUMNS | ({"le"} if "histogramQuantile" in query else set())


def escaped(text):
    return re.sub(r"([,= ])", r"\\\1", text)


def lines(query, sample, has_fields):
    """Returns line protocol for a query: three series for each measurement."""
    fields = compared(query, "_field") or ["f0", "f1"]
    tags = columns(query) - set(fields)
    if has_fields:
        read = {name for name in tags if not compared(query, name) and name not in ("host", "id", "taskID", "name")
                and re.search(rf'r\.{re.escape(name)}\b|r\["{re.escape(name)}"\]', query)}
        fields = sorted(read) + (fields if compared(query, "_field") or not read else [])
        tags -= read
    now, found = int(time.time()), []
    for measurement in dict.fromkeys((compared(query, "_measurement") or ["m0"])[:6]):
        for series in range(3):
            key = escaped(measurement)
            for tag in sorted(tags):
                values = {"le": ["0.1", "1", "+Inf"], "quantile": ["0.5"] * 3}.get(tag) or compared(query, tag)
                value = values[series % len(values)] if values else f"t{series}"
                key += f",{escaped(tag)}={escaped(value)}" if value else ""
            for at in range(0, 3600, 300):
                value = sample % (at / 100 + series) if "%d" in sample else sample
                cells = ",".join(f"{escaped(field)}={value}" for field in dict.fromkeys(fields))
                found.append(f"{key} {cells} {(now - 3590 + at) * 10**9}")
    return "\n".join(found)


def text_of(kind, query, bucket, word):
    """Returns a query with its bucket, its variables and, for a task, its option."""
    names = set(re.findall(r"\bv\.(\w+)", query)) | set(re.findall(r'\bv\[\s*"(\w+)"\s*\]', query))
    values = []
    for name in sorted(names | {"timeRangeStart"}):
        default = f'"{bucket if "ucket" in name else word}"'
        if re.search(rf"(every|unit|period|duration)\s*:\s*v\.{name}\b", query):
            default = "60s"
        values.append(f"{name}: {VARIABLES.get(name, default)}")
    text = re.sub(r'bucket:\s*(v\.\w+|v\["\w+"\]|"[^"]*")', f'bucket: "{bucket}"', query)
    options = f"option v = {{{', '.join(values)}}}\n"
    if kind.startswith(("Task", "Check")) and "option task" not in query:
        options += 'option task = {name: "t", every: 5m, offset: 0s}\n'
    return "\n".join(IMPORT.findall(text)) + "\n" + options + IMPORT.sub("", text)


def post(url, body, kind):
    request = urllib.request.Request(url, data=body.encode(), headers={"Content-Type": kind}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def ask(url, kind, query, number):
    """Returns the answer to a query, or its first refusal."""
    first = None
    for index, (sample, has_fields) in enumerate(SAMPLES):
        for word in ("t0", "1", "1h"):
            bucket = f"templates{number}x{index}"
            body = lines(query, sample, has_fields)
            write = lambda name: post(f"{url}/api/v2/write?bucket={urllib.parse.quote(name)}", body, "text/plain")
            if write(bucket)[0] != 204:
                post(f"{url}/api/v2/write?bucket={bucket}", "m0 f0=1", "text/plain")
            for _ in range(3):
                answer = post(f"{url}/api/v2/query?org=o", text_of(kind, query, bucket, word), "application/vnd.flux")
                other = re.search(r'could not find bucket \\"([^"\\]+)', answer[1])
                if not other:
                    break
                write(other.group(1))
            if answer[0] == 200:
                return answer
            first = first or answer
    return first


def main():
    folder, url = pathlib.Path(sys.argv[1]), sys.argv[2].rstrip("/")
    counts, first_files, number = collections.Counter(), {}, 0
    for path in sorted(folder.rglob("*.yml")):
        for document in yaml.safe_load_all(path.read_text()):
            for kind, file, query in queries(document, None, path.relative_to(folder)):
                number += 1
                status, body = ask(url, kind or "", query, number)
                reason = "answered"
                if status != 200:
                    message = json.loads(body).get("message", body)
                    reason = f"{kind}: " + re.sub(r"@[\d:-]+:? ?", "", message)
                counts[reason] += 1
                first_files.setdefault(reason, file)
    print(f"{number} queries")
    for reason, count in counts.most_common():
        print(f"{count:5} {reason}" + ("" if reason == "answered" else f" ({first_files[reason]})"))


if __name__ == "__main__":
    main()
