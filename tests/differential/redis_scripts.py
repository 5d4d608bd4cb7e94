"""Random Lua scripts, functions and the commands that run and manage them."""

import hashlib

from redis_words import BINARY

NUMBERS = ["0", "-0", "1", "-1", "3.99", "-3.99", "1e15", "2^53", "2^53+1", "2^63", "-2^63", "2^64", "1e300", "1/0", "-1/0", "0/0",
           "0.1", "1e14", "123456789012345", "1e-7", "100/3", "0x10", "3e0", "2^31", "-2^31-1", "9007199254740993"]
STRINGS = ["''", "'a'", "'a b'", "'\\0'", "'\\255\\254'", "'12'", "'1.5'", "' 7 '", "'0x1f'", "'nan'", "'inf'", "'1e3'", "'a\\r\\nb'", "'OK'",
           "'ERR x'", "'\\195\\169'", "'\"'", "string.rep('x',70)", "'[1,2]'", "'{\"a\":1}'", "'%d'", "'m1'", "'5'"]
KEYWORDS = ["nil", "true", "false"]
SPECIAL = ["{ok='fine'}", "{ok=''}", "{err='bad'}", "{err='MY bad thing'}", "{err=''}", "{err='-ERR x'}", "{ok=1}", "{err=1}", "{ok='a\\r\\nb'}", "{err='a\\nb'}", "{double=3.25}", "{double=1/0}", "{double='x'}",
           "{double=0/0}", "{double=1e20}", "{map={a=1}}", "{map={}}", "{map={a={map={b=2}}}}", "{set={a=true}}", "{set={}}", "{big_number='12345678901234567890'}", "{big_number=5}",
           "{verbatim_string={format='txt',string='hi'}}", "{verbatim_string={format='t',string='hi'}}", "{verbatim_string='x'}", "{1,2,ok='x'}", "{err='x',1}", "{[0]=1}", "{[2]=1}",
           "{a=1}", "{}", "{1,nil,3}", "{nil,2}", "{{},{{}}}", "{1,{2,{3,{4,{5}}}}}", "redis.status_reply('x')", "redis.status_reply('')", "redis.error_reply('x')", "redis.error_reply('-x')",
           "redis.error_reply('MY x')", "redis.error_reply('')", "redis.status_reply(5)", "redis.error_reply()", "redis.error_reply(nil)", "redis.error_reply('a\\r\\nb')", "redis.status_reply({})"]
