"""Random regular expressions, replacement templates and texts in the dialect of Go's regexp package."""

import dictionary

PIECES = ["a", "b", "ab", "A", "k", "\u212a", "ß", "é", "ſ", "1", "_", " ", "\n", "-", ",", ".", ".*", ".+?", "*",
          "+", "?", "*?", "??", "{2}", "{1,3}", "{0,2}?", "{2,}", "{,2}", "{x}", "{01}", "{1001}", "{3,2}", "|", "||",
          "(", "(", ")", ")", "(?:", "(?i)", "(?i:", "(?-i)", "(?m)", "(?s)", "(?-s:", "(?U)", "(?im-s:", "(?x)",
          "(?=", "(?!", "(?P<n>", "(?<m>", "(?P<1>", "(?P<>", "(?P=n)", "[", "[^", "]", "[]", "[a-c]", "[^a-c]",
          "[z-a]", "[a-]", "[-a]", "[+--]", "[--a]", "[a&&b]", "[[]", "[[:alpha:]]", "[[:^digit:]]", "[[:foo:]]",
          "[\\d-z]", "[a-\\x{e9}]", "[\\b]", "[\\pL1]", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\b", "\\B", "\\A",
          "\\z", "\\Z", "\\pL", "\\PN", "\\p{Lu}", "\\P{Greek}", "\\p{^Lu}", "\\p{Alphabetic}", "\\p{Letter}", "\\pX",
          "\\Q", "\\E", "\\Qa.b\\E", "^", "$", "\\x41", "\\x{1F600}", "\\x{d800}", "\\x{110000}", "\\x", "\\x{}",
          "\\101", "\\0", "\\1", "\\8", "\\n", "\\a", "\\v", "\\_", "\\-", "\\.", "\\/", "\\q", "\\é", "\\C", "\\",
          "a**", "\\<", "&&", "{", "}", "{1", "{1,", "$1", "/", "#"]
ATOMS = ["a", "b", "x", "A", "0", "1", "ä", "Ω", "日", "k", "s", ".", "\\d", "\\w", "\\s", "\\S", "\\W", "[a-c]",
         "[^a]", "[[:alpha:]]", "[0-9a-f]", "\\pL", "\\p{Lu}", "[^\\n]", "\\.", "\\\\", "\\$", "\\x61", "[\\s,]",
         "\\pN", "[ä-ö]", "[^[:^space:]]", "(?i:k)", "(?i:ß)", "\\n", "\\|", "\"", "'", "-", "_", ":", ";", "=", "%",
         "api", "true", "NaN"]
REPEATS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0}", "{0,1}", "{2,}", "{1,}?", "{1000}", "{0,3}?"]
ASSERTIONS = ["^", "$", "\\b", "\\B", "\\A", "\\z", "(?m:^)", "(?m:$)", ""]
FLAGS = ["(?i)", "(?s)", "(?m)", "(?U)", "(?is)", "(?-s)", "(?i-s)"]
TEXT_PIECES = ["a", "b", "c", "A", "B", "k", "K", "\u212a", "s", "ſ", "é", "É", "ß", "1", "٣", "α", "Σ", "σ", "ς",
               "_", "-", ".", " ", "\n", "\t", "{", "}", "[", "]", "&", "\u00a0", "😀", "z", "ab", "aa", "x", "0"]
TEMPLATE_PIECES = ["$", "$$", "$0", "$1", "${1}", "$n", "${m}", "${n", "$1é", "$10", "$01", "x", "}", "{", "${}",
                   "${a-b}", "$_", "$2", "-", "", "\\1", "$1x", "${1}x", "ä"]
LARGE = ["(" * 150 + "a" + ")" * 150, "(" * 1001 + "a" + ")" * 1001, "a{1000}", "(a{1000}){1000}", "(a{100}){10}",
         "|".join(f"word{index}" for index in range(300)), "x" * 4000, "[" + "ab" * 1000 + "]", "(?:a?){30}a{30}",
         "(a*)*b", "((a+)+)+$", "(.*)(.*)(.*)(.*)x", ".{0,1000}", "\\pL{100}", "(?i)" + "k" * 500, "(" * 40 + ")*" * 40]


def draw_texts(chance, count=60):
    """Different texts that are no longer than a label may be."""
    texts = {text: None for text in dictionary.STRINGS if text and len(text) < 100}
    while len(texts) < count:
        text = "".join(chance.choice(TEXT_PIECES) for _ in range(chance.randint(1, 6)))
        texts[text] = None
    return list(texts)


def draw_template(chance):
    return "".join(chance.choice(TEMPLATE_PIECES) for _ in range(chance.randint(0, 4)))


def draw_pattern(chance):
    kind = chance.random()
    if kind < 0.45:
        return "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 6)))
    if kind < 0.48:
        return chance.choice(LARGE)
    pattern = draw_alternation(chance, chance.randint(0, 3))
    if chance.random() < 0.2:
        pattern = chance.choice(FLAGS) + pattern
    if kind < 0.75:
        # Mostly wrong: a sign more, less, or another one.
        at = chance.randint(0, len(pattern))
        sign = chance.choice(["", chance.choice(PIECES)])
        pattern = pattern[:at] + sign + pattern[at + (not sign or chance.random() < 0.5):]
    return pattern


def draw_alternation(chance, depth):
    count = 1 if chance.random() < 0.7 else chance.randint(2, 3)
    return "|".join(draw_sequence(chance, depth) for _ in range(count))


def draw_sequence(chance, depth):
    out = [chance.choice(ASSERTIONS) if chance.random() < 0.1 else ""]
    for _ in range(chance.randint(0, 3)):
        if depth and chance.random() < 0.4:
            opening = chance.choice(["(", "(", "(?:", "(?P<n>" if depth == 1 else "(", "(?i:", "(?s:"])
            out.append(f"{opening}{draw_alternation(chance, depth - 1)})")
        else:
            out.append(chance.choice(ATOMS))
        if chance.random() < 0.35:
            out.append(chance.choice(REPEATS))
    if chance.random() < 0.1:
        out.append(chance.choice(ASSERTIONS))
    return "".join(out)
