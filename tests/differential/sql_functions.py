"""Functions and operators by the type of their result, as templates: `{i4}` stands for an expression of that type.

Names that are no types (`{unit}`, `{regex}`) stand for a constant of their list in CONSTANTS.
"""

import re

from sql_faulty import held_templates
from sql_types import COMPARED, INEXACT, NUMBERS, ORDERED, TYPES

CONSTANTS = {
    "small": ["0", "1", "2", "3", "5", "-1", "NULL"], "pos": ["1", "2", "3", "4"], "nz": ["1", "2", "3", "7", "-3", "10"],
    "shift": ["0", "1", "4", "15"], "digits": ["0", "1", "2", "-1", "5"],
    "unit": ["'year'", "'quarter'", "'month'", "'week'", "'day'", "'hour'", "'minute'", "'second'", "'milliseconds'", "'decade'",
             "'century'", "'millennium'", "'microseconds'", "'MONTH'"],
    "field": ["year", "month", "day", "hour", "minute", "second", "dow", "doy", "epoch", "week", "quarter", "isoyear", "isodow",
              "century", "decade", "millennium", "milliseconds", "microseconds", "julian"],
    "datefield": ["year", "month", "day", "dow", "doy", "epoch", "week", "quarter", "isoyear", "isodow", "century", "decade"],
    "timefield": ["hour", "minute", "second", "epoch", "milliseconds", "microseconds"],
    "ivfield": ["year", "month", "day", "hour", "minute", "second", "epoch", "quarter", "century", "decade", "millennium",
                "milliseconds", "microseconds"],
    "zone": ["'UTC'", "'Europe/Berlin'", "'America/New_York'", "'Asia/Kolkata'", "'+02:30'", "'CET'", "'EST'", "'-03'",
             "'Australia/Lord_Howe'", "interval '2 hours'"],
    "like": ["'a%'", "'%b%'", "'_'", "'a_'", "'%'", "''", "'A%'", "'a\\_%'", "'%\\%%'", "'__%'", "'ä%'"],
    "regex": ["'a'", "'^a'", "'b$'", "'^(a|b)'", "'[abc]+'", "'a.b'", "'(a)(b)?'", "'\\w+'", "'[^a]'", "'^$'", "'a{2}'", "'(?i)A'",
              "'\\d'", "'x*'"],
    "similar": ["'a%'", "'(a|b)%'", "'_'", "'[a-c]+'", "'%x%'", "'a{1,2}'"],
    "flags": ["'g'", "'i'", "'gi'", "''", "'n'"],
    "tochar": ["'YYYY-MM-DD'", "'HH24:MI:SS.US'", "'Day, DD Mon YYYY'", "'FMDDth FMMonth YYYY'", "'IYYY-IW-ID'", "'Q YY CC J DDD'",
               "'HH12:MI AM'", "'MS'", "'\"at\" HH'", "'TZ OF'", "''", "'SSSS'"],
    "ivchar": ["'HH24:MI:SS'", "'DD HH24'", "'YYYY MM DD'", "'MS US'"],
    "numchar": ["'999'", "'FM999.99'", "'000.00'", "'S99'", "'9,999.9'", "'9.99EEEE'", "'RN'", "'99PR'", "'MI99'", "'FM0'", "'L99'",
                "'99V9'"],
    "enc": ["'hex'", "'base64'", "'escape'"], "key": ["'a'", "'b'", "'k'", "''"], "path": ["'{a}'", "'{b,0}'", "'{k,a}'", "'{}'", "'{-1}'"],
    "jsonpath": ["'$'", "'$.a'", "'$.b[*]'", "'$[0]'", "'$.k.*'", "'$.a ? (@ > 0)'"],
    "seconds": ["0", "1", "59.999999", "30.5"], "month": ["1", "2", "12"], "day": ["1", "28", "29"], "year": ["2024", "2023", "1970", "1"],
    "hour": ["0", "10", "23"], "minute": ["0", "59"], "stride": ["'15 minutes'", "'1 day'", "'7 hours'", "'1 second'"],
    "format": ["'%s-%s'", "'%I.%L'", "'%2$s%1$s'", "'%-5s|%5s'", "'%%'"], "collation": ['"C"', '"POSIX"'],
    "form": ["NFC", "NFD", "NFKC"], "sep": ["','", "' '", "''", "'ab'", "NULL"],
    "ivunit": ["'hour'", "'day'", "'month'", "'minute'", "'year'"], "fraction": ["0.5", "0", "1", "0.25"],
}

