"""redis-py against a server at the port that the first argument says; silent when all is well."""

import asyncio
import sys
import threading

import redis
import redis.asyncio
from redis.exceptions import LockNotOwnedError, NoScriptError, ResponseError, WatchError

PORT = int(sys.argv[1])


def refused(kind, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call} passed")


def values(r):
    assert r.set("greeting", "hello") and r.get("greeting") == b"hello"
    assert r.set("greeting", "x", nx=True) is None
    assert r.set("greeting", "bye", xx=True, get=True, px=100_000) == b"hello"
    assert 0 < r.pttl("greeting") <= 100_000
    assert r.incrbyfloat("n", 1.5) == 1.5 and r.mget("greeting", "no") == [b"bye", None]
    r.hset("h", mapping={"a": 1, "b": "two"})
    assert r.hgetall("h") == {b"a": b"1", b"b": b"two"} and r.hexpire("h", 100, "a") == [1]
    r.rpush("l", *range(5))
    assert r.lrange("l", 0, -1) == [b"0", b"1", b"2", b"3", b"4"] and tuple(r.blpop("l")) == (b"l", b"0")
    r.zadd("z", {"a": 1, "b": 2.5})
    assert r.zrange("z", 0, -1, withscores=True) in ([(b"a", 1.0), (b"b", 2.5)], [[b"a", 1.0], [b"b", 2.5]])
    r.sadd("s", *range(100))
    assert len(set(r.sscan_iter("s", count=7))) == 100
    assert {b"greeting", b"h", b"l", b"s", b"z", b"n"} <= set(r.scan_iter(count=2))
    assert r.geoadd("g", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")) == 2
    assert round(r.geodist("g", "Palermo", "Catania", unit="km")) == 166
    assert r.pfadd("p", 1, 2, 3) and r.pfcount("p") == 3
    error = refused(ResponseError, r.lpush, "greeting", 1)
    assert error.startswith("WRONGTYPE") or "wrong kind" in error, error
    refused(ResponseError, r.execute_command, "FT.SEARCH", "i", "*")
    assert r.dump("h") and r.restore("h2", 0, r.dump("h")) and r.hget("h2", "b") == b"two"
    # Bytes that are no text, keys too.
    r.set(b"\x00\xff", b"\r\n\xfe")
    assert r.get(b"\x00\xff") == b"\r\n\xfe"
    assert r.info("server")["redis_version"] and r.config_get("maxmemory")
    assert r.command_count() == len(r.command())


def pipelines(r):
    with r.pipeline() as pipe:
        pipe.multi()
        pipe.set("a", 1).incr("a").get("a")
        assert pipe.execute() == [True, 2, b"2"]
        pipe.watch("a")
        r.set("a", 7)
        pipe.multi()
        pipe.set("a", 8)
        refused(WatchError, pipe.execute)
    with r.pipeline(transaction=False) as pipe:
        for n in range(10_000):
            pipe.set(f"many:{n}", n)
        assert all(pipe.execute())
        pipe.get("many:9999").lpush("a", 1).get("many:1")
        first, error, last = pipe.execute(raise_on_error=False)
        assert (first, last) == (b"9999", b"1") and isinstance(error, ResponseError)

    def double(pipe):
        value = int(pipe.get("a"))
        pipe.multi()
        pipe.set("a", value * 2)

    assert r.transaction(double, "a") == [True] and r.get("a") == b"14"


def scripts(r):
    add = r.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1]) + 1")
    assert add(keys=["counted"], args=[41]) == 42
    r.script_flush()
    refused(NoScriptError, r.evalsha, add.sha, 1, "counted", 1)
    assert add(keys=["counted"], args=[1]) == 43
    error = refused(ResponseError, r.eval, "return redis.call('LPUSH', KEYS[1], 1)", 1, "counted")
    assert "wrong kind" in error, error
    r.function_load("#!lua name=lib\nredis.register_function('twice', function(k, a) return a[1] * 2 end)", replace=True)
    assert r.fcall("twice", 0, 21) == 42


