"""Sequences in which clients act on each other: blocked clients and who serves them, watched keys, events of keys, tracking."""

from redis_words import Pattern

WAITING = [Pattern("!" + text) for text in [
    "BLPOP <l>+ 0", "BRPOP <l>+ 0", "BLPOP l0 l1 0", "BLMOVE l0 l1 (LEFT|RIGHT) (LEFT|RIGHT) 0", "BLMOVE l1 l0 LEFT RIGHT 0", "BLMOVE l0 l0 LEFT RIGHT 0", "BRPOPLPUSH l0 l1 0", "BLMPOP 0 2 l0 l1 (LEFT|RIGHT) [COUNT <N>]",
    "BZPOPMIN <z>+ 0", "BZPOPMAX z0 z1 0", "BZMPOP 0 2 z0 z1 (MIN|MAX) [COUNT <N>]", "XREAD BLOCK 0 STREAMS x0 $", "XREAD COUNT 1 BLOCK 0 STREAMS x0 x1 (0|$|5) $", "XREADGROUP GROUP g0 c0 BLOCK 0 STREAMS x0 `>`",
    "XREADGROUP GROUP g0 c1 COUNT 1 BLOCK 0 NOACK STREAMS x0 `>`", "XREADGROUP GROUP g0 c0 BLOCK 0 STREAMS x0 x1 `>` `>`", "BLPOP x0 l0 0", "BLPOP z0 0", "BLMOVE l0 z0 LEFT LEFT 0",
    "MULTI; BLPOP l0 0; BZPOPMIN z0 0; EXEC", "EVAL `return redis.call('BLPOP','l0',0)` 0", "XREADGROUP GROUP g0 c0 BLOCK 0 STREAMS x0 0",
]]
SERVING = [Pattern("!" + text) for text in [
    "RPUSH l0 <v>+", "LPUSH l0 a b c", "RPUSH l1 <v>", "LPUSHX l0 <v>", "RPUSH l2 a b; RENAME l2 l0", "RPUSH l2 a; LMOVE l2 l0 LEFT LEFT", "RPUSH l2 b; RPOPLPUSH l2 l1", "RPUSH l2 3 1 2; SORT l2 STORE l0", "RPUSH l2 c d; COPY l2 l0", "RPUSH l2 a; COPY l2 l0 REPLACE",
    "MULTI; RPUSH l0 a; DEL l0; EXEC", "MULTI; RPUSH l0 a b; LPOP l0; EXEC", "MULTI; RPUSH l0 a; RPUSH l1 b; EXEC", "MULTI; RPUSH l1 b; RPUSH l0 a; EXEC", "MULTI; RPUSH l0 a; DEL l0; SET l0 x; EXEC", "MULTI; LPUSH l0 a; LPUSH l0 b; LPUSH l0 c; EXEC", "EVAL `redis.call('RPUSH','l0','a','b') return redis.call('DEL','l0')` 0",
    "EVAL `redis.call('RPUSH','l0','a') redis.call('ZADD','z0',1,'m') return redis.call('XADD','x0','99-*','f','v')` 0", "EVAL `return redis.call('RPUSH','l0','x')` 0", "SELECT 1; RPUSH l0 other; ZADD z0 1 other; SWAPDB 0 1; SELECT 0", "SELECT 1; RPUSH l0 other; MOVE l0 0; SELECT 0", "LINSERT l0 BEFORE a b", "RPUSH l0 <lmany>",
    "ZADD z0 1 a 2 b", "ZADD z1 <f> <m>", "ZADD z0 XX 1 a", "ZINCRBY z0 1 a", "ZADD z2 1 a 2 b; ZUNIONSTORE z0 1 z2", "ZADD z2 1 a; ZRANGESTORE z0 z2 0 -1", "ZADD z2 1 q; RENAME z2 z0", "GEOADD z0 1 2 m", "MULTI; ZADD z0 1 a; ZREM z0 a; EXEC", "MULTI; ZADD z0 1 a; DEL z0; RPUSH z0 x; EXEC", "SADD z0 a", "SET l0 x", "DEL l0 z0 x0", "SET x0 y",
    "XADD x0 <newid> f <v>", "XADD x0 99-* f v", "XADD x1 99-* f v", "XGROUP CREATE x0 g0 $ MKSTREAM", "XGROUP CREATE x0 g0 0", "XGROUP DESTROY x0 g0", "XGROUP SETID x0 g0 0", "XDEL x0 99-0", "XTRIM x0 MAXLEN 0", "XADD x0 NOMKSTREAM 99-* f v", "MULTI; XADD x0 99-* a b; XADD x0 99-* c d; EXEC", "XSETID x0 999-0", "DEL x0",
    "MULTI; DEL x0; XADD x0 99-* f v; EXEC", "XGROUP DELCONSUMER x0 g0 c0", "XREADGROUP GROUP g0 c1 STREAMS x0 `>`", "XCLAIM x0 g0 c1 0 99-0", "FLUSHDB", "FLUSHALL", "EXPIRE l0 -1", "PERSIST l0", "UNLINK l0 z0", "RENAME l0 l1", "RENAMENX l1 l0", "LPOP l0", "RPUSH l0 a; EXPIREAT l0 1", "RESTORE l0 0 <v>", "SINTERSTORE l0 <e>+", "SUNIONSTORE z0 <e>+",
    "LMPOP 2 l0 l1 LEFT", "SADD e0 3 1 2; SORT e0 STORE l0", "GEOADD g0 1 2 a; GEOSEARCHSTORE z0 g0 FROMLONLAT 1 2 BYRADIUS 9 km", "GEOADD g0 1 2 a; GEORADIUS g0 1 2 9 km STORE z0", "SADD e0 a; ZUNIONSTORE z0 1 e0", "ZADD z1 1 a; ZDIFFSTORE z0 1 z1", "XAUTOCLAIM x0 g0 c0 0 0",
]]
WATCHED = [Pattern("!" + text) for text in [
    "WATCH <k>+", "WATCH l0 s0", "UNWATCH", "MULTI", "EXEC", "DISCARD", "SET s0 <v>", "DEL s0", "EXPIRE s0 -1", "EXPIRE s0 1000", "PERSIST s0", "FLUSHDB", "FLUSHALL", "SWAPDB 0 1", "RPUSH l0 a", "LPOP l0", "RENAME s0 s1", "COPY s0 s1 REPLACE", "MOVE s0 1", "SELECT 1; SET s0 x; SELECT 0", "APPEND s0 ``", "SETRANGE s0 0 ``",
    "GETEX s0 PERSIST", "GETEX s0 EX 1000", "GETDEL s0", "SETNX s0 x", "INCR s0", "TOUCH s0", "GET s0", "LTRIM l0 0 -1", "LREM l0 0 zz", "LSET l0 0 a", "RPUSH l0", "NOSUCH", "SET s0", "EVAL `return redis.call('SET','s0','x')` 0", "SORT l9 STORE l0", "SINTERSTORE l0 e8 e9", "SADD e0 a", "SREM e0 zz", "HSET h0 f v", "HDEL h0 zz", "ZADD z0 1 a", "ZADD z0 NX 5 a",
    "XADD x0 99-* f v", "XTRIM x0 MAXLEN 99", "XGROUP CREATE x0 g0 0 MKSTREAM", "PFADD p0 a", "PFADD p0 a", "PFCOUNT p0", "BITOP NOT s0 s9", "SETBIT s0 0 0", "RESTORE s0 0 x REPLACE", "MULTI; SET s0 1; INCR s0; EXEC", "MULTI; LPUSH s0 x; INCR s0; EXEC", "MULTI; SET s0; EXEC", "RESET", "WATCH s0; MULTI; GET s0; EXEC", "DISCARD; WATCH s0; MULTI", "MULTI; WATCH s0; UNWATCH; EXEC",
    "MULTI; MULTI; EXEC", "MULTI; EXEC x; DISCARD", "MULTI; SUBSCRIBE a; EXEC", "MULTI; SELECT 1; SET s0 y; EXEC; SELECT 0", "MULTI; HELLO 3; EXEC", "MULTI; CLIENT SETNAME x; EXEC; CLIENT GETNAME", "MULTI; EVAL `return redis.call('GET','s0')` 0; EXEC", "MULTI; AUTH x; EXEC", "MULTI; FLUSHALL; SET s0 1; EXEC", "MULTI; SWAPDB 0 1; SET s0 1; EXEC", "MULTI; SCRIPT LOAD `return 1`; EXEC", "MULTI; RESET",
]]
TRACKING = [Pattern("!" + text) for text in [
    "CLIENT TRACKING on", "CLIENT TRACKING on BCAST", "CLIENT TRACKING on BCAST PREFIX s PREFIX l", "CLIENT TRACKING on NOLOOP", "CLIENT TRACKING on OPTIN", "CLIENT TRACKING on OPTOUT", "CLIENT TRACKING off", "CLIENT TRACKING on BCAST NOLOOP", "CLIENT TRACKING on BCAST PREFIX s PREFIX s0", "CLIENT TRACKING on OPTIN OPTOUT",
    "CLIENT TRACKING on PREFIX x", "CLIENT TRACKING on BCAST OPTIN", "CLIENT CACHING yes; GET s0", "CLIENT CACHING no; GET s0", "CLIENT CACHING yes; MULTI; GET s0; GET s1; EXEC", "CLIENT TRACKINGINFO", "CLIENT GETREDIR", "MGET <k>+", "GET <s>", "HGETALL <h>", "LRANGE <l> 0 -1", "ZRANGE <z> 0 -1", "SMEMBERS <e>", "EXISTS <k>", "SORT <l>", "XRANGE <x> - `+`",
    "EVAL `return redis.call('GET',KEYS[1])` 1 <s>", "TTL <k>", "STRLEN <s>", "OBJECT ENCODING <k>", "DUMP <k>", "SCAN 0", "SELECT 1; GET s0; SELECT 0", "BITCOUNT <b>", "PFCOUNT <p>", "GETRANGE <s> 0 1", "MULTI; GET s0; SET s0 1; EXEC", "WATCH s0",
]]
EVENT_CLASSES = [b"KEA", b"KEA", b"KEA", b"KEAm", b"KEAn", b"E$lshzgxetd", b"K$l", b"KEgx", b"KEAmn"]


