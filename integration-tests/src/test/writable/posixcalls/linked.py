"""link, unlink, rmdir, mkdir, mknod, symlink: what is counted, what stays, and what may not be."""

import errno
import itertools
import os
import stat

from .harness import AT_FDCWD, AT_SYMLINK_FOLLOW, TYPES, case, linkat, make, write

for _kind in TYPES:

    @case(f"link/{_kind}")
    def _(p, kind=_kind):
        make(kind, "a")
        os.mkdir("d")
        for name in ("b", "d/c", "d/c", "a", "e"):
            p.call(f"link to {name}", os.link, "a", name, follow_symlinks=False)
            p.stat(name, name, "nlink", "mode")
        if kind != "dir":
            p.note("same inode", len({os.lstat(n).st_ino for n in ("a", "b", "d/c", "e")}))
            if kind != "symlink":
                p.call("chmod of one", os.chmod, "b", 0o601)
                p.call("chown of one", os.chown, "d/c", 65501, 65502)
            for name in ("a", "d/c", "b"):
                p.call(f"unlink {name}", os.unlink, name)
                p.stat("the last", "e", "nlink", "mode", "uid")
            p.call("link again", os.link, "e", "a", follow_symlinks=False)

    for _target in TYPES:

        @case(f"exists/{_kind} over {_target}")
        def _(p, kind=_kind, target=_target):
            make(target, "a")
            make("regular", "source")
            p.call("make", make, kind, "a")
            p.call("link", os.link, "source", "a")
            p.tree()

    @case(f"remove/{_kind}")
    def _(p, kind=_kind):
        for how, function in (("unlink", os.unlink), ("rmdir", os.rmdir)):
            make(kind, how)
            p.call(how, function, how)
            p.call(how + " again", function, how)
            p.note(how, os.path.lexists(how))
        make(kind, "open")
        if kind in ("regular", "dir", "fifo"):
            descriptor = os.open("open", os.O_RDONLY | os.O_NONBLOCK)
            p.call("remove", os.rmdir if kind == "dir" else os.unlink, "open")
            p.note("nlink of what is open", os.fstat(descriptor).st_nlink)
            p.call("make again", make, kind, "open")
            p.note("another", os.fstat(descriptor).st_ino != os.stat("open").st_ino)
            p.call("fchmod", os.fchmod, descriptor, 0o711)
            p.call("fchown", os.fchown, descriptor, 1, 2)
            p.call("futimens", os.utime, descriptor, (1, 2))
            found = os.fstat(descriptor)
            p.note("stat of what is open", (oct(found.st_mode), found.st_uid, found.st_gid, found.st_mtime))


@case("link/follows or not")
def _(p):
    make("regular", "file")
    os.symlink("file", "to-file")
    os.symlink("missing", "dangling")
    os.mkdir("dir")
    os.symlink("dir", "to-dir")
    for name, flag in itertools.product(("file", "to-file", "dangling", "to-dir", "dir"), (0, AT_SYMLINK_FOLLOW, 0x4000)):
        p.call(f"{name} {flag:#x}", linkat, name, f"{name}-{flag:x}", flag, AT_FDCWD)
    p.tree()


@case("link/data is one")
def _(p):
    write("a", b"first")
    os.link("a", "b")
    write("b", b"second, longer")
    p.content("a", "a")
    one, two = os.open("a", os.O_RDWR), os.open("b", os.O_RDWR | os.O_APPEND)
    p.call("append by b", os.write, two, b"!")
    p.call("read by a", os.read, one, 100)
    p.call("truncate by a", os.ftruncate, one, 3)
    p.call("read by b", os.pread, two, 100, 0)
    os.unlink("a")
    p.call("write by a", os.pwrite, one, b"XYZ", 1)
    p.content("b", "b")
    os.rename("b", "c")
    p.call("setxattr by c", os.setxattr, "c", "user.a", b"1")
    p.call("getxattr by a", os.getxattr, one, "user.a")


@case("link/many")
def _(p):
    write("a", b"x")
    for i in range(300):
        os.link("a", f"l{i}")
    p.stat("300", "a", "nlink")
    for i in range(0, 300, 2):
        os.unlink(f"l{i}")
    p.stat("150", "a", "nlink")
    p.note("listed", sorted(os.listdir(".")))


