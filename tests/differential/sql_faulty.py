"""Constructs that meet open faults of Quipu: they run only with QUIPU_DIFFERENTIAL_ALL=1.

Remove an entry when its fault is fixed. Templates and values are not generated at all, because they give wrong rows.
Answers of other faults, wrong codes, types and names, are counted and not reported.
"""

import os
import re

IS_ALL = os.environ.get("QUIPU_DIFFERENTIAL_ALL") == "1"

# By type of the result, as in `sql_functions`, with their parentheses.
TEMPLATES = {
    "i2": "({i2} << {shift})",
    "i4": "({i4} # {i4}) || lcm({i4}, {i4}) || array_length({ai}, 1) || array_ndims({ai}) || array_upper({at}, 1) || array_lower({af}, 1) || "
          "(({ai})[{small}]) || char_length({c}) || length({c}) || ({i4} << {shift})",
    "i8": "({i8} # {i8})",
    "f4": "({f8}::float4)",
    "f8": "({nu} / {f8}) || ({f4} * {i4}) || ({f4} + {nu}) || (({af})[{small}]) || ({i4} ^ {i4})",
    "fx": "exp({f8}) || ln({f8}) || log({f8}) || log10({f8}) || power({f8}, {f8}) || ({f8} ^ {f8}) || sin({f8}) || cos({f8}) || tan({f8}) || "
          "asin({f8}) || acos({f8}) || degrees({f8}) || radians({f8}) || cot({f8}) || asinh({f8}) || atanh({f8}) || acosh({f8}) || exp({i4}) || "
          "pow({f8}, 2) || exp({f4}) || power({i4}, {small})",
    "nu": "({nu} / {nu}) || ({nu} / {i4}) || ({i4} / {nu}) || round({nu}, {digits}) || floor({nu}) || div({nu}, {nu}) || sqrt({nu}) || "
          "power({nu}, {small}) || ln({nu}) || log({nu}) || exp({nu}) || lcm({nu}, {nu}) || ({i4}::numeric) || ({i8}::numeric) || ({f8}::numeric) || "
          "({f4}::numeric) || (({jb})::numeric) || ({nu}::numeric(4,-1)) || log(2, {nu}) || ({nu} ^ {small}) || extract({timefield} from {tm}) || "
          "({t}::numeric)",
    "t": "concat({t}, {i4}, {b}) || to_char({tz}, {tochar}) || to_char({ts}, {tochar}) || to_char({f8}, {numchar}) || to_char({iv}, {ivchar}) || "
         "to_char({d}, {tochar}) || to_hex({i4}) || ({jb}#>>{path}) || jsonb_pretty({jb}) || ({f4}::text) || ({nu}::text) || ({tm}::text) || "
         "({by}::text) || ({j}::text) || ({jb}::text) || ({c}::text) || (({at})[{small}]) || ({c} || {t}) || concat({c}, {t})",
    "b": "({i4} = any ({ai})) || ({t} = any ({at})) || ({t} = {c}) || ({c} = {v}) || ({c} <> {c}) || ({c} is distinct from {c}) || "
         "(nullif({c}, {c}) is null) || ({jb} < {jb}) || ({jb} <= {jb}) || ({jb} > {jb}) || ({jb} >= {jb}) || ({jb} between {jb} and {jb}) || "
         "({af} <= {af}) || ({af} >= {af}) || ({af} between {af} and {af}) || ({jb} = {jb}) || ({c} = {c})",
    "ts": "({ts}::timestamp(3)) || ({ts}::timestamp(0))",
    "tz": "date_trunc({unit}, {tz}, {zone}) || ({tz}::timestamptz(1))",
    "iv": "({iv} / {nz}) || ({t}::interval) || ({iv} / {f8})",
    "by": "overlay({by} placing {by} from {pos}) || btrim({by}, {by})",
    "j": "({j}->{small}) || json_build_object('k', {i4}, 'd', {d}) || json_build_array({t}, {f8}, {b}) || array_to_json({ai}) || ({jb}::json) || "
         "to_json({iv}) || json_build_array({nu}, {tz}) || to_json({by})",
    "jb": "to_jsonb({nu}) || ({jb} - {small}) || jsonb_build_object('k', {iv}, 't', {tm}) || jsonb_build_array({i4}, {t}, {b}, {nu}) || to_jsonb({f8})",
    "ai": "array_remove({ai}, {i4})",
    "at": "array_remove({at}, {t}) || ({ai}::text[]) || ({t}::text[])",
}
READ_TEMPLATES = {} if IS_ALL else {kind: set(re.split(r" \|\| (?!\{t\}\))", lines)) for kind, lines in TEMPLATES.items()}

# Values that Quipu reads wrongly, or not at all, by type.
VALUES = {
    "nu": ["NaN", "Infinity", "1e20", "1e15", "-1e-10", "1e-20", "12345678901234567890123456789.5", "99999999999999999999.9999999999",
           "0.30000000000000004"],
    "d": ["infinity", "-infinity", "4713-01-01 BC", "January 8, 1999", "Feb 29 2024", "0001-01-01", "9999-12-31", "1582-10-15"],
    "ts": ["infinity", "-infinity", "294276-12-31 23:59:59", "0044-03-15 10:00:00 BC", "0001-01-01 03:14:07", "9999-12-31 00:00:00",
           "1582-10-15 10:20:30.5"],
    "tz": ["infinity", "-infinity", "0001-01-01 03:14:07+00", "9999-12-31 00:00:00+00", "1582-10-15 10:20:30.5+00"],
    "iv": ["@ 1 hour ago", "P1Y2M3DT4H5M6S", "PT1.5H", "-1 mons +2 days -03:00:00", "1000000 hours"],
    "tm": ["24:00:00", "040506"], "j": ["1.10", "1e5", "0.1e-3", "12345678901234567890"], "jb": ["1.10", "1e5", "0.1e-3", "12345678901234567890"],
    "f4": ["16777217", "1e6", "1234567"], "c": ["a   ", "", " a"],
}

# Codes where both refuse: Quipu's and PostgreSQL's.
CODES = set()
# Quipu refuses or breaks where PostgreSQL answers, or refuses in another way: patterns of Quipu's answer.
ANSWERS = []


def held_templates(kind):
    return READ_TEMPLATES.get(kind, ())


def held_values(kind):
    return () if IS_ALL else VALUES.get(kind, ())


def name_open_fault(difference):
    """Names the open fault that a difference comes from; None if it is a new one."""
    if IS_ALL:
        return None
    kind = difference.kind
    if kind[0] == "error" and kind[2] == "error" and (kind[1], kind[3]) in CODES:
        return f"code {kind[1]} instead of {kind[3]}"
    for pattern in ANSWERS:
        if re.search(pattern, difference.quipu):
            return pattern
    return None
