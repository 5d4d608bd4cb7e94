"""Starts Quipu and the peers as child processes on free ports of loopback, and sends HTTP requests."""

import http.client
import os
import pathlib
import pwd
import random
import resource
import shutil
import socket
import subprocess
import time
import urllib.parse

START_SECONDS_MAX = 120
REQUEST_SECONDS_MAX = 120
GO_MEMORY_LIMIT = "1GiB"  # Prometheus takes 10 GB without it, as its garbage waits for a larger heap.
REDIS_MEMORY_MAX = 8 << 30  # bytes of address space: a command may have Redis use up a machine's memory
PORTS = (20_000, 32_000)
LISTENERS = ("http", "redis", "postgres", "influx")
POSTGRES_DIRECTORIES = ("/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/17/bin")


def free_ports(count):
    """Ports that nothing listens on, below those that systems give to outgoing connections: a server that
    is started again finds its port free."""
    ports = []
    while len(ports) < count:
        port = random.SystemRandom().randrange(*PORTS)
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class Server:
    """A child process that is ready when all its ports accept connections and `is_ready` returns true."""

    def __init__(self, arguments, ports, directory, is_ready=lambda: True, **popen):
        self.arguments = [str(argument) for argument in arguments]
        self.ports = ports
        self.log = pathlib.Path(directory) / (pathlib.Path(self.arguments[0]).name + ".log")
        self.log_read = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            popen.setdefault("env", {**os.environ, "GOMEMLIMIT": GO_MEMORY_LIMIT})
            self.child = subprocess.Popen(self.arguments, stdout=log, stderr=subprocess.STDOUT,
                                          stdin=subprocess.DEVNULL, **popen)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not (self.accepts() and is_ready()):
            if self.child.poll() is not None:
                raise SystemExit(f"{self.arguments[0]} exited with {self.child.returncode}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.stop()
                raise SystemExit(f"{self.arguments[0]} is not ready after {START_SECONDS_MAX} s:\n{self.log_tail()}")
            time.sleep(0.02)

    def accepts(self):
        try:
            for port in self.ports:
                socket.create_connection(("127.0.0.1", port), 5).close()
            return True
        except OSError:
            return False

    def is_running(self):
        return self.child.poll() is None

    def log_tail(self):
        return self.log.read_text(encoding="utf-8", errors="replace")[-3_000:]

    def memory(self):
        """Resident memory in bytes; 0 if the process has ended."""
        try:
            pages = pathlib.Path(f"/proc/{self.child.pid}/statm").read_text(encoding="ascii").split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def panics(self):
        """Lines that report a panic in what the log has got since the last call."""
        with open(self.log, "rb") as log:
            log.seek(self.log_read)
            added = log.read()
        self.log_read += len(added)
        return [line for line in added.decode("utf-8", "replace").splitlines() if "panicked" in line]

    def kill(self):
        self.child.kill()
        self.child.wait()

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()


def start_quipu(binary, directory, *flags, ports=None, listeners=LISTENERS):
    """Starts Quipu with all listeners or some, and the others off; `.http`, `.redis`, `.postgres`, `.influx` are its ports."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    ports = ports or free_ports(len(listeners))
    chosen = [f"--{name}-listen=127.0.0.1:{port}" for name, port in zip(listeners, ports)]
    chosen += [f"--{name}-listen=" for name in LISTENERS if name not in listeners]
    # Quipu refuses variables of the tests as unknown settings.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_")}
    # A program that is built without SQL does not listen for PostgreSQL.
    awaited = [port for name, port in zip(listeners, ports) if name != "postgres"]
    server = Server([binary, "serve", f"--data-dir={directory}/data", *chosen, *flags], awaited, directory,
                    lambda: request(ports[0], "GET", "/-/ready").status == 200, env=environment)
    server.ports = ports
    for name, port in zip(listeners, ports):
        setattr(server, name, port)
    return server


def start_prometheus(directory, program=None, *flags):
    """Prometheus with remote write and native histograms; it scrapes nothing."""
    program = find_program(program or "prometheus")
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "prometheus.yml").write_text("global: {}\nstorage: {tsdb: {out_of_order_time_window: 100000h}}\n")
    (port,) = free_ports(1)
    server = Server([program, f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
                     f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver",
                     "--storage.tsdb.retention.time=100y", "--enable-feature=native-histograms", *flags],
                    [port], directory, lambda: request(port, "GET", "/-/ready").status == 200)
    server.http = port
    return server


def start_victoriametrics(directory, program=None, *flags):
    program = find_program(program or "victoria-metrics")
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    server = Server([program, f"-storageDataPath={directory}/data", f"-httpListenAddr=127.0.0.1:{port}",
                     "-retentionPeriod=100y", *flags], [port], directory,
                    lambda: request(port, "GET", "/health").status == 200)
    server.http = port
    return server


def start_influxdb(directory, program=None):
    program = find_program(program or "influxd")
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    http_port, rpc_port = free_ports(2)
    (directory / "influxdb.conf").write_text(f"""
reporting-disabled = true
bind-address = "127.0.0.1:{rpc_port}"
[meta]
dir = "{directory}/meta"
[data]
dir = "{directory}/data"
wal-dir = "{directory}/wal"
index-version = "inmem"
[http]
bind-address = "127.0.0.1:{http_port}"
log-enabled = false
[monitor]
store-enabled = false
[coordinator]
query-timeout = "20s"
""")
    server = Server([program, "-config", directory / "influxdb.conf"], [http_port], directory,
                    lambda: request(http_port, "GET", "/ping").status == 204)
    server.http = http_port
    return server


def start_redis(directory, program=None, *flags):
    program = find_program(program or "redis-server")
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    server = Server([program, "--port", port, "--bind", "127.0.0.1", "--dir", directory, "--save", "",
                     "--enable-debug-command", "yes", *flags], [port], directory,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (REDIS_MEMORY_MAX, REDIS_MEMORY_MAX)))
    server.redis = port
    return server


def start_postgres(directory, program=None):
    """PostgreSQL with UTC, C.UTF-8 and the user `postgres` without a password; `program` is its bin directory."""
    places = [program] if program else POSTGRES_DIRECTORIES
    binaries = next((pathlib.Path(place) for place in places if pathlib.Path(place, "initdb").exists()), None)
    if not binaries:
        raise SystemExit("PostgreSQL is missing: apt-get install postgresql, or --peer DIRECTORY of initdb")
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    as_user = {}
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        account = pwd.getpwnam("postgres")
        for path in (directory, *directory.parents):
            if path.owner() == "root" and str(path) not in ("/", "/tmp"):
                path.chmod(path.stat().st_mode | 0o055)
        shutil.chown(directory, account.pw_uid, account.pw_gid)
        as_user = {"user": account.pw_uid, "group": account.pw_gid}
    subprocess.run([binaries / "initdb", "-D", directory / "data", "-U", "postgres", "--locale=C.UTF-8",
                    "-E", "UTF8", "-A", "trust"], check=True, stdout=subprocess.DEVNULL, cwd=directory, **as_user)
    (port,) = free_ports(1)
    server = Server([binaries / "postgres", "-D", directory / "data", "-p", port, "-k", directory,
                     "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "timezone=UTC"],
                    [port], directory, lambda: is_postgres_ready(binaries, port), cwd=directory, **as_user)
    server.postgres = port
    return server


def is_postgres_ready(binaries, port):
    command = [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
    return subprocess.run(command, check=False).returncode == 0


def find_program(name):
    found = shutil.which(str(name))
    if not found:
        raise SystemExit(f"{name} is missing; `cargo xtask setup` installs Debian's package, --peer names another")
    return found


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")


_connections = {}


def request(port, method, path, parameters=None, body=None, headers=None):
    """Sends a request on a kept connection; parameters are a list of pairs or a dictionary.

    Status 0 stands for a connection that failed or broke; its body is the error."""
    if parameters:
        path += "?" + urllib.parse.urlencode(parameters, doseq=True)
    data = body.encode() if isinstance(body, str) else body
    for is_last in (False, True):
        connection = _connections.get(port) or http.client.HTTPConnection("127.0.0.1", port,
                                                                          timeout=REQUEST_SECONDS_MAX)
        try:
            connection.request(method, path, data, headers or {})
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
            _connections[port] = connection
            return answer
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            was_kept = _connections.pop(port, None)
            # A server may close a kept connection at any time: one further try, on a new one.
            if is_last or not was_kept:
                return Answer(0, {}, f"{type(error).__name__}: {error}".encode())
    raise AssertionError("unreachable")


def post_form(port, path, parameters):
    body = urllib.parse.urlencode(parameters, doseq=True)
    return request(port, "POST", path, body=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
