//! Tests that every disk must pass.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;

/// The disks under test, each with a separate directory; the guard removes it.
fn disks() -> Vec<(Arc<dyn Disk>, PathBuf, Option<tempfile::TempDir>)> {
    let memory = Arc::new(MemoryDisk::default());
    memory.create_dir_all(Path::new("/data")).unwrap();
    let faulty = Arc::new(FaultyDisk::default());
    faulty.create_dir_all(Path::new("/data")).unwrap();
    let real = tempfile::tempdir().unwrap();
    vec![
        (memory, PathBuf::from("/data"), None),
        (faulty, PathBuf::from("/data"), None),
        (Arc::new(RealDisk), real.path().to_owned(), Some(real)),
    ]
}

fn reserve(file: &dyn DiskFile, position: u64, size: u64) -> Reserved {
    match file.allocate(position, size).unwrap() {
        Allocated::Reserved(reserved) => reserved,
        Allocated::Grown => panic!("the tests' file system reserves nothing"),
    }
}

fn content(file: &dyn DiskFile) -> Vec<u8> {
    let mut bytes = vec![0; file.size().unwrap() as usize + 10];
    let read = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(read);
    bytes
}

#[test]
fn reads_return_written_bytes_and_zeros_between() {
    for (disk, dir, _guard) in disks() {
        let file = disk.open(&dir.join("a"), OpenMode::Create).unwrap();
        file.write_at(b"abc", 9000).unwrap();
        file.write_at(b"xyz", 0).unwrap();
        let mut expected = vec![0; 9003];
        expected[..3].copy_from_slice(b"xyz");
        expected[9000..].copy_from_slice(b"abc");
        assert_eq!(content(&*file), expected, "{disk:?}");
        assert_eq!(file.read_at(&mut [0; 4], 9003).unwrap(), 0);
    }
}

#[test]
fn a_cut_and_regrown_file_holds_zeros_past_the_cut() {
    for (disk, dir, _guard) in disks() {
        let file = disk.open(&dir.join("a"), OpenMode::Create).unwrap();
        file.write_at(&[7; 5000], 0).unwrap();
        file.set_len(4097).unwrap();
        file.set_len(5000).unwrap();
        let bytes = content(&*file);
        assert!(bytes[..4097].iter().all(|byte| *byte == 7), "{disk:?}");
        assert!(bytes[4097..].iter().all(|byte| *byte == 0), "{disk:?}");
    }
}

#[test]
fn a_window_writes_into_reserved_space_and_readers_see_it() {
    for (disk, dir, _guard) in disks() {
        let file = disk.open(&dir.join("a"), OpenMode::Create).unwrap();
        file.write_at(&[1; 100], 0).unwrap();
        let reserved = reserve(&*file, 100, 8092);
        assert_eq!(file.size().unwrap(), 8192);
        assert!(
            file.map_window(&reserved, 99).is_err() && file.map_window(&reserved, 8192).is_err()
        );
        let mut window = file.map_window(&reserved, 100).unwrap();
        window.write_at(4096, b"hello").unwrap();
        let mut read = [0; 5];
        file.read_at(&mut read, 4196).unwrap();
        assert_eq!(&read, b"hello", "{disk:?}");
        let too_long = window.write_at(8090, b"hello").unwrap_err();
        assert_eq!(too_long.kind(), io::ErrorKind::InvalidInput, "{disk:?}");
    }
}

#[test]
fn data_is_found_and_reserved_space_is_skipped_if_the_disk_reports_it() {
    for (disk, dir, guard) in disks() {
        let file = disk.open(&dir.join("a"), OpenMode::Create).unwrap();
        file.write_at(&[1; 100], 0).unwrap();
        reserve(&*file, 100, 4 << 20);
        file.write_at(&[1; 100], 3 << 20).unwrap();
        let (mut position, mut pieces) = (50, Vec::new());
        let size = file.size().unwrap();
        while let Some(data) = file.next_data(position).unwrap().filter(|data| data.start < size) {
            assert!(data.start >= position && data.end > data.start, "{disk:?}");
            position = data.end;
            // Bytes that are read are in the page cache, and so are those that the system reads
            // ahead.
            file.read_at(&mut vec![0; (data.end - data.start).min(8192) as usize], data.start)
                .unwrap();
            pieces.push(data);
        }
        let is_data = |at: u64| pieces.iter().any(|data| data.contains(&at));
        assert!(
            is_data(50) && is_data(99) && is_data(3 << 20) && is_data((3 << 20) + 99),
            "{disk:?}"
        );
        let tells = guard.is_some();
        for hole in [1 << 20, (3 << 20) + 65_536, 4 << 20] {
            assert_eq!(is_data(hole), !tells, "{disk:?} {hole}");
        }
    }
}

