"""open(2): all combinations of flags on all kinds of files, and files without names."""

import itertools
import os

from .harness import OTHER, TYPES, AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_FOLLOW, case, linkat, make, write

ACCESS = {"read": os.O_RDONLY, "write": os.O_WRONLY, "both": os.O_RDWR}
FLAGS = {"creat": os.O_CREAT, "excl": os.O_EXCL, "trunc": os.O_TRUNC, "append": os.O_APPEND,
         "directory": os.O_DIRECTORY, "nofollow": os.O_NOFOLLOW}
TARGETS = ("absent", *TYPES, "link to regular", "link to dir")


def _target(kind, name):
    if kind == "link to regular":
        make("regular", name + ".target")
        os.symlink(name + ".target", name)
    elif kind == "link to dir":
        os.mkdir(name + ".target")
        os.symlink(name + ".target", name)
    elif kind != "absent":
        make(kind, name)


for _kind, (_access, _flag) in itertools.product(TARGETS, ACCESS.items()):

    @case(f"open/flags/{_kind} {_access}")
    def _(p, kind=_kind, access=_flag):
        for chosen in itertools.chain.from_iterable(itertools.combinations(FLAGS, n) for n in range(len(FLAGS) + 1)):
            name = "-".join(chosen) or "none"
            _target(kind, name)
            # O_NONBLOCK: a FIFO has no other side.
            descriptor = p.opens(name, name, access | os.O_NONBLOCK | sum(FLAGS[f] for f in chosen))
            if descriptor is not None:
                if access != os.O_RDONLY and kind not in ("block", "char", "fifo"):
                    p.call(f"write {name}", os.write, descriptor, b"ab")
                if kind in ("regular", "absent"):
                    p.note(f"position {name}", os.lseek(descriptor, 0, os.SEEK_CUR))
                os.close(descriptor)


@case("open/synchronous and direct")
def _(p):
    for name, flag in (("sync", os.O_SYNC), ("dsync", os.O_DSYNC), ("noatime", os.O_NOATIME), ("cloexec", os.O_CLOEXEC)):
        descriptor = p.opens(name, name, os.O_RDWR | os.O_CREAT | flag)
        p.call(f"write {name}", os.write, descriptor, b"x" * 5000)
        p.call(f"read {name}", lambda: len(os.pread(descriptor, 9000, 1)))
        os.close(descriptor)
    import mmap

    block = mmap.mmap(-1, 8192)
    block.write(b"d" * 8192)
    descriptor = p.opens("direct", "direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    if descriptor is not None:
        p.call("direct write", os.pwritev, descriptor, [block], 4096)
        p.call("direct read", os.preadv, descriptor, [block], 0)
        p.note("direct content", block[:4096] == bytes(4096) and block[4096:] == b"d" * 4096)
        p.call("direct read at the end", os.preadv, descriptor, [block], 12288)
        os.close(descriptor)
    p.content("direct", "direct")


@case("open/modes that forbid what the descriptor may")
def _(p):
    # The right counts when a file is opened; a new one may be opened for writing whatever its mode is.
    os.chmod(".", 0o777)

    def calls(p):
        descriptor = p.opens("create with mode 0", "f", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0)
        p.call("write", os.write, descriptor, b"abc")
        p.call("read", os.pread, descriptor, 3, 0)
        p.call("ftruncate", os.ftruncate, descriptor, 2)
        p.tries_open("open again", "f", os.O_RDONLY)
        p.call("fchmod", os.fchmod, descriptor, 0o400)
        p.tries_open("open for reading", "f", os.O_RDONLY)
        p.tries_open("open for writing", "f", os.O_WRONLY)
        p.call("write after fchmod", os.write, descriptor, b"d")
        os.close(descriptor)

    p.as_user(OTHER, calls)


@case("open/wrong direction")
def _(p):
    write("f", b"abc")
    reading, writing = os.open("f", os.O_RDONLY), os.open("f", os.O_WRONLY)
    path, directory = os.open("f", os.O_PATH), os.open(".", os.O_RDONLY)
    for name, d in (("reading", reading), ("writing", writing), ("path", path), ("directory", directory)):
        p.call(f"read {name}", os.read, d, 1)
        p.call(f"write {name}", os.write, d, b"x")
        p.call(f"ftruncate {name}", os.ftruncate, d, 1)
        p.call(f"posix_fallocate {name}", os.posix_fallocate, d, 0, 10)
        p.call(f"fsync {name}", os.fsync, d)
        p.call(f"fdatasync {name}", os.fdatasync, d)
        p.call(f"copy to {name}", lambda: os.copy_file_range(reading, d, 1, 0, 5))
        p.call(f"fchmod {name}", os.fchmod, d, 0o755 if name == "directory" else 0o644)


@case("open/unnamed file is given a name")
def _(p):
    for label, flags in (("linkable", 0), ("exclusive", os.O_EXCL)):
        descriptor = p.opens(label, ".", os.O_TMPFILE | os.O_RDWR | flags, 0o640)
        if descriptor is None:
            continue
        p.call(f"{label} write", os.write, descriptor, b"without a name")
        p.note(f"{label} nlink", os.fstat(descriptor).st_nlink)
        p.call(f"{label} linkat", linkat, f"/proc/self/fd/{descriptor}", label, AT_SYMLINK_FOLLOW)
        p.call(f"{label} linkat to the same name", linkat, f"/proc/self/fd/{descriptor}", label, AT_SYMLINK_FOLLOW)
        p.call(f"{label} second name", linkat, "", label + "-2", AT_EMPTY_PATH, descriptor)
        p.note(f"{label} nlink after", os.fstat(descriptor).st_nlink)
        p.call(f"{label} write after", os.write, descriptor, b", now with one")
        os.close(descriptor)
    p.tries_open("for reading only", ".", os.O_TMPFILE)
    p.tries_open("in a file", "linkable", os.O_TMPFILE | os.O_RDWR)
    p.tries_open("in nothing", "missing", os.O_TMPFILE | os.O_RDWR)
    p.note("listed", sorted(os.listdir(".")))
    assert AT_FDCWD == -100


@case("open/a program that runs is not opened for writing")
def _(p):
    import shutil

    shutil.copy("/bin/sleep", "program")
    child = os.fork()
    if child == 0:
        os.execv("./program", ["program", "30"])
    import time

    while os.readlink(f"/proc/{child}/exe") != os.path.join(os.getcwd(), "program"):
        time.sleep(0.005)
    for name, flags in (("write", os.O_WRONLY), ("both", os.O_RDWR), ("truncate", os.O_WRONLY | os.O_TRUNC), ("append", os.O_WRONLY | os.O_APPEND), ("read", os.O_RDONLY)):
        p.tries_open(name, "program", flags)
    p.call("truncate by path", os.truncate, "program", 10)
    p.call("rename", os.rename, "program", "moved")
    p.call("unlink", os.unlink, "moved")
    os.kill(child, 9)
    os.waitpid(child, 0)


@case("open/a program that is open for writing does not run")
def _(p):
    import shutil

    shutil.copy("/bin/true", "program")
    for name, flags in (("write", os.O_WRONLY), ("both", os.O_RDWR), ("read", os.O_RDONLY)):
        descriptor = os.open("program", flags | os.O_CLOEXEC)

        def execute():
            child = os.fork()
            if child == 0:
                try:
                    os.execv("./program", ["program"])
                except OSError as e:
                    os._exit(e.errno)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        p.call(f"execve while open for {name}", execute)
        os.close(descriptor)
        p.call(f"execve after {name}", execute)
