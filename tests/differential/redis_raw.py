"""Bytes that are no well-formed commands: inline commands, wrong lengths, broken framing."""

from redis_protocol import pack

INLINE = [b"PING", b"SET a b", b"GET a", b'SET a "b c"', b"SET a 'b c'", b'SET a "b\\x00\\n\\"c"', b"SET a 'b\\'c'", b'SET a "b"c', b'SET a "b', b"SET a 'b", b"", b" ", b"  PING  ", b"PING x y", b"ECHO \xff\x00z",
          b"\tPING", b"ECHO \"\\xff\\q\"", b"ECHO ''", b'ECHO ""', b"SET", b"NOSUCH a", b"EXEC", b"MULTI", b"QUIT", b"quit now", b"PING\x00", b"ECHO a\tb", b"SELECT 1", b"ECHO " + b"x" * 5_000, b"HELLO 3", b"RESET", b"CLIENT REPLY OFF",
          b"CLIENT REPLY SKIP", b"CLIENT REPLY ON", b"CLIENT REPLY x", b"SUBSCRIBE a", b"UNSUBSCRIBE", b"INCR n", b"DEBUG", b"COMMAND COUNT x", b"ACL WHOAMI", b"AUTH x"]
FRAMES = [b"*0\r\n", b"*-1\r\n", b"*-2\r\n", b"*1\r\n$4\r\nPING\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$0\r\n\r\n", b"*x\r\n", b"*\r\n", b"*1048577\r\n", b"*2147483648\r\n", b"*9223372036854775808\r\n", b"*1\r\n:1\r\n", b"*1\r\n+PING\r\n", b"*1\r\n$x\r\n", b"*1\r\n$\r\n",
          b"*1\r\n$4\r\nPINGxx", b"*1\r\n$5\r\nPING\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n$9223372036854775808\r\n", b"*1\r\n$-5\r\nx\r\n", b"*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n", b"*1\r\n*1\r\n$4\r\nPING\r\n", b"$4\r\nPING\r\n", b"+OK\r\n", b":1\r\n", b"-ERR\r\n",
          b"*01\r\n$04\r\nPING\r\n", b"*+1\r\n$4\r\nPING\r\n", b"* 1\r\n$4\r\nPING\r\n", b"*1 \r\n$4\r\nPING\r\n", b"*1\n$4\nPING\n", b"*1\r\n$4\nPING\r\n", b"*1\r\n", b"*2\r\n$4\r\nECHO\r\n", b"*1\r\n$4\r\nPI", b"\x00\x00", b"\r\n\r\n", b"\n", b"*" + b"1" * 70_000,
          b"$" + b"1" * 100 + b"\r\n", b"*1\r\n$" + b"0" * 70_000, b"%1\r\n+a\r\n+b\r\n", b"_\r\n", b"#t\r\n", b"~1\r\n$4\r\nPING\r\n", b"x" * 70_000, b"*-1\r\n*1\r\n$4\r\nPING\r\n", b"*1.5\r\n", b"*1e1\r\n", b"*0x1\r\n"]


def draw(chance):
    parts = []
    for _ in range(chance.randint(1, 5)):
        kind = chance.random()
        if kind < 0.35:
            parts.append(chance.choice(INLINE) + chance.choice([b"\r\n", b"\n"]))
        elif kind < 0.7:
            parts.append(chance.choice(FRAMES))
        elif kind < 0.85:
            parts.append(pack(chance.choice([[b"PING"], [b"ECHO", b"x"], [b"SET", b"a", b"b"], [b"GET", b"a"], [b"INCR", b"a"], [b"SUBSCRIBE", b"a", b"b"], [b"PUBLISH", b"a", b"b"],
                                             [b"MULTI"], [b"EXEC"], [b"HELLO", b"3"], [b"CLIENT", b"REPLY", b"SKIP"], [b"CLIENT", b"REPLY", b"OFF"], [b"CLIENT", b"REPLY", b"ON"], [b"QUIT"]])))
        else:
            frame = bytearray(pack([b"SET", b"a", b"x" * chance.randrange(20)]))
            at = chance.randrange(len(frame))
            if chance.random() < 0.5:
                frame[at] = chance.choice(b"\r\n$*0-9 x\x00")
            else:
                del frame[at]
            parts.append(bytes(frame))
    return b"".join(parts)
