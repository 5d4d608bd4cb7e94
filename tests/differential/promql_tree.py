"""Trees of expressions: what the generators make, the mutations break, and the reducer makes smaller."""

import re

SIMPLEST = {"vector": ("gauge", "vector(1)"), "scalar": ("1",), "matrix": ("gauge[5m]",), "string": ('""',),
            "option": ("",), "duration": ("1m",)}
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`|[A-Za-z_:][\w:]*|\d[\w.]*|[=!<>]=|=~|!~|\s+|.',
                   re.DOTALL)


class Node:
    """A part of an expression: its kind (`vector`, `scalar`, `matrix`, `string`, `option`, `duration`), and texts
    and nodes in order."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, parts

    def __str__(self):
        return "".join(map(str, self.parts))

    def nodes(self, path=()):
        """All nodes with their paths, the outermost first."""
        yield path, self
        for index, part in enumerate(self.parts):
            if isinstance(part, Node):
                yield from part.nodes((*path, index))

    def replaced(self, path, new):
        if not path:
            return new
        parts = list(self.parts)
        parts[path[0]] = parts[path[0]].replaced(path[1:], new)
        return Node(self.kind, *parts)


def call(kind, name, *arguments, after=()):
    parts = [name, "("]
    for index, argument in enumerate(arguments):
        parts += [", ", argument] if index else [argument]
    return Node(kind, *parts, ")", *after)


def smaller_trees(tree):
    """Trees with a descendant in the place of a node of its kind, and with the simplest node of each kind."""
    size = len(str(tree))
    for _, inner in list(tree.nodes())[1:]:
        if inner.kind in ("vector", "scalar"):
            yield inner
    for path, node in list(tree.nodes()):
        for _, inner in list(node.nodes())[1:]:
            if inner.kind == node.kind:
                yield tree.replaced(path, inner)
        for simple in SIMPLEST.get(node.kind, ()):
            if len(simple) < len(str(node)):
                smaller = tree.replaced(path, Node(node.kind, simple))
                if len(str(smaller)) < size:
                    yield smaller


def tokens(text):
    return TOKEN.findall(text)


def smaller_texts(text):
    """Texts without some of their tokens."""
    all_tokens = tokens(text)
    length = len(all_tokens) // 2
    while length:
        for start in range(0, len(all_tokens), length):
            yield "".join(all_tokens[:start] + all_tokens[start + length:])
        length //= 2
