//! Faults of the simulated disk: what each does, and that a plan does it in its turn.

use super::*;
use crate::RealVfs;
use rng::Random;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn write(vfs: &dyn Vfs, path: &str, bytes: &[u8]) -> Result<()> {
    let mut file = vfs.create(Path::new(path))?;
    file.append(bytes)?;
    file.sync()
}

#[test]
fn a_kill_shows_everything_and_makes_nothing_durable() {
    let (mut lost_names, mut lost_bytes) = (0, 0);
    for seed in 0..100 {
        let disk = SimVfs::new(seed);
        let lock = disk.lock(Path::new("/")).unwrap();
        disk.advance(5);
        write(&disk, "/kept", b"kept").unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let mut file = disk.create(Path::new("/new")).unwrap();
        file.append(b"unsynced").unwrap();

        let after = disk.kill();
        let relocked = after.lock(Path::new("/"));
        assert!(relocked.is_ok(), "the dead hold no lock");
        assert_eq!(after.read(Path::new("/new")).unwrap(), b"unsynced");
        assert_eq!((after.now(), after.elapsed().as_nanos()), (5, 5));
        file.append(b" by the dead").unwrap();
        file.sync().unwrap();
        disk.remove(Path::new("/kept")).unwrap();
        drop(lock);
        assert_eq!(after.read(Path::new("/new")).unwrap(), b"unsynced", "written into nothing");

        let failed = after.kill().crash();
        assert_eq!(failed.read(Path::new("/kept")).unwrap(), b"kept");
        match failed.read(Path::new("/new")) {
            Ok(bytes) => lost_bytes += usize::from(bytes != b"unsynced"),
            Err(_) => lost_names += 1,
        }
    }
    assert!(10 < lost_names && 10 < lost_bytes, "{lost_names} {lost_bytes}");
}

#[test]
fn a_kill_in_a_long_change_leaves_a_part() {
    let mut sizes = BTreeSet::new();
    let mut left = BTreeSet::new();
    for seed in 0..50 {
        let disk = SimVfs::new(seed);
        let mut file = disk.create(Path::new("/a")).unwrap();
        disk.fail_after(disk.operations());
        assert!(file.append(&[7; 9]).is_err());
        assert!(disk.create(Path::new("/b")).is_err());
        sizes.insert(disk.kill().size(Path::new("/a")).unwrap());

        let disk = SimVfs::new(seed);
        disk.create_dir_all(Path::new("/d/e")).unwrap();
        write(&disk, "/d/a", b"a").unwrap();
        write(&disk, "/d/e/b", b"b").unwrap();
        disk.fail_after(disk.operations() + seed % 4);
        assert!(disk.remove_dir_all(Path::new("/d")).is_err());
        left.insert(disk.kill().files().len());
    }
    assert_eq!(sizes, (0..9).collect());
    assert_eq!(left, BTreeSet::from([0, 1, 2]));
}

#[test]
fn what_a_failed_sync_left_stays_readable_and_is_written_after_all_or_lost() {
    let path = Path::new("/a");
    let (mut lost, mut cut) = (0, 0);
    for seed in 0..200 {
        let disk = SimVfs::new(seed);
        let mut file = disk.create(path).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        file.append(b"kept").unwrap();
        file.sync().unwrap();
        file.append(b"doubted").unwrap();
        disk.fail_syncs(1);
        assert!(file.sync().is_err());
        assert!(file.sync().is_err(), "the handle stays closed");
        // The next process reads it, syncs it by another name, and is told that all is well.
        let disk = disk.kill();
        assert_eq!(disk.read(path).unwrap(), b"keptdoubted");
        disk.hard_link(path, Path::new("/b")).unwrap();
        disk.truncate(Path::new("/b"), 11).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        assert_eq!(disk.kill().read(path).unwrap(), b"keptdoubted", "readers see it still");
        let found = disk.crash().read(path).unwrap();
        assert!(found.starts_with(b"kept"));
        lost += usize::from(found != b"keptdoubted");
        cut += usize::from(found == b"kept");
    }
    assert!((60..140).contains(&lost) && (20..80).contains(&cut), "{lost} {cut}");
}

