//! The patterns of all families that Redis 7.0 has, and commands drawn from them.

use super::grammar::Pattern;
use super::words;
use quipu_bench::resp::{Words, words as words_of};
use rng::Random;

/// A Lua script that runs the command in its arguments.
pub const WRAPPER: &[u8] = b"return redis.call(unpack(ARGV))";

/// Patterns by family.
pub struct Patterns {
    families: Vec<(u64, Vec<Pattern>)>,
    total: u64,
}

impl Patterns {
    /// Creates the patterns of several families.
    pub fn new(families: &[Family]) -> Patterns {
        let family = |(_, weight, patterns): &Family| {
            (*weight, patterns.iter().map(|text| Pattern::new(text)).collect())
        };
        let families: Vec<(u64, Vec<Pattern>)> = families.iter().map(family).collect();
        let total = families.iter().map(|(weight, _)| weight).sum();
        Patterns { families, total }
    }

    fn family(&self, random: &mut Random) -> &[Pattern] {
        let mut left = random.below(self.total);
        for (weight, patterns) in &self.families {
            if left < *weight {
                return patterns;
            }
            left -= weight;
        }
        &[]
    }

    /// Commands of any pattern.
    pub fn draw(&self, random: &mut Random) -> Vec<Words> {
        let family = self.family(random);
        self.spoiled(&family[random.below(family.len() as u64) as usize], random)
    }

    /// Commands of a pattern, perhaps spoiled or put into a script.
    fn spoiled(&self, pattern: &Pattern, random: &mut Random) -> Vec<Words> {
        let mut drawn = pattern.draw(random);
        if pattern.is_spoilable && random.below(12) == 0 {
            drawn.iter_mut().for_each(|command| words::spoil(command, random));
        }
        drawn.iter_mut().for_each(words::make_certain);
        if drawn.len() == 1 && pattern.is_spoilable && random.below(25) == 0 {
            let mut script = words_of(&[b"EVAL", WRAPPER, b"0"]);
            script.append(&mut drawn[0]);
            return vec![script];
        }
        drawn
    }
}

