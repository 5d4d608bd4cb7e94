"""Makes statements that change the tables `w` and `v`: INSERT, UPDATE, DELETE, with ON CONFLICT and RETURNING."""

from sql_nodes import Node, join, optional, text
from sql_queries import Generator, Query
from sql_tables import BY_NAME, WRITTEN, Relation
from sql_types import draw_literal, quote

# Types that a column takes without a cast.
ASSIGNED = {"i4": ("i4", "i4", "i2", "i8", "nu", "f8"), "t": ("t", "t", "v", "i4", "d"), "nu": ("nu", "i4", "f8", "i8"), "f8": ("f8", "nu", "i4"), "v": ("v", "t"),
            "d": ("d", "ts", "tz"), "ts": ("ts", "d", "tz"), "b": ("b",), "jb": ("jb",), "ai": ("ai",), "i2": ("i2", "i4", "nu")}


class ChangeGenerator(Generator):
    """Makes one statement that changes a table."""

    def change(self):
        name = self.one("w", "w", "v")
        made = self.chance.choice([self.insert] * 5 + [self.update] * 4 + [self.delete] * 2)(name)
        return made

    def value(self, name):
        """Makes what a column is given: a bare literal, or an expression of a type that is assigned."""
        kind = WRITTEN[name]
        form = self.chance.random()
        if form < 0.35:
            literal = draw_literal(self.chance, kind, False)
            return Node(kind, quote(literal.value), value=literal.value)
        if form < 0.4:
            return text("default")
        if form < 0.47:
            return text("null")
        if name in ("id", "k") and form < 0.9:
            return self.key()
        return self.expr(self.one(*ASSIGNED[kind]), self.one(0, 0, 1))

    def key(self):
        number = self.chance.randint(1, 14)
        return Node("i4", str(number), value=str(number))

    def insert(self, name):
        columns = ["id", *self.chance.sample([one for one in WRITTEN if one != "id"], self.one(1, 2, 2, 4))]
        listed = f" ({', '.join(columns)})"
        prefix = text()
        form = self.chance.random()
        if form < 0.6:
            rows = [self.row(columns) for _ in range(self.one(1, 1, 2, 3))]
            source = text(" values ", join(rows))
        elif form < 0.63:
            source, listed = text(" default values"), ""
        else:
            kinds = [self.one(*ASSIGNED[WRITTEN[one]]) for one in columns]
            source = text(" ", self.source(kinds))
            if form < 0.72:
                prefix = text("with s as (select 1 as c1) ")
        target = Relation(name, WRITTEN)
        return text(prefix, f"insert into {name}{listed}", source, self.conflict(name, columns, target), self.returning(name, target))

    def row(self, columns):
        cells = [self.key() if column == "id" else self.value(column) for column in columns]
        return text("(", text(*[part for number, one in enumerate(cells) for part in ((", ", one) if number else (one,))]), ")")

    def source(self, kinds):
        """Selects rows whose first column is a key."""
        self.scopes.append([])
        relation = BY_NAME[self.one("a", "b", "c", "mild")]
        alias = self.alias()
        self.scopes[-1].append((alias, relation))
        first = text(f"{alias}.id{self.one('', '', ' + 100', ' + 5')}")
        items = [first, *[self.expr(kind, self.one(0, 1)) for kind in kinds[1:]]]
        query = Query(kinds, "select ", text(*[part for number, one in enumerate(items) for part in ((", ", one) if number else (one,))]),
                      f" from {relation.name} as {alias}", self.where(0.7, 1))
        self.scopes.pop()
        return query.node

    def conflict(self, name, columns, target):
        form = self.chance.random()
        if form < 0.5:
            return text()
        where = self.one("", "(id)", "(id)", "(k)", f"on constraint {name}_pkey")
        if form < 0.68:
            return optional(f" on conflict {where} do nothing")
        column = self.one(*[one for one in WRITTEN if one not in ("id", "k")])
        value = self.chance.choice([lambda: text(f"excluded.{column}"), lambda: text(f"{name}.{column}"), lambda: self.value(column)])()
        self.scopes.append([(name, target), ("excluded", target)])
        tail = optional(" where ", self.condition(0)) if self.is_likely(0.3) else text()
        self.scopes.pop()
        return optional(f" on conflict {where or '(id)'} do update set {column} = ", value, tail)

    def returning(self, name, target):
        form = self.chance.random()
        if form < 0.5:
            return text()
        if form < 0.7:
            return optional(" returning *")
        self.scopes.append([(name, target)])
        made = optional(" returning ", join([self.expr("any", self.one(0, 1)) for _ in range(self.one(1, 2))]))
        self.scopes.pop()
        return made

    def update(self, name):
        target = Relation(name, WRITTEN)
        self.scopes.append([(name, target)])
        sets = []
        for column in self.chance.sample([one for one in WRITTEN if one not in ("id", "k")], self.one(1, 1, 2)):
            sets.append(text(f"{column} = ", self.value(column)))
        if self.is_likely(0.1):
            sets.append(text("k = k + ", self.one("1000", "0", "-1000")))
        elif self.is_likely(0.08):
            sets = [text("(f, b) = ", self.one("(1, true)", "(select x, true from a where a.id = " + name + ".id)", "row(2, null)"))]
        source = text()
        if self.is_likely(0.25):
            other = BY_NAME[self.one("c", "mild")]
            self.scopes[-1].append(("o", other))
            # A key of the other table: at most one of its rows goes with a row of the target.
            source = text(f" from {other.name} as o where o.id = {name}.id", optional(" and ", self.condition(0)))
        where = source if source.parts else self.change_condition()
        self.scopes.pop()
        return text(f"update {name} set ", join(sets), where, self.returning(name, target))

    def change_condition(self):
        form = self.chance.random()
        if form < 0.15:
            return text()
        if form < 0.4:
            return optional(" where id ", self.one("= ", "< ", ">= "), self.key())
        if form < 0.65:
            return optional(" where ", self.subquery_condition(0))
        return optional(" where ", self.condition(1))

    def delete(self, name):
        target = Relation(name, WRITTEN)
        self.scopes.append([(name, target)])
        if self.is_likely(0.25):
            other = BY_NAME[self.one("a", "b", "c")]
            self.scopes[-1].append(("o", other))
            where = text(f" using {other.name} as o where o.id = {name}.id", optional(" and ", self.condition(0)))
        else:
            where = self.change_condition()
        self.scopes.pop()
        return text(f"delete from {name}", where, self.returning(name, target))