def draw_blocking(chance, words):
    """Some clients wait, another one serves them."""
    steps, clients = [], chance.randint(2, 3)
    for _ in range(chance.randint(2, 12)):
        number = chance.randrange(clients)
        patterns = WAITING if number and chance.random() < 0.6 else SERVING
        steps += [(number, command) for command in chance.choice(patterns).draw(words)]
        if chance.random() < 0.04:
            steps.append((0, [b"CLIENT", b"UNBLOCK", b"99999999"]))
    return clients, steps


def draw_watching(chance, words):
    steps, clients = [], chance.randint(2, 3)
    for _ in range(chance.randint(3, 20)):
        number = chance.randrange(clients)
        steps += [(number, command) for command in chance.choice(WATCHED).draw(words)]
        if chance.random() < 0.3:
            steps += [(number, [b"WATCH", b"s0", b"l0"]), (chance.randrange(clients), chance.choice(WATCHED).draw(words)[0]),
                      (number, [b"MULTI"]), (number, [b"SET", b"s1", b"x"]), (number, [b"EXEC"])]
    return clients, steps


def draw_tracking(chance, words):
    """The last client tracks keys that it reads; the first one changes them."""
    clients = 2
    steps = [(1, command) for command in chance.choice(TRACKING[:8]).draw(words)]
    for _ in range(chance.randint(2, 15)):
        number = chance.randrange(2)
        patterns = TRACKING if number else chance.choice([WATCHED, SERVING])
        steps += [(number, command) for command in chance.choice(patterns).draw(words)]
    return clients, steps


def event_steps(chance, number):
    """Has a client listen to events of keys."""
    return [(number, [b"CONFIG", b"SET", b"notify-keyspace-events", chance.choice(EVENT_CLASSES)]),
            (number, [b"PSUBSCRIBE", chance.choice([b"__key*__:*", b"__keyevent@*__:*", b"__keyspace@0__:*"])])]