@case("unlink/an open file goes on")
def _(p):
    write("f", b"0123456789")
    descriptor = os.open("f", os.O_RDWR)
    second = os.open("f", os.O_RDONLY)
    os.unlink("f")
    p.tries_open("by name", "f", os.O_RDONLY)
    p.note("nlink", os.fstat(descriptor).st_nlink)
    p.call("read", os.read, descriptor, 4)
    p.call("write", os.write, descriptor, b"abcdefghijkl")
    p.call("read by another", os.read, second, 100)
    p.call("ftruncate", os.ftruncate, descriptor, 6)
    p.call("posix_fallocate", os.posix_fallocate, descriptor, 0, 5000)
    p.note("size", os.fstat(second).st_size)
    p.call("fsync", os.fsync, descriptor)
    p.call("setxattr", os.setxattr, descriptor, "user.a", b"b")
    p.call("getxattr", os.getxattr, second, "user.a")
    p.call("give it a name again", linkat, f"/proc/self/fd/{descriptor}", "again", AT_SYMLINK_FOLLOW)
    p.call("open it by /proc", lambda: os.read(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY), 6))
    write("f", b"a new one")
    p.call("read of the old", os.pread, second, 6, 0)
    os.close(descriptor)
    p.call("read after the first close", os.pread, second, 6, 0)
    os.close(second)
    p.content("f", "f")


@case("unlink/deleted while a child has it open")
def _(p):
    write("f", b"abc")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        descriptor = os.open("f", os.O_RDWR)
        os.write(writing, b"1")
        while os.path.exists("f"):
            pass
        ok = os.read(descriptor, 10) == b"abc" and os.write(descriptor, b"def") == 3 and os.fstat(descriptor).st_size == 6
        os._exit(0 if ok else 1)
    os.read(reading, 1)
    p.call("unlink", os.unlink, "f")
    p.note("child", os.waitpid(child, 0)[1])


@case("rmdir/full and not")
def _(p):
    for kind in TYPES:
        os.mkdir("d")
        make(kind, "d/x")
        p.call(f"rmdir with a {kind}", os.rmdir, "d")
        p.call(f"rename onto a dir with a {kind}", lambda: (os.mkdir("e"), os.rename("e", "d")))
        (os.rmdir if kind == "dir" else os.unlink)("d/x")
        p.call(f"rmdir after the {kind}", os.rmdir, "d")
        if os.path.exists("e"):
            os.rmdir("e")
    for name in (".", "..", "d/.", "d/.."):
        os.makedirs("d", exist_ok=True)
        p.call(f"rmdir {name}", os.rmdir, name)
        p.call(f"unlink {name}", os.unlink, name)


@case("rmdir/the working directory")
def _(p):
    here = os.getcwd()
    os.mkdir("d")
    os.mkdir("d/e")
    os.chdir("d/e")
    p.call("rmdir", os.rmdir, "../e")
    p.call("getcwd", lambda: len(os.getcwd()))
    p.call("list", os.listdir, ".")
    p.call("stat .", lambda: os.stat(".").st_nlink)
    p.call("stat ..", lambda: os.stat("..").st_nlink)
    p.call("create", lambda: os.open("x", os.O_CREAT | os.O_WRONLY))
    p.call("mkdir", os.mkdir, "x")
    p.call("symlink", os.symlink, "a", "x")
    p.call("mknod", os.mknod, "x")
    p.call("look up", os.stat, "x")
    p.call("unnamed", lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY))
    p.call("chmod", os.chmod, ".", 0o700)
    p.call("mkdir of the same name", os.mkdir, here + "/d/e")
    p.call("list the old one", os.listdir, ".")
    os.chdir(here)


@case("mkdir/link counts of directories")
def _(p):
    os.mkdir("d")
    p.stat("new", "d", "nlink")
    for i in range(5):
        os.mkdir(f"d/{i}")
        write(f"d/f{i}")
        p.stat(f"with {i + 1}", "d", "nlink")
    os.rename("d/0", "moved")
    p.stat("one moved out", "d", "nlink")
    os.rename("moved", "d/1")
    p.stat("moved onto another", "d", "nlink")
    os.rmdir("d/2")
    p.stat("one removed", "d", "nlink")
    p.stat("around", ".", "nlink")


@case("mknod/devices and numbers")
def _(p):
    for kind, (major, minor) in itertools.product((stat.S_IFCHR, stat.S_IFBLK), ((0, 0), (1, 3), (7, 255), (7, 256), (255, 1), (4095, 1048575), (300, 70000))):
        name = f"{kind:o}-{major}-{minor}"
        p.call(name, os.mknod, name, kind | 0o600, os.makedev(major, minor))
        p.stat(name, name, "mode", "rdev")
    for kind in (0, stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFDIR, stat.S_IFLNK, 0o150000):
        p.call(f"type {kind:o}", os.mknod, f"t{kind:o}", kind | 0o644)
    p.call("write to /dev/null's twin", write, f"{stat.S_IFCHR:o}-1-3", b"x", os.O_WRONLY)