FUNCTIONS = [
    "tostring({0})", "tonumber({0})", "tonumber({0},16)", "type({0})", "#{0}", "-{0}", "not {0}", "{0}..{1}", "{0}+{1}", "{0}-{1}", "{0}*{1}", "{0}/{1}", "{0}%{1}", "{0}^{1}", "{0}=={1}", "{0}<{1}", "{0} and {1}", "{0} or {1}",
    "string.len({0})", "string.upper({0})", "string.sub({0},2,-2)", "string.rep({0},3)", "string.reverse({0})", "string.byte({0},1,-1)", "string.char({0})", "string.format('%d',{0})", "string.format('%5.2f|%s',{0},{1})",
    "string.format('%q',{0})", "string.format('%g',{0})", "string.format('%.14g',{0})", "string.format('%x',{0})", "string.format('%i',{0})", "string.find({0},{1})", "string.match({0},'(%a)(.*)')", "string.gsub({0},'a','b')", "string.gsub({0},'.',{{a='1'}})",
    "string.format('%s',{0})", "string.format('%c',{0})", "string.format('%5s',{0})", "string.find({0},{1},1,true)", "string.match({0},'^%s*(.-)%s*$')", "select('#',{0},{1})", "select(-1,{0},{1})", "math.floor({0})", "math.max({0},{1})", "math.fmod({0},{1})",
    "math.abs({0})", "math.huge", "math.pi", "math.sqrt({0})", "math.modf({0})", "math.frexp({0})", "math.ldexp({0},{1})", "math.pow({0},{1})", "math.log10({0})", "math.random(3,3)", "table.concat({{{0},{1}}},',')", "table.concat({0})", "unpack({{{0},{1}}})", "unpack({0})",
    "table.getn({{{0},{1}}})", "next({{}})", "rawequal({0},{1})", "rawget({{{0}}},1)", "pcall(error,{0})", "pcall(error,{{err='E x'}})", "pcall(redis.call,'GET',{0})", "select('#',unpack(ARGV))", "getmetatable({0})", "setmetatable({{}},{{}})", "assert({0},{1})", "error(tostring({0}))",
    "xpcall(function() return {0} end,function(e) return e end)", "pcall(function() return {0}+{1} end)", "loadstring('return 1')()", "load(function() return nil end)", "cjson.encode({0})", "cjson.encode({{{0},{1}}})", "cjson.encode({{a={0}}})", "cjson.decode({0})", "cjson.decode('[1,{{\"a\":null}},\"x\",1e3,-0.0]')",
    "cjson.encode(cjson.decode('[1,{{\"a\":[]}},null,1.5,\"\\\\u00e9\\\\/\"]'))", "cjson.decode('{0}')", "cjson.null", "cjson.encode(cjson.null)", "cjson.encode({{[3]={0}}})", "cjson.encode({{[1]=1,[100]=2}})", "cmsgpack.unpack(cmsgpack.pack({0}))", "cmsgpack.pack({0},{1})", "cmsgpack.pack({{{0},{1}}})", "cmsgpack.unpack({0})",
    "cmsgpack.unpack('\\147\\1\\2\\3')", "bit.band({0},{1})", "bit.bor({0},{1})", "bit.bxor({0},{1})", "bit.bnot({0})", "bit.lshift({0},{1})", "bit.rshift({0},{1})", "bit.arshift({0},{1})", "bit.rol({0},{1})", "bit.bswap({0})", "bit.tohex({0})", "bit.tohex({0},{1})", "bit.tobit({0})",
    "struct.pack('>I2',{0})", "struct.pack('<i4b',{0},{1})", "struct.pack('s',{0})", "struct.pack('>d',{0})", "struct.pack('<f',{0})", "struct.pack('c4',{0})", "struct.pack('Bc0',#{0},{0})", "struct.unpack('>I2',{0})", "struct.unpack('s','abc\\0def')", "struct.size('>i4i8')", "struct.size('{0}')", "struct.pack({0},{1})",
    "redis.sha1hex({0})", "redis.sha1hex()", "redis.log(redis.LOG_WARNING,{0})", "redis.log({0})", "redis.log(9,'x')", "redis.setresp({0})", "redis.setresp(3)", "redis.breakpoint()", "redis.debug({0})", "redis.replicate_commands()", "redis.set_repl(redis.REPL_ALL)", "redis.set_repl({0})", "redis.acl_check_cmd('get',{0})",
    "redis.acl_check_cmd({0})", "redis.register_function('f',function() end)", "redis.call()", "redis.call({0})", "redis.pcall()", "redis.call({0},{1})", "redis.call('ECHO',{0})", "redis.pcall('ECHO',{0})", "redis.call('SET','s0',{0})", "redis.pcall('INCRBY','s0',{0})", "redis.call('PING')", "redis.pcall('PING',{0},{1})",
    "redis.call('TYPE',{0})", "redis.pcall('SELECT',{0})", "redis.pcall('EVAL','return 1',0)", "redis.pcall('MULTI')", "redis.pcall('SUBSCRIBE','a')", "redis.pcall('BLPOP','nolist',0)", "redis.pcall('HELLO',3)", "redis.pcall('AUTH','x')", "redis.pcall('CONFIG','GET','x')", "redis.pcall('SPOP','e9')", "redis.pcall('WATCH','a')",
    "redis.pcall('KEYS',{0})", "redis.pcall('XREAD','BLOCK',0,'STREAMS','x9','$')", "redis.pcall('CLIENT','ID')", "redis.pcall('RESET')", "redis.pcall('nosuch')", "redis.pcall('GET')", "redis.REDIS_VERSION_NUM > 0", "redis.LOG_NOTICE", "redis.REPL_AOF", "os.time() > 0", "os.clock() >= 0", "os.date()", "print({0})", "undefined_name", "KEYS[1]",
    "KEYS[9]", "ARGV[1]", "ARGV[2]", "#KEYS", "#ARGV", "KEYS", "ARGV", "redis", "_G", "tostring(redis.call)==nil", "string", "dofile('x')", "require('x')", "io", "debug", "coroutine.create", "coroutine.wrap(function() coroutine.yield({0}) end)()", "collectgarbage('count')>0", "newproxy", "gcinfo", "module", "setfenv(1,{{}})",
    "(function(...) return select('#',...) end)({0},{1})", "tostring(1e15)", "tostring(2^53)", "tostring(-0)", "1e15 .. ''", "#{{1,2,nil,4}}", "'10'+5", "'0x10'+0", "10 .. 20", "{0}[1]", "{0}.x", "{0}()", "redis.nosuch()", "redis.call.x", "cjson.nosuch()", "string.nosuch({0})", "table.sort({{3,1,2}})", "table.remove({{1,2}})", "table.insert({{}},{0})",
    "table.maxn({{1,nil,3}})", "string.gmatch('a1b2','%a%d')()", "string.dump(function() end)==nil", "tostring(nil)..'x'", "tostring({0}):len()", "('x'):rep(3)",
]
# Not among these: error({}), which ends Redis 7.0.15 (SIGSEGV).
BROKEN = ["return", "return (", "retrun 1", "local x = 1 x", "return 'abc", "if true then return 1", "return 1 2", "goto x", "x = 1", "x = 1 return x", "function f() return 1 end return f()", "local function f() return f() + 1 end return f()", "return 5 // 2", "return 1 -- comment",
          "for i=1,3 do redis.call('RPUSH','l0',i) end", "local t={} for i=1,200 do t[i]=i end return t", "local t={} for i=1,200 do t={t} end return t", "string.x = 1", "redis.x = 1", "redis.call = nil", "KEYS = {} return 1", "table.concat = 1", "_G.x = 1", "_G = {}", "setmetatable(_G,{})", "getmetatable(_G).__index=nil", "math.random = nil",
          "rawset(_G,'x',1)", "return rawget(_G,'x')", "ARGV[1]='z' return ARGV[1]", "KEYS[1]='z' return KEYS", "local x <const> = 1", "return ...", "error()", "error(nil)", "error('x',0)", "error('x',2)", "error({err='E1 text'})", "error({err='E1 text',extra=1})", "error(redis.error_reply('E2 t'))", "return pcall(error)", "", " ",
          "redis.call('SET','s0','1') error('late')", "redis.call('SET','s0','1') redis.call('INCR','l0')", "redis.setresp(3) return redis.call('HGETALL','h0')", "redis.setresp(4)", "return {redis.call('SET','s0','x'),redis.pcall('LPUSH','s0','y')}", "return redis.pcall('LPUSH','s0')['err']",
          "local r=redis.pcall('GET','l0') return type(r)=='table' and r.err or r", "#!lua\nreturn 1", "#!lua flags=no-writes\nreturn redis.call('SET','s0','x')", "#!lua flags=no-writes\nreturn redis.pcall('SET','s0','x')", "#!lua flags=no-writes,allow-stale\nreturn 1", "#!lua flags=bad\nreturn 1", "#!lua name=x\nreturn 1",
          "#!python\nreturn 1", "#!lua", "#!lua ", "#!lua flags=allow-cross-slot-keys,allow-oom,no-cluster\nreturn KEYS", "#! lua\nreturn 1", "#!lua  flags=no-writes\nreturn 1", "#!lua flags=\nreturn 1", "#!lua flags\nreturn 1", "#!lua flags=no-writes flags=allow-oom\nreturn 1", "#!LUA\nreturn 1", "\n\nreturn x.y", "-- c\nreturn {}.x.y",
          "return redis.call('XADD','x0','1-1','a','b')", "redis.setresp(3) return {redis.call('ZSCORE','z0','m1'),redis.call('ZRANGE','z0',0,-1,'WITHSCORES')}", "redis.setresp(3) return redis.call('GET','nokey')", "redis.setresp(3) local r=redis.call('GET','nokey') return tostring(r)", "return tostring(redis.call('GET','nokey'))",
          "redis.setresp(3) local r=redis.call('ZSCORE','z0','m1') return type(r)=='table' and tostring(r.double) or tostring(r)", "redis.setresp(3) local r=redis.call('SMEMBERS','e0') local n=0 for k,v in pairs(r.set) do n=n+1 end return n", "redis.setresp(3) local r=redis.call('HGETALL','h0') local n=0 for k,v in pairs(r.map) do n=n+1 end return n", "redis.setresp(3) return redis.call('HRANDFIELD','nokey',2)"]
