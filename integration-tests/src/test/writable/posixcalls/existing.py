"""Files that were there before: with --prepared they are made at the source of a mount, and the mount has not seen them."""

import itertools
import mmap
import os

from .contents import hash_, pattern
from .harness import (AT_SYMLINK_FOLLOW, DirectoryStream, EXCHANGE, NOREPLACE, OTHER, OWNER, PUNCH_HOLE, KEEP_SIZE, TYPES, case, fallocate, linkat, make,
                      renameat2, utimensat, write)


def files():
    """Something of every kind, with all that a file can have."""
    os.chmod(".", 0o777)
    for kind in TYPES:
        make(kind, f"a-{kind}", 0o644, OWNER if kind == "regular" else None)
    os.mkdir("full", 0o755)
    os.makedirs("full/deep/deeper")
    for i in range(20):
        write(f"full/f{i}", b"content %d" % i)
        write(f"full/deep/g{i}", b"deep %d" % i)
    write("full/deep/deeper/leaf", b"leaf")
    os.symlink("deep/deeper/leaf", "full/link")
    write("large", pattern(3000000))
    write("twice", b"a file with two names")
    os.link("twice", "full/twice")
    descriptor = os.open("sparse", os.O_CREAT | os.O_WRONLY, 0o640)
    os.pwrite(descriptor, b"end", 10000000)
    os.close(descriptor)
    os.setxattr("a-regular", "user.old", b"value")
    os.setxattr("full", "user.dir", b"value")
    for name in ("a-regular", "twice", "large", "full/f1", "a-fifo"):
        os.utime(name, ns=(10**18 + 1, 10**18 + 123456789))
    utimensat("a-symlink", (1, 2), (3, 4), 0x100)
    os.chmod("full/f2", 0o6711)


def files_and_many():
    files()
    os.mkdir("many")
    for i in range(700):
        write(f"many/{i:03d}")


def existing(name, setup=files):
    return case("existing/" + name, setup)


@existing("are seen as they are")
def _(p):
    p.note("times", {n: os.lstat(n).st_mtime_ns for n in ("a-regular", "twice", "large", "full/f1", "a-fifo", "a-symlink")})
    p.note("large", hash_(open("large", "rb").read()))
    p.note("sparse", (os.stat("sparse").st_size, os.stat("sparse").st_blocks < 1000))
    p.note("same inode", os.stat("twice").st_ino == os.stat("full/twice").st_ino)