#[derive(Debug)]
struct NoHook;

impl Hook for NoHook {
    fn before(&self, _: FileOp, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn hooked_disk_reports_the_same_as_its_disk() {
    let dir = tempfile::tempdir().unwrap();
    let hooked = HookedDisk::new(RealDisk, Arc::new(NoHook));
    let file = hooked.open(&dir.path().join("a"), OpenMode::Create).unwrap();
    reserve(&*file, 0, 1 << 20);
    assert_eq!(file.next_data(0).unwrap(), None);
    let (told, spare) = (hooked.spare_bytes(dir.path()), RealDisk.spare_bytes(dir.path()));
    // Other processes use the disk too.
    assert!(told.unwrap().abs_diff(spare.unwrap()) < 1 << 30);
    assert_eq!(hooked.spare_bytes(Path::new("/dev/shm")).unwrap(), 0);
}

#[test]
fn spare_space_is_a_part_of_the_usable_one() {
    let memory = MemoryDisk::new(8 * 4096);
    assert_eq!(memory.spare_bytes(Path::new("/")).unwrap(), 4096);
    // Space that is reserved in memory is memory.
    assert_eq!(RealDisk.spare_bytes(Path::new("/dev/shm")).unwrap(), 0);
}

#[test]
fn truncation_by_another_process_is_an_error_and_not_a_signal() {
    for (disk, dir, _guard) in disks() {
        let path = dir.join("a");
        let file = disk.open(&path, OpenMode::Create).unwrap();
        let reserved = reserve(&*file, 0, 1 << 20);
        let mut window = file.map_window(&reserved, 0).unwrap();
        disk.open(&path, OpenMode::Write).unwrap().set_len(10).unwrap();
        let error = window.write_at(500_000, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{disk:?}");
        assert!(file.map_window(&reserved, 0).is_err() && file.map_read(11).is_err(), "{disk:?}");
    }
}

#[test]
fn a_read_map_outlives_name_and_handle() {
    for (disk, dir, _guard) in disks() {
        let path = dir.join("a");
        let file = disk.open(&path, OpenMode::Create).unwrap();
        file.write_at(b"sealed", 0).unwrap();
        let map = file.map_read(6).unwrap();
        drop(file);
        disk.remove_file(&path).unwrap();
        assert_eq!(&*map, b"sealed", "{disk:?}");
    }
}

#[test]
fn names_follow_create_rename_list_and_remove() {
    for (disk, dir, _guard) in disks() {
        let topic = dir.join("t-0");
        assert!(disk.open(&topic.join("x"), OpenMode::Create).is_err(), "{disk:?}");
        disk.create_dir_all(&topic).unwrap();
        disk.open(&topic.join("b"), OpenMode::Create).unwrap().write_at(b"12", 0).unwrap();
        disk.open(&topic.join("a"), OpenMode::Create).unwrap();
        disk.create_dir_all(&dir.join("t-00")).unwrap();
        disk.rename(&topic.join("b"), &topic.join("c")).unwrap();
        disk.rename(&topic, &dir.join("t-0.x-delete")).unwrap();
        disk.sync_dir(&dir).unwrap();
        let names = |at: &Path| -> Vec<(String, bool, u64)> {
            let list = disk.list(at).unwrap().into_iter();
            list.map(|e| (e.name.into_string().unwrap(), e.is_dir, e.size)).collect()
        };
        let both = [("t-0.x-delete".into(), true, 0), ("t-00".into(), true, 0)];
        assert_eq!(names(&dir), both, "{disk:?}");
        let files = [("a".into(), false, 0), ("c".into(), false, 2)];
        assert_eq!(names(&dir.join("t-0.x-delete")), files, "{disk:?}");
        disk.remove_dir_all(&dir.join("t-0.x-delete")).unwrap();
        assert!(
            !disk.exists(&dir.join("t-0.x-delete")) && disk.exists(&dir.join("t-00")),
            "{disk:?}"
        );
    }
}

#[test]
fn write_atomically_replaces_and_leaves_no_temporary_file() {
    for (disk, dir, _guard) in disks() {
        let path = dir.join("checkpoint");
        disk.write_atomically(&path, b"a longer content").unwrap();
        disk.write_atomically(&path, b"short").unwrap();
        assert_eq!(disk.read(&path).unwrap(), b"short", "{disk:?}");
        assert_eq!(disk.list(&dir).unwrap().len(), 1, "{disk:?}");
    }
}

#[test]
fn new_file_needs_an_unused_name_or_replaces_the_old_file() {
    for (disk, dir, _guard) in disks() {
        let path = dir.join("a");
        let old = disk.open(&path, OpenMode::New).unwrap();
        old.write_at(b"old", 0).unwrap();
        let error = disk.open(&path, OpenMode::New).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{disk:?}");
        disk.create_anew(&path).unwrap().write_at(b"n", 0).unwrap();
        assert_eq!((disk.read(&path).unwrap(), content(&*old)), (b"n".to_vec(), b"old".to_vec()));
    }
}

#[test]
fn write_atomically_replaces_any_file_with_the_temporary_name() {
    let dir = tempfile::tempdir().unwrap();
    let (outside, path) = (dir.path().join("outside"), dir.path().join("checkpoint"));
    let temporary = dir.path().join("checkpoint.tmp");
    std::fs::write(&outside, b"untouched").unwrap();
    let hard_link = || std::fs::hard_link(&outside, &temporary).unwrap();
    let link = || std::os::unix::fs::symlink(&outside, &temporary).unwrap();
    let pipe = || {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &temporary, fifo, mode, 0).unwrap();
    };
    for stand in [&hard_link as &dyn Fn(), &link, &pipe] {
        stand();
        RealDisk.write_atomically(&path, b"content").unwrap();
        assert_eq!(RealDisk.read(&path).unwrap(), b"content");
        assert_eq!(std::fs::read(&outside).unwrap(), b"untouched");
        assert!(!temporary.exists() && !temporary.is_symlink());
    }
}

#[test]
fn temporary_file_of_a_failed_atomic_write_is_removed() {
    let disk = MemoryDisk::new(2 * 4096);
    let path = Path::new("/checkpoint");
    disk.write_atomically(path, b"old").unwrap();
    let error = disk.write_atomically(path, &[1; 8192]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!((disk.used_bytes(), disk.read(path).unwrap()), (4096, b"old".to_vec()));
}

#[test]
fn missing_files_are_not_found_and_readers_do_not_write() {
    for (disk, dir, _guard) in disks() {
        let error = disk.open(&dir.join("a"), OpenMode::Write).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{disk:?}");
        disk.open(&dir.join("a"), OpenMode::Create).unwrap();
        let reader = disk.open(&dir.join("a"), OpenMode::Read).unwrap();
        assert!(reader.write_at(b"x", 0).is_err(), "{disk:?}");
    }
}

#[test]
fn links_and_pipes_are_refused_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("target"), b"outside").unwrap();
    std::os::unix::fs::symlink(dir.path().join("target"), dir.path().join("link")).unwrap();
    let pipe = dir.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(RealDisk.open(&dir.path().join("link"), OpenMode::Create).is_err());
    assert!(RealDisk.open(&pipe, OpenMode::Read).is_err());
    assert!(RealDisk.open(&pipe, OpenMode::Create).is_err());
    assert!(RealDisk.open(dir.path(), OpenMode::Read).is_err());
}

#[test]
fn memory_disk_is_full_at_its_bound_and_resumes_when_space_returns() {
    let disk = MemoryDisk::new(3 * 4096);
    let file = disk.open(Path::new("/a"), OpenMode::Create).unwrap();
    file.write_at(&[1; 8192], 0).unwrap();
    let error = file.write_at(&[1; 8192], 8192).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    file.set_len(4096).unwrap();
    file.write_at(&[1; 8192], 4096).unwrap();
    assert_eq!(disk.available_bytes(Path::new("/")).unwrap(), Space { total: 12288, usable: 0 });
    drop(file);
    disk.remove_file(Path::new("/a")).unwrap();
    assert_eq!(disk.used_bytes(), 0);
}

#[test]
fn reserving_memory_costs_none() {
    let disk = MemoryDisk::default();
    let file = disk.open(Path::new("/a"), OpenMode::Create).unwrap();
    file.allocate(0, 1 << 30).unwrap();
    assert_eq!((file.size().unwrap(), disk.used_bytes()), (1 << 30, 0));
}
