//! Tests that step through background work of an open store.

use crate::background::index_gc::{find_dead, remove_dead, rewrite_without};
use crate::background::merger::Written;
use crate::background::segment_jobs::MergeEffort;
use crate::partition::Partition;
use crate::rows::Rows;
use crate::{Durability, SelectLimits, Store, StoreConfig};
use model::{Matcher, TimeRange};
use std::path::Path;
use std::sync::Arc;
use vfs::SimVfs;

const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

fn store() -> Arc<Store> {
    let disk = SimVfs::new(1);
    disk.set_now(1_000_000_000);
    let config = StoreConfig { background: false, free_disk_min: 0, ..StoreConfig::standard() };
    Store::open(Arc::new(disk), Path::new("/data"), config).unwrap()
}

/// Fifty hosts; of the second form come fields that are parts of an entity.
fn append(store: &Store, hosts: std::ops::Range<u32>, timestamp: i64, fields: &[&str]) {
    let mut rows = Rows::default();
    for host in hosts {
        let host = format!("h{host}");
        let fields: Vec<(&str, f64)> = fields.iter().map(|name| (*name, 1.0)).collect();
        rows.push(&store.hasher(), &[("host", &host)], timestamp, &fields);
    }
    store.append(&rows.batch(), Durability::Synced).unwrap();
}

/// Samples of the hosts at this time and later.
fn count(store: &Store, from: i64) -> usize {
    let range = TimeRange::new(from, i64::MAX);
    let selection = store.select(&[], range, &LIMITS).unwrap();
    let mut count = 0;
    selection.read(0..selection.len(), &mut |_, times, _| count += times.len()).unwrap();
    count
}

#[test]
fn entities_with_new_samples_stay_in_the_index() {
    // How a sample may come back: to rows, to a part on disk, as a single, to a part in memory.
    type Then = fn(&Store, &Partition);
    let ways: [(&[&str], Then); 4] = [
        (&["a", "b"], |_, _| ()),
        (&["a", "b"], |store, _| store.flush().unwrap()),
        (&["a"], |_, _| ()),
        (&["b"], |_, partition| {
            partition.write().head.take_arena();
            partition.seal_taken().unwrap();
        }),
    ];
    for (fields, then) in ways {
        let store = store();
        append(&store, 0..50, 1, &["a", "b"]);
        // Singles' keys, too, that must go with their entities.
        append(&store, 0..50, 1, &["a"]);
        store
            .delete(&[vec![Matcher::new("host", model::MatchOp::Regex, ".+")]], TimeRange::ALL)
            .unwrap();
        let partition = store.shared.partitions.get(store.partition_length().of(1)).unwrap();
        // Applies the deletion, and no more.
        let plan = store.merger.plan_merge(&partition, MergeEffort::Everything).unwrap().unwrap();
        let written = store.merger.write_merged(&partition, &plan).unwrap();
        assert!(matches!(written, Written::Samples(None)));
        store.merger.swap_parts(&partition, &plan, None).unwrap();

        let dead =
            find_dead(&partition.read(), MergeEffort::Everything, &mut index::refuse_rot).unwrap();
        assert_eq!(dead[0].entities.len(), 50);
        append(&store, 7..8, 2, fields);
        then(&store, &partition);
        assert!(
            !rewrite_without(&store.shared.ground, &partition, &dead[0], MergeEffort::Everything)
                .unwrap(),
            "one is alive"
        );
        assert_eq!(count(&store, 0), fields.len());
        assert!(partition.take_loss(), "to be looked at again");

        assert!(remove_dead(&store.shared.ground, &partition, MergeEffort::Everything).unwrap());
        assert!(!remove_dead(&store.shared.ground, &partition, MergeEffort::Everything).unwrap());
        assert_eq!(partition.read().series.index.entity_count(), 1);
        append(&store, 0..50, 3, &["a"]);
        append(&store, 0..50, 4, &["a", "b"]);
        assert_eq!(count(&store, 3), 150);
        assert_eq!(store.select(&[], TimeRange::ALL, &LIMITS).unwrap().len(), 100);
    }
}
