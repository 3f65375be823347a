"""Which call changes which time of what, and times that are set."""

import os

from .harness import UTIME_NOW, UTIME_OMIT, TYPES, case, fallocate, make, renameat2, utimensat, write

NOW, OMIT = (0, UTIME_NOW), (0, UTIME_OMIT)


def _opened(name, flags, function):
    def run():
        descriptor = os.open(name, flags)
        try:
            function(descriptor)
        finally:
            os.close(descriptor)

    return run


def _source(function):
    def run(descriptor):
        source = os.open("source", os.O_RDONLY)
        function(source, descriptor)
        os.close(source)

    return run


CONTENT = {
    "read": _opened("f", os.O_RDONLY, lambda d: os.read(d, 3)),
    "open for writing": _opened("f", os.O_RDWR, lambda d: None),
    "write": _opened("f", os.O_WRONLY, lambda d: os.write(d, b"xyz")),
    "write of nothing": _opened("f", os.O_WRONLY, lambda d: os.write(d, b"")),
    "append": _opened("f", os.O_WRONLY | os.O_APPEND, lambda d: os.write(d, b"xyz")),
    "pwrite": _opened("f", os.O_WRONLY, lambda d: os.pwrite(d, b"xyz", 1000)),
    "fsync": _opened("f", os.O_WRONLY, os.fsync),
    "open with O_TRUNC": _opened("f", os.O_WRONLY | os.O_TRUNC, lambda d: None),
    "open of an empty file with O_TRUNC": _opened("empty", os.O_WRONLY | os.O_TRUNC, lambda d: None),
    "open of an existing file with O_CREAT": _opened("f", os.O_WRONLY | os.O_CREAT, lambda d: None),
    "truncate shorter": lambda: os.truncate("f", 3),
    "truncate longer": lambda: os.truncate("f", 10000),
    "truncate to the same size": lambda: os.truncate("f", os.stat("f").st_size),
    "truncate of an empty file": lambda: os.truncate("empty", 0),
    "ftruncate shorter": _opened("f", os.O_WRONLY, lambda d: os.ftruncate(d, 3)),
    "ftruncate longer": _opened("f", os.O_WRONLY, lambda d: os.ftruncate(d, 10000)),
    "ftruncate to the same size": _opened("f", os.O_WRONLY, lambda d: os.ftruncate(d, os.fstat(d).st_size)),
    "posix_fallocate longer": _opened("f", os.O_WRONLY, lambda d: os.posix_fallocate(d, 0, 9000)),
    "posix_fallocate within": _opened("f", os.O_WRONLY, lambda d: os.posix_fallocate(d, 0, 3)),
    "fallocate keeping the size": _opened("f", os.O_WRONLY, lambda d: fallocate(d, 1, 0, 90000)),
    "punch hole": _opened("f", os.O_WRONLY, lambda d: fallocate(d, 3, 0, 5)),
    "zero range": _opened("f", os.O_WRONLY, lambda d: fallocate(d, 16, 0, 5)),
    "copy_file_range": _opened("f", os.O_WRONLY, _source(lambda s, d: os.copy_file_range(s, d, 5))),
    "copy_file_range of nothing": _opened("f", os.O_WRONLY, _source(lambda s, d: os.copy_file_range(s, d, 5, 1 << 20))),
    "sendfile": _opened("f", os.O_WRONLY, _source(lambda s, d: os.sendfile(d, s, 0, 5))),
}

for _name, _function in CONTENT.items():

    @case(f"times/{_name}")
    def _(p, name=_name, function=_function):
        make("regular", "f")
        make("regular", "source")
        write("empty")
        os.link("f", "linked")
        p.changes(name, function, "f", "empty", "source", "linked", ".")


@case("times/mapping")
def _(p):
    import mmap

    make("regular", "f")
    descriptor = os.open("f", os.O_RDWR)
    mapped = mmap.mmap(descriptor, 10)

    def store():
        mapped[0:3] = b"xyz"
        mapped.flush()

    p.changes("store and msync", store, "f")


