"""Generates cases of the campaign redis_commands: sequences of commands for several clients, or raw bytes."""

import redis_patterns
import redis_raw
import redis_scenarios
import redis_scripts
import redis_timing
from redis_player import BLOCKING, DEMOTE
from redis_words import PLACEHOLDERS, Pattern, Words, spoil

STEPS_MAX = 80
RAW_SHARE = 0.04
SCENARIO_SHARE = 0.2
TIMING_SHARE = 0.06
DEMOTED_SHARE = 0.06
WATCHER_SHARE = 0.12
EVENTS = [b"KEA", b"AKE", b"K$", b"Elg", b"KEAm", b"KEAn", b"Kx", b"Ez", b"Q", b"", b"KEAmn", b"EAd", b"Kt"]
NAMES = [b"get", b"set", b"zadd", b"xadd", b"config", b"config|get", b"xgroup|create", b"multi", b"eval", b"sort", b"bitop", b"migrate", b"blpop", b"subscribe", b"object|encoding",
         b"geoadd", b"hset", b"lpush", b"sinter", b"zunionstore", b"xread", b"xreadgroup", b"client|kill", b"acl|setuser", b"fcall", b"script|load", b"pfcount", b"copy", b"expire",
         b"lmpop", b"georadius", b"memory|usage", b"bitfield", b"setrange", b"mset", b"del", b"rename", b"keys", b"scan", b"command|info", b"debug", b"shutdown", b"hello", b"restore", b"x", b""]
PARAMETERS = [b"hash-max-listpack-entries", b"hash-max-ziplist-entries", b"maxmemory-policy", b"*max-intset*", b"databases", b"list-max-*", b"timeout", b"nosuch", b"", b"save", b"proto-*",
              b"zset-max-listpack-value", b"notify-keyspace-events", b"lua-time-limit", b"slowlog-*", b"MAXMEMORY-POLICY", b"latency-*", b"hz", b"tcp-keepalive", b"lfu-*", b"client-output-buffer-limit", b"stream-*"]
RULES = [b"on", b"off", b"nopass", b"resetpass", b"~*", b"~k*", b"%R~s*", b"%W~l*", b"%RW~z*", b"allkeys", b"resetkeys", b"&*", b"&ch*", b"allchannels", b"resetchannels", b"+@all", b"-@all", b"allcommands",
         b"nocommands", b"+get", b"-get", b"+set", b"+@read", b"-@write", b"+@string", b"-@dangerous", b"+config|get", b"-config|get", b"+config", b"-config|set", b"+select|0", b">pw", b"<pw", b"#x", b"!x", b"reset", b"(+get ~k*)",
         b"(+@write ~l* &*)", b"clearselectors", b"(", b"+nosuch", b"+@nosuch", b"x", b"", b"%X~a", b"~a b", b"(~x", b"sanitize-payload", b"skip-sanitize-payload", b"+debug|nosuch", b"-client|kill", b"+@admin", b"&a", b"~", b"+", b"%"]
CATEGORIES = [b"string", b"keyspace", b"dangerous", b"read", b"write", b"geo", b"scripting", b"nosuch", b"admin", b"transaction", b"bitmap", b"hyperloglog", b"STRING", b""]
PLACEHOLDERS.update({
    "timeout": lambda words, chance: chance.choice([b"0", b"0", b"0", b"-1", b"x", b"1e10", b"inf", b"nan", b"", b"1e400", b"9223372036854775807", b"-0"]),
    "timeoutms": lambda words, chance: chance.choice([b"0", b"0", b"-1", b"x", b"1.5", b"", b"9223372036854775808"]),
    "cursor": lambda words, chance: chance.choice([b"0"] * 8 + [b"5", b"-1", b"x", b"18446744073709551615", b"18446744073709551616", b"", b" 0", b"0x"]),
    "name": lambda words, chance: chance.choice(NAMES),
    "namepat": lambda words, chance: chance.choice([b"z*", b"x?d*", b"config|*", b"", b"nosuch", b"[hl]set", b"GET"]),
    "cat": lambda words, chance: chance.choice(CATEGORIES),
    "param": lambda words, chance: chance.choice(PARAMETERS),
    "setting": lambda words, chance: chance.choice([b"1", b"3", b"0", b"-1", b"2", b"x", b"", b"128", b"1k", b"1kb", b"-5", b"99999999999999999999", b"1.5"]),
    "events": lambda words, chance: chance.choice(EVENTS),
    "rule": lambda words, chance: chance.choice(RULES),
    "cluster": lambda words, chance: chance.choice([b"INFO", b"COUNTKEYSINSLOT", b"LINKS", b"SHARDS", b"RESET", b"ADDSLOTS"]),
})
TIMED = {b"set": (), b"getex": (), b"setex": (2,), b"psetex": (2,), b"expire": (2,), b"pexpire": (2,), b"restore": (2,), b"xclaim": (4,), b"xautoclaim": (4,),
         b"xpending": (), b"restore-asking": (2,), b"hexpire": (2,), b"hpexpire": (2,), b"hgetex": (), b"hsetex": ()}
