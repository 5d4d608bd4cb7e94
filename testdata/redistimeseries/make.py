"""Makes dump.rdb and dump.json: fills an empty Redis that has loaded RedisTimeSeries, saves, and asks it.

    redis-server --port 26379 --loadmodule redistimeseries.so --enable-debug-command yes --dir DIR
    python make.py 26379      # dump.rdb is in DIR, dump.json here; needs redis-py

The files were made with the module of August 2026 (encoding 9) in Redis 7.0.15.
"""

import json
import random
import sys
import time

import redis

START = 1788048000000
RULES = "avg min max sum count first last range std.p std.s var.p var.s twa".split()
port = int(sys.argv[1])
r = redis.Redis(port=port)
x = r.execute_command
random.seed(7)

# Keys of other types, in most encodings.
x("SET", "plain", "x" * 500)
x("RPUSH", "list", *range(40))
x("HSET", "h", *sum(([f"f{i}", i] for i in range(40)), []))
x("ZADD", "z", *sum(([i * 1.5, f"m{i}"] for i in range(40)), []))
x("SADD", "s", 1, 2, 3)
x("SADD", "s2", "a", "b")
x("PFADD", "hll", "a", "b")
for i in range(40):
    x("XADD", "st", "*", "a", i)
x("XGROUP", "CREATE", "st", "g", "0")
x("XREADGROUP", "GROUP", "g", "c", "COUNT", "5", "STREAMS", "st", ">")

x("TS.CREATE", "room:1", "RETENTION", 0, "DUPLICATE_POLICY", "LAST", "LABELS", "city", "Cusco", "floor", "2")
x("TS.CREATE", "empty", "LABELS", "city", "Lima")
x("TS.CREATE", "kept", "RETENTION", 3600000, "LABELS", "city", "Quito")
x("TS.CREATE", "plain:u", "ENCODING", "UNCOMPRESSED", "CHUNK_SIZE", 128, "LABELS", "kind", "u")
for rule in RULES:
    x("TS.CREATE", "by:" + rule)
    x("TS.CREATERULE", "room:1", "by:" + rule, "AGGREGATION", rule, 3600000)
at = START
for i in range(700):
    at += random.choice([60000, 60000, 60000, 60001, 1, 5000, 10**7, 123456789 if i % 200 == 0 else 60000])
    value = random.choice([i / 7, float(i), 0.0, -1e300, 5e-324, 1.5, random.random()])
    for key in ("room:1", "plain:u", "kept"):
        x("TS.ADD", key, at, repr(value))
x("TS.ADD", "nan", START, "nan")
x("TS.ADD", "nan", START + 1, 5)
x("TS.ADD", "room:2", START, 1)
x("TS.ADD", "room:2", START + 1000, 1)
x("TS.ADD", "late", START + 5000, 1)
x("TS.ADD", "late", START + 1000, 2)
x("TS.DEL", "room:1", START + 60000, START + 600000)
redis.Redis(port=port, db=1).execute_command("TS.ADD", "other", START, 7)
x("TS.ADD", "gone", START, 1)
x("PEXPIREAT", "gone", 4102444800000)
# One that has expired when it is saved.
x("DEBUG", "SET-ACTIVE-EXPIRE", "0")
x("TS.ADD", "dead", START, 1)
x("PEXPIRE", "dead", 20)
time.sleep(0.1)
x("SAVE")
x("DEBUG", "SET-ACTIVE-EXPIRE", "1")

out = {}
for key in sorted(r.scan_iter(_type="TSDB-TYPE")):
    if key != b"dead":
        out[key.decode()] = [[at, repr(float(value))] for at, value in x("TS.RANGE", key, "-", "+")]
with open("dump.json", "w") as file:
    json.dump(out, file)