TEMPLATES = {
    "i2": """{i2} + {i2} | {i2} - {i2} | {i2} * {i2} | {i2} / {i2} | {i2} % {i2} | - {i2} | abs({i2}) | {i2} & {i2} | ~ {i2} | {i2} << {shift}
        {i2} >> {shift} | mod({i2}, {i2}) | cast({i4} as int2) | {nu}::int2 | {f8}::int2""",
    "i4": """{i4} + {i4} | {i4} - {i4} | {i4} * {i4} | {i4} / {i4} | {i4} % {i4} | - {i4} | + {i4} | abs({i4}) | @ {i4} | {i4} & {i4} | {i4} \\| {i4}
        {i4} # {i4} | ~ {i4} | {i4} << {shift} | {i4} >> {shift} | {i2} + {i4} | {i4} - {i2} | {i2} * {i4} | mod({i4}, {i4}) | gcd({i4}, {i4})
        lcm({i4}, {i4}) | {i2}::int4 | {i8}::int4 | {f4}::int4 | {f8}::int4 | {nu}::int4 | {b}::int4 | {t}::int4 | length({t}) | char_length({t})
        octet_length({t}) | bit_length({t}) | ascii({t}) | strpos({t}, {t}) | position({t} in {t}) | length({by}) | octet_length({by})
        array_length({ai}, 1) | cardinality({at}) | array_position({ai}, {i4}) | array_ndims({ai}) | array_upper({at}, 1) | array_lower({af}, 1)
        {d} - {d} | jsonb_array_length({jb}) | json_array_length({j}) | width_bucket({f8}, 0, 10, {pos}) | width_bucket({nu}, 0, 10, {pos})
        scale({nu}) | min_scale({nu}) | num_nulls({t}, {i4}) | num_nonnulls({d}, {f8}, {t}) | regexp_count({t}, {regex}) | get_byte({by}, {small})
        regexp_instr({t}, {regex}) | ({ai})[{small}] | ({jb}->>{key})::int4 | ({jb})::int4 | div({i4}, {i4})::int4 | sign({i4})::int4
        char_length({c}) | length({c}) | extract({datefield} from {d})::int4 | bit_length({by}) | cardinality({ai})""",
    "i8": """{i8} + {i8} | {i8} - {i8} | {i8} * {i8} | {i8} / {i8} | {i8} % {i8} | - {i8} | abs({i8}) | {i8} & {i8} | {i8} # {i8} | {i8} << {shift}
        {i4} + {i8} | {i8} - {i4} | {i8} * {i2} | {i2} + {i8} | gcd({i8}, {i8}) | {i4}::int8 | {f8}::int8 | {nu}::int8 | {f4}::int8 | {t}::bigint
        mod({i8}, {i4}) | {i8} \\| {i8} | ~ {i8} | bit_count({by}) | ({jb})::int8 | {i8} / {i4}""",
    "f4": """{f4} + {f4} | {f4} - {f4} | {f4} * {f4} | {f4} / {f4} | - {f4} | abs({f4}) | {f8}::float4 | {i4}::real | {nu}::float4 | {t}::float4
        {i8}::float4 | {i2}::real""",
    "f8": """{f8} + {f8} | {f8} - {f8} | {f8} * {f8} | {f8} / {f8} | - {f8} | abs({f8}) | {f4} + {f8} | {f8} * {f4} | {i4} + {f8} | {f8} / {i4}
        {f8} - {i8} | {f8} + {nu} | {nu} * {f8} | {nu} / {f8} | {f8} - {nu} | {f4} * {i4} | {f4} + {nu} | ceil({f8}) | ceiling({f8}) | floor({f8})
        round({f8}) | trunc({f8}) | sqrt({f8}) | sign({f8}) | {f4}::float8 | {i4}::float8 | {nu}::float8 | {t}::float8 | {i8}::double precision
        date_part({unit}, {ts}) | date_part('epoch', {iv}) | @ {f8} | |/ {f8} | sign({i4}) | ({jb})::float8 | ({af})[{small}] | ceil({i4}) | floor({i8})
        date_part({ivunit}, {iv}) | date_part('day', {d}) | round({i4}) | sqrt({i4}) | {i4} ^ {i4} | trunc({f4}) | date_part('hour', {tm})""",
    INEXACT: """exp({f8}) | ln({f8}) | log({f8}) | log10({f8}) | power({f8}, {f8}) | {f8} ^ {f8} | cbrt({f8}) | sin({f8}) | cos({f8}) | tan({f8}) | asin({f8})
        acos({f8}) | atan({f8}) | atan2({f8}, {f8}) | sinh({f8}) | cosh({f8}) | tanh({f8}) | degrees({f8}) | radians({f8}) | pi() | cot({f8})
        ||/ {f8} | sind({f8}) | cosd({f8}) | asinh({f8}) | atanh({f8}) | acosh({f8}) | {fx} + {f8} | {fx} * {f8} | - {fx} | coalesce({fx}, {f8})
        power({i4}, {small}) | exp({i4}) | pow({f8}, 2) | exp({f4}) | sqrt({fx})""",
    "nu": """{nu} + {nu} | {nu} - {nu} | {nu} * {nu} | {nu} / {nu} | {nu} % {nu} | - {nu} | abs({nu}) | {i4} + {nu} | {nu} * {i8} | {nu} / {i4} | {i4} / {nu}
        round({nu}, {digits}) | round({nu}) | trunc({nu}, {digits}) | trunc({nu}) | ceil({nu}) | floor({nu}) | sign({nu}) | mod({nu}, {nu}) | div({nu}, {nu})
        sqrt({nu}) | power({nu}, {small}) | ln({nu}) | log({nu}) | exp({nu}) | trim_scale({nu}) | gcd({nu}, {nu}) | lcm({nu}, {nu}) | factorial({pos})
        extract({field} from {ts}) | extract({field} from {tz}) | extract({ivfield} from {iv}) | extract({timefield} from {tm}) | extract({datefield} from {d})
        {i4}::numeric | {i8}::numeric | {f8}::numeric | {f4}::numeric | {t}::numeric | {nu}::numeric(10,2) | {f8}::numeric(8,3) | {i4}::decimal(5,1)
        ({jb})::numeric | {nu}::numeric(4,-1) | {i2} - {nu} | log(2, {nu}) | round({i4}, {digits}) | {nu} ^ {small} | to_number({t}, '999.99')
        {t}::numeric(6,2) | mod({nu}, {i4})""",
    "t": """lower({t}) | upper({t}) | initcap({t}) | reverse({t}) | substr({t}, {small}) | substr({t}, {small}, {pos}) | substring({t} from {small} for {pos})
        substring({t} from {regex}) | left({t}, {small}) | right({t}, {small}) | replace({t}, {t}, {t}) | split_part({t}, {sep}, {small}) | lpad({t}, {pos}, {t})
        rpad({t}, {pos}) | ltrim({t}) | rtrim({t}, {t}) | btrim({t}, {t}) | trim(both {t} from {t}) | trim(leading {t} from {t}) | trim({t}) | trim(trailing from {t})
        repeat({t}, {small}) | translate({t}, {t}, {t}) | concat({t}, {i4}, {b}) | concat_ws({sep}, {t}, {d}, {t}) | {t} \\|\\| {t} | {t} \\|\\| {i4} | {d} \\|\\| {t}
        overlay({t} placing {t} from {pos} for {small}) | chr({pos} + 64) | md5({t}) | quote_literal({t}) | quote_ident({t}) | quote_nullable({t})
        format({format}, {t}, {t}) | to_char({ts}, {tochar}) | to_char({tz}, {tochar}) | to_char({i4}, {numchar}) | to_char({nu}, {numchar}) | to_char({f8}, {numchar})
        to_char({iv}, {ivchar}) | to_char({d}, {tochar}) | to_hex({i4}) | to_hex({i8}) | encode({by}, {enc}) | regexp_replace({t}, {regex}, {t})
        regexp_replace({t}, {regex}, '<\\1>', {flags}) | regexp_substr({t}, {regex}) | array_to_string({at}, {sep}) | array_to_string({ai}, ',', '*') | {jb}->>{key}
        {jb}->>{small} | {jb}#>>{path} | {j}->>{key} | jsonb_typeof({jb}) | json_typeof({j}) | jsonb_pretty({jb}) | normalize({t}, {form}) | {t} collate {collation}
        {i2}::text | {i4}::text | {i8}::text | {f4}::text | {f8}::text | {nu}::text | {b}::text | {d}::text | {tm}::text | {ts}::text | {tz}::text | {iv}::text
        {by}::text | {u}::text | {j}::text | {jb}::text | {ai}::text | {at}::text | {af}::text | {v}::text | {c}::text | convert_from({by}, 'UTF8') | ({at})[{small}]
        cast({t} as text) | (regexp_match({t}, {regex}))[1] | md5({by}) | jsonb_extract_path_text({jb}, {key}) | to_char({tm}, 'HH24:MI') | unistr({t})
        {v} \\|\\| {t} | {c} \\|\\| {t} | concat({c}, {t}) | array_dims({ai}) | upper({v}) | to_char({i8}, {numchar})""",
    "v": """{t}::varchar(3) | {t}::varchar | {i4}::varchar | {v}::varchar(2) | cast({d} as varchar(5)) | {c}::varchar(4)""",
    "c": """{t}::char(4) | {t}::char(2) | {i4}::char(3) | cast({v} as char(4)) | {t}::bpchar""",
    "b": """{b} and {b} | {b} or {b} | not {b} | {b} is true | {b} is not false | {b} is unknown | {t} like {like} | {t} not like {like} | {t} ilike {like}
        {t} similar to {similar} | {t} ~ {regex} | {t} !~ {regex} | {t} ~* {regex} | {t} !~* {regex} | {v} like {like} | {t} like {t} | {t} ~~ {like}
        starts_with({t}, {t}) | {t} ^@ {t} | {t} like {like} escape '#' | {t} like any (array['a%', '%b']) | {i4} = any ({ai}) | {t} = any ({at}) | {i4} > all ({ai})
        {t} <> all ({at}) | {f8} < any ({af}) | {ai} @> {ai} | {ai} <@ {ai} | {ai} && {ai} | {at} @> {at} | {at} && {at} | {jb} @> {jb} | {jb} <@ {jb}
        {jb} ? {key} | {jb} ?\\| array['a','k'] | {jb} ?& array['a','b'] | isfinite({ts}) | isfinite({iv}) | isfinite({d}) | ({ts}, {ts}) overlaps ({ts}, {iv})
        ({i4}, {t}) = ({i4}, {t}) | ({i4}, {t}) < ({i4}, {t}) | ({i4}, {t}) is null | ({i4}, {t}) is not null | ({i4}, {d}) in (({i4}, {d}), ({i4}, {d}))
        ({i4}, {t}) is distinct from ({i4}, {t}) | {i4}::bool | {t}::bool | ({jb})::bool | {i2} < {i8} | {i4} = {nu} | {f4} = {f8} | {f8} > {nu} | {nu} >= {i8}
        {i4} <= {f8} | {t} = {c} | {v} = {t} | {c} = {v} | {d} < {ts} | {d} = {tz} | {ts} < {tz} | {t} is normalized | jsonb_path_exists({jb}, {jsonpath})
        {i4} between symmetric {i4} and {i4} | {i4} not between {i4} and {i4} | {i4} in ({i4}, {i4}, {i4}) | {t} not in ({t}, {t}) | {i4} in (1, null) | {t} in ('a', 'b', 'ab')
        {nu} in ({i4}, {nu}) | {i4} in ({nu}, {i8}) | bool 't' = {b} | {b} > {b} | {tm} < {tm} | {iv} = {iv} | {by} < {by} | {f8} in ('NaN', 1) | {f8} not in ({f8}, {f8})
        {at} = {at} | {ai} < {ai} | {b} = any (array[{b}, {b}]) | {i4} is not distinct from {i8} | regexp_like({t}, {regex}) | {d} - {d} > {i4} | {t} > {t}""",
    "d": """{d} + {i4} | {d} - {i4} | {i4} + {d} | {ts}::date | {tz}::date | {t}::date | make_date({year}, {month}, {day}) | to_date('2024 02 ' \\|\\| {day}, 'YYYY MM DD')
        date({ts}) | cast({ts} as date) | date_trunc({unit}, {d})::date""",
    "tm": """{tm} + {iv} | {tm} - {iv} | {iv} + {tm} | {ts}::time | {tz}::time | {iv}::time | {t}::time | make_time({hour}, {minute}, {seconds}) | {tm}::time(2) | {ts}::time(0)""",
    "ts": """{ts} + {iv} | {ts} - {iv} | {iv} + {ts} | {d} + {iv} | {d} - {iv} | {d} + {tm} | {tm} + {d} | date_trunc({unit}, {ts}) | date_bin({stride}, {ts}, timestamp '2001-01-01')
        {tz} at time zone {zone} | {d}::timestamp | {tz}::timestamp | {t}::timestamp | make_timestamp({year}, {month}, {day}, {hour}, {minute}, {seconds})
        timezone({zone}, {tz}) | {ts}::timestamp(3) | {ts}::timestamp(0) | cast({d} as timestamp)""",
    "tz": """{tz} + {iv} | {tz} - {iv} | date_trunc({unit}, {tz}) | date_trunc({unit}, {tz}, {zone}) | {ts} at time zone {zone} | {d}::timestamptz | {ts}::timestamptz
        {t}::timestamptz | to_timestamp({i4}) | to_timestamp({f8}) | to_timestamp('2024-02-' \\|\\| {day}, 'YYYY-MM-DD') | date_trunc({unit}, {d}) | timezone({zone}, {ts})
        make_timestamptz({year}, {month}, {day}, {hour}, {minute}, {seconds}) | date_bin({stride}, {tz}, timestamptz '2001-01-01 00:00+00') | {tz}::timestamptz(1)
        {d} at time zone {zone}""",
    "iv": """{ts} - {ts} | {tz} - {tz} | {tm} - {tm} | {iv} + {iv} | {iv} - {iv} | - {iv} | {iv} * {i4} | {iv} * {f8} | {iv} / {nz} | {i4} * {iv} | {iv} / {f8}
        age({ts}, {ts}) | age({tz}, {tz}) | justify_hours({iv}) | justify_days({iv}) | justify_interval({iv}) | make_interval(days => {i4}) | {t}::interval
        make_interval({small}, {small}, {small}, {pos}, {hour}, {minute}, {seconds}) | date_trunc({ivunit}, {iv}) | {tm}::interval | {iv}::interval(2) | {d} - {ts}
        {ts} - {d} | ({ts} - {ts}) * 2 | {iv}::interval day to minute | interval '90' minute * {i4}""",
    "by": """{by} \\|\\| {by} | substring({by} from {pos} for {small}) | substr({by}, {pos}) | decode('6162', 'hex') | {t}::bytea | convert_to({t}, 'UTF8') | sha256({by})
        overlay({by} placing {by} from {pos}) | set_byte('\\x0000'::bytea, {shift} % 2, {pos}) | btrim({by}, {by}) | sha512({by}) | sha224({by})""",
    "u": """{t}::uuid | coalesce({u}, {u}) | md5({t})::uuid | ({u}::text)::uuid""",
    "j": """to_json({t}) | to_json({i4}) | {j}->{key} | {j}->{small} | {j}#>{path} | json_build_object('k', {i4}, 'd', {d}) | json_build_array({t}, {f8}, {b}) | array_to_json({ai})
        {jb}::json | {t}::json | json_object({at}) | to_json({ts}) | json_strip_nulls({j}) | row_to_json(row({i4}, {t})) | to_json({iv}) | json_build_array({nu}, {tz})
        json_extract_path({j}, {key}) | to_json({by})""",
    "jb": """to_jsonb({t}) | to_jsonb({nu}) | {jb}->{key} | {jb}->{small} | {jb}#>{path} | {jb} \\|\\| {jb} | {jb} - {key} | {jb} - {small} | {jb} #- {path} | {j}::jsonb
        {t}::jsonb | jsonb_build_object({t}, {i4}) | jsonb_build_object('k', {iv}, 't', {tm}) | jsonb_build_array({i4}, {t}, {b}, {nu}) | jsonb_set({jb}, {path}, {jb})
        jsonb_strip_nulls({jb}) | jsonb_insert({jb}, {path}, {jb}) | jsonb_path_query_first({jb}, {jsonpath}) | jsonb_path_query_array({jb}, {jsonpath}) | to_jsonb({ai})
        to_jsonb({ts}) | jsonb_object({at}) | jsonb_extract_path({jb}, {key}) | to_jsonb({f8}) | ({jb})[{key}] | to_jsonb({j}) | jsonb_build_object('u', {u}, 'd', {d})""",
    "ai": """{ai} \\|\\| {i4} | {ai} \\|\\| {ai} | {i4} \\|\\| {ai} | array_append({ai}, {i4}) | array_prepend({i4}, {ai}) | array_cat({ai}, {ai}) | array_remove({ai}, {i4})
        array_replace({ai}, {i4}, {i4}) | ({ai})[{small}:{pos}] | ({ai})[:{pos}] | ({ai})[2:] | array[{i4}, {i4}] | array_fill({i4}, array[{pos}]) | {t}::int4[] | trim_array({ai}, 1)
        array_positions({ai}, {i4}) | array[{i4}, null, {i4}]""",
    "at": """{at} \\|\\| {t} | array_append({at}, {t}) | array_remove({at}, {t}) | array_replace({at}, {t}, {t}) | string_to_array({t}, {sep}) | string_to_array({t}, ',', 'a')
        regexp_split_to_array({t}, {regex}) | regexp_match({t}, {regex}) | array[{t}, {t}] | {ai}::text[] | {t}::text[] | ({at})[1:2] | {at} \\|\\| {at} | parse_ident({t})""",
    "af": """{af} \\|\\| {f8} | array[{f8}, {f8}] | {ai}::float8[] | array_append({af}, {f8}) | array_remove({af}, {f8}) | ({af})[:2] | array_cat({af}, {af})""",
}
# The parts of a template, split at its holes.
HOLE = re.compile(r"\{(\w+)\}")
CALL = re.compile(r"^[a-z_0-9]+\(([^()]|\([^()]*\))*\)$")


