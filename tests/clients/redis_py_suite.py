"""redis-py's own tests against the binary that the first argument names: `make test-redis-py`.

The source archive comes from PyPI, as do the packages it needs; both are kept in target/test-redis-py.
What fails and is not in KNOWN_FAILURES fails the run. It takes minutes; arguments behind the binary name
the files to run instead of all.
"""

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
            "cachetools", "coverage", "packaging", "pybreaker", "PyJWT", "requests", "xxhash", "opentelemetry-api", "opentelemetry-sdk"]
# Tests by name, and why they fail.
KNOWN_FAILURES = {
    "test_client_setinfo": "opens port 6379 itself",
    "test_client_setinfo_with_driver_info": "opens port 6379 itself",
    "test_lolwut": "wants the words of Redis' picture",
    "test_module": "there are no modules to load, and the error says so in other words",
    "test_module_loadex": "there are no modules to load, and the error says so in other words",
    "test_psync": "opens port 6380 itself",
    "test_xgroup_create_entriesread": "a lag below zero is shown as Redis 7.0 shows it",
}
HERE = pathlib.Path(__file__).resolve().parent
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


def failures(python, sources, port, protocol, files):
    url = f"redis://localhost:{port}/0"
    arguments = ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "--timeout", "60", "--redis-url", url,
                 "--redis-mod-url", url, "--protocol", protocol, "-m", "not onlycluster"]
    command = [python, "-m", "pytest", *arguments, *(f"tests/{name}" for name in files)]
    ended = subprocess.run(command, cwd=sources, capture_output=True, text=True)
    output = ended.stdout
    lines = (output.strip() or ended.stderr.strip()).splitlines()
    print(f"RESP{protocol}:", lines[-1] if lines else "nothing ran")
    if not lines or " passed" not in lines[-1]:
        sys.exit("\n".join(lines[-20:]))
    return re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M)


def main():
    python, sources = prepare()
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        flags = ["--data-dir", directory, "--http-listen", "127.0.0.1:0", "--redis-listen", f"127.0.0.1:{port}", "--redis.enable-debug-command", "local",
                 "--self-scrape-interval", "0"]
        server = subprocess.Popen([sys.argv[1], "serve", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port)
            files = sys.argv[2:] or FILES
            failed = [name for protocol in "23" for name in failures(python, sources, port, protocol, files)]
        finally:
            server.terminate()
            server.wait()
    of = {name: re.sub(r"\[.*", "", name.split("::")[-1]) for name in failed}
    for name in failed:
        print(f"  {name}: {KNOWN_FAILURES.get(of[name], 'NOT KNOWN')}")
    sys.exit(any(test not in KNOWN_FAILURES for test in of.values()))


main()
