//! A forked child: `fork` needs no Python here, and the test has one thread at that point which
//! matters.
#![expect(unsafe_code, reason = "the standard library has no fork")]

use std::fs::File;
use std::io::{Read, Write, pipe};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

use pykafka_forks::{ForkClosed, Generation, Socket};

/// Runs `work` in a child; whether it returned true. `work` must not allocate: the harness has
/// threads.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls only what `work` does, and ends without returning.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0, "the system has room for a process");
        if child == 0 {
            libc::_exit(i32::from(!work()));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}

fn is_open(number: RawFd) -> bool {
    // SAFETY: it reads a flag, of any number.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

#[test]
fn a_child_closes_only_registered_descriptors() {
    let theirs = File::open("/dev/null").expect("it is there");
    let ours = ForkClosed::new(File::open("/dev/null").expect("it is there"));
    let (our_number, their_number) = (ours.as_raw_fd(), theirs.as_raw_fd());
    assert!(in_child(|| !is_open(our_number) && is_open(their_number)));
    assert!(is_open(our_number) && ours.is_open());
    drop(ours);
    assert!(!is_open(our_number));
}

#[test]
fn a_closed_descriptor_belongs_to_its_next_owner() {
    let ours = ForkClosed::new(File::open("/dev/null").expect("it is there"));
    let number = ours.as_raw_fd();
    let copied = ours.try_clone().expect("a descriptor");
    drop(ours);
    // SAFETY: the number was closed above; another test may have taken it, and then nothing is
    // tested.
    let again = unsafe { libc::fcntl(copied.as_raw_fd(), libc::F_DUPFD, number) };
    assert!(again != number || in_child(|| is_open(again)));
}

#[test]
fn a_child_does_not_close_a_file_that_reuses_a_descriptor_number() {
    let ours = ForkClosed::new(File::open("/dev/null").expect("it is there"));
    let number = ours.as_raw_fd();
    assert!(in_child(move || {
        // SAFETY: it takes a path and flags; the lowest free number may be a smaller one, and
        // then it is moved.
        unsafe {
            let opened = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
            libc::dup2(opened, number);
        }
        drop(ours);
        is_open(number)
    }));
}

#[test]
fn a_child_has_another_generation() {
    let generation = Generation::current();
    assert!(in_child(|| !generation.is_current() && Generation::current().is_current()));
    assert!(generation.is_current());
}

#[test]
fn a_dropped_socket_ends_for_its_peer_even_if_a_copy_is_open() {
    let listener = Socket::new(TcpListener::bind("127.0.0.1:0").expect("a port"));
    let address = listener.local_addr().expect("bound");
    let mut peer = TcpStream::connect(address).expect("a listener");
    let mut accepted = Socket::new(listener.accept().expect("a peer").0);
    let _copies = (accepted.try_clone().expect("a copy"), listener.try_clone().expect("a copy"));
    (&*accepted).write_all(b"last").expect("the peer listens");
    let moved = accepted.try_clone().expect("a copy");
    accepted.move_to(moved);
    drop((accepted, listener));
    let mut received = Vec::new();
    peer.read_to_end(&mut received).expect("the end of the connection");
    assert_eq!(received, b"last");
    TcpListener::bind(address).expect("the port can be bound again");
}

#[test]
fn the_copy_of_a_pipe_in_a_child_does_not_keep_it_open() {
    let (mut reading, writing) = pipe().expect("a pipe");
    let writing = ForkClosed::new(writing);
    let (mut gate, release) = pipe().expect("a pipe");
    // SAFETY: the child reads one byte and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(release);
        let _ = gate.read(&mut [0]);
        // SAFETY: it ends the child without its parent's exit handlers.
        unsafe { libc::_exit(0) };
    }
    drop(writing);
    assert_eq!(reading.read(&mut [0]).expect("it is open"), 0, "while the child lives");
    drop(release);
    let mut status = -1;
    // SAFETY: it is the child of this test.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
}
