"""Bytes: sizes, holes, appends, ranges, mappings."""

import errno
import itertools
import mmap
import os
import random
import resource
import signal

from .harness import (COLLAPSE, INSERT, KEEP_SIZE, PUNCH_HOLE, TYPES, UNSHARE, ZERO_RANGE, case, fallocate, make, write)
from .linked import race

SIZES = (0, 1, 100, 4095, 4096, 4097, 8192, 65536, 131071, 1048576, 1048577)


def pattern(size, seed=1):
    return random.Random(seed).randbytes(size)


def _read(path="f"):
    with open(path, "rb") as f:
        return f.read()


for _start in (0, 1, 4096, 5000, 1048577):

    @case(f"truncate/from {_start}")
    def _(p, start=_start):
        for size, how in itertools.product(SIZES, ("truncate", "ftruncate", "O_TRUNC and ftruncate")):
            write("f", pattern(start))
            if how == "truncate":
                p.call(f"{how} to {size}", os.truncate, "f", size)
            else:
                descriptor = os.open("f", os.O_RDWR | (os.O_TRUNC if "O_TRUNC" in how else 0))
                p.call(f"{how} to {size}", os.ftruncate, descriptor, size)
                p.note("seen by fstat", os.fstat(descriptor).st_size)
                p.call("write behind", os.pwrite, descriptor, b"end", size + 10)
                os.close(descriptor)
            p.content(f"{how} to {size}", "f")


@case("truncate/shrunk bytes do not come back")
def _(p):
    write("f", pattern(10000))
    descriptor = os.open("f", os.O_RDWR)
    for size in (5000, 4097, 4096, 4095, 1, 0):
        os.ftruncate(descriptor, size)
        os.ftruncate(descriptor, 10000)
        p.call(f"shrunk to {size} and back", lambda: hash_(os.pread(descriptor, 20000, 0)))
        os.pwrite(descriptor, pattern(10000, size), 0)


def hash_(data):
    import hashlib

    return len(data), hashlib.sha256(data).hexdigest()[:16]


@case("truncate/what is too large or negative")
def _(p):
    write("f", b"abc")
    descriptor = os.open("f", os.O_RDWR)
    for name, size in (("negative", -1), ("most negative", -(1 << 63)), ("largest", (1 << 63) - 1), ("2^50", 1 << 50), ("4 TiB", 1 << 42), ("5 GiB", 5 << 30)):
        p.call(f"truncate {name}", os.truncate, "f", size)
        p.note(f"size {name}", os.stat("f").st_size)
        p.call(f"ftruncate {name}", os.ftruncate, descriptor, size)
        p.call(f"pwrite at {name}", os.pwrite, descriptor, b"x", size)
        p.note(f"size then {name}", os.stat("f").st_size)
        os.ftruncate(descriptor, 3)
    p.call("fallocate past the end of everything", os.posix_fallocate, descriptor, (1 << 63) - 10, 100)


for _kind in TYPES:

    @case(f"truncate/{_kind}")
    def _(p, kind=_kind):
        make(kind, "f")
        p.call("truncate", os.truncate, "f", 4)
        p.tree()


@case("write/offsets and sizes")
def _(p):
    descriptor = os.open("f", os.O_RDWR | os.O_CREAT)
    for offset, size in itertools.product((0, 1, 4095, 4096, 131072, 1048570, 3000000), (0, 1, 4096, 131073, 1048576, 2097153)):
        p.call(f"pwrite {size} at {offset}", os.pwrite, descriptor, pattern(size, offset), offset)
    p.content("f", "f")
    p.call("pwrite at a negative offset", os.pwrite, descriptor, b"x", -1)
    p.call("read behind the end", os.pread, descriptor, 10, 1 << 40)
    p.call("read across the end", lambda: len(os.pread(descriptor, 100, os.fstat(descriptor).st_size - 10)))
    for whence, offset in itertools.product((os.SEEK_SET, os.SEEK_CUR, os.SEEK_END, 3, 4, 9), (0, -1, 10, 1 << 62)):
        os.lseek(descriptor, 5, os.SEEK_SET)
        p.call(f"lseek {offset} from {whence}", os.lseek, descriptor, offset, whence)