/// A family: its name, how often it is drawn, its patterns.
pub type Family = (&'static str, u64, &'static [&'static str]);

/// All families.
#[rustfmt::skip] // a table
pub const FAMILIES: &[Family] = &[
    ("string", 12, &[
        "SET <s> <v> [(NX|XX)] [GET] [(KEEPTTL|EX <sec>|PX <ms>|EXAT <until>|PXAT <untilms>)]",
        "SET <k> <v>", "SETNX <s> <v>", "SETEX <s> <sec> <v>", "PSETEX <s> <ms> <v>", "GETSET <s> <v>",
        "GET <s>", "GETDEL <s>", "GETEX <s> [(PERSIST|EX <sec>|PX <ms>|EXAT <until>|PXAT <untilms>)]",
        "MGET <k>+", "MSET (<s> <v>)+", "MSETNX (<s> <v>)+", "APPEND <s> <v>", "STRLEN <s>",
        "INCR <s>", "DECR <s>", "INCRBY <s> <i>", "DECRBY <s> <i>", "INCRBYFLOAT <s> <f>",
        "SETRANGE <s> <o> <v>", "GETRANGE <s> <i> <i>", "SUBSTR <s> <i> <i>",
        "LCS <s> <s> [LEN] [IDX] [MINMATCHLEN <n>] [WITHMATCHLEN]",
    ]),
    ("bitmap", 6, &[
        "SETBIT <b> <o> <bit>", "GETBIT <b> <o>", "BITCOUNT <b> [<i> <i> [(BYTE|BIT)]]",
        "BITPOS <b> <bit> [<i> [<i> [(BYTE|BIT)]]]", "BITOP (AND|OR|XOR) <b> <b>+", "BITOP NOT <b> <b>",
        "BITFIELD <b> (GET <type> <at>|SET <type> <at> <i>|INCRBY <type> <at> <i>|OVERFLOW (WRAP|SAT|FAIL))*",
        "BITFIELD_RO <b> (GET <type> <at>)*", "SET <b> <v>",
    ]),
    ("list", 10, &[
        "LPUSH <l> <v>+", "RPUSH <l> <v>+", "LPUSHX <l> <v>+", "RPUSHX <l> <v>+", "LPOP <l> [<n>]", "RPOP <l> [<n>]",
        "LLEN <l>", "LINDEX <l> <i>", "LSET <l> <i> <v>", "LRANGE <l> <i> <i>", "LTRIM <l> <i> <i>",
        "LREM <l> <i> <v>", "LINSERT <l> (BEFORE|AFTER) <v> <v>", "RPOPLPUSH <l> <l>",
        "LMOVE <l> <l> (LEFT|RIGHT) (LEFT|RIGHT)", "LMPOP <#l> (LEFT|RIGHT) [COUNT <N>]",
        "LPOS <l> <v> [RANK <i>] [COUNT <n>] [MAXLEN <n>]",
        "!RPUSH l0 <v>; BLPOP l0 0", "!RPUSH l1 <v>; BRPOP <l> l1 0", "!RPUSH l2 <v>; BLMOVE l2 <l> LEFT (LEFT|RIGHT) 0",
        "!RPUSH l3 <v>; BRPOPLPUSH l3 <l> 0", "!RPUSH l3 <v>; BLMPOP 0 1 l3 (LEFT|RIGHT) [COUNT <N>]",
        "RPUSH <l> <v> <v> <v> <v> <v> <v> <v> <v> <v> <v> <v> <v>",
    ]),
    ("set", 9, &[
        "SADD <e> <im>+", "SADD <e> <m>+", "SREM <e> <im>+", "SISMEMBER <e> <im>", "SMISMEMBER <e> <im>+", "SCARD <e>",
        "SMEMBERS <e>", "SMOVE <e> <e> <im>", "SINTER <e>+", "SUNION <e>+", "SDIFF <e>+", "SINTERSTORE <e> <e>+",
        "SUNIONSTORE <e> <e>+", "SDIFFSTORE <e> <e>+", "SINTERCARD <#e> [LIMIT <n>]", "!SPOP <e> 1000", "!SPOP <e> 0",
        "SRANDMEMBER <e> [<i>]", "SSCAN <e> 0 [MATCH <glob>] COUNT 10000", "!DEL e3; SADD e3 <im>; SPOP e3",
    ]),
    ("hash", 9, &[
        "HSET <h> (<d> <v>)+", "HMSET <h> (<d> <v>)+", "HSETNX <h> <d> <v>", "HGET <h> <d>", "HMGET <h> <d>+",
        "HDEL <h> <d>+", "HLEN <h>", "HEXISTS <h> <d>", "HKEYS <h>", "HVALS <h>", "HGETALL <h>", "HSTRLEN <h> <d>",
        "HINCRBY <h> <d> <i>", "HINCRBYFLOAT <h> <d> <f>", "HRANDFIELD <h> [<i> [WITHVALUES]]",
        "HSCAN <h> 0 [MATCH <glob>] COUNT 10000",
    ]),
    ("zset", 16, &[
        "ZADD <z> [(NX|XX)] [(GT|LT)] [CH] (<f> <m>)+", "ZADD <z> (<f> <m>)+", "ZADD <z> [XX] INCR <f> <m>",
        "ZADD <z> 0 m1 0 m2 0 m3 0 m4 0 m5", "!ZADD <y> 0 <m> 0 <m> 0 <m> 0 <m>", "!ZADD <y> 0 <m> 0 <m> 0 <m> 0 <m>", "!ZREM <y> <m> <m>", "ZINCRBY <z> <f> <m>",
        "ZREM <z> <m>+", "ZSCORE <z> <m>", "ZMSCORE <z> <m>+", "ZCARD <z>", "ZRANK <z> <m>", "ZREVRANK <z> <m>",
        "ZCOUNT <z> <zmin> <zmax>", "ZLEXCOUNT <y> <lexmin> <lexmax>",
        "ZRANGE <z> <i> <i> [REV] [WITHSCORES]", "ZREVRANGE <z> <i> <i> [WITHSCORES]",
        "ZRANGE <z> <zmin> <zmax> BYSCORE [REV] [LIMIT <n> <i>] [WITHSCORES]",
        "ZRANGE <y> <lexmin> <lexmax> BYLEX [REV] [LIMIT <n> <i>]",
        "ZRANGEBYSCORE <z> <zmin> <zmax> [WITHSCORES] [LIMIT <n> <i>]",
        "ZREVRANGEBYSCORE <z> <zmax> <zmin> [WITHSCORES] [LIMIT <n> <i>]",
        "ZRANGEBYLEX <y> <lexmin> <lexmax> [LIMIT <n> <i>]", "ZREVRANGEBYLEX <y> <lexmax> <lexmin> [LIMIT <n> <i>]",
        "ZRANGESTORE <z> <z> <i> <i> [REV]", "ZRANGESTORE <z> <z> <zmin> <zmax> BYSCORE [REV] [LIMIT <n> <i>]",
        "ZREMRANGEBYRANK <z> <i> <i>", "ZREMRANGEBYSCORE <z> <zmin> <zmax>", "ZREMRANGEBYLEX <y> <lexmin> <lexmax>",
        "ZPOPMIN <z> [<n>]", "ZPOPMAX <z> [<n>]", "ZMPOP <#z> (MIN|MAX) [COUNT <N>]",
        "ZUNION <#z> [WEIGHTS <#w>] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]",
        "ZINTER <#z> [WEIGHTS <#w>] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]", "ZDIFF <#z> [WITHSCORES]",
        "ZUNIONSTORE <z> <#z> [WEIGHTS <#w>] [AGGREGATE (SUM|MIN|MAX)]",
        "ZINTERSTORE <z> <#z> [WEIGHTS <#w>] [AGGREGATE (SUM|MIN|MAX)]", "ZDIFFSTORE <z> <#z>",
        "ZINTERCARD <#z> [LIMIT <n>]", "ZUNIONSTORE <z> 2 <z> <e>", "ZRANDMEMBER <z> [<i> [WITHSCORES]]",
        "ZSCAN <z> 0 [MATCH <glob>] COUNT 10000",
        "!ZADD z0 1 m1; BZPOPMIN <z> z0 0", "!ZADD z1 2 m2; BZPOPMAX z1 <z> 0", "!ZADD z1 2 m2; BZMPOP 0 1 z1 (MIN|MAX) [COUNT <N>]",
    ]),
    ("geo", 4, &[
        "GEOADD <g> [(NX|XX)] [CH] (<lon> <lat> <m>)+", "GEODIST <g> <m> <m> [<unit>]", "GEOHASH <g> <m>*", "GEOPOS <g> <m>*",
        "GEOSEARCH <g> (FROMMEMBER <m>|FROMLONLAT <lon> <lat>) (BYRADIUS <radius> <unit>|BYBOX <radius> <radius> <unit>) (ASC|DESC) [COUNT <N>] [WITHCOORD] [WITHDIST] [WITHHASH]",
        "GEOSEARCHSTORE <g> <g> FROMMEMBER <m> (BYRADIUS <radius> <unit>|BYBOX <radius> <radius> <unit>) (ASC|DESC) [COUNT <N>] [STOREDIST]",
        "GEORADIUS <g> <lon> <lat> <radius> <unit> [WITHCOORD] [WITHDIST] [WITHHASH] (ASC|DESC) [COUNT <N>]",
        "GEORADIUSBYMEMBER <g> <m> <radius> <unit> [WITHDIST] (ASC|DESC) [STORE <g>]",
        "GEORADIUS_RO <g> <lon> <lat> <radius> <unit> ASC",
    ]),
    ("hyperloglog", 2, &[
        "PFADD <p> <v>*", "PFCOUNT <p>+", "PFMERGE <p> <p>*", "PFADD <p> <v> <v> <v> <v> <v> <v> <v> <v>",
        "STRLEN <p>", "GETRANGE <p> 0 15",
    ]),
    ("stream", 16, &[
        "XADD <x> [NOMKSTREAM] [(MAXLEN|MINID) [(=|~)] <N>] <newid> (<d> <v>)+", "XADD <x> <newid> (<d> <v>)+",
        "XADD <x> <newid> f0 <v> f1 <v>", "XLEN <x>", "XRANGE <x> <edge> <edge> [COUNT <n>]",
        "XREVRANGE <x> <edge> <edge> [COUNT <n>]", "XDEL <x> <id>+", "XTRIM <x> (MAXLEN|MINID) [(=|~)] <N>",
        "XTRIM <x> MAXLEN ~ <n> LIMIT <n>",
        "XREAD [COUNT <N>] STREAMS <x> <id>", "XREAD [COUNT <N>] STREAMS <x> <x> <id> <id>",
        "XGROUP CREATE <x> <grp> <id> [MKSTREAM] [ENTRIESREAD <i>]", "XGROUP SETID <x> <grp> <id> [ENTRIESREAD <i>]",
        "XGROUP DESTROY <x> <grp>", "XGROUP CREATECONSUMER <x> <grp> <con>", "XGROUP DELCONSUMER <x> <grp> <con>",
        "XREADGROUP GROUP <grp> <con> [COUNT <N>] [NOACK] STREAMS <x> >", "XREADGROUP GROUP <grp> <con> [COUNT <N>] STREAMS <x> <id>",
        "XREADGROUP GROUP <grp> <con> COUNT <N> STREAMS <x> >", "XREADGROUP GROUP <grp> <con> STREAMS <x> <x> > >",
        "XACK <x> <grp> <id>+", "XPENDING <x> <grp> [[IDLE <idle>] <edge> <edge> <N> [<con>]]",
        "XPENDING <x> <grp> - <star> 10", "XPENDING <x> <grp>",
        "XCLAIM <x> <grp> <con> <idle> <id>+ [IDLE <n>] [RETRYCOUNT <n>] [FORCE] [JUSTID] [LASTID <id>]",
        "XAUTOCLAIM <x> <grp> <con> <idle> <id> [COUNT <N>] [JUSTID]",
        "XSETID <x> <newid> [ENTRIESADDED <N> MAXDELETEDID <id>]",
        "XINFO STREAM <x> [FULL [COUNT <n>]]", "XINFO GROUPS <x>", "XINFO CONSUMERS <x> <grp>",
    ]),
    ("generic", 10, &[
        "DEL <k>+", "UNLINK <k>+", "EXISTS <k>+", "TOUCH <k>+", "TYPE <k>", "EXPIRE <k> <sec> [(NX|XX|GT|LT)]",
        "PEXPIRE <k> <ms> [(NX|XX|GT|LT)]", "EXPIREAT <k> <until> [(NX|XX|GT|LT)]", "PEXPIREAT <k> <untilms> [(NX|XX|GT|LT)]",
        "TTL <k>", "PTTL <k>", "EXPIRETIME <k>", "PEXPIRETIME <k>", "PERSIST <k>", "RENAME <k> <k>", "RENAMENX <k> <k>",
        "COPY <k> <k> [REPLACE]", "COPY <k> <k> DB 1 [REPLACE]", "MOVE <k> 1", "DBSIZE", "RANDOMKEY", "KEYS <glob>",
        "SCAN 0 [MATCH <glob>] COUNT 10000 [TYPE (string|list|set|zset|hash|stream)]",
        "SORT <l> [BY <by>] [LIMIT <n> <i>] [GET <getby>] [GET <getby>] [(ASC|DESC)] [ALPHA]",
        "SORT <l> [ALPHA] [DESC] STORE <l>", "SORT_RO <e> [ALPHA] [DESC] [LIMIT <n> <i>]", "SORT <z> [BY nosort] [LIMIT <n> <i>] [GET <getby>]",
        "SORT <e> ALPHA [GET <getby>] [STORE <l>]", "OBJECT REFCOUNT nokey", "OBJECT FREQ <k>",
        "SELECT 1; MGET <s> <s>; DBSIZE; SELECT 0", "SWAPDB 0 1; SWAPDB 0 1", "RESTORE <k> 0 <v>",
    ]),
    ("connection", 1, &[
        "PING [<v>]", "ECHO <v>", "SELECT (0|99|x)", "CLIENT SETNAME <m>", "CLIENT GETNAME", "PUBLISH <m> <v>", "PUBSUB NUMSUB <m>*",
        "PUBSUB NUMPAT", "PUBSUB CHANNELS", "COMMAND GETKEYS (SET <s> <v>|MGET <s>+|ZUNIONSTORE <z> <#z>|XREAD STREAMS <x> <id>|SORT <l> BY <by> STORE <l>|EVAL x <#s>|GET|LMPOP <#l> LEFT|GEORADIUS <g> 1 1 1 m STORE <g>)",
        "UNWATCH", "DISCARD", "EXEC", "CLIENT NO-EVICT (on|off|x)", "OBJECT HELP x", "NOSUCH <v>*", "XGROUP NOSUCH <x>", "CONFIG NOSUCH", "WATCH <k>+", "ASKING", "READONLY", "ACL WHOAMI", "SCRIPT EXISTS <m>*",
    ]),
    ("script", 2, &[
        "EVAL <v> 0", "EVAL `return ARGV` 0 <v>*", "EVAL `return tonumber(ARGV[1])` 0 <f>", "EVAL `return {1,2.9,{3,'x',nil,4},false,true}` 0",
        "EVAL `return {ok='fine'}` 0", "EVAL `return {err='bad'}` 0", "EVAL `return redis.status_reply(ARGV[1])` 0 <m>",
        "EVAL `return redis.error_reply(ARGV[1])` 0 <m>", "EVAL `return redis.sha1hex(ARGV[1])` 0 <v>",
        "EVAL `return cjson.encode({ARGV[1],{a=tonumber(ARGV[2])}})` 0 <m> <f>", "EVAL `return cmsgpack.unpack(cmsgpack.pack(ARGV))` 0 <v>*",
        "EVAL `redis.setresp(3) return redis.call('ZRANGE',KEYS[1],0,-1,'WITHSCORES')` 1 <z>",
        "EVAL `redis.setresp(3) return redis.call('ZSCORE',KEYS[1],'m1')` 1 <z>", "EVAL `return redis.call('ZSCORE',KEYS[1],'m1')` 1 <z>",
        "EVAL `redis.call('SET',KEYS[1],ARGV[1]) return redis.call('STRLEN',KEYS[1])` 1 <s> <v>",
        "EVAL `return redis.pcall('INCR',KEYS[1])` 1 <k>", "EVAL `return redis.call('INCR',KEYS[1])` 1 <k>", "EVAL `return redis.call('NOSUCH')` 0",
        "EVAL `return redis.pcall('GET')` 0", "EVAL `local r=redis.pcall('LPUSH',KEYS[1],'x') if type(r)=='table' then return r.err end return r` 1 <k>",
        "EVAL `return string.format('%s-%d',ARGV[1],3)` 0 <v>", "EVAL `return bit.band(tonumber(ARGV[1]),255)` 0 <i>",
        "EVAL `return struct.pack('>I2s',5,ARGV[1])` 0 <m>", "EVAL_RO `return redis.call('SET','s0','x')` 0", "EVAL_RO `return redis.call('GET',KEYS[1])` 1 <k>",
        "SCRIPT LOAD `return 1`", "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0", "EVALSHA <m> 0", "EVAL `error('bad')` 0", "EVAL `return x` 0",
    ]),
    ("function", 1, &[
        "FUNCTION LOAD [REPLACE] `#!lua name=one\nredis.register_function('f1', function(keys, args) return redis.call('SET', keys[1], args[1]) end) redis.register_function{function_name='f2', callback=function(keys, args) return redis.call('GET', keys[1]) end, flags={'no-writes'}}`",
        "FCALL f1 1 <s> <v>", "FCALL f2 1 <s>", "FCALL_RO f2 1 <s>", "FCALL_RO f1 1 <s> <v>", "FCALL f1 1 <l>", "FUNCTION LIST", "FUNCTION DELETE one", "FUNCTION LOAD <v>",
    ]),
];

/// What Redis 7.0 does not have, and what fills a disk.
#[rustfmt::skip] // a table
pub const MORE_FAMILIES: &[Family] = &[
    ("hash expiry", 8, &[
        "HEXPIRE <h> <sec> [(NX|XX|GT|LT)] FIELDS 1 <d>", "HPEXPIREAT <h> <untilms> FIELDS 2 <d> <d>", "HEXPIREAT <h> <until> FIELDS 1 <d>",
        "HPEXPIRE <h> <ms> FIELDS 1 <d>", "HPERSIST <h> FIELDS 1 <d>", "HGETEX <h> PERSIST FIELDS 1 <d>", "HGETEX <h> EX <sec> FIELDS 1 <d>",
        "HGETDEL <h> FIELDS 1 <d>", "HSETEX <h> [(FNX|FXX)] [(EXAT <until>|PXAT <untilms>|KEEPTTL)] FIELDS 1 <d> <v>", "HSET <h> <d> <v> <d> <v>",
    ]),
    ("bloom", 5, &[
        "BF.ADD <q> <v>", "BF.MADD <q> <v>+", "BF.RESERVE <q> 0.01 100", "BF.RESERVE <q> 0.1 4 EXPANSION 2", "BF.INSERT <q> CAPACITY 10 ITEMS <v>+",
        "BF.EXISTS <q> <v>", "BF.MEXISTS <q> <v>+", "BF.CARD <q>", "DEL <q>", "RENAME <q> <q>",
    ]),
    ("ballast", 16, &["SET <u> <json>", "SET <u> <json>", "HSET <w> <d> <json>", "RPUSH <w> <json>", "APPEND <u> <json>", "DEL <u>"]),
    ("all", 1, &["FLUSHDB", "SELECT 1; FLUSHDB; SELECT 0", "SET <u> <v>", "SET <u> <v>", "SET <u> <v>", "SET <u> <v>"]),
];
