"""Data of all types, many times larger than the memory that the server may have: filled by pipelines, killed
in the middle, then a sample of keys of every type is compared, after a clean stop once more.

    redis_small_memory.py BINARY [--megabytes 8192] [--cgroup DIRECTORY] [--flags=--memory-limit=512MiB]

The directory is one of cgroup v1's or v2's for memory, with its limit set by whoever made it (as root):

    mkdir /sys/fs/cgroup/memory/small && echo 512M > /sys/fs/cgroup/memory/small/memory.limit_in_bytes
"""

import argparse
import hashlib
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from redis_load import Client, command

POOL_SIZE = 8 << 20


def pool():
    rng = random.Random(7)
    words = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(4096)]
    return "".join(rng.choice(words) for _ in range(POOL_SIZE // 64))


POOL = pool()


def text(number, size):
    at = number * 2654435761 % (POOL_SIZE // 2 - 64)
    return POOL[at : at + size]


def group(n):
    """Commands that fill some keys of every type, about 160 KB, and those that read them."""

    def some(part, size):
        return text(n * 64 + part, size)

    fill, reads = [], []
    for i in range(40):
        fill.append(("SET", f"str:{n}:{i}", some(i, 1000)))
        reads.append(("GET", f"str:{n}:{i}"))
    fill.append(("HSET", f"hash:{n}", *[word for i in range(40) for word in (f"f{i}", some(40, 300 + i))]))
    fill.append(("RPUSH", f"list:{n}", *[some(41, 200 + i) for i in range(60)]))
    fill.append(("SADD", f"set:{n}", *[some(42, 64) + str(i) for i in range(120)]))
    fill.append(("ZADD", f"zset:{n}", *[word for i in range(150) for word in (i * 1.5, some(43, 50) + str(i))]))
    fill += [("XADD", f"stream:{n}", f"{n + 1}-{i + 1}", "field", some(44, 400 + i)) for i in range(20)]
    fill.append(("PFADD", f"hll:{n}", *range(50)))
    fill.append(("GEOADD", f"geo:{n}", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"))
    fill.append(("SETBIT", f"bits:{n}", 8000 + n % 1000, 1))
    fill.append(("BF.ADD", f"bloom:{n}", "member"))
    reads += [
        ("HGETALL", f"hash:{n}"), ("LRANGE", f"list:{n}", 0, -1), ("SMEMBERS", f"set:{n}"),
        ("ZRANGE", f"zset:{n}", 0, -1, "WITHSCORES"), ("XRANGE", f"stream:{n}", "-", "+"),
        ("PFCOUNT", f"hll:{n}"), ("GEOPOS", f"geo:{n}", "Palermo"), ("BITCOUNT", f"bits:{n}"),
        ("BF.EXISTS", f"bloom:{n}", "member"),
    ]
    if n % 50 == 0:
        fill.append(("SET", f"large:{n}", text(n * 64 + 50, 3 << 20)))
        reads.append(("GET", f"large:{n}"))
    return fill, reads


def is_right(kind, got, commands):
    """Whether a key holds what its commands made of it."""

    def raw(word):
        return str(word).encode()

    first = commands[0]
    if kind == "str":
        return got == raw(first[2])
    if kind == "large":
        # Of what is large the client keeps the size only.
        return got == len(first[2])
    if kind == "hash":
        return dict(zip(got[::2], got[1::2])) == dict(zip(map(raw, first[2::2]), map(raw, first[3::2])))
    if kind == "list":
        return got == [raw(word) for word in first[2:]]
    if kind == "set":
        return set(got) == {raw(word) for word in first[2:]}
    if kind == "zset":
        scores = [float(score) for score in got[1::2]]
        return got[::2] == [raw(word) for word in first[3::2]] and scores == list(first[2::2])
    if kind == "stream":
        return got == [[raw(one[2]), [b"field", raw(one[4])]] for one in commands]
    if kind == "hll":
        return 48 <= int(got[1:]) <= 52
    if kind == "geo":
        return got[0] is not None and abs(float(got[0][0]) - 13.361389) < 1e-4
    return got == ":1"


class Server:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.start()

    def enter(self):
        if self.options.cgroup:
            (self.options.cgroup / "cgroup.procs").write_text(str(os.getpid()))

    def start(self):
        line = [self.options.binary, "serve", "--data-dir", self.directory, "--http-listen", "127.0.0.1:0",
                "--redis-listen", f"127.0.0.1:{self.port}", "--self-scrape-interval", "0", *self.options.flags]
        began = time.perf_counter()
        self.process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=self.enter)
        while True:
            try:
                self.client = Client(self.port)
                if self.client.ask("PING") == "+PONG":
                    break
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"the server ended with {self.process.returncode}")
            time.sleep(0.05)
        print(f"ready after {time.perf_counter() - began:.2f} s, RSS {self.memory('VmRSS')} MiB", flush=True)

    def stop(self, end):
        end(self.process)
        self.process.wait()
        self.client.close()

    def memory(self, field):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith(field):
                return int(line.split()[1]) // 1024
        return 0

    def said_of_memory(self):
        said = f"VmHWM {self.memory('VmHWM')} MiB"
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            if self.options.cgroup and (self.options.cgroup / name).exists():
                peak = int((self.options.cgroup / name).read_text()) >> 20
                said += f", the cgroup at most {peak} MiB, files that may go included"
        return said


def fill(server, megabytes):
    """Fills until there is so much, with a kill half-way. Returns how many groups there are."""
    sent, groups, is_killed, began = 0, 0, False, time.time()
    while sent < megabytes << 20:
        commands = [one for n in range(groups, groups + 4) for one in group(n)[0]]
        data = b"".join(command(*one) for one in commands)
        server.client.send(data)
        for _ in commands:
            answer = server.client.reply()
            if isinstance(answer, str) and answer.startswith("-"):
                sys.exit(answer)
        sent, groups = sent + len(data), groups + 4
        if not is_killed and megabytes << 19 < sent:
            is_killed = True
            # What everysec promises is on disk by then.
            time.sleep(1.5)
            print(f"kill -9 after {sent >> 20} MiB; {server.said_of_memory()}", flush=True)
            server.stop(subprocess.Popen.kill)
            server.start()
    print(f"{sent >> 20} MiB in {time.time() - began:.0f} s, DBSIZE {server.client.ask('DBSIZE')}; {server.said_of_memory()}")
    return groups


def compare(server, groups, count, seed):
    """Compares keys of some groups with what they are to be. Returns how many are wrong."""
    rng, kinds, wrong = random.Random(seed), {}, 0
    for _ in range(count):
        commands, reads = group(rng.randrange(groups))
        for read in rng.sample(reads, 6) + [one for one in reads if one[1].startswith("large")]:
            kind = read[1].split(":")[0]
            kinds[kind] = kinds.get(kind, 0) + 1
            got = server.client.ask(*read)
            if not is_right(kind, got, [one for one in commands if one[1] == read[1]]):
                wrong += 1
                print("wrong:", read, str(got)[:80])
    print(f"compared {kinds}: {wrong} wrong; {server.said_of_memory()}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--megabytes", type=int, default=8192)
    parser.add_argument("--cgroup", type=pathlib.Path)
    parser.add_argument("--flags", default="", help="flags of the server, with spaces between them")
    options = parser.parse_args()
    options.flags = options.flags.split()
    directory = tempfile.mkdtemp()
    try:
        server = Server(options, directory)
        groups = fill(server, options.megabytes)
        wrong = compare(server, groups, 1500, 1)
        server.stop(subprocess.Popen.terminate)
        server.start()
        wrong += compare(server, groups, 500, 2)
        server.stop(subprocess.Popen.terminate)
    finally:
        shutil.rmtree(directory)
    sys.exit(wrong != 0)


main()
