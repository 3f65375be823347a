"""Errors that come from a path: every call that takes one, with every path that is wrong in a way of its own."""

import errno
import os
import stat
import time

from .harness import OTHER, TYPES, case, make, renameat2, utimensat

NOW = (int(time.time()), 0)

# Calls that need something to be there.
EXISTING = {
    "chmod": lambda p: os.chmod(p, 0o600),
    "chown": lambda p: os.chown(p, 65501, 65601),
    "lchown": lambda p: os.lchown(p, 65501, 65601),
    "open": lambda p: os.close(os.open(p, os.O_RDONLY | os.O_NONBLOCK)),
    "open for writing": lambda p: os.close(os.open(p, os.O_WRONLY | os.O_NONBLOCK)),
    "open of a directory": lambda p: os.close(os.open(p, os.O_RDONLY | os.O_DIRECTORY)),
    "truncate": lambda p: os.truncate(p, 5),
    "stat": lambda p: stat.S_IFMT(os.stat(p).st_mode),
    "lstat": lambda p: stat.S_IFMT(os.lstat(p).st_mode),
    "access": lambda p: os.access(p, os.F_OK),
    "readlink": os.readlink,
    "utimensat": lambda p: utimensat(p, NOW, NOW),
    "utimensat of a link": lambda p: utimensat(p, NOW, NOW, 0x100),
    "getxattr": lambda p: os.getxattr(p, "user.none"),
    "setxattr": lambda p: os.setxattr(p, "user.a", b"b"),
    "listxattr": os.listxattr,
    "removexattr": lambda p: os.removexattr(p, "user.none"),
    "statfs": lambda p: os.statvfs(p).f_namemax,
    "list": lambda p: sorted(os.listdir(p)),
    "chdir": os.chdir,
    "unlink": os.unlink,
    "rmdir": os.rmdir,
    "link from": lambda p: os.link(p, "linked", follow_symlinks=False),
    "rename from": lambda p: os.rename(p, "renamed"),
    "exchange": lambda p: renameat2(p, "other", 2),
}
# Calls that make something.
MAKING = {
    "create": lambda p: os.close(os.open(p, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o644)),
    "create exclusively": lambda p: os.close(os.open(p, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)),
    "mkdir": lambda p: os.mkdir(p, 0o755),
    "mkfifo": lambda p: os.mkfifo(p, 0o644),
    "mknod of a file": lambda p: os.mknod(p, stat.S_IFREG | 0o644),
    "mknod of a device": lambda p: os.mknod(p, stat.S_IFCHR | 0o644, os.makedev(1, 3)),
    "mknod of a socket": lambda p: os.mknod(p, stat.S_IFSOCK | 0o644),
    "symlink": lambda p: os.symlink("target", p),
    "link to": lambda p: os.link("source", p),
    "rename to": lambda p: os.rename("source", p),
    "rename to, not replacing": lambda p: renameat2("source", p, 1),
    "rename of a directory to": lambda p: os.rename("source-dir", p),
}
CALLS = {**EXISTING, **MAKING}
LONGEST = "n" * 255


def path_of(length):
    """A path of that many bytes that leads to nothing, whose directories are there as far as they fit."""
    return ("./" * length)[: length - 1] + "x" if length % 2 else ("./" * length)[: length - 2] + "xx"


def setup():
    make("regular", "source")
    make("regular", "other")
    os.mkdir("source-dir")
    os.mkdir("there")
    for kind in TYPES:
        make(kind, f"a-{kind}")
    os.symlink("loop-b", "loop-a")
    os.symlink("loop-a", "loop-b")
    os.symlink("there", "to-there")
    os.symlink("source", "to-source")
    os.symlink("missing", "dangling")
    os.symlink("a-regular/", "to-regular-slash")
    os.symlink("missing-dir/x", "dangling-deep")


def chain():
    previous = "there"
    for i in range(41):
        os.symlink(previous, f"chain-{i}")
        previous = f"chain-{i}"


