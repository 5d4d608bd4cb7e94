"""Trees of SQL text: rendered as text or with parameters, and reduced by replacing their parts."""

import re

TOKEN = re.compile(r"""[EeBbXx]?'(?:[^'\\]|''|\\.)*'|\$\$.*?\$\$|"(?:[^"]|"")*"|[A-Za-z_][A-Za-z_0-9]*|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|"""
                   r"""::|->>|->|#>>|#>|[<>=!~@|&#?*/%^+-]+|\S""", re.DOTALL)


class Node:
    """A piece of a statement.

    `kind` is the type of an expression ("i4", "t"), or "text", "list" (items may be dropped), "optional" (may be
    dropped), "query", "from", "order". `value` is the text of a literal without its quotes and cast. `separator`
    stands between the parts; with `%s` in it, it is the text, and `%s` stands for the one part.
    """

    __slots__ = ("kind", "parts", "value", "separator")

    def __init__(self, kind, *parts, value=None, separator=None):
        self.kind, self.parts, self.value, self.separator = kind, parts, value, separator

    def __str__(self):
        return "".join(render(self, None))

    def with_parts(self, parts):
        return Node(self.kind, *parts, value=self.value, separator=self.separator)


def join(items, separator=", "):
    """Makes a list whose items the reducer may drop, all but one."""
    return Node("list", *items, separator=separator)


def optional(*parts):
    return Node("optional", *parts)


def text(*parts):
    return Node("text", *parts)


EMPTY = text()


def render(node, parameters):
    """Yields the text. With `parameters`, literals become `$n`: it is called with the literal, and names it."""
    if node.value is not None and parameters is not None:
        name = parameters(node)
        if name:
            yield name
            return
    if node.separator and "%s" in node.separator:
        yield node.separator.replace("%s", "".join(render(node.parts[0], parameters)))
        return
    for number, part in enumerate(node.parts):
        if number and node.separator:
            yield node.separator
        if isinstance(part, Node):
            yield from render(part, parameters)
        else:
            yield part


def tokenize(statement):
    return TOKEN.findall(statement)


def join_tokens(tokens):
    return join(tokens, " ")


def walk(node, path=()):
    """Yields (path, node), the large nodes first."""
    level = [(path, node)]
    while level:
        yield from level
        level = [((*at, number), part) for at, one in level for number, part in enumerate(one.parts)
                 if isinstance(part, Node)]


def find_nodes(node, kind):
    return [one for _, one in walk(node) if one.kind == kind]


def replace_at(node, path, other):
    if not path:
        return other
    parts = list(node.parts)
    parts[path[0]] = replace_at(parts[path[0]], path[1:], other)
    return node.with_parts(parts)


def reduce_node(root, simple_literals):
    """Yields smaller trees: without optional parts and items, with a part in place of the whole, with short literals."""
    for path, node in list(walk(root)):
        for smaller in shrink(node, simple_literals):
            yield replace_at(root, path, smaller)


def shrink(node, simple_literals):
    if node.kind == "optional" and node.parts:
        yield Node("optional")
    if node.kind == "list" and len(node.parts) > 1:
        yield from shrink_list(node)
    if node.kind in simple_literals or node.kind in ("query", "from"):
        inside = [one for _, one in walk(node) if one is not node and one.kind == node.kind]
        yield from inside[:8]
        simple = simple_literals.get(node.kind, ())
        length = len(str(node))
        for one in simple:
            if len(str(one)) < length:
                yield one


def shrink_list(node):
    """Yields the list without a half, a quarter, an eighth of its items, and so on to one."""
    size = len(node.parts) // 2
    while size:
        for start in range(0, len(node.parts), size):
            rest = node.parts[:start] + node.parts[start + size:]
            if rest:
                yield node.with_parts(rest)
        size //= 2