CHANGES = {
    "append": lambda n: write(n, b"more", os.O_WRONLY | os.O_APPEND),
    "overwrite": lambda n: write(n, b"XYZ", os.O_WRONLY),
    "replace": lambda n: write(n, b"new", os.O_WRONLY | os.O_TRUNC),
    "empty": lambda n: write(n, b"", os.O_WRONLY | os.O_TRUNC),
    "open only": lambda n: os.close(os.open(n, os.O_RDWR)),
    "write in the middle": lambda n: _pwrite(n, b"middle", os.stat(n).st_size // 2),
    "write behind the end": lambda n: _pwrite(n, b"behind", os.stat(n).st_size + 5000),
    "truncate shorter": lambda n: os.truncate(n, os.stat(n).st_size // 3),
    "truncate longer": lambda n: os.truncate(n, os.stat(n).st_size + 10000),
    "truncate to nothing": lambda n: os.truncate(n, 0),
    "map": lambda n: _store(n),
    "punch": lambda n: _range(n, PUNCH_HOLE | KEEP_SIZE),
    "allocate": lambda n: _range(n, 0),
    "copy from": lambda n: _copy(n, "copied"),
    "copy to": lambda n: _copy("full/f3", n),
    "chmod": lambda n: os.chmod(n, 0o600),
    "chown": lambda n: os.chown(n, OTHER.uid, OTHER.gid),
    "times": lambda n: os.utime(n, ns=(5, 6)),
    "set xattr": lambda n: os.setxattr(n, "user.new", b"x"),
    "replace xattr": lambda n: os.setxattr(n, "user.old", b"y", os.XATTR_REPLACE),
    "remove xattr": lambda n: os.removexattr(n, "user.old"),
    "link": lambda n: os.link(n, "linked"),
    "rename": lambda n: os.rename(n, "renamed"),
    "rename away": lambda n: os.rename(n, "full/deep/moved"),
    "rename onto": lambda n: os.rename(n, "full/f5"),
    "be replaced": lambda n: os.rename("full/f6", n),
    "exchange": lambda n: renameat2(n, "full/f7", EXCHANGE),
    "not replace": lambda n: renameat2(n, "full/f7", NOREPLACE),
    "unlink": os.unlink,
    "unlink and make": lambda n: (os.unlink(n), write(n, b"another"))[1],
    "unlink and mkdir": lambda n: (os.unlink(n), os.mkdir(n))[1],
    "read": lambda n: hash_(open(n, "rb").read()),
}


def _pwrite(name, data, offset):
    descriptor = os.open(name, os.O_WRONLY)
    os.pwrite(descriptor, data, offset)
    os.close(descriptor)


def _store(name):
    descriptor = os.open(name, os.O_RDWR)
    with mmap.mmap(descriptor, 0) as mapped:
        mapped[0:1] = b"M"
        mapped[-1:] = b"N"
    os.close(descriptor)


def _range(name, mode):
    descriptor = os.open(name, os.O_RDWR)
    fallocate(descriptor, mode, 2, 20000)
    os.close(descriptor)


def _copy(old, new):
    reading, writing = os.open(old, os.O_RDONLY), os.open(new, os.O_WRONLY | os.O_CREAT, 0o644)
    done, size = 0, os.fstat(reading).st_size
    while done < size:
        done += os.copy_file_range(reading, writing, size - done)
    os.close(reading)
    os.close(writing)


for _name, _file in itertools.product(CHANGES, ("a-regular", "twice", "large", "sparse", "full/f2")):

    @existing(f"{_file}: {_name}")
    def _(p, name=_name, file=_file):
        p.call(name, CHANGES[name], file)
        p.tree("after")
        p.call("then append", CHANGES["append"], file)
        if os.path.exists("linked"):
            p.content("linked", "linked")
        p.note("times kept", {n: os.stat(n).st_mtime_ns for n in ("twice", "full/f1") if n != file and "f" not in name})


for _first, _second in itertools.product(("append", "write in the middle", "truncate shorter", "chmod", "link", "rename", "unlink", "be replaced", "rename away"), repeat=2):

    @existing(f"twice: {_first}, then {_second} by the other name")
    def _(p, first=_first, second=_second):
        p.call(first, CHANGES[first], "twice")
        p.call(second, CHANGES[second], "full/twice")
        p.tree("after")


@existing("open while it changes")
def _(p):
    reading, writing = os.open("large", os.O_RDONLY), os.open("large", os.O_RDWR)
    p.call("read before", lambda: hash_(os.pread(reading, 100000, 1000000)))
    p.call("write", os.pwrite, writing, b"changed", 1000000)
    p.call("read after", os.pread, reading, 10, 999999)
    third = os.open("large", os.O_RDONLY)
    p.call("read by a new open", os.pread, third, 10, 999999)
    os.unlink("large")
    p.call("read after unlink", lambda: hash_(os.pread(reading, 100000, 2000000)))
    p.call("write after unlink", os.pwrite, writing, b"gone", 0)
    p.call("read it", os.pread, third, 4, 0)
    p.note("nlink", os.fstat(reading).st_nlink)
    os.rename("full/f1", "full/f2")
    p.content("f2", "full/f2")


@existing("a file that is open for reading is unlinked, renamed over and truncated")
def _(p):
    one, two, three = (os.open(n, os.O_RDONLY) for n in ("full/f8", "full/f9", "full/f10"))
    os.unlink("full/f8")
    os.rename("full/f11", "full/f9")
    os.truncate("full/f10", 3)
    for name, d in (("unlinked", one), ("replaced", two), ("truncated", three)):
        p.call(name, os.pread, d, 100, 0)
        p.note(f"{name} nlink", os.fstat(d).st_nlink)
    p.call("fchmod of the unlinked", os.fchmod, one, 0o600)
    p.call("link of the unlinked", linkat, f"/proc/self/fd/{one}", "again", AT_SYMLINK_FOLLOW)


@existing("directory: emptied, removed, made again")
def _(p):
    p.call("rmdir of a full one", os.rmdir, "full/deep")
    for name in os.listdir("full/deep/deeper"):
        os.unlink("full/deep/deeper/" + name)
    p.call("rmdir of an emptied one", os.rmdir, "full/deep/deeper")
    p.call("rmdir again", os.rmdir, "full/deep/deeper")
    p.call("mkdir", os.mkdir, "full/deep/deeper")
    p.note("is empty", os.listdir("full/deep/deeper"))
    write("full/deep/deeper/new", b"new")
    for name in [n for n in os.listdir("full/deep") if n != "deeper"]:
        os.unlink("full/deep/" + name)
    p.note("left", os.listdir("full/deep"))
    p.call("rename onto the full one", os.rename, "a-dir", "full/deep")
    os.unlink("full/deep/deeper/new")
    os.rmdir("full/deep/deeper")
    p.call("rename onto the emptied one", os.rename, "a-dir", "full/deep")
    p.note("listed", os.listdir("full/deep"))


@existing("directory: renamed, another takes its place")
def _(p):
    inside = os.open("full/deep", os.O_RDONLY)
    inode = os.stat("full/deep").st_ino
    p.call("rename", os.rename, "full", "moved")
    p.note("gone", os.path.exists("full/f1"))
    p.call("mkdir in its place", os.mkdir, "full")
    p.note("is empty", os.listdir("full"))
    p.note("same inode", os.stat("moved/deep").st_ino == inode)
    p.content("file", "moved/f3")
    write("moved/f3", b" and more", os.O_WRONLY | os.O_APPEND)
    write("full/f3", b"of the new one")
    p.note("listed by a descriptor", sorted(os.listdir(inside)))
    p.call("rename below", os.rename, "moved/deep", "full/deep")
    p.call("and back", os.rename, "full", "moved/inner")
    p.call("unlink below", os.unlink, "moved/inner/deep/g1")
    p.content("leaf", "moved/inner/deep/deeper/leaf")
    p.call("rename up", os.rename, "moved/inner/deep/deeper", "deeper")
    p.call("exchange", renameat2, "moved", "deeper", EXCHANGE)
    p.tree("after")
    p.call("remove all", lambda: _remove("deeper"))
    p.call("make again", lambda: (os.mkdir("deeper"), os.listdir("deeper"))[1])


def _remove(path):
    for root, dirs, names in os.walk(path, topdown=False):
        for n in names:
            os.unlink(os.path.join(root, n))
        for n in dirs:
            n = os.path.join(root, n)
            os.unlink(n) if os.path.islink(n) else os.rmdir(n)
    os.rmdir(path)


@existing("directory: rm -r", files_and_many)
def _(p):
    for name in ("full", "many", "a-dir"):
        p.call(name, _remove, name)
    for name in sorted(os.listdir(".")):
        p.call(name, os.unlink, name)
    p.note("left", os.listdir("."))


@existing("directory: listing while it changes", files_and_many)
def _(p):
    stream = DirectoryStream("many")
    first = stream.names(200)
    position = stream.tell()
    old = {f"{i:03d}" for i in range(700)}
    for i in range(0, 700, 3):
        os.unlink(f"many/{i:03d}")
    for i in range(1, 700, 6):
        os.rename(f"many/{i:03d}", f"many/r{i}")
    for i in range(100):
        write(f"many/new{i}")
    left = {n for n in os.listdir("many") if n in old}
    p.note("left", len(left))
    rest = stream.names()
    p.note("nothing twice", len(rest) == len(set(rest)) and not (set(rest) & set(first) & left))
    p.note("what stayed was listed", left <= set(first) | set(rest))
    stream.seek(position)
    again = stream.names()
    p.note("again from the position", {n for n in again if n in left} == {n for n in rest if n in left})
    stream.rewind()
    p.note("from the beginning", sorted(stream.names()) == sorted(os.listdir("many") + [".", ".."]))


@existing("directory: link counts and times", files_and_many)
def _(p):
    p.stat("full", "full", "nlink")
    p.changes("make in it", lambda: write("full/new"), "full", ".")
    p.changes("unlink in it", lambda: os.unlink("full/f1"), "full", ".")
    p.changes("write in it", lambda: write("full/f2", b"x", os.O_WRONLY), "full", "full/f2")
    p.changes("mkdir", lambda: os.mkdir("full/deep/n"), "full", "full/deep")
    p.stat("deep", "full/deep", "nlink")
    p.changes("rename out", lambda: os.rename("full/deep/deeper", "out"), "full/deep", ".", "out")
    p.stat("deep then", "full/deep", "nlink")
    p.changes("chmod", lambda: os.chmod("a-fifo", 0o600), "a-fifo", ".")
    p.changes("link", lambda: os.link("a-regular", "full/l"), "a-regular", "full", ".")
    p.changes("unlink one of two", lambda: os.unlink("twice"), "full/twice", ".")
    p.changes("open", lambda: os.close(os.open("large", os.O_RDWR)), "large")
    p.changes("empty", lambda: os.truncate("a-regular", 0), "a-regular")
    p.changes("list", lambda: os.listdir("many").sort(), "many")


for _kind in TYPES:

    @existing(f"kinds: {_kind}")
    def _(p, kind=_kind):
        name = f"a-{kind}"
        p.call("make over it", make, "dir", name)
        p.call("link", os.link, name, name + ".l", follow_symlinks=False)
        p.call("chown", os.lchown, name, 65501, 65502)
        if kind != "symlink":
            p.call("chmod", os.chmod, name, 0o640)
        p.call("rename", os.rename, name, "full/" + name)
        p.call("rename onto a link of it", os.rename, "full/" + name, name + ".l")
        p.call("trusted xattr", os.setxattr, name + ".l", "trusted.x", b"1", follow_symlinks=False)
        p.tree("after")
        p.call("exchange", renameat2, name + ".l", "full/f12", EXCHANGE)
        p.call("remove", os.rmdir if kind == "dir" else os.unlink, "full/f12")


@existing("as another user")
def _(p):
    def calls(p):
        for name in ("a-regular", "full/f2", "large", "twice"):
            p.call(f"append {name}", CHANGES["append"], name)
            p.call(f"chmod {name}", os.chmod, name, 0o644)
            p.call(f"unlink {name}", os.unlink, name)
        p.call("make in full", write, "full/by-other")
        p.call("make here", write, "by-other", b"x")
        p.call("rename", os.rename, "a-fifo", "full/fifo")

    p.as_user(OTHER, calls)
    p.as_user(OWNER, calls)
