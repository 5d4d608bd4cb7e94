//! Keywords of PostgreSQL 15, and names that need quotes because of them.

pub(crate) fn quoted_ident(name: &str) -> String {
    let is_plain = !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
        && !is_quoted_keyword(name);
    match is_plain {
        true => name.to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Words of one kind: the letter of their kind, whether one may name a column without `AS`, and the words.
pub(crate) type Words = (char, bool, &'static str);

pub(crate) const WORDS: &[Words] = &[
    ('C', false, "char character precision"),
    (
        'C',
        true,
        "between bigint bit boolean coalesce dec decimal exists extract float greatest \
         grouping inout int integer interval least national nchar none normalize nullif \
         numeric out overlay position real row setof smallint substring time timestamp treat \
         trim values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest \
         xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable",
    ),
    (
        'R',
        false,
        "array as create except fetch for from grant group having intersect into limit offset \
         on order returning to union where window with",
    ),
    (
        'R',
        true,
        "all analyse analyze and any asc asymmetric both case cast check collate column \
         constraint current_catalog current_date current_role current_time current_timestamp \
         current_user default deferrable desc distinct do else end false foreign in initially \
         lateral leading localtime localtimestamp not null only or placing primary references \
         select session_user some symmetric table then trailing true unique user using \
         variadic when",
    ),
    ('T', false, "isnull notnull overlaps"),
    (
        'T',
        true,
        "authorization binary collation concurrently cross current_schema freeze full ilike \
         inner is join left like natural outer right similar tablesample verbose",
    ),
    ('U', false, "day filter hour minute month over second varying within without year"),
    (
        'U',
        true,
        "abort absolute access action add admin after aggregate also alter always asensitive \
         assertion assignment at atomic attach attribute backward before begin breadth by \
         cache call called cascade cascaded catalog chain characteristics checkpoint class \
         close cluster columns comment comments commit committed compression configuration \
         conflict connection constraints content continue conversion copy cost csv cube \
         current cursor cycle data database deallocate declare defaults deferred definer \
         delete delimiter delimiters depends depth detach dictionary disable discard document \
         domain double drop each enable encoding encrypted enum escape event exclude \
         excluding exclusive execute explain expression extension external family finalize \
         first following force forward function functions generated global granted groups \
         handler header hold identity if immediate immutable implicit import include \
         including increment index indexes inherit inherits inline input insensitive insert \
         instead invoker isolation key label language large last leakproof level listen load \
         local location lock locked logged mapping match matched materialized maxvalue merge \
         method minvalue mode move name names new next nfc nfd nfkc nfkd no normalized \
         nothing notify nowait nulls object of off oids old operator option options \
         ordinality others overriding owned owner parallel parameter parser partial partition \
         passing password plans policy preceding prepare prepared preserve prior privileges \
         procedural procedure procedures program publication quote range read reassign \
         recheck recursive ref referencing refresh reindex relative release rename repeatable \
         replace replica reset restart restrict return returns revoke role rollback rollup \
         routine routines rows rule savepoint schema schemas scroll search security sequence \
         sequences serializable server session set sets share show simple skip snapshot sql \
         stable standalone start statement statistics stdin stdout storage stored strict \
         strip subscription support sysid system tables tablespace temp template temporary \
         text ties transaction transform trigger truncate trusted type types uescape \
         unbounded uncommitted unencrypted unknown unlisten unlogged until update vacuum \
         valid validate validator value version view views volatile whitespace work wrapper \
         write xml yes zone",
    ),
];

/// Whether names of this word stand in quotes: all keywords but the unreserved ones.
pub fn is_quoted_keyword(name: &str) -> bool {
    let mut quoted = WORDS.iter().filter(|(kind, _, _)| *kind != 'U');
    quoted.any(|(_, _, words)| words.split_ascii_whitespace().any(|word| word == name))
}

/// What the function is called, and so the table that answers it.
pub const KEYWORDS: &str = "pg_get_keywords";