RANDOM = {b"RANDOMKEY", b"SRANDMEMBER", b"HRANDFIELD", b"ZRANDMEMBER", b"SPOP"}
WRAPPERS = ["return redis.call(unpack(ARGV))", "return redis.pcall(unpack(ARGV))", "redis.setresp(3) return redis.call(unpack(ARGV))", "local r=redis.call(unpack(ARGV)) return r", "return {redis.pcall(unpack(ARGV))}"]
LIBRARIES = [
    "#!lua name=one\nredis.register_function('fset',function(keys,args) return redis.call('SET',keys[1],args[1]) end)\nredis.register_function{{function_name='fget',callback=function(keys,args) return redis.call('GET',keys[1]) end,flags={{'no-writes'}}}}",
    "#!lua name=two\nlocal n=0\nredis.register_function('fexpr',function(keys,args) n=n+1 return {expr} end)",
    "#!lua name=one\nredis.register_function('fset',function(keys,args) return #keys end)", "#!lua name=three\n{broken}", "#!lua name=three engine=x\nreturn 1", "#!lua name=bad-name\nredis.register_function('a',function() end)", "#!lua\nredis.register_function('a',function() end)",
    "#!js name=x\n1", "redis.register_function('a',function() end)", "#!lua name=three\nredis.register_function('a')", "#!lua name=three\nredis.register_function('a-b',function() end)", "#!lua name=three\nredis.register_function('a',function() end)\nredis.register_function('a',function() end)", "#!lua name=three\nredis.register_function('a',1)",
    "#!lua name=three\nredis.register_function{{function_name='a',callback=function() return 1 end,flags={{'bad'}}}}", "#!lua name=three\nredis.register_function{{function_name='a',callback=function() return 1 end,description='d'}}", "#!lua name=three\nredis.register_function{{function_name='a'}}", "#!lua name=three\nredis.register_function{{x=1}}",
    "#!lua name=three\nreturn 1", "#!lua name=three\nredis.call('SET','a','b')", "#!lua name=three\nx=1", "#!lua name=\nredis.register_function('a',function() end)", "#!lua name=four\nredis.register_function('fset',function() return 4 end)", "#!lua name=three name=four\nreturn 1",
    "#!lua name=five\nredis.register_function('ferr',function(keys,args) {broken} end)", "#!lua name=five\nredis.register_function('fargs',function(keys,args) return {{keys,args}} end,'x')", "#!lua name=three\nlocal t={{}} redis.register_function(t)", "#!lua name=three\nredis.setresp(3) redis.register_function('a',function() end)",
    "#!lua name=three\nredis.log(redis.LOG_NOTICE,'x') redis.register_function('fz',function() redis.setresp(3) return redis.call('ZRANGE','z0',0,-1,'WITHSCORES') end)",
]
CALLED = ["fset", "fget", "fexpr", "ferr", "fargs", "a", "fz", "nosuch", "FSET", ""]


