"""redis-py's own tests against the binary that the first argument names: `make redis-py-suite`.

The source archive comes from PyPI, as do the packages it needs; both are kept in target/test-redis-py.
What fails is compared with redis_py_suite.txt, which says why: a new failure, and a line there that is
none any more, fail the run. UPDATE=1 rewrites the list, and keeps the reasons.
"""

import os
import pathlib
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time

VERSION = "8.1.0"
FILES = """
test_commands.py test_timeseries.py test_pubsub.py test_scripting.py test_pipeline.py test_lock.py
test_function.py test_monitor.py test_hash.py test_encoding.py test_client.py
test_asyncio/test_commands.py test_asyncio/test_timeseries.py test_asyncio/test_pubsub.py
test_asyncio/test_scripting.py test_asyncio/test_pipeline.py test_asyncio/test_lock.py
test_asyncio/test_hash.py test_asyncio/test_encoding.py test_asyncio/test_monitor.py
""".split()
PACKAGES = ["pytest==8.4.2", "pytest-asyncio==1.2.0", "pytest-timeout==2.4.0", "pytest-profiling==1.8.1", "numpy",
            "cachetools", "packaging", "pybreaker", "PyJWT", "requests", "xxhash", "opentelemetry-api", "opentelemetry-sdk"]
HERE = pathlib.Path(__file__).resolve().parent
KNOWN = HERE / "redis_py_suite.txt"
TARGET = HERE.parent.parent / "target" / "test-redis-py"


def prepare():
    python = TARGET / "bin" / "python"
    sources = TARGET / f"redis-{VERSION}"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", TARGET], check=True)
    pip = [python, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "install", f"redis=={VERSION}", *PACKAGES], check=True)
    if not sources.exists():
        subprocess.run([*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", TARGET, f"redis=={VERSION}"], check=True)
        with tarfile.open(TARGET / f"redis-{VERSION}.tar.gz") as archive:
            archive.extractall(TARGET, filter="data")
    return python, sources


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
    sys.exit("the server does not listen")


def failures(python, sources, port, protocol):
    url = f"redis://localhost:{port}/0"
    arguments = ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "--timeout", "60", "--redis-url", url,
                 "--redis-mod-url", url, "--protocol", protocol, "-m", "not onlycluster"]
    command = [python, "-m", "pytest", *arguments, *(f"tests/{name}" for name in FILES)]
    output = subprocess.run(command, cwd=sources, capture_output=True, text=True).stdout
    print(f"RESP{protocol}:", output.strip().splitlines()[-1])
    names = re.findall(r"^(?:FAILED|ERROR) (\S+?)(?: - .*)?$", output, re.M)
    return {f"{name} RESP{protocol}" for name in names}


def main():
    python, sources = prepare()
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        flags = ["--data-dir", directory, "--http-listen", "127.0.0.1:0", "--redis-listen", f"127.0.0.1:{port}",
                 "--self-scrape-interval", "0"]
        server = subprocess.Popen([sys.argv[1], "serve", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port)
            failed = set().union(*(failures(python, sources, port, protocol) for protocol in "23"))
        finally:
            server.terminate()
            server.wait()
    lines = KNOWN.read_text().splitlines() if KNOWN.exists() else []
    known = dict(line.split(": ", 1) for line in lines if ": " in line)
    if os.environ.get("UPDATE"):
        KNOWN.write_text("".join(f"{name}: {known.get(name, 'unknown yet')}\n" for name in sorted(failed)))
    new, mended = failed - known.keys(), known.keys() - failed
    print("new failures:", *sorted(new), sep="\n  ")
    print("known failures that are none any more:", *sorted(mended), sep="\n  ")
    sys.exit(bool(new or mended))


main()