#[test]
fn a_cut_whose_sync_failed_may_come_back() {
    let mut back = 0;
    for seed in 0..100 {
        let disk = SimVfs::new(seed);
        write(&disk, "/a", b"long").unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk.fail_syncs(1);
        assert!(disk.truncate(Path::new("/a"), 1).is_err());
        assert_eq!(disk.read(Path::new("/a")).unwrap(), b"l");
        back += usize::from(disk.crash().read(Path::new("/a")).unwrap() == b"long");
        disk.truncate(Path::new("/a"), 1).unwrap();
        assert_eq!(disk.crash().read(Path::new("/a")).unwrap().len(), 1);
    }
    assert!((20..80).contains(&back), "{back}");
}

#[test]
fn a_stall_holds_changes_up_and_lets_reads_pass() {
    let disk = SimVfs::new(1);
    write(&disk, "/a", b"a").unwrap();
    disk.stall();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&disk, "/b", b"b"));
        disk.wait_for_stalled(1);
        assert_eq!(disk.read(Path::new("/a")).unwrap(), b"a");
        assert!(!disk.exists(Path::new("/b")).unwrap());
        disk.resume();
        writer.join().unwrap().unwrap();
    });
    assert_eq!(disk.read(Path::new("/b")).unwrap(), b"b");

    disk.stall();
    let after = std::thread::scope(|scope| {
        scope.spawn(|| write(&disk, "/c", b"c"));
        disk.wait_for_stalled(1);
        disk.kill()
    });
    assert!(!after.exists(Path::new("/c")).unwrap(), "who waits when killed writes into nothing");
}

/// Does one call of each kind; `number` makes names that are new.
fn every_call(vfs: &dyn Vfs, number: usize, old: &dyn ReadFile) -> Vec<(Call, Result<()>)> {
    let name = |what: &str| PathBuf::from(format!("/{what}{number}"));
    let made = vfs.create(&name("file"));
    let is_made = made.as_ref().map(drop).map_err(|e| Error::new(e.operation, &e.path, copy(e)));
    let mut done = vec![(Call::Create, is_made)];
    if let Ok(mut file) = made {
        done.push((Call::Append, file.append(b"bytes")));
        done.push((Call::Sync, file.sync()));
    }
    done.push((Call::CreateDir, vfs.create_dir_all(&name("dir"))));
    done.push((Call::Link, vfs.hard_link(Path::new("/old"), &name("link"))));
    done.push((Call::Rename, vfs.rename(&name("link"), &name("renamed"))));
    done.push((Call::Truncate, vfs.truncate(Path::new("/old"), 3)));
    done.push((Call::Map, vfs.map(Path::new("/old")).map(drop)));
    done.push((Call::Read, vfs.read(Path::new("/old")).map(drop)));
    done.push((Call::ReadAt, old.read_at(1, &mut [0; 2]).map(drop)));
    done.push((Call::Size, vfs.size(Path::new("/old")).map(drop)));
    done.push((Call::List, vfs.list(Path::new("/")).map(drop)));
    done.push((Call::Exists, vfs.exists(Path::new("/none")).map(drop)));
    done.push((Call::FreeSpace, vfs.free_space(Path::new("/")).map(drop)));
    done.push((Call::SyncDir, vfs.sync_dir(Path::new("/"))));
    done.push((Call::Lock, vfs.lock(Path::new("/")).map(drop)));
    done.push((Call::Remove, vfs.remove(&name("renamed"))));
    done.push((Call::RemoveDir, vfs.remove_dir_all(&name("dir"))));
    done
}

fn copy(error: &Error) -> io::Error {
    io::Error::from(error.source.kind())
}

fn first_failure(done: Vec<(Call, Result<()>)>) -> Option<(Call, io::Error)> {
    done.into_iter().find_map(|(call, result)| Some((call, result.err()?.source)))
}

#[test]
fn a_call_of_any_kind_fails_once_in_its_turn() {
    for call in Call::ALL {
        for seed in 0..10 {
            let disk = SimVfs::new(seed);
            write(&disk, "/old", b"old").unwrap();
            let old = disk.open(Path::new("/old")).unwrap();
            disk.fail_call(call, 1, Errno::Io);
            assert!(
                first_failure(every_call(&disk, 0, old.as_ref())).is_none(),
                "{call:?}: not yet"
            );
            let (failed, error) = first_failure(every_call(&disk, 1, old.as_ref())).unwrap();
            assert_eq!((failed, error.kind()), (call, Errno::Io.error().kind()));
            assert!(
                first_failure(every_call(&disk, 2, old.as_ref())).is_none(),
                "{call:?}: never again"
            );
            assert_eq!(disk.counts().events, 1);
        }
    }
}

#[test]
fn errors_are_told_apart_as_on_the_real_disk() {
    let disk = SimVfs::new(1);
    for errno in [Errno::Io, Errno::Full, Errno::Files, Errno::Other] {
        disk.fail_call(Call::Exists, 0, errno);
        let error = disk.exists(Path::new("/")).unwrap_err();
        assert_eq!(error.is_disk_full(), errno == Errno::Full);
        assert_eq!(error.is_file_limit(), errno == Errno::Files);
        assert!(!error.is_not_found() && !error.is_already_there() && !error.is_locked());
    }
}

#[test]
fn who_has_too_many_files_open_has_changed_nothing() {
    for seed in 0..40 {
        let disk = SimVfs::new(seed);
        disk.fail_call(Call::Create, 0, Errno::Files);
        assert!(disk.create(Path::new("/a")).is_err());
        assert!(!disk.exists(Path::new("/a")).unwrap());
        write(&disk, "/a", b"a").unwrap();
        disk.fail_call(Call::SyncDir, 0, Errno::Files);
        assert!(disk.sync_dir(Path::new("/")).is_err());
        disk.sync_dir(Path::new("/")).unwrap();
        assert!(disk.crash().exists(Path::new("/a")).unwrap(), "the next sync is a whole one");
    }
}

#[test]
fn a_failed_change_may_be_done_all_the_same() {
    let (mut done, mut parts) = (0, BTreeSet::new());
    for seed in 0..100 {
        let disk = SimVfs::new(seed);
        write(&disk, "/a", b"a").unwrap();
        disk.fail_call(Call::Rename, 0, Errno::Io);
        assert!(disk.rename(Path::new("/a"), Path::new("/b")).is_err());
        done += usize::from(disk.exists(Path::new("/b")).unwrap());
        disk.fail_call(Call::Append, 0, Errno::Io);
        assert!(write(&disk, "/c", b"four").is_err());
        parts.insert(disk.size(Path::new("/c")).unwrap());
    }
    assert!((10..50).contains(&done), "{done}");
    assert_eq!(parts, (0..4).collect());
}

#[test]
fn room_goes_and_comes_and_the_clocks_part() {
    let disk = SimVfs::new(1);
    let at = |number, event| disk.plan_one(When::Nth(Call::Append, number), event);
    at(1, Event::TakeRoom(2));
    at(3, Event::GiveRoom);
    at(3, Event::Delay(7));
    at(3, Event::Jump(-100));
    disk.set_now(1000);
    write(&disk, "/a", b"fits").unwrap();
    let mut file = disk.create(Path::new("/b")).unwrap();
    assert!(file.append(b"fits not").unwrap_err().is_disk_full());
    assert_eq!(disk.read(Path::new("/b")).unwrap(), b"fi", "what fits is written");
    assert!(write(&disk, "/c", b"nor this").unwrap_err().is_disk_full());
    write(&disk, "/d", b"but this").unwrap();
    assert_eq!((disk.now(), disk.elapsed().as_nanos()), (907, 7));
    disk.jump(93);
    assert_eq!((disk.now(), disk.elapsed().as_nanos()), (1000, 7));
}

#[test]
fn plans_are_drawn_from_their_seed_and_cover_everything() {
    let (mut kinds, mut told) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..3000 {
        let plan = FaultPlan::draw(seed, 400);
        assert_eq!(plan, FaultPlan::draw(seed, 400));
        told.insert(plan.to_string());
        for planned in plan.events {
            if let When::Nth(call, _) = planned.when {
                kinds.insert(call);
            }
        }
    }
    assert_eq!(kinds.len(), Call::ALL.len());
    assert!(2000 < told.len());
    // The same plan on the same disk comes out alike.
    let run = |seed| {
        let disk = SimVfs::new(seed);
        write(&disk, "/old", b"old").unwrap();
        let old = disk.open(Path::new("/old")).unwrap();
        disk.set_plan(&FaultPlan::draw(seed, 30));
        let done: Vec<bool> = (0..4)
            .flat_map(|n| every_call(&disk, n, old.as_ref()))
            .map(|(_, result)| result.is_ok())
            .collect();
        (done, disk.counts(), disk.files())
    };
    (0..100).for_each(|seed| assert_eq!(run(seed), run(seed), "SEED={seed}"));
}

#[test]
fn files_rot_in_every_way() {
    let disk = SimVfs::new(1);
    write(&disk, "/d", &[1; 1300]).unwrap();
    disk.create_dir_all(Path::new("/e")).unwrap();
    write(&disk, "/e/f", b"other").unwrap();
    let [d, f] = ["/d", "/e/f"].map(PathBuf::from);
    assert_eq!(disk.files(), [(d.clone(), 1300), (f.clone(), 5)]);
    let before = disk.map(&d).unwrap();
    disk.rot(&Rot::Zero { path: d.clone(), sector: 2 }).unwrap();
    assert_eq!(disk.read(&d).unwrap(), [vec![1; 1024], vec![0; 276]].concat());
    disk.rot(&Rot::Cut { path: d.clone(), size: 4 }).unwrap();
    assert_eq!(disk.read(&d).unwrap(), [1; 4]);
    disk.rot(&Rot::Swap { path: d.clone(), other: f.clone() }).unwrap();
    assert_eq!((&*disk.read(&d).unwrap(), &*disk.read(&f).unwrap()), (&b"other"[..], &[1; 4][..]));
    disk.rot(&Rot::Flip { path: f.clone(), offset: 3, bit: 1 }).unwrap();
    assert_eq!(disk.read(&f).unwrap(), [1, 1, 1, 3]);
    assert!(disk.rot(&Rot::Flip { path: f.clone(), offset: 4, bit: 1 }).is_err());
    disk.rot(&Rot::Drop { path: f.clone() }).unwrap();
    assert_eq!(disk.files(), [(d, 5)]);
    assert!(!disk.crash().exists(&f).unwrap(), "what rots is durable");
    assert_eq!((&before[..], disk.counts().rot), (&[1; 1300][..], 6));
    let mut dice = Random(1);
    let files = disk.files();
    let drawn: Vec<Rot> = (0..100).map(|_| Rot::draw(&mut dice, &files)).collect();
    let kinds: BTreeSet<String> =
        drawn.iter().map(|rot| format!("{rot:?}").split(' ').next().unwrap().into()).collect();
    assert_eq!(kinds.len(), 5);
}

/// One call of each kind comes out alike where nothing is planned.
#[test]
fn without_faults_the_calls_are_those_of_the_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let sim = SimVfs::new(1);
    let real = RealVfs::new();
    let mut seen = Vec::new();
    for (vfs, dir) in [(&real as &dyn Vfs, directory.path()), (&sim, Path::new("/"))] {
        let below = dir.join("x/y/z");
        vfs.create_dir_all(&below).unwrap();
        for name in ["a", "b"] {
            write(vfs, below.join(name).to_str().unwrap(), b"bytes").unwrap();
        }
        vfs.truncate(&below.join("a"), 5).unwrap();
        vfs.remove_dir_all(&dir.join("x")).unwrap();
        write(vfs, dir.join("file").to_str().unwrap(), b"").unwrap();
        let paths = [below.join("a"), dir.join("file/a"), dir.join("file"), dir.to_path_buf()];
        seen.push(paths.map(|path| vfs.exists(&path).ok()));
    }
    assert_eq!(seen[0], seen[1]);
}
