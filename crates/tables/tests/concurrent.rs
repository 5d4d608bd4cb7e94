//! Several clients at once on a log with a thread of its own, with a keeper: what each of them counts up
//! is there, and readers see whole statements.

use crate::rig::{DATA, create, insert, row};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tables::{Change, Datum, Error, Tables, TablesConfig, TablesOpening};
use vfs::SimVfs;
use wal::{Consumers, Log, WalConfig};

const THREADS: i64 = 4;
const STATEMENTS: i64 = 60;

fn open(disk: &SimVfs) -> (Arc<Tables>, Arc<Log>) {
    let vfs = Arc::new(disk.clone());
    let config = TablesConfig {
        checkpoint_log_size: 500,
        keeper_interval: Duration::from_millis(1),
        ..TablesConfig::default()
    };
    let mut opening = TablesOpening::look(vfs.clone(), Path::new(DATA), config).expect("it opens");
    let mut consumers = Consumers::default();
    opening.declare(&mut consumers);
    let config = WalConfig { segment_size_max: 4096, ..WalConfig::default() };
    let log = Log::open(vfs, &Path::new(DATA).join("wal"), config, consumers).expect("it opens");
    let log = Arc::new(log);
    (opening.finish(log.clone()).expect("it opens"), log)
}

/// Adds one to the counter in row 1 of `t`, which others do, too.
fn count_up(tables: &Tables) {
    loop {
        let mut transaction = tables.begin();
        let table = transaction.tables().get("t").expect("it is there");
        let counter = table.find(&[Datum::Int8(1)]).expect("a key").expect("it is there");
        let Datum::Text(text) = &counter.values()[1] else { panic!("a text") };
        let next = text.parse::<i64>().expect("a number") + 1;
        let rows = vec![(counter.id, row(1, &next.to_string()))];
        let more = insert(
            "u",
            vec![row(2 * next, &format!("{next}")), row(2 * next + 1, &format!("-{next}"))],
        );
        let changes = vec![Change::Update { table: "t".into(), rows }, more];
        transaction.apply(changes).expect("nobody else is seen");
        match tables.commit(transaction) {
            Ok(_) => return,
            Err(Error::Conflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Rows come by twos, as many as the counter says.
fn check_moment(tables: &Tables) -> usize {
    let now = tables.now();
    let (t, u) = (now.get("t").expect("there"), now.get("u").expect("there"));
    let counter = t.rows().next().expect("one row").values();
    assert_eq!(counter[1], Datum::Text((u.row_count() / 2).to_string()));
    assert_eq!(u.row_count() % 2, 0);
    u.rows().count()
}

#[test]
fn nobody_overwrites_what_another_did() {
    let disk = SimVfs::new(1);
    let (tables, log) = open(&disk);
    tables.apply(vec![create("t"), create("u"), insert("t", vec![row(1, "0")])]).expect("new");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let tables = &tables;
                scope.spawn(move || {
                    for statement in 0..STATEMENTS {
                        count_up(tables);
                        let id = 1000 * (thread + 1) + statement;
                        let name = format!("own{thread}");
                        if statement == 0 {
                            tables.apply(vec![create(&name)]).expect("it is free");
                        }
                        let own = vec![insert(&name, vec![row(id, &id.to_string())])];
                        tables.apply(own).expect("it is free");
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                check_moment(&tables);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        is_over.store(true, Ordering::Relaxed);
    });
    let rows = (2 * THREADS * STATEMENTS) as usize;
    assert_eq!(check_moment(&tables), rows);
    assert_eq!(tables.trouble(), None);
    tables.close().expect("a good disk");
    log.close().expect("a good disk");
    drop((tables, log));
    let (tables, _log) = open(&disk.crash());
    assert_eq!(check_moment(&tables), rows);
    assert_eq!(tables.get("own3").expect("there").row_count(), STATEMENTS as usize);
}