@case("mkfifo/carries data")
def _(p):
    os.mkfifo("pipe")
    p.tries_open("writing without a reader", "pipe", os.O_WRONLY | os.O_NONBLOCK)
    reading = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open("pipe", os.O_WRONLY | os.O_NONBLOCK)
    p.call("write", os.write, writing, b"through the pipe")
    p.call("read", os.read, reading, 100)
    p.call("read of an empty one", os.read, reading, 100)
    p.call("lseek", os.lseek, writing, 0, 0)
    p.call("ftruncate", os.ftruncate, writing, 0)
    p.call("truncate", os.truncate, "pipe", 0)
    p.stat("pipe", "pipe", "size", "nlink")


@case("socket/bound in a directory")
def _(p):
    import socket

    server = socket.socket(socket.AF_UNIX)
    p.call("bind", server.bind, "s")
    server.listen(1)
    p.stat("s", "s", "mode", "nlink")
    client = socket.socket(socket.AF_UNIX)
    p.call("connect", client.connect, "s")
    p.call("bind again", socket.socket(socket.AF_UNIX).bind, "s")
    os.link("s", "linked")
    p.call("connect to the link", socket.socket(socket.AF_UNIX).connect, "linked")
    os.rename("s", "renamed")
    os.unlink("renamed")
    os.unlink("linked")
    p.call("connect to nothing", socket.socket(socket.AF_UNIX).connect, "s")
    make("regular", "file")
    p.call("connect to a file", socket.socket(socket.AF_UNIX).connect, "file")


@case("symlink/ways through them")
def _(p):
    os.makedirs("a/b")
    write("a/b/file", b"found")
    for name, target in (("up", "a/../a/b"), ("absolute", os.getcwd() + "/a/b"), ("a/relative", "b"), ("a/b/parent", ".."), ("dot", ".")):
        p.call(f"symlink {name}", os.symlink, target, name)
        p.call(f"read through {name}", lambda: open(f"{name}{'/b' if name in ('a/b/parent',) else '/a/b' if name == 'dot' else ''}/file", "rb").read())
    p.call("create through a dangling one", lambda: (os.symlink("a/new", "dangling"), write("dangling", b"made"))[1])
    p.call("exclusively through a dangling one", lambda: (os.symlink("a/none", "dangling2"), os.open("dangling2", os.O_CREAT | os.O_EXCL | os.O_WRONLY))[1])
    p.call("mkdir through a dangling one", os.mkdir, "dangling2")
    p.call("unlink removes the link", os.unlink, "up")
    p.call("rmdir of a link", os.rmdir, "absolute")
    p.call("rename of a link", os.rename, "absolute", "renamed")
    p.call("empty target", os.symlink, "", "empty")
    os.unlink("renamed")


@case("create/one of many wins")
def _(p):
    makers = {
        "exclusive": lambda n, me: os.close(os.open(n, os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
        "mkdir": lambda n, me: os.mkdir(n),
        "symlink": lambda n, me: os.symlink("x", n),
        "mkfifo": lambda n, me: os.mkfifo(n),
        "link": lambda n, me: os.link("source", n),
        "rename away": lambda n, me: os.rename(n + ".there", f"{n}.{me}"),
        "unlink": lambda n, me: os.unlink(n + ".there"),
        "rmdir": lambda n, me: os.rmdir(n + ".dir"),
    }
    write("source")
    for label, function in makers.items():
        names = [f"{label} {i}" for i in range(20)]
        for name in names:
            write(name + ".there")
            os.mkdir(name + ".dir")
        wins = race(6, lambda me: [_wins(function, name, me) for name in names])
        p.note(f"{label} winners", [sum(w[i] for w in wins) for i in range(len(names))])
        for name in os.listdir("."):
            if name.startswith(label):
                os.rmdir(name) if os.path.isdir(name) and not os.path.islink(name) else os.unlink(name)


def _wins(function, name, me):
    try:
        function(name, me)
        return 1
    except OSError as e:
        if e.errno not in (errno.EEXIST, errno.ENOENT):
            raise
        return 0


def race(count, function):
    """Runs function(number) in processes that start together, and returns their results in order."""
    import pickle

    starting, start = os.pipe()
    results = []
    for number in range(count):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(start)
            os.read(starting, 1)
            with os.fdopen(writing, "wb") as f:
                try:
                    pickle.dump(function(number), f)
                except BaseException as e:
                    pickle.dump(e, f)
            os._exit(0)
        os.close(writing)
        results.append(reading)
    os.close(start)
    os.close(starting)
    answers = []
    for reading in results:
        with os.fdopen(reading, "rb") as f:
            answers.append(pickle.load(f))
        os.wait()
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers
