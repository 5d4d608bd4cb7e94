"""Cases about time and order: keys that expire between two commands, pipelines with slow commands, clients that send at once.

Two words stand for what no client sends: `!pause` waits until each expiry of one millisecond is over, `!demote` has
Quipu write all values to disk and drop most of them from memory.
"""

from redis_player import BLOCKING, DEMOTE, PAUSE, SCANS
from redis_words import Pattern, spoil

EXPIRING_FAMILIES = ["string", "bitmap", "list", "set", "hash", "sorted set", "geo", "hyperloglog", "stream", "generic"]
# Count keys or fields that are expired and not yet removed, which depends on the moment.
COUNTING = {b"dbsize", b"randomkey", b"hlen", b"hrandfield", b"swapdb", b"flushall", b"flushdb", b"spop", b"srandmember", b"zrandmember"}
SHORT_LIVED = [Pattern("!" + text) for text in [
    "SET s0 <v> PX 1", "PSETEX s1 1 <v>", "SET s2 <int> PX 1", "RPUSH l0 a b c; PEXPIRE l0 1", "SADD e0 1 2 x; PEXPIRE e0 1", "HSET h0 f1 v f2 w; PEXPIRE h0 1", "ZADD z0 1 m1 2 m2; PEXPIRE z0 1", "XADD x0 1-1 f v; XGROUP CREATE x0 g0 0; PEXPIRE x0 1",
    "SETBIT b0 7 1; PEXPIRE b0 1", "PFADD p0 a b; PEXPIRE p0 1", "GEOADD g0 1 2 m1; PEXPIRE g0 1", "SET s0 1 EX 9000; GETEX s0 PX 1", "MULTI; SET s0 1; PEXPIRE s0 1; EXEC", "EVAL `redis.call('SET','s0','1') return redis.call('PEXPIRE','s0',1)` 0",
    "SET s0 1; WATCH s0; PEXPIRE s0 1", "MULTI; SET s1 x PX 1; RENAME s1 s0; EXEC", "SET s1 x; COPY s1 s0 REPLACE; PEXPIRE s0 1", "SELECT 1; SET s0 y PX 1; SELECT 0", "SET s0 1; SET s1 2; SET s2 3; PEXPIRE s1 1", "SORT l9 STORE l0; RPUSH l1 2 1; SORT l1 STORE l0; PEXPIRE l0 1",
    "MULTI; SET s0 9 PX 1; SET s0 8 KEEPTTL; EXEC", "SETEX s0 9000 a; PEXPIRE s0 1 LT", "MULTI; RPUSH l0 a; PEXPIRE l0 1; RPUSH l0 b; EXEC", "APPEND s0 x; PEXPIRE s0 1", "MULTI; SET s0 5 PX 1; INCR s0; EXEC", "MSET s0 a s1 b; PEXPIRE s0 1", "MULTI; SET s0 a PX 1; COPY s0 s1 REPLACE; EXEC", "MULTI; SET s0 a PX 1; MOVE s0 1; EXEC",
]]
AFTERWARDS = [Pattern("!" + text) for text in [
    "GET s0", "TTL <k>", "PTTL <k>", "EXPIRETIME <k>", "TYPE <k>", "EXISTS <k>+", "TOUCH <k>+", "DEL <k>", "UNLINK <k>", "OBJECT ENCODING <k>", "DUMP s0", "PERSIST <k>", "EXPIRE <k> 9000 [NX|XX|GT|LT]", "RENAME <k> <k>", "RENAMENX <k> <k>", "COPY <k> <k>", "MOVE <k> 1",
    "SET s0 x NX", "SET s0 x XX", "SET s0 x GET", "SET s0 x KEEPTTL", "SETNX s0 x", "MSETNX s0 a s1 b", "GETSET s0 x", "GETDEL s0", "GETEX s0 PERSIST", "INCR s0", "APPEND s0 z", "SETRANGE s0 2 z", "STRLEN s0", "MGET <s>+", "LPUSHX l0 x", "RPUSH l0 x", "LLEN l0", "LMOVE l0 l1 LEFT LEFT",
    "SADD e0 y", "SUNIONSTORE e1 e0 e2", "SMOVE e0 e1 1", "HSET h0 f3 z", "HGETALL h0", "HINCRBY h0 f1 1", "ZADD z0 XX 5 m1", "ZADD z0 GT CH 5 m1", "ZUNIONSTORE z1 2 z0 z2", "ZRANGESTORE z1 z0 0 -1", "XADD x0 NOMKSTREAM 5-5 a b", "XADD x0 5-5 a b", "XREADGROUP GROUP g0 c0 STREAMS x0 `>`", "XINFO STREAM x0",
    "PFADD p0 c", "PFCOUNT p0 p1", "PFMERGE p1 p0", "BITOP NOT b1 b0", "BITFIELD b0 SET u8 0 5", "GETBIT b0 7", "GEOSEARCH g0 FROMMEMBER m1 BYRADIUS 9 km ASC", "SORT l0 STORE l1", "SORT l1 BY s* GET s*", "KEYS *", "SCAN 0", "MULTI; GET s0; SET s0 z; TTL s0; EXEC", "MULTI; SET s1 q; EXEC",
    "EVAL `return {redis.call('GET','s0'),redis.call('EXISTS','l0','h0','z0'),redis.call('TTL','s0')}` 0", "EVAL `redis.call('INCR','s0') return redis.call('GET','s0')` 0", "SELECT 1; GET s0; KEYS *; SELECT 0", "RESTORE s0 0 `\x00\x01v\x0a\x00\x4c\x3f\x9a\x70\x8e\x1d\x5e\x63`", "LCS s0 s1", "WATCH s0; MULTI; SET s2 w; EXEC",
]]
SHORT_LIVED_FIELDS = [Pattern("!" + text) for text in [
    "HSET h0 f0 a f1 b f2 c f9 z; HPEXPIRE h0 1 FIELDS 2 f0 f1", "HSET h1 f0 1 f9 z; HPEXPIRE h1 1 FIELDS 1 f0", "HSET h0 f0 1 f9 z; EVAL `return redis.call('HPEXPIRE','h0',1,'FIELDS',1,'f0')` 0", "HSET h1 f1 1 f9 z; MULTI; HPEXPIRE h1 1 FIELDS 1 f1; EXEC",
]]
AFTER_FIELDS = [Pattern("!" + text) for text in [
    "HGET <h> <d>", "HMGET <h> <d>+", "HGETALL <h>", "HKEYS <h>", "HVALS <h>", "HEXISTS <h> <d>", "HSTRLEN <h> <d>", "HSET <h> <d> <v>", "HSETNX <h> <d> <v>", "HINCRBY <h> f0 1", "HINCRBYFLOAT <h> f0 1", "HDEL <h> <d>+", "HTTL <h> FIELDS <#d>", "HPEXPIRETIME <h> FIELDS <#d>", "HPERSIST <h> FIELDS <#d>",
    "HEXPIRE <h> 9000 FIELDS <#d>", "HSCAN <h> 0", "COPY <h> h2 REPLACE", "RENAME <h> h2", "SORT l1 BY h*->f0 GET h*->f1", "EVAL `return redis.call('HGET','h0','f0')` 0", "MULTI; HGET h0 f0; HSET h0 f0 x; HTTL h0 FIELDS 1 f0; EXEC",
]]
# Values on which a command takes milliseconds.
LARGE_VALUES = [Pattern("!" + text) for text in [
    "EVAL `for i=1,4000 do redis.call('RPUSH','l0',i*7919%4001) end` 0", "EVAL `for i=1,4000 do redis.call('SADD','e0',i) redis.call('SADD','e1',i*2) end` 0", "EVAL `for i=1,4000 do redis.call('ZADD','z0',i%97,'m'..i) redis.call('ZADD','z1',i%89,'m'..i*2) end` 0",
    "EVAL `for i=1,4000 do redis.call('HSET','h0','f'..i,i) end` 0", "EVAL `for i=1,2000 do redis.call('XADD','x0',i..'-1','f',i) end` 0", "EVAL `for i=1,4000 do redis.call('PFADD','p0','e'..i) end` 0", "EVAL `redis.call('SET','s1',string.rep('abcdefgh',300)) return redis.call('SET','s2',string.rep('hgfedcba',300))` 0",
    "SETBIT b0 900000 1; SETBIT b1 800001 1", "EVAL `for i=1,4000 do redis.call('GEOADD','g0',i%360-179.5,i%170-85,'m'..i) end` 0", "EVAL `for i=1,25000 do redis.call('SET','many:'..i,i) end` 0",
]]
SLOW = [Pattern("!" + text) for text in [
    "SORT l0 LIMIT 0 5", "SORT l0 ALPHA DESC LIMIT 0 5", "SORT l0 STORE l1", "SORT l0 BY s* GET # GET s* LIMIT 0 3", "LREM l0 0 77", "LPOS l0 4000 MAXLEN 0", "LINSERT l0 BEFORE 4000 new", "SUNIONSTORE e2 e0 e1", "SINTER e0 e1", "SDIFFSTORE e2 e0 e1", "SINTERCARD 2 e0 e1", "ZUNIONSTORE z2 2 z0 z1", "ZINTERSTORE z2 2 z0 z1",
    "ZRANGE z0 0 -1 REV", "ZREMRANGEBYRANK z0 100 200", "ZRANGESTORE z2 z0 0 -1", "HGETALL h0", "HVALS h0", "XRANGE x0 - `+`", "XTRIM x0 MAXLEN 1000", "XGROUP CREATE x0 g0 0; XREADGROUP GROUP g0 c0 STREAMS x0 `>`; XAUTOCLAIM x0 g0 c1 0 0 COUNT 500", "PFCOUNT p0 p1", "PFMERGE p2 p0 p1", "LCS s1 s2 LEN",
    "BITCOUNT b0", "BITOP XOR b2 b0 b1", "BITPOS b1 1", "GEOSEARCH g0 FROMLONLAT 0 0 BYRADIUS 20000 km ASC COUNT 9", "GEOSEARCHSTORE g1 g0 FROMLONLAT 0 0 BYRADIUS 9000 km", "KEYS many:1*9", "KEYS *", "EVAL `local n=0 for i=1,20000 do n=n+i end return n` 0", "EVAL `for i=1,500 do redis.call('INCR','s9') end return redis.call('GET','s9')` 0",
    "COPY e0 e9 REPLACE", "RENAME l0 l9", "DEL e0", "UNLINK z0", "DBSIZE", "FLUSHDB", "MULTI; SORT l0 STORE l1; SUNIONSTORE e2 e0 e1; INCR s9; EXEC", "SCAN 0 COUNT 1000", "DUMP h0", "SMEMBERS e0", "LRANGE l0 0 -1",
]]
QUICK = [Pattern("!" + text) for text in [
    "INCR s9", "GET s9", "SET s0 <v>", "GET s0", "PING <v>", "ECHO <v>", "LLEN l0", "SCARD e2", "ZCARD z2", "HLEN h0", "XLEN x0", "EXISTS <k>+", "TYPE <k>", "LPUSH l1 <v>", "RPOP l1", "SADD e2 <m>", "ZADD z2 <f> <m>", "HINCRBY h1 n 1", "APPEND s0 x", "STRLEN s0", "MGET s0 s9", "PUBLISH ch x", "TTL s0", "NOSUCH", "GET", "INCR l1",
]]
PARALLEL_FAMILIES = ["string", "bitmap", "list", "set", "hash", "sorted set", "geo", "hyperloglog", "stream"]
PARALLEL_DATABASES = [b"0", b"1", b"15"]


