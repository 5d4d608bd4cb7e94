"""Known differences: the rows of docs/differences/*.md, which campaigns accept and nothing else.

A row has four cells: a pattern of the case, one of Quipu's answer, one of the peer's, and the reason. The
patterns are regular expressions in code spans (`\\|` stands for `|`); each must be found in its text. A row
explains a difference only if all three are.
"""

import collections
import pathlib
import re

DIRECTORY = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "differences"
# Texts that no row may explain: patterns which match them all are too wide.
PROBE = ("zq 17 select up", "rows 1 2 3", "error 500 internal")


class Row:
    def __init__(self, case, quipu, peer, reason):
        self.patterns = [re.compile(pattern, re.DOTALL) for pattern in (case, quipu, peer)]
        self.reason = reason
        self.count = 0

    def explains(self, texts):
        return all(pattern.search(text) for pattern, text in zip(self.patterns, texts))


class KnownDifferences:
    """The rows of a page, or of several ones."""

    def __init__(self, page):
        pages = [page] if isinstance(page, str) else page or []
        self.rows = [row for name in pages for row in read_page(DIRECTORY / name)]

    def explains(self, text, difference):
        for row in self.rows:
            if row.explains((text, difference.quipu, difference.peer)):
                row.count += 1
                return True
        return False

    def count(self):
        return sum(row.count for row in self.rows)

    def counts(self):
        used = collections.Counter({row: row.count for row in self.rows if row.count})
        return used.most_common()


def read_page(path):
    """Reads the rows of a page. A malformed or too wide row is an error with its line."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = split_cells(line)
        if cells is None or not cells[0].startswith("`"):
            continue
        if len(cells) != 4 or not all(cell.startswith("`") and cell.endswith("`") for cell in cells[:3]):
            raise SystemExit(f"{path}:{number}: a row has three patterns in code spans and a reason")
        try:
            row = Row(*[cell.strip("`").strip() for cell in cells[:3]], cells[3])
        except re.error as error:
            raise SystemExit(f"{path}:{number}: {error}") from None
        if not row.reason:
            raise SystemExit(f"{path}:{number}: the reason is missing")
        if row.explains(PROBE):
            raise SystemExit(f"{path}:{number}: the row explains every difference")
        rows.append(row)
    return rows


def split_cells(line):
    if not (line.startswith("| ") and line.endswith(" |")):
        return None
    cells = re.split(r"(?<!\\)\|", line[1:-1])
    return [cell.strip().replace("\\|", "|") for cell in cells]