# Never sent: commands that end, stop or redirect a server, wait, or change how replies are counted.
EXCLUDED = {b"shutdown", b"replicaof", b"slaveof", b"failover", b"sync", b"psync", b"monitor", b"debug", b"quit", b"save", b"bgsave", b"bgrewriteaof", b"replconf",
            b"waitaof", b"module"}
# Commands that a large number has make or answer hundreds of megabytes.
LARGE = {b"setbit", b"setrange", b"bitfield", b"srandmember", b"hrandfield", b"zrandmember"}
OFFSET_MAX = 1_000_000
RANDOM_COUNT_MIN = -1_000
LONG = {b"docs", b"info", b"list"}


class Generator:
    def __init__(self):
        self.families = {name: [Pattern(text) for text in patterns] for name, _, patterns in redis_patterns.FAMILIES}
        self.weights = {name: weight for name, weight, _ in redis_patterns.FAMILIES}
        self.has_field_expiry = False

    def learn(self, names, knows):
        """Adds the names of the peer's commands to those of questions about commands, and the families of commands
        that are later than Redis 7.0 if the peer `knows` them."""
        NAMES.extend(names)
        for command, name, weight, patterns in redis_patterns.LATER_FAMILIES:
            if knows(command):
                self.families[name] = [Pattern(text) for text in patterns]
                self.weights[name] = weight
                self.has_field_expiry = True

    def draw(self, chance):
        if self.has_field_expiry:
            return self.draw_of_later(chance, Words(chance))
        if chance.random() < RAW_SHARE:
            return {"raw": redis_raw.draw(chance)}
        words = Words(chance)
        kind = chance.random()
        if kind < SCENARIO_SHARE:
            return self.draw_scenario(chance, words)
        if kind < SCENARIO_SHARE + TIMING_SHARE:
            return self.draw_timing(chance, words)
        return self.draw_of_families(chance, words, self.choose_families(chance))

    def draw_of_later(self, chance, words):
        """Peers that are later than Redis 7.0 are asked about hashes alone: what they changed elsewhere says nothing of Quipu."""
        if chance.random() < 0.2:
            clients, steps = redis_timing.draw_expiring(chance, words, self.draw_family, 1.0)
            return {"protocols": [chance.choice([2, 3]) for _ in range(clients)], "pipelined": True, "restores": False, "resets": False,
                    "steps": steps}
        return self.draw_of_families(chance, words, ["hash", *[name for _, name, _, _ in redis_patterns.LATER_FAMILIES if name in self.families]])

    def draw_of_families(self, chance, words, families):
        clients = 1 if chance.random() < 0.6 else chance.randint(2, 3)
        case = {"protocols": [chance.choice([2, 3]) for _ in range(clients)], "pipelined": chance.random() < 0.92,
                "restores": chance.random() < 0.08, "resets": False, "steps": []}
        spoiled = chance.choice([0.05, 0.6, 0.9, 1.0])
        script_share = 0.9 if families == ["script"] else 0.0 if self.has_field_expiry else 0.05
        steps = case["steps"]
        count = chance.choice([1, 3, 8, 20, 40, STEPS_MAX])
        while len(steps) < count:
            number = chance.randrange(clients)
            for command in self.draw_commands(chance, words, families, spoiled, script_share):
                steps.append((number, settle(command)))
        del steps[STEPS_MAX:]
        if not set(families) & {"acl", "configuration", "channels", "connection"}:
            kind = chance.random()
            if kind < WATCHER_SHARE:
                self.add_watcher(chance, case)
            elif kind < WATCHER_SHARE + DEMOTED_SHARE:
                for at in sorted(chance.choices(range(len(steps) + 1), k=chance.randint(1, 2)), reverse=True):
                    steps.insert(at, (0, [DEMOTE]))
        case["resets"] = any(command[0].lower() in (b"config", b"acl", b"client") for _, command in steps)
        return case

    def draw_scenario(self, chance, words):
        draw = chance.choice([redis_scenarios.draw_blocking, redis_scenarios.draw_blocking, redis_scenarios.draw_watching,
                              redis_scenarios.draw_tracking])
        clients, steps = draw(chance, words)
        protocols = [chance.choice([2, 3]) for _ in range(clients)]
        if draw is redis_scenarios.draw_tracking:
            protocols[-1] = 3
        case = {"protocols": protocols, "pipelined": chance.random() < 0.3, "restores": False, "resets": True,
                "steps": [(number, settle(command)) for number, command in steps if not is_excluded(command)][:STEPS_MAX]}
        if draw is not redis_scenarios.draw_tracking and chance.random() < 0.3:
            self.add_watcher(chance, case)
        return case

    def draw_timing(self, chance, words):
        """A case about time and order; see redis_timing.py."""
        kind = chance.random()
        if kind < 0.55:
            clients, steps = redis_timing.draw_expiring(chance, words, self.draw_family, 0.0)
        elif kind < 0.65:
            clients, steps = redis_timing.draw_slow(chance, words)
        else:
            clients, steps = redis_timing.draw_parallel(chance, words, self.draw_family)
        return {"protocols": [chance.choice([2, 3]) for _ in range(clients)], "pipelined": chance.random() < 0.8, "restores": False,
                "resets": False, "parallel": kind >= 0.65, "steps": steps}

    def draw_family(self, chance, words, families):
        """Commands of one of the families, without waits."""
        commands = chance.choice(self.families[chance.choice(families)]).draw(words)
        return [settle(command) for command in commands if command and not is_excluded(command)]

    def add_watcher(self, chance, case):
        """Adds a client that listens to the events of keys or monitors all commands."""
        number = len(case["protocols"])
        case["protocols"].append(chance.choice([2, 3]))
        if chance.random() < 0.75:
            case["steps"][:0] = redis_scenarios.event_steps(chance, number)
        else:
            case["steps"].insert(0, (number, [b"MONITOR"]))

    def choose_families(self, chance):
        """Half the cases are about one family, so that commands meet values of their type."""
        kind = chance.random()
        if kind < 0.12:
            return ["script"]
        if kind < 0.55:
            return chance.choices(list(self.weights), list(self.weights.values()))
        return [name for name in self.weights if name not in ("acl", "configuration", "channels", "connection")]

    def draw_commands(self, chance, words, families, spoiled, script_share):
        name = chance.choices(families, [self.weights.get(name, 1) for name in families])[0]
        if name not in ("script", "generic", "transaction") and chance.random() < 0.07 and len(families) == 1:
            name = chance.choice(["generic", "transaction"])
        if chance.random() < script_share:
            return redis_scripts.draw(chance, words, self.draw_inner(chance, words, spoiled))
        if name == "script":
            name = chance.choice(["string", "list", "sorted set", "hash"])
        pattern = chance.choice(self.families[name])
        commands = pattern.draw(words)
        if pattern.is_spoilable:
            for command in commands:
                if chance.random() < spoiled / len(commands):
                    spoil(chance, words, command)
        return [command for command in commands if command and not is_excluded(command)]

    def draw_inner(self, chance, words, spoiled):
        """A command for a script."""
        name = chance.choice(["string", "bitmap", "list", "set", "hash", "sorted set", "stream", "geo", "generic"])
        command = chance.choice(self.families[name]).draw(words)[0]
        if chance.random() < spoiled:
            spoil(chance, words, command)
        return [b"PING"] if is_excluded(command) else settle(command)


