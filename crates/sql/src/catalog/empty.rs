//! PostgreSQL's tables of things that are not here.

use super::cells::Table;

/// Their names and columns, as [`Table::columns`] has them.
const TABLES: &[(&str, &str)] = &[
    ("pg_aggregate", "aggfnoid:o aggkind:c aggnumdirectargs:s aggtransfn:t"),
    ("pg_auth_members", "oid:o roleid:o member:o grantor:o admin_option:b"),
    ("pg_available_extensions", "name:n default_version:t installed_version:t comment:t"),
    ("pg_cast", "oid:o castsource:o casttarget:o castfunc:o castcontext:c castmethod:c"),
    (
        "pg_collation",
        "oid:o collname:n collnamespace:o collowner:o collprovider:c collisdeterministic:b \
         collencoding:i collcollate:t collctype:t",
    ),
    (
        "pg_conversion",
        "oid:o conname:n connamespace:o conowner:o conforencoding:i contoencoding:i conproc:t \
         condefault:b",
    ),
    ("pg_cursors", "name:t statement:t is_holdable:b is_binary:b is_scrollable:b creation_time:t"),
    ("pg_default_acl", "oid:o defaclrole:o defaclnamespace:o defaclobjtype:c defaclacl:a"),
    ("pg_depend", "classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype:c"),
    ("pg_description", "objoid:o classoid:o objsubid:i description:t"),
    ("pg_enum", "oid:o enumtypid:o enumsortorder:f enumlabel:n"),
    ("pg_event_trigger", "oid:o evtname:n evtevent:n evtowner:o evtfoid:o evtenabled:c evttags:a"),
    ("pg_foreign_data_wrapper", "oid:o fdwname:n fdwowner:o fdwhandler:o fdwvalidator:o"),
    ("pg_foreign_server", "oid:o srvname:n srvowner:o srvfdw:o srvtype:t srvversion:t srvacl:a"),
    ("pg_foreign_table", "ftrelid:o ftserver:o ftoptions:a"),
    ("pg_inherits", "inhrelid:o inhparent:o inhseqno:i inhdetachpending:b"),
    ("pg_language", "oid:o lanname:n lanowner:o lanispl:b lanpltrusted:b"),
    (
        "pg_locks",
        "locktype:t database:o relation:o pid:i mode:t granted:b fastpath:b virtualtransaction:t",
    ),
    ("pg_opclass", "oid:o opcmethod:o opcname:n opcnamespace:o opcintype:o opcdefault:b"),
    ("pg_operator", "oid:o oprname:n oprnamespace:o oprleft:o oprright:o oprresult:o"),
    ("pg_partitioned_table", "partrelid:o partstrat:c partnatts:s partdefid:o"),
    (
        "pg_policies",
        "schemaname:n tablename:n policyname:n permissive:t roles:a cmd:t qual:t with_check:t",
    ),
    (
        "pg_policy",
        "oid:o polname:n polrelid:o polcmd:c polpermissive:b polroles:a polqual:t polwithcheck:t",
    ),
    ("pg_prepared_statements", "name:t statement:t prepare_time:t from_sql:b"),
    ("pg_prepared_xacts", "transaction:i gid:t prepared:t owner:n database:n"),
    (
        "pg_proc",
        "oid:o proname:n pronamespace:o proowner:o prolang:o procost:f prorows:f provariadic:o \
         prokind:c prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile:c \
         proparallel:c pronargs:s pronargdefaults:s prorettype:o proargtypes:a proallargtypes:a \
         proargmodes:a proargnames:a prosrc:t probin:t proconfig:a proacl:a",
    ),
    ("pg_publication", "oid:o pubname:n pubowner:o puballtables:b pubinsert:b pubupdate:b"),
    ("pg_publication_namespace", "oid:o pnpubid:o pnnspid:o"),
    ("pg_publication_rel", "oid:o prpubid:o prrelid:o prqual:t prattrs:a"),
    ("pg_range", "rngtypid:o rngsubtype:o rngmultitypid:o rngcollation:o"),
    ("pg_rewrite", "oid:o rulename:n ev_class:o ev_type:c ev_enabled:c is_instead:b"),
    ("pg_seclabel", "objoid:o classoid:o objsubid:i provider:t label:t"),
    ("pg_shdescription", "objoid:o classoid:o description:t"),
    (
        "pg_stat_activity",
        "datid:o datname:n pid:i usesysid:o usename:n application_name:t client_addr:t \
         backend_start:t state:t query:t backend_type:t",
    ),
    ("pg_stat_user_tables", "relid:o schemaname:n relname:n seq_scan:i n_live_tup:i"),
    (
        "pg_statistic_ext",
        "oid:o stxrelid:o stxname:n stxnamespace:o stxowner:o stxstattarget:i stxkeys:a stxkind:a \
         stxexprs:t",
    ),
    ("pg_subscription", "oid:o subdbid:o subname:n subowner:o subenabled:b"),
    ("pg_timezone_names", "name:t abbrev:t utc_offset:t is_dst:b"),
    (
        "pg_trigger",
        "oid:o tgrelid:o tgparentid:o tgname:n tgfoid:o tgtype:s tgenabled:c tgisinternal:b \
         tgconstraint:o tgdeferrable:b tginitdeferred:b tgnargs:s",
    ),
    ("pg_ts_config", "oid:o cfgname:n cfgnamespace:o"),
    ("pg_ts_dict", "oid:o dictname:n dictnamespace:o"),
    ("pg_user_mapping", "oid:o umuser:o umserver:o umoptions:a"),
];

/// Whether a table of that name is among them.
pub fn has_no_rows(name: &str) -> bool {
    TABLES.iter().any(|(one, _)| *one == name)
}

/// All of them.
pub fn tables() -> impl Iterator<Item = Table> {
    TABLES.iter().map(|(name, columns)| Table { name, columns, rows: Vec::new() })
}