def expression(chance, depth=0):
    kind = chance.random()
    if kind < 0.22:
        return chance.choice(NUMBERS)
    if kind < 0.42:
        return chance.choice(STRINGS)
    if kind < 0.47:
        return chance.choice(KEYWORDS)
    if kind < 0.6:
        return chance.choice(SPECIAL)
    if depth > 2 or kind < 0.67:
        return chance.choice(["ARGV[1]", "KEYS[1]", "#ARGV", "ARGV", "KEYS", "1", "'x'"])
    if kind < 0.78:
        return "{" + ",".join(expression(chance, depth + 1) for _ in range(chance.randint(0, 4))) + "}"
    try:
        template = chance.choice(FUNCTIONS)
        return template.format(expression(chance, depth + 1), expression(chance, depth + 1))
    except (KeyError, ValueError, IndexError) as error:
        raise ValueError(f"{template}: {error}") from None


def lua_string(word):
    return "'" + "".join(chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03d}" for byte in word) + "'"


def lua_word(chance, word):
    """A word of a command as a literal; some integers as numbers."""
    if word.isdigit() and len(word) < 10 and chance.random() < 0.5:
        return word.decode()
    return lua_string(word)


def script(chance, command):
    """The text of a script; `command` is a command that it may run."""
    if command[0].upper() in RANDOM:
        command = [b"PING"]
    kind = chance.random()
    if kind < 0.5:
        prefix = chance.choice(["", "", "", "redis.setresp(3) ", "local a=1 ", "#!lua\n"])
        return f"{prefix}return {expression(chance)}"
    if kind < 0.68:
        return chance.choice(BROKEN)
    call = chance.choice(["redis.call", "redis.pcall"]) + "(" + ",".join(lua_word(chance, word) for word in command) + ")"
    return chance.choice(["return {0}", "{0} return 1", "local r={0} return {{r,1}}", "local r={0} return type(r)", "redis.setresp(3) return {0}",
                          "local r={0} if type(r)=='table' and r.err then return r.err end return r", "local r={0} return tostring(r)",
                          "local r={0} return cjson.encode(r)", "return {{{0},{0}}}", "for i=1,3 do {0} end return {0}", "return #({0})"]).format(call)