def draw_expiring(chance, words, draw, field_share):
    """Has keys or fields of hashes expire between two commands; `draw` draws a command of some families."""
    steps, clients = [], chance.randint(1, 2)
    for _ in range(chance.randint(1, 6)):
        of_fields = chance.random() < field_share
        number = chance.randrange(clients)
        for _ in range(chance.randint(1, 2)):
            pattern = chance.choice(SHORT_LIVED_FIELDS if of_fields else SHORT_LIVED)
            steps += [(number, command) for command in pattern.draw(words)] + [(number, [PAUSE])]
        for _ in range(chance.randint(1, 6)):
            if of_fields or chance.random() < 0.6:
                commands = chance.choice(AFTER_FIELDS if of_fields else AFTERWARDS).draw(words)
            else:
                commands = draw(chance, words, EXPIRING_FAMILIES)
            steps += [(number, command) for command in commands if not is_counting(command)]
    return clients, steps


def is_counting(command):
    return command[0].lower() in COUNTING or command[0].lower() in BLOCKING and any(word.upper() == b"BLOCK" for word in command)


def draw_slow(chance, words):
    """Pipelines of slow and quick commands on large values."""
    steps, clients = [], chance.randint(1, 3)
    for pattern in chance.sample(LARGE_VALUES, chance.randint(1, 4)):
        steps += [(0, command) for command in pattern.draw(words)]
    if chance.random() < 0.3:
        steps.append((0, [DEMOTE]))
    for _ in range(chance.randint(1, 4)):
        number = chance.randrange(clients)
        for _ in range(chance.randint(2, 12)):
            pattern = chance.choice(SLOW if chance.random() < 0.4 else QUICK)
            steps += [(number, command) for command in pattern.draw(words)]
    return clients, steps


def draw_parallel(chance, words, draw):
    """Clients that send at once, each in a database of its own."""
    steps, clients = [], len(PARALLEL_DATABASES)
    for number, database in enumerate(PARALLEL_DATABASES):
        steps.append((number, [b"SELECT", database]))
        for _ in range(chance.randint(3, 25)):
            for command in draw(chance, words, PARALLEL_FAMILIES):
                if chance.random() < 0.2:
                    spoil(chance, words, command)
                if command and command[0].lower() not in BLOCKING and command[0].lower() not in SCANS:
                    wrapped = chance.random()
                    if wrapped < 0.08:
                        steps += [(number, [b"MULTI"]), (number, command), (number, [b"INCR", b"n"]), (number, [b"EXEC"])]
                    elif wrapped < 0.14:
                        steps.append((number, [b"EVAL", b"return redis.call(unpack(ARGV))", b"0", *command]))
                    else:
                        steps.append((number, command))
    return clients, steps