for _kind in TYPES:
    _unlink = os.rmdir if _kind == "dir" else os.unlink

    @case(f"times/names of {_kind}")
    def _(p, kind=_kind, remove=_unlink):
        os.mkdir("d")
        os.mkdir("to")
        p.changes("make", lambda: make(kind, "d/f"), "d", "d/f", ".")
        p.changes("make another", lambda: make(kind, "d/g"), "d")
        p.changes("make a third", lambda: make(kind, "d/h"), "d")
        p.changes("make on an existing name", lambda: make(kind, "d/f") if kind not in ("regular",) else os.mkdir("d/f"), "d", "d/f")
        p.changes("link", lambda: os.link("d/f", "to/linked", follow_symlinks=False), "d", "to", "d/f")
        p.changes("link to an existing name", lambda: os.link("d/f", "d/g", follow_symlinks=False), "d", "d/f", "d/g")
        p.changes("unlink one of two", lambda: os.unlink("to/linked"), "to", "d/f")
        p.changes("rename", lambda: os.rename("d/f", "d/r"), "d", "d/f", "d/r", ".")
        p.changes("rename to another directory", lambda: os.rename("d/r", "to/r"), "d", "to", "to/r", "d/r")
        p.changes("rename onto", lambda: os.rename("to/r", "d/g"), "d", "to", "d/g")
        p.changes("rename onto itself", lambda: os.rename("d/g", "d/g"), "d", "d/g")
        p.changes("rename of nothing", lambda: os.rename("d/none", "d/g"), "d", "d/g")
        p.changes("exchange", lambda: renameat2("d/g", "d/h", 2), "d", "d/g", "d/h")
        p.changes("remove", lambda: remove("d/g"), "d", "d/g", ".")
        p.changes("remove of nothing", lambda: remove("d/g"), "d")
        p.changes("list", lambda: sorted(os.listdir("d")), "d")

    @case(f"times/attributes of {_kind}")
    def _(p, kind=_kind):
        make(kind, "f")
        here = {"chown": lambda: os.lchown("f", 65501, 65601), "chown to nothing": lambda: os.lchown("f", -1, -1),
                "chown to the same": lambda: os.lchown("f", 65501, 65601), "stat": lambda: os.lstat("f").st_size,
                "access time": lambda: utimensat("f", (5, 6), OMIT, 0x100), "modification time": lambda: utimensat("f", OMIT, NOW, 0x100),
                "both omitted": lambda: utimensat("f", OMIT, OMIT, 0x100), "trusted xattr": lambda: os.setxattr("f", "trusted.a", b"b", follow_symlinks=False),
                "same xattr": lambda: os.setxattr("f", "trusted.a", b"b", follow_symlinks=False),
                "remove xattr": lambda: os.removexattr("f", "trusted.a", follow_symlinks=False),
                "remove no xattr": lambda: os.removexattr("f", "trusted.a", follow_symlinks=False)}
        if kind != "symlink":
            here |= {"chmod": lambda: os.chmod("f", 0o600), "chmod to the same": lambda: os.chmod("f", 0o600)}
        for name, function in here.items():
            p.changes(name, function, "f", ".")

    @case(f"utimensat/{_kind}")
    def _(p, kind=_kind):
        make(kind, "f")
        values = {"epoch": (0, 0), "nanoseconds": (1234567890, 123456789), "one nanosecond": (1, 1), "last nanosecond": (5, 999999999),
                  "before 1970": (-1, 0), "1901": (-(1 << 31), 0), "before 1901": (-(1 << 31) - 1, 5), "2038": (1 << 31, 7), "2106": (1 << 32, 1),
                  "2446": ((1 << 34) - (1 << 31) - 1, 999999999), "beyond": (1 << 40, 3), "too many nanoseconds": (1, 1000000000), "negative nanoseconds": (1, -1)}
        for name, value in values.items():
            p.call(f"{name} access", utimensat, "f", value, OMIT, 0x100)
            p.call(f"{name} modification", utimensat, "f", OMIT, value, 0x100)
            found = os.lstat("f")
            p.note(name, (found.st_atime_ns, found.st_mtime_ns))
        p.call("unknown flag", utimensat, "f", (1, 1), (1, 1), 0x8000)


@case("utimensat/survives writing by others and reading")
def _(p):
    write("f", b"abc")
    os.utime("f", ns=(10**18 + 1, 10**18 + 2))
    os.chmod("f", 0o600)
    os.rename("f", "g")
    os.link("g", "h")
    p.note("kept", os.stat("h").st_mtime_ns)
    descriptor = os.open("h", os.O_RDWR)
    os.write(descriptor, b"xyz")
    os.utime(descriptor, ns=(7, 8))
    os.close(descriptor)
    p.note("set after a write, before close", os.stat("h").st_mtime_ns)
    descriptor = os.open("h", os.O_WRONLY)
    os.utime("h", ns=(9, 10))
    p.note("set while open", os.fstat(descriptor).st_mtime_ns)
    os.write(descriptor, b"1")
    p.note("write moves it", os.fstat(descriptor).st_mtime_ns != 10)
    os.utime("h", ns=(11, 12))
    os.close(descriptor)
    p.note("close does not move it", os.stat("h").st_mtime_ns)
    os.mkdir("d")
    write("d/x")
    os.utime("d", ns=(13, 14))
    os.stat("d/x")
    os.listdir("d")
    p.note("of a directory", os.stat("d").st_mtime_ns)


@case("times/fstat while writing")
def _(p):
    descriptor = os.open("f", os.O_CREAT | os.O_RDWR)
    for i in range(10):
        p.changes(f"write {i}", lambda: os.write(descriptor, b"x" * 1000), "f")
        p.note(f"size {i}", (os.fstat(descriptor).st_size, os.stat("f").st_size))
