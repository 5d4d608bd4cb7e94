"""Makes queries: expressions by type, items of FROM and joins, subqueries, groups, windows, set operations."""

from sql_functions import AGGREGATES, CONSTANTS, OFFSETS, RANKS, READ_TEMPLATES, split_template
from sql_nodes import Node, join, optional, text
from sql_tables import BY_NAME, RELATIONS, Relation
from sql_types import COMPARED, INEXACT, ORDERED, TYPES, draw_literal

ANY = ("i4", "i4", "t", "t", "f8", "i8", "nu", "b", "d", "ts", "tz", "iv", "i2", "f4", "v", "c", "tm", "by", "u", "jb", "ai", "at")
# Types that tables of joins have.
USUAL = ("i4", "i4", "t", "f8", "nu", "d", "i8", "b")
SPLIT_AGGREGATES = {kind: [one if "%s" in one else split_template(one) for one in all_of] for kind, all_of in AGGREGATES.items()}
CORRELATED = 0.5


class Query:
    """A query without its ORDER BY and LIMIT, and the types of its columns."""

    def __init__(self, kinds, *parts):
        self.kinds, self.node = kinds, Node("query", *parts)


class Generator:
    def __init__(self, chance, is_edge=False):
        self.chance, self.is_edge = chance, is_edge
        self.scopes = [[]]  # of each query that is being made: its relations, by alias
        self.made = 0
        self.ctes = []

    def one(self, *choices):
        return self.chance.choice(choices)

    def is_likely(self, share):
        return self.chance.random() < share

    def alias(self, letter="t"):
        self.made += 1
        return f"{letter}{self.made}"

    # Expressions

    def expr(self, kind, depth):
        if kind == "any":
            kind = self.chance.choice(ANY)
        if kind in CONSTANTS:
            return text(self.chance.choice(CONSTANTS[kind]))
        if depth <= 0 or self.is_likely(0.15):
            return self.leaf(kind)
        if kind in COMPARED and self.is_likely(0.05) and self.scopes[-1]:
            return self.scalar_subquery(kind, depth - 1)
        if kind == "b" and self.is_likely(0.06) and self.scopes[-1]:
            return self.subquery_condition(0)
        return self.fill(kind, self.template(kind), depth)

    def template(self, kind):
        """Draws a template, rather one that has a column in this scope."""
        here = self.kinds_here()
        for _ in range(3):
            drawn = self.chance.choice(READ_TEMPLATES[kind])
            if not here or any(isinstance(part, tuple) and part[0] in here for part in drawn):
                break
        return drawn

    def kinds_here(self):
        return {kind for _, relation in self.scopes[-1] for kind in relation.columns.values()}

    def draw_kinds(self, kinds, allowed=tuple(TYPES)):
        """Returns the types that are asked for, or draws some, rather those of columns."""
        if kinds is not None:
            return kinds
        here = [kind for kind in self.kinds_here() if kind in allowed]
        here.sort()
        return [self.one(*(here if here and self.is_likely(0.75) else [kind for kind in ANY if kind in allowed])) for _ in range(self.one(1, 1, 2, 2, 3))]

    def fill(self, kind, template, depth):
        """Puts expressions in the holes of a template; all but one of them are short."""
        holes = [number for number, part in enumerate(template) if isinstance(part, tuple)]
        deep = self.chance.choice(holes) if holes else None
        parts = [part if isinstance(part, str) else self.expr(part[0], depth - 1 if number == deep else min(depth - 1, 0))
                 for number, part in enumerate(template)]
        return Node(kind, *parts)

    def leaf(self, kind):
        found = self.columns(kind)
        if found and self.is_likely(0.75):
            return Node(kind, self.chance.choice(found))
        if self.is_likely(0.06):
            return Node(kind, f"NULL::{TYPES['f8' if kind == INEXACT else kind][0]}")
        return draw_literal(self.chance, kind, self.is_edge)

    def columns(self, kind):
        """Columns of a type, as text; columns of outer queries only if a query has none or by chance."""
        for scope in reversed(self.scopes):
            found = [f"{alias}.{name}" if alias else name for alias, relation in scope for name, one in relation.columns.items() if one == kind]
            if found and (scope is self.scopes[0] or not self.is_likely(CORRELATED) or len(self.scopes) == 1):
                return found
        return []

    def column_of(self, kinds):
        """Draws a column of the newest query; None if it has none of these types."""
        found = [(f"{alias}.{name}" if alias else name, kind) for alias, relation in self.scopes[-1] for name, kind in relation.columns.items() if kind in kinds]
        if not found:
            return None
        name, kind = self.chance.choice(found)
        return Node(kind, name)

    def condition(self, depth=2):
        chance = self.chance.random()
        if depth > 0 and chance < 0.3:
            operator = self.one(" and ", " and ", " or ")
            return Node("b", "(", join([self.condition(depth - 1), self.condition(depth - 1)], operator), ")")
        if depth > 0 and chance < 0.4:
            return Node("b", "not (", self.condition(depth - 1), ")")
        column = self.column_of(ORDERED)
        if column and chance < 0.8:
            operator = self.one("=", "<", ">=", "<>", "is distinct from", ">")
            return Node("b", "(", column, f" {operator} ", self.expr(column.kind, 1), ")")
        return self.expr("b", 2)

    def literal(self, kind):
        return draw_literal(self.chance, kind, False)

    def cell(self, kind):
        """Makes a value of VALUES: a literal, or within a subquery a column of an outer query."""
        return self.leaf(kind) if len(self.scopes) > 2 and self.is_likely(0.4) else self.literal(kind)

    # FROM

    def item(self, depth, names=None):
        """Makes an item of FROM: returns its node and [(alias, relation)]."""
        kind, alias = self.chance.random(), self.alias()
        if self.ctes and kind < 0.3:
            relation = self.chance.choice(self.ctes)
            return Node("from", f"{relation.name} as {alias}"), [(alias, relation)]
        if depth <= 0 or kind < 0.7 or names:
            relation = BY_NAME[self.chance.choice(names)] if names else self.chance.choice(RELATIONS)
            return Node("from", f"{relation.name} as {alias}"), [(alias, relation)]
        if kind < 0.85:
            return self.subquery_item(alias, depth, "")
        if kind < 0.91:
            kinds = [self.one(*USUAL) for _ in range(self.one(1, 2, 3))]
            query = self.values(kinds)
            relation = self.relation_of(kinds)
            return Node("from", "(", query.node, f") as {alias}({', '.join(relation.columns)})"), [(alias, relation)]
        if kind < 0.96:
            tail = self.one("", "", " with ordinality")
            relation = Relation(alias, {"g": "i4"} | ({"o": "i8"} if tail else {}))
            return Node("from", "generate_series(", self.literal("i4"), ", ", self.one("4", "6", "-2"), f"){tail} as {alias}({', '.join(relation.columns)})"), [(alias, relation)]
        array, element = self.one(("ai", "i4"), ("at", "t"), ("af", "f8"))
        tail = self.one("", " with ordinality")
        relation = Relation(alias, {"u": element} | ({"o": "i8"} if tail else {}))
        return Node("from", "unnest(", self.literal(array), f"){tail} as {alias}({', '.join(relation.columns)})"), [(alias, relation)]

    def subquery_item(self, alias, depth, prefix):
        kinds = [self.one(*USUAL) for _ in range(self.one(1, 2, 2, 3))]
        query = self.query(kinds, depth - 1, is_inner=True)
        relation = self.relation_of(query.kinds)
        return Node("from", f"{prefix}(", query.node, f") as {alias}({', '.join(relation.columns)})"), [(alias, relation)]

    def relation_of(self, kinds):
        return Relation("", {f"c{number}": kind for number, kind in enumerate(kinds, 1)})

    def from_clause(self, depth, joins=None):
        """Makes FROM of one to three items, and adds them to the newest scope."""
        count = joins if joins is not None else self.chance.choice([0, 0, 0, 1, 1, 2])
        names = ("a", "b", "c") if count and self.is_likely(0.85) else None
        node, scope = self.item(depth, ("a", "b", "c", "h", "h", "p", "mild") if names else None)
        for _ in range(count):
            node, scope = self.join(node, scope, depth, names)
        self.scopes[-1].extend(scope)
        return text(" from ", node)

    def join(self, left, scope, depth, names):
        if depth > 0 and self.is_likely(0.15) and " lateral " not in str(left):
            self.scopes.append(list(scope))
            self.scopes.append([])
            right, added = self.subquery_item(self.alias("l"), depth, "lateral ")
            self.scopes.pop()
            self.scopes.pop()
            kind, tail = self.one((" cross join ", ""), (" left join ", " on true"), (" join ", " on true"), (", ", ""))
            return Node("from", left, kind, right, tail), scope + added
        right, added = self.item(depth - 1, names)
        kind = self.one("join", "inner join", "left join", "left join", "right join", "full join", "full join", "cross join", ",", "natural join", "left outer join")
        if kind in ("cross join", ","):
            return Node("from", left, f" {kind} ", right), scope + added
        if kind == "natural join":
            return Node("from", left, " natural join ", right), scope + added
        common = [name for name, one in added[0][1].columns.items() if one in ("i4", "t", "d", "tz") and
                  [other.columns.get(name) for _, other in scope if other.columns.get(name)] == [one]]
        if common and self.is_likely(0.35):
            chosen = self.chance.sample(common, min(len(common), self.one(1, 1, 2)))
            merged = Relation("", {name: added[0][1].columns[name] for name in chosen})
            return Node("from", left, f" {kind} ", right, f" using ({', '.join(chosen)})"), [*scope, *added, ("", merged)]
        return Node("from", left, f" {kind} ", right, " on ", self.join_condition(scope, added, kind == "full join")), scope + added

    def join_condition(self, scope, added, is_equal):
        """Makes ON: an equality of columns of both sides, and by chance more."""
        pairs = [(f"{alias}.{name}", f"{other}.{theirs}", kind) for alias, relation in scope if alias for name, kind in relation.columns.items()
                 for other, one in added for theirs, their_kind in one.columns.items() if kind == their_kind and kind in ORDERED]
        if not pairs:
            return Node("b", "true")
        left, right, kind = self.chance.choice(pairs)
        equal = Node("b", Node(kind, left), " = " if is_equal or self.is_likely(0.8) else self.one(" < ", " >= ", " is not distinct from "), Node(kind, right))
        if is_equal or self.is_likely(0.7):
            return equal
        self.scopes.append(scope + added)
        more = self.condition(0)
        self.scopes.pop()
        return Node("b", equal, optional(self.one(" and ", " and ", " or "), more))

    # Queries

    def query(self, kinds=None, depth=1, is_inner=False):
        """Makes a query of these types, or of types that it draws."""
        self.scopes.append([])
        made = self.chance.choice([self.plain] * 8 + [self.grouped] * 4 + [self.windowed] * 2 + [self.set_operation] * 2 +
                                  [self.distinct] + [self.distinct_on] + [self.with_query] + [self.values])(kinds, depth)
        self.scopes.pop()
        if is_inner and self.is_likely(0.12) and not set(made.kinds) & {"j", INEXACT, "af"}:
            made = Query(made.kinds, made.node, optional(self.total_order(made.kinds) + self.one(f" limit {self.one(1, 2, 5)}", " offset 1", f" limit 3 offset {self.one(0, 1, 2)}")))
        return made

    def total_order(self, kinds):
        return " order by " + ", ".join(str(number) + self.one("", "", " desc", " nulls first", " desc nulls last") for number in range(1, len(kinds) + 1))

    def where(self, share=0.7, depth=2):
        return optional(" where ", self.condition(depth)) if self.is_likely(share) else text()

    def plain(self, kinds, depth):
        source = self.from_clause(depth)
        kinds = self.draw_kinds(kinds)
        items = [self.expr(kind, self.one(0, 1, 1, 2)) for kind in kinds]
        if depth > 0 and self.is_likely(0.35):
            return Query(kinds, "select ", join(items), source, optional(" where ", self.subquery_condition(depth - 1)))
        return Query(kinds, "select ", join(items), source, self.where())

    def subquery_condition(self, depth):
        column = self.column_of(tuple(kind for kind in ORDERED if kind in USUAL)) or Node("i4", "1")
        negated = self.one("", "not ")
        form = self.chance.random()
        if form < 0.25:
            made = Node("b", f"{negated}exists (", self.query(None, depth).node, ")")
        elif form < 0.55:
            made = Node("b", column, f" {negated}in (", self.query([column.kind], depth, is_inner=True).node, ")")
        elif form < 0.7:
            operator = self.one("= any", "<> all", "< any", ">= all", "= some", "<> any")
            made = Node("b", column, f" {operator} (", self.query([column.kind], depth).node, ")")
        elif form < 0.8:
            second = self.column_of(USUAL) or Node("i4", "1")
            made = Node("b", "(", column, ", ", second, f") {negated}in (", self.query([column.kind, second.kind], depth).node, ")")
        else:
            made = Node("b", column, self.one(" = ", " < ", " >= ", " is distinct from "), self.scalar_subquery(column.kind, depth))
        if self.is_likely(0.25):
            made = Node("b", "(", join([made, self.condition(1)], self.one(" and ", " or ")), ")")
        return Node("b", "(", made, ") is not true") if self.is_likely(0.06) else made

    def scalar_subquery(self, kind, depth):
        """Makes a subquery of one row: an aggregate, or the first row."""
        self.scopes.append([])
        source = self.from_clause(min(depth, 0), joins=self.one(0, 0, 0, 1))
        if kind in SPLIT_AGGREGATES and self.is_likely(0.6):
            node = Node("query", "select ", self.aggregate(kind, 0), source, self.where(0.9, 1))
        else:
            node = Node("query", "select ", self.expr(kind, self.one(0, 1)), source, self.where(0.9, 1), f" order by 1{self.one('', ' desc', ' nulls first')} limit 1")
        self.scopes.pop()
        return Node(kind, "(", node, ")")

    def aggregate(self, kind, depth):
        template = self.chance.choice(SPLIT_AGGREGATES[kind])
        if isinstance(template, str):
            inner, form = template.split(":", 1)
            form = form.replace("{sep}", self.one("','", "''", "'; '"))
            made = Node(kind, self.column_of((inner,)) or self.expr(inner, depth), separator=form)
        else:
            made = Node(kind, *[part if isinstance(part, str) else self.expr(part[0], depth) for part in template])
        if self.is_likely(0.12) and "within" not in str(made):
            return Node(kind, made, optional(" filter (where ", self.condition(0), ")"))
        return made

    def grouped(self, kinds, depth):
        source = self.from_clause(depth)
        where = self.where(0.5, 1)
        kinds = self.draw_kinds(kinds)
        keys, items, made = [], [], []
        for kind in kinds:
            if kind in SPLIT_AGGREGATES and self.is_likely(0.6) or kind not in COMPARED:
                kind = kind if kind in SPLIT_AGGREGATES else "i8"
                items.append(self.aggregate(kind, self.one(0, 0, 1)))
            else:
                key = self.column_of((kind,)) or self.column_of(ORDERED)
                if key is None or self.is_likely(0.2):
                    key = Node(kind, *[part if isinstance(part, str) else self.expr(part[0], 0) for part in self.chance.choice(READ_TEMPLATES[kind])])
                kind = key.kind
                keys.append((len(items) + 1, key))
                items.append(key)
            made.append(kind)
        grouping, is_sets = self.grouping(keys)
        if is_sets and keys and self.is_likely(0.4):
            items.append(Node("i4", "grouping(", self.chance.choice(keys)[1], ")"))
            made.append("i4")
        having = optional(" having ", self.aggregate("i8", 0), self.one(" > ", " = ", " <> "), self.literal("i4")) if self.is_likely(0.15) else text()
        return Query(made, "select ", join(items), source, where, grouping, having)

    def grouping(self, keys):
        form = self.chance.random()
        nodes = [key if form < 0.75 or self.is_likely(0.7) else str(number) for number, key in keys]
        if not keys:
            return text(" group by ()" if form < 0.1 else ""), False
        if form < 0.7:
            return text(" group by ", join(nodes)), False
        if form < 0.8:
            return text(" group by rollup (", join(nodes), ")"), True
        if form < 0.88:
            return text(" group by cube (", join(nodes), ")"), True
        sets = [text("(", join(nodes), ")"), text("(", nodes[0], ")"), text("()"), text("(", nodes[-1], ")")]
        return text(" group by grouping sets (", join(self.chance.sample(sets, self.one(1, 2, 3))), ")"), True

    def windowed(self, kinds, depth):
        """Selects window functions over one table whose rows a key tells apart."""
        relation, alias = self.chance.choice(RELATIONS), self.alias()
        self.scopes[-1].append((alias, relation))
        key = ", ".join(f"{alias}.{name}" for name in relation.key)
        named, items, made = [], [], []
        for kind in self.draw_kinds(kinds):
            node, kind = self.window_item(kind, key, named)
            items.append(node)
            made.append(kind)
        windows = text(" window ", join([text(f"{name} as (", spec, ")") for name, spec in named])) if named else text()
        return Query(made, "select ", join(items), " from ", Node("from", f"{relation.name} as {alias}"), self.where(0.4, 1), windows)

    def window_item(self, kind, key, named):
        ranks = RANKS.get(kind)
        form = self.chance.random()
        if ranks and form < 0.4:
            spec, call = self.window(key, is_total=True), self.one(*ranks).replace("{pos}", self.one("1", "2", "3"))
        elif form < 0.65 and kind in TYPES:
            spec = text(self.window(key, is_total=True), self.frame("rows"))
            parts = split_template(self.one(*OFFSETS))
            call = text(*[part if isinstance(part, str) else self.expr(kind if part[0] == "x" else part[0], 0) for part in parts])
        else:
            kind = kind if kind in SPLIT_AGGREGATES else "i8"
            templates = [one for one in SPLIT_AGGREGATES[kind] if isinstance(one, tuple) and "within" not in "".join(map(str, one)) and "distinct" not in str(one[0])]
            if not templates:
                kind, templates = "i8", SPLIT_AGGREGATES["i8"][:2]
            call = text(*[part if isinstance(part, str) else self.expr(part[0], 0) for part in self.chance.choice(templates)])
            spec = self.aggregate_window(key)
        if self.is_likely(0.2):
            name = self.alias("win")
            named.append((name, spec))
            return Node(kind, call, f" over {self.one(name, f'({name})') if 'between' not in str(spec) else name}"), kind
        return Node(kind, call, " over (", spec, ")"), kind

    def window(self, key, is_total):
        parts = []
        if self.is_likely(0.6):
            parts.append(optional("partition by ", join([self.partition_key() for _ in range(self.one(1, 1, 2))]), " "))
        first = self.column_of(tuple(kind for kind in ORDERED if kind not in ("jb", "at", "ai")))
        order = [text(first, self.one("", " desc", " nulls first", " desc nulls last"))] if first and self.is_likely(0.6) else []
        parts += ["order by ", *[part for one in order for part in (optional(one, ", "),)], key if is_total else ""]
        return text(*parts)

    def partition_key(self):
        return self.column_of(("i4", "t", "b", "d", "f8", "nu")) if self.is_likely(0.8) else self.expr(self.one("b", "i4", "t"), 1)

    def aggregate_window(self, key):
        form = self.chance.random()
        partition = optional("partition by ", self.partition_key(), " ") if self.is_likely(0.5) else text()
        if form < 0.2:
            return partition
        if form < 0.55:
            return text(partition, f"order by {key}", self.frame("rows"))
        column = self.column_of(("i4", "f8", "nu", "d", "ts", "tz", "i8", "i2"))
        if not column:
            return partition
        direction = self.one("", "", " desc", " nulls first")
        if form < 0.7:
            return text(partition, "order by ", column, direction, self.frame("groups"))
        if form < 0.8:
            return text(partition, "order by ", column, direction)
        return text(partition, "order by ", column, direction, self.frame("range", column.kind))

    def frame(self, unit, kind=None):
        if self.is_likely(0.3) and unit == "rows":
            return text()
        offset = {None: lambda: self.one("0", "1", "2"), "i4": lambda: self.one("0", "1", "2"), "i8": lambda: self.one("1", "100"), "i2": lambda: self.one("1::int2", "2"),
                  "f8": lambda: self.one("0.5", "1", "0"), "nu": lambda: self.one("0.5", "1")}.get(kind, lambda: self.one("interval '1 day'", "'2 hours'", "'1 month'"))
        starts = ["unbounded preceding", f"{offset()} preceding", "current row", f"{offset()} following"]
        ends = ["unbounded following", f"{offset()} following", "current row", f"{offset()} preceding"]
        exclude = self.one("", "", "", " exclude current row", " exclude ties", " exclude group", " exclude no others")
        if self.is_likely(0.25):
            return optional(f" {unit} {self.one(*starts[:3])}{exclude}")
        start = self.chance.randrange(4)
        end = self.one(*ends[:(3, 3, 3, 2)[start]], *ends[3:] * (start == 1))
        return optional(f" {unit} between {starts[start]} and {end}{exclude}")

    def set_operation(self, kinds, depth):
        kinds = [kind if kind in COMPARED and kind not in ("af", "f8", "f4") else "i4" for kind in kinds or [self.one(*USUAL) for _ in range(self.one(1, 2))]]
        operator = self.one("union", "union all", "intersect", "except", "union all", "except all", "intersect all", "union distinct")
        left, right = (self.nested(kinds, depth - 1) for _ in range(2))
        if self.is_likely(0.25):
            third = self.nested(kinds, 0)
            return Query(kinds, left, f" {operator} ", right, self.one(" union ", " intersect ", " except ", " union all "), third)
        if self.is_likely(0.15):
            return Query(kinds, "(", left, f") {operator} (", right, ")")
        return Query(kinds, left, f" {operator} ", right)

    def nested(self, kinds, depth):
        """Makes an operand of a set operation that has exactly these types."""
        self.scopes.append([])
        if depth > 0 and self.is_likely(0.2):
            made = self.values(kinds)
        else:
            source = self.from_clause(0, joins=self.one(0, 0, 1))
            made = Query(kinds, "select ", join([self.expr(kind, self.one(0, 0, 1)) for kind in kinds]), source, self.where(0.6, 1))
        self.scopes.pop()
        return made.node

    def distinct(self, kinds, depth):
        source = self.from_clause(depth)
        kinds = [kind if kind in COMPARED else "i4" for kind in self.draw_kinds(kinds)]
        return Query(kinds, "select distinct ", join([self.expr(kind, self.one(0, 0, 1)) for kind in kinds]), source, self.where(0.4))

    def distinct_on(self, kinds, depth):
        source = self.from_clause(0, joins=self.one(0, 0, 1))
        kinds = [kind if kind in ORDERED else "i4" for kind in self.draw_kinds(kinds)]
        items = [self.expr(kind, self.one(0, 0, 1)) for kind in kinds]
        where = self.where(0.4)
        order = ", ".join(str(number) + self.one("", " desc", " nulls first") for number in range(1, len(kinds) + 1))
        return Query(kinds, "select distinct on (1) ", text(*[part for number, one in enumerate(items) for part in ((", ", one) if number else (one,))]), source, where, f" order by {order}")

    def with_query(self, kinds, depth):
        """Puts queries in front that the main one reads once or more."""
        names, before = [], len(self.ctes)
        for _ in range(self.one(1, 1, 2)):
            name, inner = self.alias("cte"), [self.one(*USUAL) for _ in range(self.one(1, 2))]
            outer, self.scopes = self.scopes, [[]]
            query = self.query(inner, depth - 1, is_inner=True)
            self.scopes = outer
            relation = Relation(name, self.relation_of(query.kinds).columns)
            names.append(text(f"{name}({', '.join(relation.columns)}) as {self.one('', '', 'materialized ', 'not materialized ')}(", query.node, ")"))
            self.ctes.append(relation)
        if self.is_likely(0.15):
            name = self.alias("r")
            step, start = self.one("n + 1", "n * 2", "n + 2"), self.one("1", "2", "(select min(id) from a)")
            names.append(text(f"{name}(c1) as (select {start} union {self.one('', 'all ')}select {step} from {name} as r(n) where n < {self.one(5, 9)})"))
            self.ctes.append(Relation(name, {"c1": "i4"}))
        prefix = "with recursive " if "select n" in str(names[-1]) else "with "
        source = self.from_clause(0)
        kinds = self.draw_kinds(kinds)
        made = Query(kinds, prefix, join(names), " select ", join([self.expr(kind, self.one(0, 1)) for kind in kinds]), source, self.where(0.5, 1))
        del self.ctes[before:]
        return made

    def values(self, kinds, depth=0):
        kinds = kinds or [self.one(*ANY) for _ in range(self.one(1, 2, 3))]
        rows = [text("(", text(*[part for number, kind in enumerate(kinds) for part in ((", ", self.cell(kind)) if number else (self.cell(kind),))]), ")")
                for _ in range(self.one(1, 2, 3, 4))]
        return Query(kinds, "values ", join(rows))

    # Statements

    def statement(self, query):
        """Adds ORDER BY and LIMIT to a query; with LIMIT the order is that of all columns."""
        kinds = [] if " order by " in str(query.node.parts[-1]) and isinstance(query.node.parts[-1], str) else query.kinds
        orderable = [number for number, kind in enumerate(kinds, 1) if kind in ORDERED]
        if not orderable or self.is_likely(0.55):
            return text(query.node)
        suffix = lambda: self.one("", "", " desc", " asc nulls first", " desc nulls last", " nulls first")
        if len(orderable) == len(query.kinds) and self.is_likely(0.6):
            limit = self.one(f" limit {self.one(0, 1, 3, 7)}", f" offset {self.one(0, 1, 4)}", f" limit 5 offset {self.one(1, 2)}", " fetch first 3 rows only", " fetch next 2 rows with ties", " offset 1 rows fetch first row with ties", " limit all", " limit null offset 2")
            order = self.chance.sample(orderable, len(orderable))
            return text(query.node, Node("order", " order by ", ", ".join(f"{number}{suffix()}" for number in order)), optional(limit))
        order = [f"{number}{suffix()}" for number in self.chance.sample(orderable, self.chance.randint(1, len(orderable)))]
        return text(query.node, optional(Node("order", " order by ", join(order))))

    def scalars(self):
        """Selects expressions of constants: no table is read."""
        kinds = [self.one(*TYPES, INEXACT) for _ in range(self.one(1, 1, 1, 2))]
        return text(Node("query", "select ", join([self.fill(kind, self.chance.choice(READ_TEMPLATES[kind]), self.one(1, 1, 2)) for kind in kinds])))

    def columns_of_table(self):
        """Selects expressions over the columns of one table with all types."""
        relation, alias = BY_NAME["edge" if self.is_edge else "mild"], self.alias()
        self.scopes.append([(alias, relation)])
        kinds = [self.one(*TYPES, INEXACT) for _ in range(self.one(1, 1, 2))]
        items = [self.fill(kind, self.template(kind), self.one(1, 1, 2)) for kind in kinds]
        query = Query(kinds, "select ", join([f"{alias}.id", *items]), " from ", Node("from", f"{relation.name} as {alias}"), self.where(0.4, 1))
        self.scopes.pop()
        query.kinds = ["i4", *kinds]
        return self.statement(query)