def is_excluded(command):
    name = command[0].lower()
    # Descriptions of all commands are long and hold what later versions of Redis added.
    is_long = name == b"command" and (len(command) == 1 or (len(command) == 2 and command[1].lower() in LONG))
    return name in EXCLUDED or is_long


def is_small(word, limit):
    return word.isdigit() and 0 < int(word) <= limit


def settle(command):
    """Takes out what depends on the moment: expiry while a case runs, and random elements that are removed."""
    name = command[0].lower()
    if name == b"spop":
        count = command[2] if len(command) > 2 else b"1"
        if len(command) > 1 and count.isdigit() and 0 < int(count) < 1_000:
            return [*command[:2], b"100000", *command[3:]]
        return command
    if name == b"eval" and len(command) > 3 and b"unpack(ARGV)" in command[1]:
        return command[:3] + settle(command[3:])
    if name == b"wait" and len(command) > 1 and whole_number(command[1]) > 0:
        return [command[0], b"0", *command[2:]]
    if name in LARGE:
        return limit_size(name, list(command))
    if name in BLOCKING:
        return settle_timeout(name, command)
    if name not in TIMED:
        return command
    places = TIMED[name]
    command = list(command)
    for at in range(2, len(command)):
        is_option = command[at - 1].upper() in (b"EX", b"PX", b"IDLE", b"TIME")
        if (is_option or at in places) and is_small(command[at], 9_999):
            command[at] = b"0"
    return command


def settle_timeout(name, command):
    """Has a command wait for ever instead of some seconds."""
    command = list(command)
    if name in (b"xread", b"xreadgroup"):
        places = [at for at in range(2, len(command)) if command[at - 1].upper() == b"BLOCK"]
    else:
        places = [1 if name in (b"blmpop", b"bzmpop") else -1]
    for at in places:
        try:
            if 0 < float(command[at]) < 100_000:
                command[at] = b"0"
        except (IndexError, ValueError):
            pass
    return command


def limit_size(name, command):
    """Replaces offsets and counts that a server would take and that make a value or a reply large."""
    for at in range(2, len(command)):
        word = command[at]
        if name in (b"setbit", b"setrange", b"bitfield"):
            if OFFSET_MAX < whole_number(word.removeprefix(b"#")) < 2**32 and (at == 2 or name == b"bitfield"):
                command[at] = b"4294967296"
        elif -2**63 < whole_number(word) < RANDOM_COUNT_MIN:
            # Redis would answer -2^62 random elements until the machine has no memory left.
            command[at] = b"%d" % RANDOM_COUNT_MIN
    return command


def whole_number(word):
    try:
        return int(word)
    except ValueError:
        return 0
