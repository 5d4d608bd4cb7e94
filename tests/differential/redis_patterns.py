"""Patterns of the commands that Redis 7.0 has, by family, in the language of redis_words.py."""

STRING = [
    "SET <s> <v> {[NX|XX] [GET] [KEEPTTL|EX <sec>|PX <ms>|EXAT <until>|PXAT <untilms>]}", "SET <k> <v>", "SETNX <s> <v>",
    "SETEX <s> <sec> <v>", "PSETEX <s> <ms> <v>", "GETSET <s> <v>", "GET <s>", "GETDEL <s>",
    "GETEX <s> [PERSIST|EX <sec>|PX <ms>|EXAT <until>|PXAT <untilms>]", "MGET <k>+", "MSET (<s> <v>)+", "MSETNX (<s> <v>)+",
    "APPEND <s> <v>", "STRLEN <s>", "INCR <s>", "DECR <s>", "INCRBY <s> <int>", "DECRBY <s> <int>", "INCRBYFLOAT <s> <f>",
    "SET <s> <int>", "SET <s> <f>", "SETRANGE <s> <so> <v>", "GETRANGE <s> <i> <i>", "SUBSTR <s> <i> <i>",
    "SET s0 <int>; INCRBY s0 <int>", "SET s1 <f>; INCRBYFLOAT s1 <f>",
    "LCS <s> <s> {[LEN] [IDX] [MINMATCHLEN <n>] [WITHMATCHLEN]}", "SET s0 abcabdabx; SET s1 abxabcabd; LCS s0 s1 IDX {[MINMATCHLEN <n>] [WITHMATCHLEN]}",
]
BITMAP = [
    "SETBIT <b> <o> <bit>", "GETBIT <b> <o>", "BITCOUNT <b> [<i> <i> [BYTE|BIT]]", "BITPOS <b> <bit> [<i> [<i> [BYTE|BIT]]]",
    "BITOP (AND|OR|XOR) <b> <b>+", "BITOP NOT <b> <b>", "BITOP (AND|OR|XOR) <b> <b> <s> <k>", "SET <b> <v>",
    "BITFIELD <b> (GET <type> <at>|SET <type> <at> <int>|INCRBY <type> <at> <int>|OVERFLOW (WRAP|SAT|FAIL))*",
    "BITFIELD <b> OVERFLOW (WRAP|SAT|FAIL) (SET <type> <at> <int>|INCRBY <type> <at> <int>)+ GET <type> <at>",
    "BITFIELD_RO <b> (GET <type> <at>)*", "SET b0 `\xff\xf0\x00`; BITPOS b0 <bit> [<i> [<i> [BYTE|BIT]]]",
]
LIST = [
    "LPUSH <l> <v>+", "RPUSH <l> <v>+", "LPUSHX <l> <v>+", "RPUSHX <l> <v>+", "LPOP <l> [<n>]", "RPOP <l> [<n>]", "LLEN <l>",
    "LINDEX <l> <i>", "LSET <l> <i> <v>", "LRANGE <l> <i> <i>", "LTRIM <l> <i> <i>", "LREM <l> <i> <v>",
    "LINSERT <l> (BEFORE|AFTER) <v> <v>", "RPOPLPUSH <l> <l>", "LMOVE <l> <l> (LEFT|RIGHT) (LEFT|RIGHT)",
    "LMPOP <#l> (LEFT|RIGHT) [COUNT <N>]", "LPOS <l> <v> {[RANK <i>] [COUNT <n>] [MAXLEN <n>]}", "RPUSH <l> <lmany>",
    "RPUSH <l> a b c a b c 1 2 1; LPOS <l> (a|c|1) {[RANK <i>] [COUNT <n>] [MAXLEN <n>]}", "RPUSH <l> 1 a 2 a 3 a; LREM <l> <i> a",
    "RPUSH l0 a; LINSERT l0 (BEFORE|AFTER) a <v>", "RPUSH l1 <v> <v> <v>; LSET l1 <i> <v>",
]
BLOCKING = [
    "RPUSH l0 <v>; BLPOP l0 <timeout>", "RPUSH l1 <v>; BRPOP <l> l1 <timeout>", "RPUSH l2 <v>; BLMOVE l2 <l> (LEFT|RIGHT) (LEFT|RIGHT) <timeout>",
    "RPUSH l0 <v>; BRPOPLPUSH l0 <l> <timeout>", "RPUSH l1 <v>; BLMPOP <timeout> <#l> (LEFT|RIGHT) [COUNT <N>]",
    "ZADD z0 1 m1; BZPOPMIN <z> z0 <timeout>", "ZADD z1 2 m2; BZPOPMAX z1 <z> <timeout>", "ZADD z1 2 m2; BZMPOP <timeout> <#z> (MIN|MAX) [COUNT <N>]",
    "XADD x0 <newid> f v; XREAD {[COUNT <N>] [BLOCK <timeoutms>]} STREAMS x0 <id>", "BLPOP <l>+ <timeout>", "BZPOPMIN <z>+ <timeout>",
    "XREADGROUP GROUP <grp> <con> {[COUNT <N>] [BLOCK <timeoutms>] [NOACK]} STREAMS <x> (`>`|<id>)", "XREAD BLOCK <timeoutms> STREAMS <x> $",
    "BLMOVE <l> <l> (LEFT|RIGHT) (LEFT|RIGHT) <timeout>", "BLMPOP <timeout> <#l> (LEFT|RIGHT) [COUNT <N>]", "BRPOPLPUSH <l> <l> <timeout>",
    "BZMPOP <timeout> <#z> (MIN|MAX) [COUNT <N>]", "WAIT 0 0", "WAIT 0 <junk>",
]
SET = [
    "SADD <e> <im>+", "SADD <e> <m>+", "SREM <e> <im>+", "SISMEMBER <e> <im>", "SMISMEMBER <e> <im>+", "SCARD <e>", "SMEMBERS <e>",
    "SMOVE <e> <e> <im>", "SINTER <e>+", "SUNION <e>+", "SDIFF <e>+", "SINTERSTORE <e> <e>+", "SUNIONSTORE <e> <e>+", "SDIFFSTORE <e> <e>+",
    "SINTERCARD <#e> [LIMIT <n>]", "SPOP <e> 100000", "SPOP <e> 0", "SRANDMEMBER <e> [<i>]", "SSCAN <e> <cursor> {[MATCH <glob>] [COUNT <N>]}",
    "DEL e2; SADD e2 <im>; SPOP e2", "SADD <e> <emany>", "SADD <e> <imany>", "SINTERCARD 2 <e> <e> LIMIT <n>", "SREM <e> <imany>", "SDIFF <e> <e> <e>",
]
HASH = [
    "HSET <h> (<d> <v>)+", "HMSET <h> (<d> <v>)+", "HSETNX <h> <d> <v>", "HGET <h> <d>", "HMGET <h> <d>+", "HDEL <h> <d>+", "HLEN <h>",
    "HEXISTS <h> <d>", "HKEYS <h>", "HVALS <h>", "HGETALL <h>", "HSTRLEN <h> <d>", "HINCRBY <h> <d> <int>", "HINCRBYFLOAT <h> <d> <f>",
    "HRANDFIELD <h> [<i> [WITHVALUES]]", "HSCAN <h> <cursor> {[MATCH <glob>] [COUNT <N>]}", "HSET <h> <hmany>",
    "HSET h0 f1 <f>; HINCRBYFLOAT h0 f1 <f>", "HSET h1 f1 <int>; HINCRBY h1 f1 <int>",
]
SORTED_SET = [
    "ZADD <z> {[NX|XX] [GT|LT] [CH]} (<f> <m>)+", "ZADD <z> (<f> <m>)+", "ZADD <z> {[NX|XX] [GT|LT] [CH] INCR} <f> <m>", "ZADD <z> 0 m1 0 m2 0 m3 0 m4 0 m5",
    "ZINCRBY <z> <f> <m>", "ZREM <z> <m>+", "ZSCORE <z> <m>", "ZMSCORE <z> <m>+", "ZCARD <z>", "ZRANK <z> <m>", "ZREVRANK <z> <m>",
    "ZCOUNT <z> <bound> <bound>", "ZRANGE <z> <i> <i> {[REV] [WITHSCORES]}", "ZREVRANGE <z> <i> <i> [WITHSCORES]",
    "ZRANGE <z> <bound> <bound> {BYSCORE [REV] [LIMIT <n> <i>] [WITHSCORES]}", "ZRANGE <z> <bound> <bound> {[BYSCORE|BYLEX] [REV] [LIMIT <n> <i>] [WITHSCORES]}",
    "ZRANGEBYSCORE <z> <bound> <bound> {[WITHSCORES] [LIMIT <n> <i>]}", "ZREVRANGEBYSCORE <z> <bound> <bound> {[WITHSCORES] [LIMIT <n> <i>]}",
    "DEL z2; ZADD z2 0 m0 0 m1 0 m3 0 m5 0 m7 0 <m>; ZRANGE z2 <lex> <lex> {BYLEX [REV] [LIMIT <n> <i>]}; ZLEXCOUNT z2 <lex> <lex>",
    "DEL z2; ZADD z2 1 m0 1 m1 1 m3 1 m5 1 m7 1 <m>; ZRANGEBYLEX z2 <lex> <lex> [LIMIT <n> <i>]; ZREMRANGEBYLEX z2 <lex> <lex>",
    "DEL z2; ZADD z2 1 m0 1 m1 1 m3 1 m5; ZREVRANGEBYLEX z2 <lex> <lex> [LIMIT <n> <i>]; ZRANGESTORE z1 z2 <lex> <lex> {BYLEX [REV] [LIMIT <n> <i>]}",
    "ZRANGESTORE <z> <z> <i> <i> [REV]", "ZRANGESTORE <z> <z> <bound> <bound> {BYSCORE [REV] [LIMIT <n> <i>]}", "ZREMRANGEBYRANK <z> <i> <i>",
    "ZREMRANGEBYSCORE <z> <bound> <bound>", "ZPOPMIN <z> [<n>]", "ZPOPMAX <z> [<n>]", "ZMPOP <#z> (MIN|MAX) [COUNT <N>]",
    "ZUNION <#z> {[WEIGHTS <#w>] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]}", "ZINTER <#z> {[WEIGHTS <#w>] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]}",
    "ZDIFF <#z> [WITHSCORES]", "ZUNIONSTORE <z> <#z> {[WEIGHTS <#w>] [AGGREGATE (SUM|MIN|MAX)]}", "ZINTERSTORE <z> <#z> {[WEIGHTS <#w>] [AGGREGATE (SUM|MIN|MAX)]}",
    "ZDIFFSTORE <z> <#z>", "ZINTERCARD <#z> [LIMIT <n>]", "ZUNIONSTORE <z> 2 <z> <e> {[WEIGHTS <f> <f>] [AGGREGATE (SUM|MIN|MAX)]}", "ZINTER 2 <z> <e> WITHSCORES",
    "ZRANDMEMBER <z> [<i> [WITHSCORES]]", "ZSCAN <z> <cursor> {[MATCH <glob>] [COUNT <N>]}", "ZADD <z> <zmany>", "ZDIFF 2 <z> <e> WITHSCORES",
]
GEO = [
    "GEOADD <g> {[NX|XX] [CH]} (<lon> <lat> <m>)+", "GEOADD <g> 13.361389 38.115556 m1 15.087269 37.502669 m2 2.35 48.85 m3 -0.12 51.5 m4",
    "GEODIST <g> <m> <m> [<unit>]", "GEOHASH <g> <m>*", "GEOPOS <g> <m>*",
    "GEOSEARCH <g> {(FROMMEMBER <m>|FROMLONLAT <lon> <lat>) (BYRADIUS <radius> <unit>|BYBOX <radius> <radius> <unit>) [ASC|DESC] [COUNT <N>] [WITHCOORD] [WITHDIST] [WITHHASH]}",
    "GEOSEARCH <g> {FROMLONLAT 10 45 BYRADIUS 2000 km (ASC|DESC) [COUNT <N> [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]}",
    "GEOSEARCHSTORE <g> <g> {(FROMMEMBER <m>|FROMLONLAT <lon> <lat>) (BYRADIUS <radius> <unit>|BYBOX <radius> <radius> <unit>) (ASC|DESC) [COUNT <N>] [STOREDIST]}",
    "GEORADIUS <g> <lon> <lat> <radius> <unit> {[WITHCOORD] [WITHDIST] [WITHHASH] (ASC|DESC) [COUNT <N>]}", "GEORADIUSBYMEMBER <g> <m> <radius> <unit> {[WITHDIST] (ASC|DESC) [STORE <g>]}",
    "GEORADIUS <g> 10 45 3000 km {(ASC|DESC) [COUNT <N>] [STORE <g>] [STOREDIST <g>]}", "GEORADIUS_RO <g> <lon> <lat> <radius> <unit> ASC",
    "GEORADIUSBYMEMBER_RO <g> <m> <radius> <unit> {ASC [WITHCOORD]}", "ZRANGE <g> 0 -1 WITHSCORES", "ZADD <g> <f> <m>",
]
HYPERLOGLOG = [
    "PFADD <p> <v>*", "PFCOUNT <p>+", "PFMERGE <p> <p>*", "PFADD <p> <v> <v> <v> <v> <v> <v> <v>", "GETRANGE <p> 0 15", "PFADD <p> <lmany>", "PFADD <p> <hmany>",
    "GET <p>", "SETRANGE <p> <so> <v>", "PFDEBUG (GETREG|DECODE|ENCODING|TODENSE) <p>", "APPEND <p> <v>", "PFCOUNT <p> <s>", "SET p0 `HYLL`",
]
STREAM = [
    "XADD <x> {[NOMKSTREAM] [MAXLEN [=|~] <N>]} <newid> (<d> <v>)+", "XADD <x> {[NOMKSTREAM] [MINID [=|~] <id>]} <newid> (<d> <v>)+", "XADD <x> <newid> (<d> <v>)+",
    "XADD <x> <newid> f0 <v> f1 <v>", "XADD <x> MAXLEN ~ <N> LIMIT <n> <newid> f v", "XLEN <x>", "XRANGE <x> <edge> <edge> [COUNT <n>]",
    "XREVRANGE <x> <edge> <edge> [COUNT <n>]", "XDEL <x> <id>+", "XTRIM <x> (MAXLEN [=|~] <N>|MINID [=|~] <id>) [LIMIT <n>]", "XTRIM <x> MAXLEN ~ <n> LIMIT <n>",
    "XREAD [COUNT <N>] STREAMS <x> <id>", "XREAD [COUNT <N>] STREAMS <x> <x> <id> <id>", "XGROUP CREATE <x> <grp> <id> {[MKSTREAM] [ENTRIESREAD <int>]}",
    "XGROUP CREATE <x> <grp> 0 MKSTREAM", "XGROUP SETID <x> <grp> <id> [ENTRIESREAD <int>]", "XGROUP DESTROY <x> <grp>", "XGROUP CREATECONSUMER <x> <grp> <con>",
    "XGROUP DELCONSUMER <x> <grp> <con>", "XREADGROUP GROUP <grp> <con> {[COUNT <N>] [NOACK]} STREAMS <x> `>`", "XREADGROUP GROUP <grp> <con> [COUNT <N>] STREAMS <x> <id>",
    "XREADGROUP GROUP <grp> <con> COUNT <N> STREAMS <x> `>`", "XREADGROUP GROUP <grp> <con> STREAMS <x> <x> `>` `>`", "XACK <x> <grp> <id>+",
    "XPENDING <x> <grp> [[IDLE <idle>] <edge> <edge> <N> [<con>]]", "XPENDING <x> <grp> - `+` 10 [<con>]", "XPENDING <x> <grp>",
    "XCLAIM <x> <grp> <con> <idle> <id>+ {[IDLE <idle>] [TIME <untilms>] [RETRYCOUNT <n>] [FORCE] [JUSTID] [LASTID <id>]}",
    "XAUTOCLAIM <x> <grp> <con> <idle> <id> {[COUNT <N>] [JUSTID]}", "XAUTOCLAIM <x> <grp> <con> 0 0 [JUSTID]", "XSETID <x> <newid> [ENTRIESADDED <N> MAXDELETEDID <id>]",
    "XSETID <x> <newid> {[ENTRIESADDED <int>] [MAXDELETEDID <id>]}", "XINFO STREAM <x> [FULL [COUNT <n>]]", "XINFO GROUPS <x>", "XINFO CONSUMERS <x> <grp>", "XINFO HELP", "XGROUP HELP",
    "XADD x0 <newid> f1 v1 f2 v2; XADD x0 <newid> f1 v1 f2 v2; XADD x0 <newid> f1 v1 f2 v3",
    "XGROUP CREATE x0 g0 0 MKSTREAM; XADD x0 <newid> f <v>; XREADGROUP GROUP g0 c0 STREAMS x0 `>`; XDEL x0 <id>; XAUTOCLAIM x0 g0 c1 0 0",
]
GENERIC = [
    "DEL <k>+", "UNLINK <k>+", "EXISTS <k>+", "TOUCH <k>+", "TYPE <k>", "EXPIRE <k> <sec> [NX|XX|GT|LT]", "PEXPIRE <k> <ms> [NX|XX|GT|LT]",
    "EXPIREAT <k> <until> [NX|XX|GT|LT]", "PEXPIREAT <k> <untilms> [NX|XX|GT|LT]", "EXPIREAT <k> <until> {[NX|XX] [GT|LT]}", "TTL <k>", "PTTL <k>", "EXPIRETIME <k>",
    "PEXPIRETIME <k>", "PERSIST <k>", "RENAME <k> <k>", "RENAMENX <k> <k>", "COPY <k> <k> {[REPLACE] [DB <db>]}", "MOVE <k> <db>", "DBSIZE", "RANDOMKEY",
    "KEYS <glob>", "KEYS *", "SCAN <cursor> {[MATCH <glob>] [COUNT <N>] [TYPE (string|list|set|zset|hash|stream|x|``)]}", "OBJECT ENCODING <k>", "OBJECT REFCOUNT nokey",
    "OBJECT FREQ <k>", "OBJECT IDLETIME <k>", "OBJECT HELP", "SORT <l> {[BY <by>] [LIMIT <n> <i>] [GET <get>] [GET <get>] [ASC|DESC] [ALPHA]}", "SORT <l> {[ALPHA] [DESC] [STORE <l>] [LIMIT <n> <i>]}",
    "SORT_RO <e> {[ALPHA] [DESC] [LIMIT <n> <i>]}", "SORT <z> {[BY nosort] [LIMIT <n> <i>] [GET <get>] [ASC|DESC]}", "SORT <e> {ALPHA [GET <get>] [STORE <l>]}",
    "DEL l0; RPUSH l0 3 1 2 10 1.5; SORT l0 {[DESC] [ALPHA] [LIMIT <n> <i>] [GET <get>] [STORE <l>]}", "MSET s0 3 s1 1 s2 <v>; DEL l0; RPUSH l0 0 1 2; SORT l0 {BY s* [GET s*] [GET #] [DESC] [ALPHA]}",
    "SELECT 1; SET s0 <v>; MGET <s> <s>; DBSIZE; SELECT 0", "SWAPDB <db> <db>", "RESTORE <k> 0 <v> [REPLACE]", "FLUSHDB [ASYNC|SYNC]", "SELECT <db>", "DUMP nokey",
    "RESTORE <k> <ms> `\x00\x03abc\x0a\x00\x23\x23\x45\x6a\x5f\xd8\x05\x61` {[REPLACE] [ABSTTL] [IDLETIME <n>] [FREQ <n>]}",
]
CONNECTION = [
    "PING [<v>]", "ECHO <v>", "CLIENT SETNAME <m>", "CLIENT GETNAME", "CLIENT INFO", "CLIENT LIST TYPE (normal|pubsub|master|x)", "CLIENT NO-EVICT (on|off|x)", "CLIENT GETREDIR", "CLIENT TRACKINGINFO", "CLIENT HELP",
    "CLIENT UNBLOCK <index> [TIMEOUT|ERROR|x]", "CLIENT KILL ID 99999999", "CLIENT KILL 127.0.0.1:1", "CLIENT KILL <junk> <junk>", "CLIENT CACHING (yes|no|x)", "CLIENT NOSUCH", "CLIENT ID x",
    "CLIENT TRACKING (on|off|x) {[BCAST] [PREFIX <m>] [OPTIN] [OPTOUT] [NOLOOP] [REDIRECT <junk>]}", "HELLO [2|3|4|x] [SETNAME <m>]", "HELLO 3 {[AUTH default <m>] [SETNAME <m>]}", "AUTH <m>", "AUTH default <m>", "AUTH <m> <m>", "RESET",
    "OBJECT HELP x", "NOSUCH <v>*", "<v> <v>*", "XGROUP NOSUCH <x>", "CONFIG NOSUCH", "ASKING", "READONLY", "READWRITE", "ACL WHOAMI", "LOLWUT VERSION 5 1 1 1", "TIME", "TIME x", "LASTSAVE x", "ROLE", "COMMAND COUNT x",
    "INFO nosuch", "MEMORY USAGE nokey", "MEMORY USAGE <k> SAMPLES <junk>", "MEMORY HELP", "SLOWLOG LEN x", "SLOWLOG GET <junk>", "SLOWLOG HELP", "LATENCY RESET <m>", "LATENCY HELP", "LATENCY HISTORY <m>", "LATENCY LATEST", "LATENCY GRAPH <m>", "MODULE LIST", "MODULE HELP", "MODULE LOAD <m>",
    "CLUSTER KEYSLOT <k>", "CLUSTER <cluster>", "CLUSTER NODES", "CLUSTER MYID", "CLUSTER SLOTS", "CLUSTER <cluster> <junk>", "CLUSTER NOSUCH", "PUBSUB HELP", "SWAPDB <junk> <junk>", "SELECT <junk>", "MIGRATE 127.0.0.1 1 <k> 0", "FAILOVER ABORT", "BGSAVE x", "SAVE x",
]
INTROSPECTION = [
    "COMMAND GETKEYS (SET <s> <v>|MGET <s>+|ZUNIONSTORE <z> <#z>|XREAD STREAMS <x> <id>|SORT <l> BY <by> STORE <l>|EVAL x <#s>|GET|LMPOP <#l> LEFT|GEORADIUS <g> 1 1 1 m STORE <g>|MSET (<s> <v>)+|BITOP AND <b> <b>+|ZDIFF <#z>|PING|NOSUCH <k>|XREADGROUP GROUP g c STREAMS <x> <x> 1 2|MIGRATE h 1 `` 0 1 KEYS <k>+|MIGRATE h 1 <k> 0 1|BLMPOP 0 <#l> LEFT|EVALSHA x <#s>|FCALL f <#s>|SINTERCARD <#e>|OBJECT ENCODING <k>|MEMORY USAGE <k>|XINFO STREAM <x>|XGROUP CREATE <x> g 0|LCS <s> <s>|COPY <k> <k>|BLPOP <l>+ 0|SORT <l> GET <get>|PFMERGE <p> <p>*|RESTORE <k> 0 x|PUBLISH <ch> x|EVAL x <junk> <k>|ZUNION <junk> <z>|GEOSEARCHSTORE <g> <g>)",
    "COMMAND GETKEYSANDFLAGS (SET <s> <v> [GET]|MSET (<s> <v>)+|COPY <k> <k>|LMOVE <l> <l> LEFT LEFT|ZUNIONSTORE <z> <#z>|GET|PING|BITFIELD <b> GET u8 0|BITFIELD <b> SET u8 0 1|SORT <l> STORE <l>|XREADGROUP GROUP g c STREAMS <x> 1|EVAL x <#s>|DEL <k>+|GETDEL <s>|XCLAIM <x> g c 0 0)",
    "COMMAND INFO <name>", "COMMAND INFO <name> <name> nosuch", "COMMAND INFO <name>", "COMMAND DOCS nosuch", "COMMAND LIST FILTERBY PATTERN <namepat>", "COMMAND LIST FILTERBY ACLCAT <cat>", "COMMAND LIST FILTERBY MODULE <m>", "COMMAND NOSUCH", "COMMAND HELP",
]
TRANSACTION = ["MULTI", "EXEC", "EXEC", "DISCARD", "WATCH <k>+", "UNWATCH", "MULTI x", "EXEC x", "WATCH"]
CONFIGURATION = [
    "CONFIG GET <param>", "CONFIG GET <param> <param>", "CONFIG SET (hash-max-listpack-entries|hash-max-listpack-value|set-max-intset-entries|zset-max-listpack-entries|zset-max-listpack-value|list-max-listpack-size|hll-sparse-max-bytes|stream-node-max-entries) <setting>",
    "CONFIG SET maxmemory-policy (noeviction|allkeys-lru|x)", "CONFIG SET notify-keyspace-events <events>; CONFIG GET notify-keyspace-events", "CONFIG SET nosuch 1", "CONFIG SET <param>", "CONFIG HELP", "CONFIG GET", "CONFIG RESETSTAT x",
    "CONFIG SET slowlog-max-len <setting> stream-node-max-entries <setting>; CONFIG GET slowlog-max-len stream-node-max-entries",
]
ACL = [
    "ACL SETUSER u0 <rule>+", "ACL SETUSER u0 <rule> <rule> <rule>", "ACL GETUSER u0", "ACL GETUSER <m>", "ACL LIST", "ACL USERS", "ACL CAT [<cat>]", "ACL DELUSER u0 <m>", "ACL DRYRUN u0 (GET <k>|SET <k> <v>|SET <k> <v> GET|CONFIG GET x|CONFIG SET x y|MGET <k>+|COPY <k> <k>|SORT <l> STORE <l>|PUBLISH <ch> x|SUBSCRIBE <ch>|ZUNIONSTORE <z> <#z>|EVAL x <#s>|PING|SELECT 0|NOSUCH|DEL <k>+|XREADGROUP GROUP g c STREAMS <x> 1|GEORADIUS <g> 1 1 1 m STORE <g>|CLIENT KILL x|GETEX <s>|OBJECT FREQ <k>)", "ACL SETUSER u0 on ~s* %R~l* %W~z* &ch1 +@read +@write -@dangerous +config|get -sort; ACL DRYRUN u0 (GET <k>|SET <k> <v>|COPY <k> <k>|LPUSH <l> x|LRANGE <l> 0 -1|ZADD <z> 1 a|ZRANGE <z> 0 -1|CONFIG GET x|CONFIG SET x y|SORT <l>|PUBLISH <ch> x|KEYS *|SMOVE <e> <e> a|LMOVE <l> <z> LEFT LEFT)",
    "ACL SETUSER u0 on nopass ~* +@all; AUTH u0 x", "ACL WHOAMI", "ACL GENPASS <junk>", "ACL HELP", "ACL LOG RESET", "ACL LOG <junk>", "ACL SETUSER u1 on `>pw` <rule> <rule>; AUTH u1 pw", "AUTH u1 wrong", "AUTH default x", "ACL SETUSER default <junk>", "ACL NOSUCH",
]
CHANNELS = [
    "SUBSCRIBE <ch>+", "UNSUBSCRIBE <ch>*", "PSUBSCRIBE <pat>+", "PUNSUBSCRIBE <pat>*", "SSUBSCRIBE <ch>", "SUNSUBSCRIBE <ch>*", "PUBLISH <ch> <v>", "PUBLISH <ch> <v>", "SPUBLISH <ch> <v>", "PUBSUB CHANNELS [<pat>]", "PUBSUB NUMSUB <ch>*",
    "PUBSUB NUMPAT", "PUBSUB SHARDCHANNELS [<pat>]", "PUBSUB SHARDNUMSUB <ch>*", "PING [<v>]",
]
HASH_EXPIRY = [
    "HEXPIRE <h> <sec> [NX|XX|GT|LT] FIELDS <#d>", "HPEXPIRE <h> <ms> [NX|XX|GT|LT] FIELDS <#d>", "HEXPIREAT <h> <until> [NX|XX|GT|LT] FIELDS <#d>",
    "HPEXPIREAT <h> <untilms> [NX|XX|GT|LT] FIELDS <#d>", "HTTL <h> FIELDS <#d>", "HPTTL <h> FIELDS <#d>", "HEXPIRETIME <h> FIELDS <#d>", "HPEXPIRETIME <h> FIELDS <#d>",
    "HPERSIST <h> FIELDS <#d>", "HSET <h> f0 a f1 b f2 c; HEXPIRE <h> <sec> [NX|XX|GT|LT] FIELDS <#d>", "HSET h0 f0 a f1 b; HPEXPIREAT h0 <untilms> FIELDS 2 f0 f1; HSET h0 f0 <v>; HPEXPIRETIME h0 FIELDS 3 f0 f1 f2",
    "HSET h0 f0 1; HEXPIREAT h0 <until> FIELDS 1 f0; HINCRBY h0 f0 <int>; HEXPIRETIME h0 FIELDS 1 f0", "HSET <h> f0 1 f1 <f>; HEXPIRE <h> <sec> FIELDS 2 f0 f1; HINCRBYFLOAT <h> f1 <f>; HTTL <h> FIELDS 2 f0 f1",
    "HSET h0 f0 a f1 b; HEXPIRE h0 <sec> FIELDS 1 f0; COPY h0 <k> REPLACE; RENAME h0 h1; HTTL h1 FIELDS 2 f0 f1", "HSET <h> (<d> <v>)+", "HDEL <h> <d>+", "HGETALL <h>", "HSETNX <h> <d> <v>", "HSCAN <h> 0", "HLEN <h>",
    "HSET h2 <hmany>; HEXPIRE h2 <sec> FIELDS <#d>; HTTL h2 FIELDS <#d>; OBJECT ENCODING h2",
]
HASH_GETTING = [
    "HGETEX <h> [PERSIST|EX <sec>|PX <ms>|EXAT <until>|PXAT <untilms>] FIELDS <#d>", "HGETDEL <h> FIELDS <#d>", "HSETEX <h> {[FNX|FXX] [EX <sec>|PX <ms>|EXAT <until>|PXAT <untilms>|KEEPTTL]} FIELDS <#dv>",
    "HSETEX h0 EX <sec> FIELDS <#dv>; HSETEX h0 {[FNX|FXX] [KEEPTTL]} FIELDS <#dv>; HTTL h0 FIELDS <#d>", "HSETEX <h> EX <sec> FIELDS 1 <d> <v>; HGETEX <h> PERSIST FIELDS <#d>; HGETDEL <h> FIELDS <#d>",
]

# Name, weight, patterns.
FAMILIES = [
    ("string", 12, STRING), ("bitmap", 7, BITMAP), ("list", 10, LIST), ("blocking", 2, BLOCKING), ("set", 9, SET), ("hash", 9, HASH),
    ("sorted set", 15, SORTED_SET), ("geo", 6, GEO), ("hyperloglog", 4, HYPERLOGLOG), ("stream", 15, STREAM), ("generic", 14, GENERIC),
    ("connection", 3, CONNECTION), ("introspection", 3, INTROSPECTION), ("transaction", 4, TRANSACTION), ("configuration", 1, CONFIGURATION),
    ("acl", 2, ACL), ("channels", 3, CHANNELS),
]
# The command that a peer must have, name, weight, patterns.
LATER_FAMILIES = [(b"HPEXPIRETIME", "hash expiry", 9, HASH_EXPIRY), (b"HSETEX", "hash getting", 5, HASH_GETTING)]
