"""Locks: flock(2), and those of fcntl(2) of a process or of an open file."""

import fcntl
import itertools
import os
import struct

from .harness import case, write

OFD_GETLK, OFD_SETLK = 36, 37


def _lock(kind, start, length, pid=0):
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, pid)


def _set(descriptor, kind, start=0, length=0, command=fcntl.F_SETLK):
    fcntl.fcntl(descriptor, command, _lock(kind, start, length))


def _get(descriptor, kind, start=0, length=0, command=fcntl.F_GETLK):
    found = struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, command, _lock(kind, start, length)))
    return found[0], found[2], found[3]


LOCKS = {"shared": fcntl.LOCK_SH, "exclusive": fcntl.LOCK_EX}
KINDS = {"reading": fcntl.F_RDLCK, "writing": fcntl.F_WRLCK}


for (_first, _a), (_second, _b) in itertools.product(LOCKS.items(), LOCKS.items()):

    @case(f"flock/{_first} then {_second}")
    def _(p, first=_a, second=_b):
        write("f", b"x")
        one, two, same = os.open("f", os.O_RDWR), os.open("f", os.O_RDONLY), None
        same = os.dup(one)
        p.call("first", fcntl.flock, one, first | fcntl.LOCK_NB)
        p.call("second", fcntl.flock, two, second | fcntl.LOCK_NB)
        p.call("by a copy of the descriptor", fcntl.flock, same, second | fcntl.LOCK_NB)
        p.child("by a child's own open", lambda: fcntl.flock(os.open("f", os.O_RDONLY), second | fcntl.LOCK_NB))
        p.child("by the inherited descriptor", lambda: fcntl.flock(one, first | fcntl.LOCK_NB))
        p.call("unlock", fcntl.flock, one, fcntl.LOCK_UN)
        p.call("second again", fcntl.flock, two, second | fcntl.LOCK_NB)
        os.close(two)
        p.call("exclusive after close", fcntl.flock, one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        p.call("write under a lock", os.write, one, b"y")
        os.rename("f", "g")
        p.child("after a rename", lambda: fcntl.flock(os.open("g", os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB))
        p.call("of a directory", lambda: fcntl.flock(os.open(".", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB))


for (_first, _a), (_second, _b) in itertools.product(KINDS.items(), KINDS.items()):

    @case(f"fcntl/{_first} then {_second}")
    def _(p, first=_a, second=_b):
        write("f", b"x" * 100)
        one = os.open("f", os.O_RDWR)
        p.call("first", _set, one, first, 10, 20)
        for start, length in ((0, 10), (0, 11), (10, 20), (15, 1), (29, 5), (30, 5), (0, 0), (30, 0)):
            p.child(f"asked {length} at {start}", lambda: _get(os.open("f", os.O_RDWR), second, start, length))
            p.child(f"set {length} at {start}", lambda: _set(os.open("f", os.O_RDWR), second, start, length))
            p.call(f"by an OFD lock {length} at {start}", lambda: _set(os.open("f", os.O_RDWR), second, start, length, OFD_SETLK))
        p.call("own process is never in the way", _set, os.open("f", os.O_RDWR), second, 5, 50)
        p.call("unlock the middle", _set, one, fcntl.F_UNLCK, 12, 3)
        p.child("the middle", lambda: _set(os.open("f", os.O_RDWR), fcntl.F_WRLCK, 12, 3))
        other = os.open("f", os.O_RDONLY)
        os.close(other)  # closing any descriptor of the file drops the locks of the process
        p.child("after a close", lambda: _set(os.open("f", os.O_RDWR), fcntl.F_WRLCK, 0, 0))
        p.call("writing lock of a read-only descriptor", _set, os.open("f", os.O_RDONLY), fcntl.F_WRLCK)
        p.call("reading lock of a write-only descriptor", _set, os.open("f", os.O_WRONLY), fcntl.F_RDLCK)

    @case(f"fcntl/of open files, {_first} then {_second}")
    def _(p, first=_a, second=_b):
        write("f", b"x" * 100)
        one, two = os.open("f", os.O_RDWR), os.open("f", os.O_RDWR)
        p.call("first", _set, one, first, 0, 50, OFD_SETLK)
        p.call("second", _set, two, second, 40, 20, OFD_SETLK)
        p.call("asked", _get, two, second, 0, 0, OFD_GETLK)
        p.child("by a child's process lock", lambda: _set(os.open("f", os.O_RDWR), second, 0, 10))
        os.close(one)
        p.call("after close", _set, two, fcntl.F_WRLCK, 0, 0, OFD_SETLK)


@case("fcntl/waiting")
def _(p):
    write("f", b"x")
    for how in ("flock", "fcntl", "death"):
        descriptor = os.open("f", os.O_RDWR)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            own = os.open("f", os.O_RDWR)
            (fcntl.flock if how == "flock" else fcntl.lockf)(own, fcntl.LOCK_EX)
            os.write(writing, b"1")
            import time

            if how == "death":
                time.sleep(30)
            time.sleep(0.2)
            os.pwrite(own, how.encode(), 0)
            os._exit(0)
        os.read(reading, 1)
        if how == "death":
            os.kill(child, 9)
        p.call(f"{how} waits", (fcntl.flock if how == "flock" else fcntl.lockf), descriptor, fcntl.LOCK_EX)
        p.call(f"{how}: what the other wrote", os.pread, descriptor, 20, 0)
        os.waitpid(child, 0)
        os.close(descriptor)


@case("fcntl/deadlock is told")
def _(p):
    import time

    write("f", b"x" * 10)
    ready, say = os.pipe()
    descriptor = os.open("f", os.O_RDWR)
    _set(descriptor, fcntl.F_WRLCK, 0, 1)  # a child does not inherit it
    child = os.fork()
    if child == 0:
        try:
            own = os.open("f", os.O_RDWR)
            _set(own, fcntl.F_WRLCK, 1, 1)
            os.write(say, b"1")
            _set(own, fcntl.F_WRLCK, 0, 1, fcntl.F_SETLKW)
        finally:
            os._exit(0)
    os.read(ready, 1)
    while not _waits(child):
        time.sleep(0.01)
    p.call("the second who waits", _set, descriptor, fcntl.F_WRLCK, 1, 1, fcntl.F_SETLKW)
    os.close(descriptor)
    p.note("child", os.waitpid(child, 0)[1])


def _waits(process):
    with open("/proc/locks") as locks:
        return any(f"-> POSIX  ADVISORY  WRITE {process} " in line for line in locks)


@case("sharing/a file is one for all who have it open")
def _(p):
    write("f", b"start")
    descriptor = os.open("f", os.O_RDWR)
    for i in range(20):
        p.child(f"append {i}", lambda: write("f", b"%d" % i, os.O_WRONLY | os.O_APPEND))
        p.note(f"size {i}", os.fstat(descriptor).st_size)
        p.call(f"read {i}", os.pread, descriptor, 100, 0)
        os.pwrite(descriptor, b"#", i)
        p.child(f"other reads {i}", lambda: open("f", "rb").read())
    p.child("truncate", lambda: os.truncate("f", 3))
    p.call("read after truncation", os.pread, descriptor, 100, 0)
    p.call("write behind", os.pwrite, descriptor, b"end", 10)
    p.content("f", "f")