@case("write/a file of holes")
def _(p):
    descriptor = os.open("f", os.O_RDWR | os.O_CREAT)
    positions = [0, 1 << 20, 100 << 20, 3 << 30, (5 << 30) + 123]
    for position in positions:
        p.call(f"pwrite at {position}", os.pwrite, descriptor, pattern(5000, position), position)
    p.note("size", os.fstat(descriptor).st_size)
    p.note("takes less room", os.fstat(descriptor).st_blocks * 512 < 1 << 20)
    for position in positions:
        p.call(f"pread at {position}", lambda: hash_(os.pread(descriptor, 6000, position - min(position, 500))))
    os.close(descriptor)
    p.note("takes less room after close", os.stat("f").st_blocks * 512 < 1 << 20)
    descriptor = os.open("f", os.O_RDONLY)
    p.note("data is not in a hole", [_is_data(descriptor, position) for position in positions])
    p.call("SEEK_DATA behind the end", os.lseek, descriptor, 1 << 40, os.SEEK_DATA)
    p.call("SEEK_HOLE behind the end", os.lseek, descriptor, 1 << 40, os.SEEK_HOLE)
    p.call("SEEK_HOLE at the last byte", os.lseek, descriptor, (5 << 30) + 123 + 4999, os.SEEK_HOLE)
    p.call("SEEK_DATA before 3 GiB skips", lambda: os.lseek(descriptor, 200 << 20, os.SEEK_DATA) > 200 << 20)


def _is_data(descriptor, position):
    return os.lseek(descriptor, position, os.SEEK_DATA) == position