def split_template(template):
    """Returns the parts: text, and (name,) for a hole. Operators get parentheses."""
    template = template if CALL.match(template) else f"({template})"
    pieces = HOLE.split(template)
    return tuple((piece,) if number % 2 else piece for number, piece in enumerate(pieces) if piece)


def read_templates():
    read = {}
    for kind, lines in TEMPLATES.items():
        # `|/` and `||/` are operators: a separator has white space on both sides.
        templates = re.split(r"\s(?<!\\)\|\s|\n\s+", lines)
        read[kind] = [split_template(one.replace("\\|", "|").strip()) for one in templates if one.strip()]
    for kind in COMPARED:
        read["b"] += [split_template(f"{{{kind}}} {operator} {{{kind}}}") for operator in
                      ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")]
        read["b"] += [split_template(f"{{{kind}}} between {{{kind}}} and {{{kind}}}"), split_template(f"nullif({{{kind}}}, {{{kind}}}) is null")]
    for kind in TYPES:
        hole = f"{{{kind}}}"
        read["b"] += [split_template(f"{hole} is null"), split_template(f"{hole} is not null")]
        read[kind] += [split_template(one) for one in (
            f"coalesce({hole}, {hole})", f"case when {{b}} then {hole} else {hole} end", f"case when {{b}} then {hole} end")]
        if kind in COMPARED:
            read[kind] += [split_template(f"nullif({hole}, {hole})"), split_template(f"case {{i4}} when {{i4}} then {hole} when {{small}} then {hole} end")]
        if kind in ORDERED and kind not in ("v", "c", "at", "ai", "jb"):
            read[kind] += [split_template(f"greatest({hole}, {hole})"), split_template(f"least({hole}, {hole}, {hole})")]
    return {kind: [one for one in templates if write_template(one) not in held_templates(kind)] for kind, templates in read.items()}


def write_template(parts):
    return "".join(part if isinstance(part, str) else f"{{{part[0]}}}" for part in parts)


READ_TEMPLATES = read_templates()

# Aggregates: those of `%s` name their argument twice, and its type is before the colon.
AGGREGATES = {
    "i8": ["count(*)", "count({any})", "count(distinct {any})", "sum({i2})", "sum({i4})", "regr_count({f8}, {f8})", "bit_and({i8})", "sum(case when {b} then 1 else 0 end)",
           "rank({i4}) within group (order by {i4})", "rank({pos}) within group (order by {i4} desc)", "dense_rank({pos}) within group (order by {i4} nulls first)",
           "rank('b', {pos}) within group (order by {t}, {i4} desc)"],
    "i4": ["bit_or({i4})", "bit_xor({i4})", "bit_and({i4})", "max({i4})", "min({i4})"],
    "nu": ["sum({i8})", "avg({i4})", "avg({i2})", "avg({i8})", "sum({nu})", "avg({nu})", "stddev({i4})", "var_pop({i4})", "variance({nu})", "max({nu})",
           "sum(distinct {i8})", "sum(case when {b} then 1 else 0.0 end)"],
    INEXACT: ["sum({f8})", "avg({f8})", "avg({f4})", "stddev({f8})", "var_samp({f8})", "corr({f8}, {f8})", "covar_pop({f8}, {f8})", "regr_slope({f8}, {f8})",
              "stddev_pop({f8})", "regr_intercept({f8}, {f8})", "regr_r2({f8}, {f8})", "regr_avgx({f8}, {f8})", "percentile_cont({fraction}) within group (order by {f8})"],
    "f8": ["percent_rank({pos}) within group (order by {i4})", "cume_dist('ab') within group (order by {t} desc)", "percentile_disc({fraction}) within group (order by {f8})", "max({f8})", "min({f8})"],
    "t": ["i4:string_agg(%s::text, ',' order by %s)", "t:string_agg(%s, {sep} order by %s desc)", "t:string_agg(distinct %s, '-' order by %s)", "max({t})", "min({t})",
          "mode() within group (order by {t})", "percentile_disc(0.5) within group (order by {t})"],
    "b": ["bool_and({b})", "bool_or({b})", "every({b})"],
    "ai": ["i4:array_agg(%s order by %s)", "i4:array_agg(distinct %s order by %s desc)", "i4:array_agg(%s order by %s nulls first)"],
    "at": ["t:array_agg(%s order by %s)"],
    "jb": ["i4:jsonb_agg(%s order by %s)", "t:jsonb_agg(%s order by %s desc nulls last)"],
    "j": ["d:json_agg(%s order by %s)"],
    "iv": ["sum({iv})", "avg({iv})", "max({iv})", "percentile_cont(0.5) within group (order by {iv})", "max({ts} - {ts})"],
}
for _kind in ("i2", "i8", "f4", "d", "tm", "ts", "tz", "c", "v"):
    AGGREGATES.setdefault(_kind, []).extend([f"max({{{_kind}}})", f"min({{{_kind}}})"])
AGGREGATES["t"] += AGGREGATES.pop("v")

# Window functions: those whose value does not depend on the order of peers, and those which do.
RANKS = {"i8": ["row_number()", "rank()", "dense_rank()"], "f8": ["percent_rank()", "cume_dist()"], "i4": ["ntile({pos})"]}
OFFSETS = ["lag({x})", "lead({x})", "lag({x}, {small})", "lead({x}, {pos}, {x})", "first_value({x})", "last_value({x})", "nth_value({x}, {pos})"]
NUMBER_KINDS = NUMBERS