WRONG = {
    **{f"below a {kind}": f"a-{kind}/x" for kind in TYPES if kind != "dir"},
    "name of 255": LONGEST,
    "name of 256": LONGEST + "n",
    "name of 256 in a directory": "there/" + LONGEST + "n",
    "name of 256 in the middle": LONGEST + "n/x",
    "path of 4095": path_of(4095),
    "path of 4096": path_of(4096),
    "missing": "missing",
    "missing directory": "missing/x",
    "empty": "",
    "loop": "loop-a",
    "below a loop": "loop-a/x",
    "40 links": "chain-39/x",
    "41 links": "chain-40/x",
    "dot": ".",
    "dot below": "there/.",
    "dot-dot below": "there/..",
    "slash behind a file": "a-regular/",
    "slash behind a directory": "there/",
    "slash behind a missing name": "missing/",
    "slash behind a link to a directory": "to-there/",
    "slash behind a link to a file": "to-source/",
    "link to a file": "to-source",
    "link to a directory": "to-there",
    "link with a slash to a file": "to-regular-slash",
    "dangling link": "dangling",
    "slash behind a dangling link": "dangling/",
    "dangling link into a missing directory": "dangling-deep",
    **{f"a {kind}": f"a-{kind}" for kind in TYPES},
    "two slashes": "there//x",
    "not UTF-8": b"there/\xff\xfe",
}


CHAINS = ("40 links", "41 links")
UNCHANGING = {"open", "open for writing", "open of a directory", "stat", "lstat", "access", "readlink", "getxattr",
              "listxattr", "statfs", "list"}


def _define(call, function):
    @case(f"path/{call}")
    def _(p):
        # A call that succeeded may have changed what is there: the next situation then gets a new directory.
        here, fresh = os.getcwd(), False
        for number, (situation, path) in enumerate(WRONG.items()):
            if not fresh:
                os.mkdir(f"{here}/{number}")
                os.chdir(f"{here}/{number}")
                setup()
            inside = os.getcwd()
            if situation in CHAINS and not os.path.lexists("chain-0"):
                chain()
            p.call(situation, function, path)
            fresh = call in UNCHANGING or p.outcomes[-1][1] in errno.errorcode.values()
            os.chdir(inside)


for _call, _function in CALLS.items():
    _define(_call, _function)


@case("path/root and others without search right")
def _(p):
    setup()
    os.mkdir("closed")
    os.mkdir("closed/in")
    make("regular", "closed/in/file")
    os.chmod("closed", 0o700)
    os.chmod(".", 0o777)

    def calls(p):
        for name, function in CALLS.items():
            p.call(name, function, "closed/in/file" if name in EXISTING else "closed/in/new")

    p.as_user(OTHER, calls)
    p.note("after", sorted(os.listdir("closed/in")))


@case("path/names of every byte")
def _(p):
    for byte in range(1, 256):
        if byte != ord("/"):
            name = b"x" + bytes([byte]) + b"y"
            p.call(f"create {byte}", lambda: os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o600)))
    p.note("listed", sorted(os.listdir(b".")))


@case("path/names that look alike")
def _(p):
    names = ["a", "A", "é", "e\u0301", " a", "a ", "a.", "a\n", "...", "-rf", "*", ".hidden", "~", "con", "a:b", "a\\b"]
    for name in names:
        p.call(f"create {name!r}", lambda: os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)))
    p.note("listed", sorted(os.listdir(b".")))


@case("path/lengths of names and link targets")
def _(p):
    for length in (1, 2, 63, 64, 127, 128, 254, 255, 256, 300):
        name = "n" * length
        for what, function in MAKING.items():
            if "source" not in what and "rename" not in what and "link to" != what:
                p.call(f"{what} of {length}", function, name)
                try:
                    os.rmdir(name) if what == "mkdir" else os.unlink(name)
                except OSError:
                    pass
    for length in (0, 1, 59, 60, 61, 255, 1023, 1024, 4094, 4095, 4096):
        name = f"to-{length}"
        p.call(f"symlink with a target of {length}", os.symlink, "t" * length, name)
        p.call(f"readlink of {length}", lambda: len(os.readlink(name)))
        p.stat(f"target of {length}", name, "size")


@case("path/deep directories")
def _(p):
    here = os.getcwd()
    for depth in range(60):
        p.call(f"mkdir {depth}", os.mkdir, "d" * 60)
        os.chdir("d" * 60)
    make("regular", "leaf")
    p.content("leaf", "leaf")
    p.note("getcwd", os.getcwd()[len(here):])
    for depth in range(60):
        os.chdir("..")
    p.note("back", os.getcwd() == here)