@case("write/append")
def _(p):
    one = os.open("f", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    two = os.open("f", os.O_WRONLY | os.O_APPEND)
    plain = os.open("f", os.O_RDWR)
    import fcntl

    for i in range(5):
        p.call(f"one {i}", os.write, one, b"one%d" % i)
        p.call(f"two {i}", os.write, two, b"two%d" % i)
        p.note(f"position {i}", os.lseek(one, 0, os.SEEK_CUR))
    p.call("pwrite appends on Linux", os.pwrite, one, b"pwrite", 0)
    p.call("plain overwrites", os.pwrite, plain, b"PLAIN", 0)
    os.lseek(one, 2, os.SEEK_SET)
    p.call("read after lseek", os.read, one, 5)
    p.call("write after lseek", os.write, one, b"end")
    os.ftruncate(plain, 10)
    p.call("after truncation", os.write, two, b"after")
    fcntl.fcntl(plain, fcntl.F_SETFL, os.O_APPEND)
    p.call("O_APPEND switched on", os.pwrite, plain, b"on", 0)
    fcntl.fcntl(one, fcntl.F_SETFL, 0)
    p.call("O_APPEND switched off", os.pwrite, one, b"OFF", 0)
    p.call("pwritev with RWF_APPEND", os.pwritev, one, [b"app", b"end"], 0, 0x10)
    p.call("posix_fallocate does not append", os.posix_fallocate, two, 0, 4)
    p.content("f", "f")


@case("write/appends of several processes")
def _(p):
    def append(me):
        descriptor = os.open("f", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for i in range(200):
            os.write(descriptor, b"%d %04d %s\n" % (me, i, b"x" * (i % 90)))
        os.close(descriptor)

    race(4, append)
    lines = _read().split(b"\n")
    p.note("whole lines", len(lines) - 1)
    for me in range(4):
        mine = [line.split()[1] for line in lines if line.startswith(b"%d " % me)]
        p.note(f"of {me} in order", mine == [b"%04d" % i for i in range(200)])
    os.unlink("f")  # the order between processes is chance


@case("write/appends with a new open each")
def _(p):
    def append(me):
        for i in range(60):
            write("f", b"%d %04d\n" % (me, i), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    race(3, append)
    p.note("lines", sorted(_read().split(b"\n")))
    os.unlink("f")  # the order is chance


@case("write/descriptors share or do not share a position")
def _(p):
    descriptor = os.open("f", os.O_RDWR | os.O_CREAT)
    copy = os.dup(descriptor)
    own = os.open("f", os.O_RDWR)
    os.write(descriptor, b"abc")
    os.write(copy, b"def")
    os.write(own, b"X")
    if os.fork() == 0:
        os.write(descriptor, b"child")
        os._exit(0)
    os.wait()
    os.write(copy, b"end")
    p.content("f", "f")
    os.close(descriptor)
    p.call("after one close", os.write, copy, b"!")
    p.call("seen by another descriptor", os.pread, own, 100, 0)
    p.call("writev", os.writev, copy, [b"a", b"", b"bc" * 5000])
    p.call("preadv", lambda: os.preadv(own, [bytearray(3), bytearray(20000)], 1))
    p.call("sendfile within", lambda: os.sendfile(copy, own, 0, 7))
    reading, writing = os.pipe()
    p.call("splice out", os.splice, own, writing, 5, 0)
    p.call("splice in", os.splice, reading, copy, 5)
    p.content("f at the end", "f")


@case("write/limit of a process")
def _(p):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
    descriptor = os.open("f", os.O_RDWR | os.O_CREAT)
    p.call("within", os.pwrite, descriptor, b"x" * 9990, 0)
    p.call("across", os.pwrite, descriptor, b"x" * 100, 9950)
    p.call("at", os.pwrite, descriptor, b"x", 10000)
    p.call("ftruncate", os.ftruncate, descriptor, 10001)
    p.call("posix_fallocate", os.posix_fallocate, descriptor, 0, 10001)
    p.note("size", os.fstat(descriptor).st_size)


MODES = {
    "plain": 0, "keep": KEEP_SIZE, "punch": PUNCH_HOLE | KEEP_SIZE, "punch without keep": PUNCH_HOLE, "zero": ZERO_RANGE,
    "zero keep": ZERO_RANGE | KEEP_SIZE, "collapse": COLLAPSE, "insert": INSERT, "unshare": UNSHARE, "punch and zero": PUNCH_HOLE | ZERO_RANGE | KEEP_SIZE, "unknown": 1 << 12,
}

for _name, _mode in MODES.items():

    @case(f"fallocate/{_name}")
    def _(p, mode=_mode):
        descriptor = os.open("f", os.O_RDWR | os.O_CREAT)
        for offset, length in itertools.product((0, 1, 4096, 5000, 8192, 20000, 100000), (0, 1, 4096, 8192, 30000)):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, pattern(20480), 0)
            p.call(f"{length} at {offset}", fallocate, descriptor, mode, offset, length)
            p.note(f"{length} at {offset}: size", os.fstat(descriptor).st_size)
            p.content(f"{length} at {offset}", "f")
        for offset, length in ((-1, 10), (0, -1), (1 << 62, 1 << 62), ((1 << 63) - 2, 5)):
            p.call(f"{length} at {offset}", fallocate, descriptor, mode, offset, length)
        p.call("reading only", fallocate, os.open("f", os.O_RDONLY), mode, 0, 4096)
        os.mkfifo("fifo")
        p.call("fifo", fallocate, os.open("fifo", os.O_RDWR), mode, 0, 4096)
        p.call("append only", fallocate, os.open("f", os.O_WRONLY | os.O_APPEND), mode, 0, 4096)


@case("fallocate-room/punching frees, allocating takes")
def _(p):
    descriptor = os.open("f", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(descriptor, 0, 1 << 20)
    p.note("allocated", os.fstat(descriptor).st_blocks * 512 >= 1 << 20)
    os.pwrite(descriptor, pattern(1 << 20), 0)
    fallocate(descriptor, PUNCH_HOLE | KEEP_SIZE, 4096, (1 << 20) - 8192)
    os.fsync(descriptor)
    p.note("freed", os.fstat(descriptor).st_blocks * 512 < 100000)
    fallocate(descriptor, KEEP_SIZE, 0, 2 << 20)
    p.note("beyond the size", os.fstat(descriptor).st_blocks * 512 >= 2 << 20)
    p.note("size", os.fstat(descriptor).st_size)
    os.ftruncate(descriptor, 0)
    p.note("truncated", os.fstat(descriptor).st_blocks * 512 < 100000)


@case("copy_file_range/offsets and files")
def _(p):
    write("source", pattern(300000))
    reading = os.open("source", os.O_RDWR)
    for offset, to, length in itertools.product((0, 1, 4096, 299990, 300000, 400000), (0, 5, 4096, 100000), (0, 1, 4096, 200000, 1 << 40)):
        target = os.open("f", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.write(target, b"before")

        def whole():
            # It may copy less than asked for: what counts is what a loop gets.
            done = 0
            while done < length:
                n = os.copy_file_range(reading, target, length - done, offset + done, to + done)
                if n == 0:
                    break
                done += n
            return done

        p.call(f"{length} from {offset} to {to}", whole)
        p.content(f"{length} from {offset} to {to}", "f")
        os.close(target)
    p.call("within a file", os.copy_file_range, reading, reading, 1000, 0, 150000)
    p.call("overlapping", os.copy_file_range, reading, reading, 1000, 0, 500)
    p.call("same range", os.copy_file_range, reading, reading, 1000, 0, 0)
    p.content("source", "source")
    p.call("to O_APPEND", os.copy_file_range, reading, os.open("f", os.O_WRONLY | os.O_APPEND), 10, 0)
    p.call("to reading only", os.copy_file_range, reading, os.open("f", os.O_RDONLY), 10, 0)
    p.call("from writing only", os.copy_file_range, os.open("f", os.O_WRONLY), reading, 10, 0)
    p.call("from a directory", os.copy_file_range, os.open(".", os.O_RDONLY), reading, 10, 0)
    p.call("negative offset", os.copy_file_range, reading, os.open("f", os.O_WRONLY), 10, -1)
    target = os.open("g", os.O_RDWR | os.O_CREAT)
    os.lseek(reading, 7, os.SEEK_SET)
    p.call("with positions", os.copy_file_range, reading, target, 100)
    p.note("positions", (os.lseek(reading, 0, 1), os.lseek(target, 0, 1)))
    outside = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR)
    os.write(outside, b"from elsewhere")
    p.call("from another file system", os.copy_file_range, outside, target, 14, 0, 50)
    p.call("to another file system", os.copy_file_range, target, outside, 14, 50, 0)


@case("mmap/shared writes are in the file")
def _(p):
    write("f", pattern(20000))
    descriptor = os.open("f", os.O_RDWR)
    mapped = mmap.mmap(descriptor, 20000)
    mapped[100:110] = b"by mapping"
    p.call("read sees it at once", os.pread, descriptor, 12, 99)
    os.pwrite(descriptor, b"by pwrite", 5000)
    p.note("mapping sees a write", mapped[4999:5010])
    p.call("another open sees it", lambda: _read()[99:111])
    p.child("another process sees it", lambda: _read()[99:111])
    os.ftruncate(descriptor, 30000)
    mapped.resize(30000)
    p.note("extended", mapped[19990:20010])
    mapped[29999:30000] = b"!"
    os.close(descriptor)
    mapped[0:5] = b"after"  # a store after close(2)
    mapped.flush()
    mapped.close()
    p.content("f", "f")


@case("mmap/stores after close and unlink")
def _(p):
    write("f", bytes(10000))
    descriptor = os.open("f", os.O_RDWR)
    mapped = mmap.mmap(descriptor, 10000)
    os.close(descriptor)
    mapped[4090:4100] = b"0123456789"
    os.rename("f", "g")
    mapped[9990:10000] = b"abcdefghij"
    p.content("g before munmap", "g")
    os.link("g", "h")
    os.unlink("g")
    mapped[0:3] = b"xyz"
    mapped.close()
    p.content("h", "h")


@case("mmap/private, read-only and refused")
def _(p):
    write("f", b"unchanged" * 1000)
    descriptor = os.open("f", os.O_RDWR)
    private = mmap.mmap(descriptor, 0, flags=mmap.MAP_PRIVATE)
    private[0:7] = b"CHANGED"
    p.note("private", private[0:9])
    p.content("file", "f")
    reading, writing = os.open("f", os.O_RDONLY), os.open("f", os.O_WRONLY)
    for name, d, flags, protection in (("shared writing of a read-only", reading, mmap.MAP_SHARED, 3), ("private writing of a read-only", reading, mmap.MAP_PRIVATE, 3),
                                       ("shared reading of a write-only", writing, mmap.MAP_SHARED, 1), ("shared reading", reading, mmap.MAP_SHARED, 1)):
        p.call(name, lambda: mmap.mmap(d, 4096, flags, protection).close())
    p.call("a directory", lambda: mmap.mmap(os.open(".", os.O_RDONLY), 4096, mmap.MAP_SHARED, 1))
    os.chmod("f", 0o755)
    p.call("executable", lambda: mmap.mmap(reading, 4096, mmap.MAP_PRIVATE, 5).close())


@case("mmap/beyond the end")
def _(p):
    write("f", b"x" * 5000)
    descriptor = os.open("f", os.O_RDWR)
    mapped = mmap.mmap(descriptor, 8192, access=mmap.ACCESS_WRITE) if os.fstat(descriptor).st_size >= 8192 else None
    os.ftruncate(descriptor, 8192)
    mapped = mapped or mmap.mmap(descriptor, 8192)
    os.ftruncate(descriptor, 4100)
    p.note("rest of the last page is zero", mapped[4100:4200] == bytes(100))
    mapped[4150:4160] = b"y" * 10  # behind the end, within its page: must never be in the file
    os.ftruncate(descriptor, 6000)
    p.call("grown again", lambda: os.pread(descriptor, 100, 4100) == bytes(100))
    os.ftruncate(descriptor, 100)

    def touch():
        return mapped[5000]

    ended = os.fork()
    if ended == 0:
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        import faulthandler

        faulthandler.disable()
        touch()
        os._exit(0)
    p.note("a page behind the end", os.waitstatus_to_exitcode(os.waitpid(ended, 0)[1]))


@case("mmap/two processes")
def _(p):
    write("f", bytes(4096))

    def count(me):
        import fcntl

        descriptor = os.open("f", os.O_RDWR)
        mapped = mmap.mmap(descriptor, 4096)
        for _ in range(500):
            fcntl.lockf(descriptor, fcntl.LOCK_EX)
            mapped[0:8] = (int.from_bytes(mapped[0:8], "little") + 1).to_bytes(8, "little")
            fcntl.lockf(descriptor, fcntl.LOCK_UN)
        mapped.close()
        os.close(descriptor)

    race(3, count)
    p.note("counted", int.from_bytes(_read()[0:8], "little"))


for _seed in range(8):

    @case(f"mixed/{_seed}")
    def _(p, seed=_seed):
        # Random changes of one file by all ways at once; fsx does the same at length.
        r = random.Random(seed)
        descriptor = os.open("f", os.O_RDWR | os.O_CREAT)
        for step in range(150):
            size, offset, length = os.fstat(descriptor).st_size, r.randrange(300000), r.randrange(1, 70000)
            choice = r.randrange(9)
            if choice == 0:
                os.pwrite(descriptor, r.randbytes(length), offset)
            elif choice == 1:
                os.ftruncate(descriptor, offset)
            elif choice == 2 and size:
                with mmap.mmap(descriptor, size) as mapped:
                    data = r.randbytes(min(length, size))
                    at = r.randrange(size - len(data) + 1)
                    mapped[at:at + len(data)] = data
            elif choice == 3:
                fallocate(descriptor, PUNCH_HOLE | KEEP_SIZE, offset, length)
            elif choice == 4:
                fallocate(descriptor, r.choice((ZERO_RANGE, ZERO_RANGE | KEEP_SIZE, 0)), offset, length)
            elif choice == 5:
                os.close(descriptor)
                descriptor = os.open("f", os.O_RDWR)
            elif choice == 6:
                write("f", r.randbytes(length), os.O_WRONLY | os.O_APPEND)
            elif choice == 7 and size > 2:
                middle = size // 2
                try:
                    os.copy_file_range(descriptor, descriptor, min(length, middle), 0, middle)
                except OSError as e:
                    if e.errno != errno.EINVAL:
                        raise
            else:
                os.pread(descriptor, length, offset)
            if step % 10 == 9:
                p.note(f"step {step}", hash_(os.pread(descriptor, 1 << 20, 0)))
        os.close(descriptor)