def locks(r):
    with r.lock("lock", timeout=10) as lock:
        assert lock.owned() and not r.lock("lock").acquire(blocking=False)
        assert lock.extend(10) and lock.reacquire()
    assert r.get("lock") is None
    lost = r.lock("lock", timeout=10)
    assert lost.acquire()
    r.set("lock", "somebody else")
    refused(LockNotOwnedError, lost.release)
    r.delete("lock")
    # Many threads, one counter: none is lost.
    def work():
        for _ in range(5):
            with r.lock("counter lock", timeout=10, sleep=0.001):
                r.set("counter", int(r.get("counter") or 0) + 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert r.get("counter") == b"20"


def channels(r):
    with r.pubsub() as listener:
        listener.subscribe("news")
        listener.psubscribe("n*")
        assert [listener.get_message(timeout=5)["type"] for _ in range(2)] == ["subscribe", "psubscribe"]
        assert r.pubsub_numsub("news", "none") == [(b"news", 1), (b"none", 0)] and r.pubsub_numpat() == 1
        assert r.publish("news", b"\xffx") == 2
        got = [listener.get_message(timeout=5) for _ in range(2)]
        assert {one["type"] for one in got} == {"message", "pmessage"}
        assert all(one["data"] == b"\xffx" for one in got)
        assert listener.ping() is None and listener.get_message(timeout=5)["type"] == "pong"


def streams(r):
    for n in range(3):
        r.xadd("x", {"n": n}, id=f"{n + 1}-0")
    r.xgroup_create("x", "g", id="0")
    ((_, entries),) = r.xreadgroup("g", "one", {"x": ">"}, count=2) if PROTOCOL == 2 else tuple(
        (name, batches[0]) for name, batches in r.xreadgroup("g", "one", {"x": ">"}, count=2).items()
    )
    assert [entry for entry, _ in entries] == [b"1-0", b"2-0"]
    assert r.xack("x", "g", "1-0") == 1 and r.xpending("x", "g")["pending"] == 1
    assert r.xinfo_stream("x")["length"] == 3


def series(r):
    ts = r.ts()
    assert ts.create("t:1", labels={"room": "hall"}) and ts.create("t:2", labels={"room": "hall"})
    assert ts.madd([("t:1", 10, 1), ("t:1", 20, 2), ("t:2", 20, 3), ("t:2", 30, 4)]) == [10, 20, 20, 30]
    assert [tuple(row) for row in ts.range("t:1", "-", "+")] == [(10, 1.0), (20, 2.0)]
    assert len(ts.mrange("-", "+", filters=["room=hall"])) == 2
    rows = ts.nrange(["t:1", "t:2"], "-", "+")
    assert [time for time, _ in rows] == [10, 20, 30] and rows[1][1] == [2.0, 3.0]
    assert rows[0][1][0] == 1.0 and rows[0][1][1] != rows[0][1][1]
    sums = ts.nrevrange(["t:1", "t:2"], "-", "+", aggregators=["sum,count", "max"], bucket_size_msec=100)
    assert sums == [[0, [3.0, 2.0, 4.0]]], sums
    assert ts.querylabels() == {b"room"} and ts.querylabels("room") == {b"hall"}
    assert ts.read("t:1", "-", max_count=1) == [[10, 1.0]] and ts.read("t:1", "$") == []
    assert ts.read("t:1", 11, block_milliseconds=10, block_min_count=2) == [[20, 2.0]]

    def later():
        with redis.Redis(port=PORT) as other:
            other.ts().add("t:1", 40, 5)
            other.ts().add("t:1", 50, 6)

    writer = threading.Timer(0.05, later)
    writer.start()
    assert ts.read("t:1", "$", block_milliseconds=30_000, block_min_count=2) == [[40, 5.0], [50, 6.0]]
    writer.join()
    bloom = r.bf()
    assert bloom.create("b", 0.01, 1000) and bloom.add("b", "x") == 1 and bloom.exists("b", "y") == 0


async def at_once():
    async with redis.asyncio.Redis(port=PORT, protocol=PROTOCOL) as r:
        assert await asyncio.gather(*(r.incr("async") for _ in range(50)))
        assert await r.get("async") == b"50"
        async with r.pipeline(transaction=True) as pipe:
            assert await pipe.set("k", 1).get("k").execute() == [True, b"1"]
        async with r.lock("async lock", timeout=5):
            assert await r.exists("async lock")
        async with r.pubsub() as listener:
            await listener.subscribe("c")
            assert (await listener.get_message(timeout=5))["type"] == "subscribe"
            await r.publish("c", "m")
            assert (await listener.get_message(timeout=5))["data"] == b"m"
        popper = asyncio.create_task(r.blpop("queue", timeout=30))
        await r.rpush("queue", "job")
        assert tuple(await popper) == (b"queue", b"job")


for PROTOCOL in (2, 3):
    with redis.Redis(port=PORT, protocol=PROTOCOL) as client:
        client.flushall()
        for part in (values, pipelines, scripts, locks, channels, streams, series):
            part(client)
    asyncio.run(at_once())
