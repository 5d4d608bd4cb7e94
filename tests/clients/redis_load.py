"""Clients who mean harm, against the server binary that the first argument names: for each case what is
answered, what it costs the server in memory, and how long somebody who reads a small key meanwhile waits
at most. `make test-redis-load`; it judges nothing, and takes minutes and some 4 GB of memory.

A binary called redis-server is started as one, so that both stand side by side. Arguments behind the binary
name cases, `clients keys mset values reader script collections`; --keys, --members and --clients say how many.
"""

import argparse
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20


def command(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Client:
    def __init__(self, port, patience=600):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", buffering=MIB)

    def send(self, data):
        self.socket.sendall(data)

    def reply(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("closed")
        kind, rest = line[:1], line[1:-2]
        if kind in b"+-:":
            return kind.decode() + rest.decode()
        size = int(rest)
        if kind == b"$":
            if size < 0:
                return None
            left = size + 2
            if size > MIB:
                while left:
                    left -= len(self.file.read(min(left, MIB)))
                return size
            return self.file.read(left)[:-2]
        return [self.reply() for _ in range(size)]

    def count_reply(self):
        """How many strings an array has, without keeping them."""
        size = int(self.file.readline()[1:-2])
        for _ in range(size):
            self.file.read(int(self.file.readline()[1:-2]) + 2)
        return size

    def ask(self, *words):
        self.send(command(*words))
        return self.reply()

    def close(self):
        self.file.close()
        self.socket.close()


class Other:
    """Somebody else, in a process of their own, who reads a small key, and how long they waited."""

    SOURCE = """
import select, socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=600)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print("ready", flush=True)
waits = []
while not select.select([sys.stdin], [], [], 0)[0]:
    began = time.perf_counter()
    try:
        s.sendall(b"*2\\r\\n$3\\r\\nGET\\r\\n$5\\r\\nsmall\\r\\n")
        got = s.recv(100)
    except OSError:
        got = b""
    waits.append(time.perf_counter() - began)
    if not got:
        print("closed", flush=True)
        break
    time.sleep(0.001)
waits.sort()
waits = waits or [0]
print("%.1f %.2f %d" % (waits[-1] * 1e3, waits[len(waits) * 99 // 100] * 1e3, len(waits)), flush=True)
"""

    def __init__(self, port):
        self.process = subprocess.Popen([sys.executable, "-c", self.SOURCE, str(port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        out, _ = self.process.communicate("\n")
        return out.strip()


class Server:
    def __init__(self, binary, *flags):
        self.directory = tempfile.mkdtemp(dir=os.environ.get("SCRATCH"))
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.is_redis = "redis-server" in binary or "valkey" in binary
        if self.is_redis:
            line = [binary, "--port", str(self.port), "--dir", self.directory, "--appendonly", "yes", "--save", "",
                    "--appendfsync", "everysec"]
        else:
            line = [binary, "serve", "--data-dir", self.directory, "--http-listen", "127.0.0.1:0",
                    "--redis-listen", f"127.0.0.1:{self.port}", "--self-scrape-interval", "0", *flags]
        self.log = open(os.path.join(self.directory, "log.txt"), "w")
        self.process = subprocess.Popen(line, stdout=self.log, stderr=self.log)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                time.sleep(0.05)
        self.client().ask("SET", "small", "x" * 20)

    def client(self):
        return Client(self.port)

    def memory(self, field="VmRSS"):
        if self.process.poll() is not None:
            return 0
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith(field):
                return int(line.split()[1]) // 1024
        return 0

    def cpu(self):
        if self.process.poll() is not None:
            return 0
        words = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as file:
            file.write("5")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory)


def watched(server, title, what):
    """Does something while somebody else reads; says what it cost."""
    server.forget_peak()
    before, other, cpu, began = server.memory(), Other(server.port), server.cpu(), time.perf_counter()
    try:
        said = what()
    except (ConnectionError, OSError) as error:
        said = f"{type(error).__name__}: {error}"
    took = time.perf_counter() - began
    waits = other.end().split()[-3:]
    after, peak = server.memory(), server.memory("VmHWM")
    alive = server.process.poll() is None
    print(f"{title} | {str(said)[:160]} | {took:.2f} s | cpu {server.cpu() - cpu:.2f} s | RSS {before} > {after}, peak {peak} MiB | "
          f"other waits {waits[0]} ms at most, p99 {waits[1]} of {waits[2]} |{'' if alive else ' DEAD'}", flush=True)
    return said


def fill(server, count, size=20):
    client = server.client()
    value = "v" * size
    for begin in range(0, count, 1000):
        words = ["MSET"]
        for n in range(begin, min(begin + 1000, count)):
            words += [f"key:{n:010}", value]
        client.send(command(*words))
        assert client.reply() == "+OK"
    client.close()


def case_clients(binary, options):
    for flags, title in (((), "by default"), (("--redis.max-connections", "20000"), "max-connections 20000")):
        server = Server(binary, *flags)
        if server.is_redis and flags:
            print("CONFIG SET maxclients", server.client().ask("CONFIG", "SET", "maxclients", "20100"))
        held, errors = [], {}
        print("maxclients", server.client().ask("CONFIG", "GET", "maxclients"), flush=True)

        def connect():
            for _ in range(options.clients):
                one = socket.create_connection(("127.0.0.1", server.port), timeout=60)
                held.append(one)
            for one in held:
                try:
                    one.sendall(b"PING\r\n")
                except OSError:
                    pass
            answers = {}
            for one in held:
                try:
                    answer = one.recv(200)
                except OSError as error:
                    answer = type(error).__name__.encode()
                answers[answer] = answers.get(answer, 0) + 1
            return answers

        before = server.memory()
        said = watched(server, f"{options.clients} clients, {title}", connect)
        open_count = said.get(b"+PONG\r\n", 0) if isinstance(said, dict) else 0
        if open_count:
            print(f"  {open_count} answered, {(server.memory() - before) * 1024 / open_count:.1f} KiB each", flush=True)
            info = server.client().ask("INFO", "clients")
            print("  ", [line for line in info.decode().split("\r\n") if "clients" in line][:4])
        if flags and open_count:
            def again():
                heard = 0
                for one in held:
                    try:
                        one.sendall(b"GET small\r\n" * 10)
                    except OSError:
                        pass
                for one in held:
                    try:
                        heard += len(one.recv(4096)) > 0
                    except OSError:
                        pass
                return heard
            watched(server, "  all of them, ten GET each", again)
            def kill():
                return server.client().ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            began = time.perf_counter()
            print("  CLIENT KILL TYPE normal:", kill(), f"{time.perf_counter() - began:.3f} s")
            closed = 0
            for one in held:
                try:
                    closed += one.recv(4096) == b""
                except OSError:
                    closed += 1
            print(f"  {closed} found themselves closed after {time.perf_counter() - began:.2f} s, RSS {server.memory()} MiB", flush=True)
        for one in held:
            one.close()
        server.end()


def case_keys(binary, options):
    server = Server(binary, *options.flags)
    began = time.perf_counter()
    fill(server, options.keys)
    print(f"{options.keys} keys filled in {time.perf_counter() - began:.0f} s, RSS {server.memory()} MiB, peak {server.memory('VmHWM')}", flush=True)
    time.sleep(options.settle)
    watched(server, "nothing, for 2 s", lambda: time.sleep(2))

    def keys():
        client = server.client()
        client.send(command("KEYS", "*"))
        return client.count_reply()

    watched(server, "KEYS *", keys)

    def keys_none():
        return server.client().ask("KEYS", "nothing*")

    watched(server, "KEYS nothing*", keys_none)

    def scan():
        client, cursor, count, rounds = server.client(), b"0", 0, 0
        while True:
            cursor, found = client.ask("SCAN", cursor, "COUNT", "1000")
            count += len(found)
            rounds += 1
            if cursor == b"0":
                return f"{count} in {rounds}"

    watched(server, "SCAN COUNT 1000", scan)

    def scan_large():
        client = server.client()
        client.send(command("SCAN", "0", "COUNT", options.keys))
        head = [client.file.readline() for _ in range(3)]
        return client.count_reply(), head[2].strip()

    watched(server, "SCAN 0 COUNT (all)", scan_large)
    watched(server, "FLUSHALL", lambda: server.client().ask("FLUSHALL"))
    watched(server, "then, for 5 s", lambda: time.sleep(5))
    print("DBSIZE", server.client().ask("DBSIZE"))
    server.end()


def case_mset(binary, options):
    server = Server(binary, *options.flags)

    def mset(pairs):
        client = server.client()
        client.send(b"*%d\r\n$4\r\nMSET\r\n" % (2 * pairs + 1))
        try:
            for begin in range(0, pairs, 10_000):
                client.send(b"".join(b"$10\r\nm%09d\r\n$1\r\nv\r\n" % n for n in range(begin, min(begin + 10_000, pairs))))
        except OSError as error:
            print("  while sending:", error)
        return client.reply()

    watched(server, "MSET of 500,000 keys", lambda: mset(500_000))
    watched(server, "MSET of 10,000,000 elements", lambda: mset(5_000_000))
    print("DBSIZE", server.client().ask("DBSIZE"))
    server.end()


def case_values(binary, options):
    server = Server(binary, *options.flags)
    chunk = b"x" * MIB

    def put(mib, extra=0):
        client = server.client()
        client.send(b"*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$%d\r\n" % (mib * MIB + extra))
        try:
            for _ in range(mib):
                client.send(chunk)
            client.send(b"x" * extra + b"\r\n")
        except OSError as error:
            print("  while sending:", error)
        return client.reply()

    watched(server, "SET of 512 MB", lambda: put(512))
    watched(server, "then, for 10 s", lambda: time.sleep(10))
    watched(server, "GET of 512 MB", lambda: server.client().ask("GET", "large"))
    watched(server, "APPEND to it", lambda: server.client().ask("APPEND", "large", "y"))
    watched(server, "SET of 512 MB and a byte", lambda: put(512, 1))
    watched(server, "SET of 1 GB", lambda: put(1024))

    def four():
        threads = []
        answers = []
        for _ in range(4):
            threads.append(threading.Thread(target=lambda: answers.append(server.client().ask("GET", "large"))))
            threads[-1].start()
        for thread in threads:
            thread.join()
        return answers

    watched(server, "GET of it, four at once", four)

    def promise():
        """Many say that a large value comes, and send nothing of it."""
        held = []
        for _ in range(200):
            client = server.client()
            client.send(b"*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$%d\r\n" % (512 * MIB))
            held.append(client)
        time.sleep(2)
        return "200 promises"

    watched(server, "200 who promise 512 MB each", promise)

    def part():
        held = []
        for _ in range(16):
            client = server.client()
            client.socket.settimeout(5)
            client.send(b"*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$%d\r\n" % (512 * MIB))
            held.append(client)
        sent = 0
        for _ in range(200):
            for client in list(held):
                try:
                    client.send(chunk)
                    sent += 1
                except OSError as error:
                    held.remove(client)
        return f"{sent} MiB taken, {len(held)} of 16 left"

    watched(server, "16 who send 200 MiB of 512 and stop", part)
    watched(server, "DEL of it", lambda: server.client().ask("DEL", "large"))
    server.end()


def case_reader(binary, options):
    server = Server(binary, *options.flags)
    server.client().ask("SET", "mega", "m" * MIB)

    def pipeline():
        client = server.client()
        client.socket.settimeout(3)
        sent = 0
        try:
            while sent < 200_000:
                client.send(b"GET mega\r\n" * 1000)
                sent += 1000
        except OSError as error:
            return f"{sent} commands taken, then {type(error).__name__}"
        time.sleep(3)
        return f"{sent} commands taken"

    watched(server, "who asks for 1 MiB 200,000 times and never reads", pipeline)

    def many():
        held = []
        for _ in range(100):
            client = server.client()
            client.send(b"GET mega\r\n" * 20)
            held.append(client)
        time.sleep(3)
        return "100 of them"

    watched(server, "100 who ask for 1 MiB 20 times", many)

    def subscriber():
        silent = [server.client() for _ in range(4)]
        for client in silent:
            client.ask("SUBSCRIBE", "news")
        publisher = server.client()
        receivers = []
        for _ in range(300):
            receivers.append(publisher.ask("PUBLISH", "news", "n" * MIB))
        return f"receivers {receivers[0]} at first, {receivers[-1]} at last"

    watched(server, "4 who subscribe and never read, 300 MiB", subscriber)

    def monitor():
        silent = server.client()
        silent.ask("MONITOR")
        writer = server.client()
        for _ in range(300):
            writer.ask("ECHO", "n" * MIB)
        return "MONITOR, 300 MiB"

    watched(server, "who monitors and never reads", monitor)
    server.end()


def case_script(binary, options):
    server = Server(binary, *options.flags)
    server.client().ask("CONFIG", "SET", "busy-reply-threshold", "100")

    def endless():
        client, other = server.client(), server.client()
        client.send(command("EVAL", "while true do end", "0"))
        time.sleep(3)
        return other.ask("SCRIPT", "KILL"), client.reply()

    watched(server, "a script without end, killed after 3 s", endless)

    def hungry():
        return server.client().ask("EVAL", "local t = {} while true do t[#t+1] = string.rep('x', 1000000) .. #t end", "0")

    watched(server, "a script that takes memory without end", hungry)

    def writes():
        client, other = server.client(), server.client()
        client.send(command("EVAL", "redis.call('set','a','b') while true do end", "0"))
        time.sleep(2)
        answer = other.ask("SCRIPT", "KILL")
        other.send(command("SHUTDOWN", "NOSAVE"))
        time.sleep(2)
        return answer

    watched(server, "one that wrote: SCRIPT KILL, SHUTDOWN NOSAVE", writes)
    server.end()


def case_collections(binary, options):
    server = Server(binary, *options.flags)
    count = options.members

    def fill_with(name, make):
        client = server.client()
        for begin in range(0, count, 1000):
            client.send(command(*make(begin)))
            answer = client.reply()
            assert answer[0] != "-", answer

    makers = {
        "set": lambda key, b: ["SADD", key, *(f"member:{n}" for n in range(b, b + 1000))],
        "hash": lambda key, b: ["HSET", key, *(w for n in range(b, b + 1000) for w in (f"field:{n}", f"value:{n}"))],
        "zset": lambda key, b: ["ZADD", key, *(w for n in range(b, b + 1000) for w in (n, f"member:{n}"))],
        "list": lambda key, b: ["RPUSH", key, *(f"element:{n}" for n in range(b, b + 1000))],
    }
    for kind, make in makers.items():
        for what, end in (("DEL", ("DEL",)), ("EXPIRE 1", ("EXPIRE", 1)), ("EXPIRE 1 when cold", ("EXPIRE", 1))):
            if what != "DEL" and kind in ("hash", "list"):
                continue
            key = f"huge:{kind}"
            watched(server, f"{kind} of {count} is filled", lambda: fill_with(kind, lambda b: make(key, b)))
            if "cold" in what:
                watched(server, "  a checkpoint", lambda: server.client().ask("SAVE"))
                time.sleep(3)

            def go():
                answer = server.client().ask(end[0], key, *end[1:])
                if len(end) > 1:
                    time.sleep(3)
                    answer = answer, server.client().ask("EXISTS", key)
                return answer

            watched(server, f"  {what}", go)
    watched(server, "set", lambda: fill_with("set", lambda b: makers["set"]("huge:set", b)))

    def members():
        client = server.client()
        client.send(command("SMEMBERS", "huge:set"))
        return client.count_reply()

    watched(server, "  SMEMBERS", members)
    watched(server, "  SUNIONSTORE", lambda: server.client().ask("SUNIONSTORE", "copy", "huge:set", "huge:set"))
    watched(server, "  SORT ALPHA LIMIT", lambda: server.client().ask("SORT", "huge:set", "ALPHA", "LIMIT", "0", "2"))
    watched(server, "  UNLINK both", lambda: server.client().ask("UNLINK", "copy", "huge:set"))
    server.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--members", type=int, default=5_000_000)
    parser.add_argument("--clients", type=int, default=19_900)
    parser.add_argument("--settle", type=float, default=10)
    parser.add_argument("--flags", default="")
    options = parser.parse_args()
    options.flags = options.flags.split()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    cases = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name in options.cases or cases:
        print(f"== {name}", flush=True)
        cases[name](options.binary, options)


if __name__ == "__main__":
    main()