def arguments(chance, words):
    """The number of keys, keys and further arguments."""
    keys = [words.any_key() for _ in range(chance.randrange(3))]
    further = [words.word(chance.choice(["v", "f", "int", "m"])) for _ in range(chance.randrange(3))]
    count = b"%d" % len(keys)
    if chance.random() < 0.06:
        count = chance.choice([b"-1", b"3", b"x", b"", b"99", b"1.5"])
    return [count, *keys, *further]


def draw(chance, words, command):
    """Commands about scripts; `command` is one that a script may run."""
    kind = chance.random()
    if kind < 0.12:
        return [[b"EVAL", chance.choice(WRAPPERS).encode(), b"0", *command]]
    text = script(chance, command).encode("latin-1", "replace")
    if kind < 0.55:
        return [[chance.choice([b"EVAL", b"EVAL", b"EVAL", b"EVAL_RO"]), text, *arguments(chance, words)]]
    if kind < 0.62:
        digest = hashlib.sha1(text).hexdigest().encode()
        if chance.random() < 0.15:
            digest = chance.choice([digest.upper(), digest[:-1], b"", b"f" * 40, BINARY[1]])
        load = [[b"SCRIPT", b"LOAD", text]] if chance.random() < 0.8 else []
        return [*load, [chance.choice([b"EVALSHA", b"EVALSHA_RO"]), digest, *arguments(chance, words)], [b"SCRIPT", b"EXISTS", digest, b"x"]]
    if kind < 0.8:
        library = chance.choice(LIBRARIES).format(expr=expression(chance), broken=chance.choice(BROKEN)).encode("latin-1", "replace")
        replace = [b"REPLACE"] if chance.random() < 0.5 else []
        return [[b"FUNCTION", b"LOAD", *replace, library], [b"FCALL", chance.choice(CALLED).encode(), *arguments(chance, words)]]
    if kind < 0.9:
        return [[chance.choice([b"FCALL", b"FCALL_RO"]), chance.choice(CALLED).encode(), *arguments(chance, words)]]
    name = chance.choice([b"one", b"two", b"o*", b"nosuch", b""])
    return [chance.choice([
        [b"FUNCTION", b"LIST"], [b"FUNCTION", b"LIST", b"WITHCODE"], [b"FUNCTION", b"LIST", b"LIBRARYNAME", name], [b"FUNCTION", b"DELETE", name],
        [b"FUNCTION", b"LIST", b"LIBRARYNAME", name, b"WITHCODE"], [b"FUNCTION", b"STATS"], [b"FUNCTION", b"KILL"], [b"FUNCTION", b"FLUSH", b"SYNC"],
        [b"FUNCTION", b"RESTORE", words.word("junk")], [b"FUNCTION", b"RESTORE", words.word("junk"), b"APPEND"], [b"FUNCTION", b"HELP"], [b"FUNCTION", words.word("junk")],
        [b"SCRIPT", b"KILL"], [b"SCRIPT", b"FLUSH", chance.choice([b"ASYNC", b"SYNC", b"x"])], [b"SCRIPT", b"HELP"], [b"SCRIPT", b"EXISTS"],
        [b"SCRIPT", b"LOAD", text, b"x"], [b"SCRIPT", b"NOSUCH"], [b"FUNCTION", b"DUMP", b"x"], [b"FUNCTION", b"LIST", b"x"], [b"SCRIPT", b"DEBUG", b"x"]])]
