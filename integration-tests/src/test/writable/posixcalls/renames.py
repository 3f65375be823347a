"""rename(2) and renameat2(2): every kind of file onto every kind, with every flag, and directories that move."""

import itertools
import os

from .harness import EXCHANGE, NOREPLACE, WHITEOUT, TYPES, case, make, renameat2, write

FLAGS = {"none": 0, "noreplace": NOREPLACE, "exchange": EXCHANGE, "both": NOREPLACE | EXCHANGE,
         "whiteout": WHITEOUT, "unknown": 1 << 10}
TARGETS = ("absent", *TYPES, "full dir", "same file")


def _make(kind, name):
    if kind == "full dir":
        os.mkdir(name)
        make("regular", name + "/in")
    elif kind not in ("absent", "same file"):
        make(kind, name)


for _kind, (_flag, _value) in itertools.product((*TYPES, "full dir"), FLAGS.items()):

    @case(f"rename/{_kind} {_flag}")
    def _(p, kind=_kind, flag=_value):
        for target, across in itertools.product(TARGETS, (False, True)):
            d = f"{target}-{across}"
            os.mkdir(d)
            os.mkdir(d + "/sub")
            old, new = d + "/old", d + ("/sub/new" if across else "/new")
            _make(kind, old)
            _make(target, new)
            if target == "same file":
                if "dir" in kind:
                    continue
                os.link(old, new, follow_symlinks=False)
            before = {os.lstat(n).st_ino: n for n in (old, new) if os.path.lexists(n)}
            p.call(f"onto {target}{' elsewhere' if across else ''}", renameat2, old, new, flag)
            p.tree(d, d)
            # The number of a file goes with it.
            p.note(d + " files", [before.get(os.lstat(n).st_ino, "another") if os.path.lexists(n) else "none" for n in (old, new)])


@case("rename/a name onto itself")
def _(p):
    for kind in TYPES:
        make(kind, kind)
        for flag, value in FLAGS.items():
            p.call(f"{kind} {flag}", renameat2, kind, kind, value)
    p.call("missing", os.rename, "missing", "missing")


@case("rename/a directory below itself")
def _(p):
    os.makedirs("a/b/c/d")
    make("regular", "a/file")
    for flag, value in (("none", 0), ("noreplace", NOREPLACE), ("exchange", EXCHANGE)):
        for old, new in (("a", "a/b"), ("a", "a/new"), ("a", "a/b/new"), ("a", "a/b/c/d"), ("a/b", "a"), ("a/b/c", "a"),
                         ("a", "a/file"), ("a", "a/missing/x"), ("a/b", "a/b/../b/c/x"), ("a/.", "new"), ("a/..", "new"), ("a", "a/."), ("a", ".")):
            p.call(f"{old} to {new} {flag}", renameat2, old, new, value)
    p.tree()


@case("rename/directories that move are consistent")
def _(p):
    os.makedirs("a/b/c")
    make("regular", "a/b/c/file")
    os.makedirs("x/y")
    inside = os.open("a/b/c", os.O_RDONLY)
    inode = os.fstat(inside).st_ino
    p.call("a/b to x/y/b", os.rename, "a/b", "x/y/b")
    p.tree("moved")
    p.note("same inode", os.stat("x/y/b/c").st_ino == inode)
    p.note("parent of the open directory", os.stat("..", dir_fd=inside).st_ino == os.stat("x/y/b").st_ino)
    p.note("parent of b", os.stat("x/y/b/..").st_ino == os.stat("x/y").st_ino)
    p.note("listed through the open directory", os.listdir(inside))
    p.call("create through it", lambda: os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=inside)))
    p.call("exchange with a file", renameat2, "x/y/b", "x", EXCHANGE)
    make("regular", "file")
    p.call("exchange with the file", renameat2, "x/y/b", "file", EXCHANGE)
    p.call("exchange directories", renameat2, "a", "x/y", EXCHANGE)
    p.note("parent after exchange", os.stat("a/..").st_ino == os.stat(".").st_ino)
    here = os.getcwd()
    os.fchdir(inside)
    p.note("getcwd", os.getcwd()[len(here):])


@case("rename/a chain of renames")
def _(p):
    for i in range(20):
        write(f"f{i}", b"%d" % i)
    for i in range(19, -1, -1):
        p.call(f"f{i} to f{i + 1}", os.rename, f"f{i}", f"f{i + 1}")
    p.call("around", os.rename, "f20", "f0")
    for i in range(0, 20, 2):
        p.call(f"exchange f{i}", renameat2, f"f{i}", f"f{i + 1}", EXCHANGE)
    p.call("onto f1", os.rename, "f2", "f1")
    p.tree()


@case("rename/open files stay what they were")
def _(p):
    write("old", b"old")
    write("new", b"new")
    old, new = os.open("old", os.O_RDWR), os.open("new", os.O_RDWR)
    p.call("rename", os.rename, "old", "new")
    p.note("nlink", (os.fstat(old).st_nlink, os.fstat(new).st_nlink))
    p.call("read the replaced", os.read, new, 10)
    p.call("write the replaced", os.write, new, b"gone")
    p.call("write the renamed", os.pwrite, old, b"more", 3)
    p.content("new", "new")
    p.call("read the replaced again", os.pread, new, 10, 0)
    p.call("fchmod of the replaced", os.fchmod, new, 0o600)
    os.close(old)
    p.call("ftruncate of the replaced", os.ftruncate, new, 1)
    p.note("size of the replaced", os.fstat(new).st_size)
    os.close(new)


@case("rename/over a file again and again")
def _(p):
    for i in range(200):
        write("temporary", b"version %d" % i)
        os.rename("temporary", "file")
        if i % 20 == 0:
            p.content(f"version {i}", "file")
    p.note("listed", os.listdir("."))


@case("rename/over an open directory")
def _(p):
    os.mkdir("old")
    make("regular", "old/in")
    os.mkdir("new")
    replaced = os.open("new", os.O_RDONLY)
    p.call("rename", os.rename, "old", "new")
    p.note("nlink of the replaced", os.fstat(replaced).st_nlink)
    p.call("list the replaced", os.listdir, replaced)
    p.call("create in the replaced", lambda: os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=replaced))
    p.call("mkdir in the replaced", os.mkdir, "x", dir_fd=replaced)
    p.call("rename into the replaced", os.rename, "new/in", "x", dst_dir_fd=replaced)
