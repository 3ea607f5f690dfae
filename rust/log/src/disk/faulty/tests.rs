use super::*;

fn disk_with_dir() -> (FaultyDisk, &'static Path) {
    let disk = FaultyDisk::default();
    let dir = Path::new("/data");
    disk.create_dir_all(dir).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    (disk, dir)
}

#[test]
fn unsynced_bytes_survive_in_any_subset_of_sectors() {
    let (disk, dir) = disk_with_dir();
    let path = dir.join("log");
    let file = disk.open(&path, OpenMode::Create).unwrap();
    file.write_at(&[1; 1024], 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(dir).unwrap();
    file.write_at(&[2; 2048], 512).unwrap();
    let old = [1; 1024].to_vec();
    let new = [&[1; 512][..], &[2; 2048]].concat();
    assert_eq!(disk.after_power_cut(0).read(&path).unwrap(), old);
    assert_eq!(disk.after_power_cut(1).read(&path).unwrap(), new);
    let mut seen = std::collections::BTreeSet::new();
    for seed in 2..200 {
        let found = disk.after_power_cut(seed).read(&path).unwrap();
        assert_eq!(found[..512], [1; 512], "synced and not overwritten");
        for (index, byte) in found.iter().enumerate() {
            assert!(*byte == new[index] || *byte == *old.get(index).unwrap_or(&0));
        }
        assert_eq!(disk.after_power_cut(seed).read(&path).unwrap(), found, "a seed says one thing");
        seen.insert(found);
    }
    assert!(seen.len() > 10, "chance finds many of the subsets");
}

#[test]
fn a_synced_file_without_a_synced_name_may_be_lost() {
    let (disk, dir) = disk_with_dir();
    let file = disk.open(&dir.join("a"), OpenMode::Create).unwrap();
    file.write_at(b"x", 0).unwrap();
    file.sync_data().unwrap();
    assert!(!disk.after_power_cut(0).exists(&dir.join("a")));
    disk.sync_dir(dir).unwrap();
    assert_eq!(disk.after_power_cut(0).read(&dir.join("a")).unwrap(), b"x");
}

#[test]
fn a_file_in_an_unsynced_directory_is_lost_with_it() {
    let (disk, dir) = disk_with_dir();
    let topic = dir.join("t-0");
    disk.create_dir_all(&topic).unwrap();
    disk.open(&topic.join("log"), OpenMode::Create).unwrap().sync_data().unwrap();
    disk.sync_dir(&topic).unwrap();
    assert!(!disk.after_power_cut(0).exists(&topic.join("log")));
    disk.sync_dir(dir).unwrap();
    assert!(disk.after_power_cut(0).exists(&topic.join("log")));
}

#[test]
fn an_atomic_write_leaves_old_or_new_whatever_the_cut() {
    for operation in 0.. {
        let (disk, dir) = disk_with_dir();
        let path = dir.join("checkpoint");
        disk.write_atomically(&path, &[1; 600]).unwrap();
        disk.arm(Fault::PowerCut, Operations::All, operation);
        let done = disk.write_atomically(&path, &[2; 600]).is_ok();
        for seed in 0..20 {
            let found = disk.after_power_cut(seed).read(&path).unwrap();
            assert!(found == [2; 600] || (!done && found == [1; 600]), "operation {operation}");
        }
        if done {
            assert!(operation > 4);
            return;
        }
    }
}

#[test]
fn faults_hit_the_counted_operation_once() {
    let (disk, dir) = disk_with_dir();
    let file = disk.open(&dir.join("a"), OpenMode::Create).unwrap();
    disk.arm(Fault::Error(io::ErrorKind::StorageFull), Operations::All, 1);
    file.write_at(b"one", 0).unwrap();
    assert_eq!(file.write_at(b"two", 3).unwrap_err().kind(), io::ErrorKind::StorageFull);
    file.write_at(b"six", 3).unwrap();
    disk.arm(Fault::Torn, Operations::All, 0);
    file.write_at(b"seven!", 6).unwrap_err();
    assert_eq!(disk.read(&dir.join("a")).unwrap(), b"onesixsev");
    disk.arm(Fault::Torn, Operations::Syncs, 0);
    file.write_at(b"x", 0).unwrap();
    file.sync_data().unwrap_err();
    assert!(!disk.is_armed());
}

#[test]
fn failed_sync_loses_its_data_even_if_the_next_sync_succeeds() {
    let (disk, dir) = disk_with_dir();
    let file = disk.open(&dir.join("a"), OpenMode::Create).unwrap();
    disk.sync_dir(dir).unwrap();
    file.write_at(b"lost", 0).unwrap();
    disk.arm(Fault::Torn, Operations::Syncs, 0);
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(disk.after_power_cut(1).read(&dir.join("a")).unwrap(), [0; 4]);
}

#[test]
fn nothing_works_without_power() {
    let (disk, dir) = disk_with_dir();
    let file = disk.open(&dir.join("a"), OpenMode::Create).unwrap();
    disk.arm(Fault::PowerCut, Operations::All, 0);
    file.write_at(b"ab", 0).unwrap_err();
    assert!(file.read_at(&mut [0; 1], 0).is_err() && file.sync_data().is_err());
    assert!(disk.list(dir).is_err() && !disk.exists(dir));
    assert!(disk.after_power_cut(1).list(dir).is_ok());
}

#[test]
fn writes_fail_at_the_space_limit_and_freed_space_can_be_used() {
    let (disk, dir) = disk_with_dir();
    let file = disk.open(&dir.join("a"), OpenMode::Create).unwrap();
    disk.set_space(1000);
    file.allocate(0, 1000).unwrap();
    assert_eq!(file.write_at(b"x", 1000).unwrap_err().kind(), io::ErrorKind::StorageFull);
    file.set_len(10).unwrap();
    file.write_at(b"x", 900).unwrap();
    disk.remove_file(&dir.join("a")).unwrap();
    assert_eq!(disk.used_bytes(), 0);
}

#[test]
fn directories_made_durably_outlive_a_power_cut_however_many_were_missing() {
    let (disk, dir) = disk_with_dir();
    let path = dir.join("a/b/c");
    disk.create_dir_all(&path).unwrap();
    assert!(!disk.after_power_cut(0).exists(&dir.join("a")));
    let path = dir.join("d/e/f");
    for _ in 0..2 {
        disk.create_dir_all_durably(&path).unwrap();
        assert!(disk.after_power_cut(0).exists(&path));
    }
}
