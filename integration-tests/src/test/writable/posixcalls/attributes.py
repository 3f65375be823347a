"""Extended attributes and statfs."""

import itertools
import os

from .harness import OWNER, OTHER, TYPES, case, getxattr_sized, make, xattrs

for _kind, _space in itertools.product(TYPES, ("user", "trusted", "security", "system", "unknown", "")):

    @case(f"xattr/{_kind} {_space or 'no'} name space")
    def _(p, kind=_kind, space=_space):
        make(kind, "f")
        name = f"{space}.pmfs" if space else "pmfs"
        for flags, label in ((0, "set"), (os.XATTR_CREATE, "create"), (os.XATTR_REPLACE, "replace"), (3, "both")):
            p.call(f"{label}", os.setxattr, "f", name, label.encode(), flags, follow_symlinks=False)
            p.call(f"get after {label}", os.getxattr, "f", name, follow_symlinks=False)
        p.note("listed", xattrs("f"))
        p.call("remove", os.removexattr, "f", name, follow_symlinks=False)
        p.call("remove again", os.removexattr, "f", name, follow_symlinks=False)
        p.call("replace nothing", os.setxattr, "f", name, b"x", os.XATTR_REPLACE, follow_symlinks=False)
        p.call("create", os.setxattr, "f", name, b"x", os.XATTR_CREATE, follow_symlinks=False)

        def as_other(p):
            p.call("get", os.getxattr, "f", name, follow_symlinks=False)
            p.call("set", os.setxattr, "f", name, b"y", follow_symlinks=False)

        p.as_user(OTHER, as_other)


@case("xattr/sizes")
def _(p):
    make("regular", "f")
    for size in (0, 1, 10, 255, 256, 1000, 2000, 3000, 65537):
        p.call(f"set {size}", os.setxattr, "f", "user.a", b"v" * size)
        p.call(f"get {size}", lambda: len(os.getxattr("f", "user.a")))
        for buffer in (0, 1, size - 1, size, size + 1):
            if buffer >= 0:
                p.call(f"get {size} with {buffer}", getxattr_sized, "f", "user.a", buffer)
    for length in (1, 10, 249, 250, 251, 300):
        p.call(f"name of {length}", os.setxattr, "f", "user." + "n" * length, b"x")
    p.call("name is a space only", os.setxattr, "f", "user.", b"x")
    p.call("name is empty", os.setxattr, "f", "", b"x")
    p.call("bytes of all kinds", os.setxattr, "f", "user.bytes", bytes(range(256)))
    p.call("and back", lambda: os.getxattr("f", "user.bytes") == bytes(range(256)))
    p.note("listed", xattrs("f"))


@case("xattr/stay with the file")
def _(p):
    make("regular", "f", owner=OWNER)
    for i in range(20):
        os.setxattr("f", f"user.{i}", b"%d" % i)
    os.rename("f", "g")
    os.link("g", "h")
    os.chmod("h", 0o600)
    os.truncate("g", 0)
    with open("g", "wb") as f:
        f.write(b"new")
    for i in range(0, 20, 3):
        os.removexattr("h", f"user.{i}")
    p.tree()
    make("regular", "other")
    os.rename("other", "g")
    p.tree("replaced")
    descriptor = os.open("h", os.O_RDONLY)
    p.call("by descriptor", os.setxattr, descriptor, "user.d", b"x")
    os.unlink("h")
    p.call("after unlink", os.setxattr, descriptor, "user.e", b"y")
    p.note("listed", sorted(n for n in os.listxattr(descriptor) if n.startswith("user.")))


@case("xattr/ACL")
def _(p):
    import struct

    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in (
        (1, 6, 0xFFFFFFFF), (2, 4, 65504), (4, 4, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF)))
    make("regular", "f", 0o640, OWNER)
    os.mkdir("d")
    p.call("set", os.setxattr, "f", "system.posix_acl_access", acl)
    p.call("get", os.getxattr, "f", "system.posix_acl_access")
    p.stat("f", "f", "mode")
    p.as_user(OTHER, lambda p: p.tries_open("reading", "f", os.O_RDONLY))
    p.call("default of a file", os.setxattr, "f", "system.posix_acl_default", acl)
    p.call("default of a directory", os.setxattr, "d", "system.posix_acl_default", acl)
    os.close(os.open("d/new", os.O_CREAT | os.O_WRONLY, 0o666))
    p.stat("new", "d/new", "mode")


@case("statfs")
def _(p):
    make("regular", "f")
    for name, f in (("path", "."), ("file", "f"), ("descriptor", os.open("f", os.O_RDONLY))):
        found = os.statvfs(f)
        p.note(f"{name}: longest name", found.f_namemax)
        p.note(f"{name}: sense", (found.f_bsize > 0, found.f_frsize > 0, found.f_blocks >= found.f_bfree >= found.f_bavail > 0,
                                  found.f_files >= found.f_ffree > 0, bool(found.f_flag & os.ST_RDONLY)))


@case("stat/blocks and sizes")
def _(p):
    import time

    for size in (0, 1, 4096, 4097, 1 << 20):
        with open(f"f{size}", "wb") as f:
            f.write(b"x" * size)
            f.flush()
            os.fsync(f.fileno())
        found = os.stat(f"f{size}")
        p.note(f"{size}", (found.st_size, found.st_blocks * 512 >= size, found.st_blocks * 512 <= size + 65536, found.st_blksize >= 512))
        # ext4 keeps birth times: a new file's is not before its directory's change.
    p.note("inode numbers differ", len({os.stat(n).st_ino for n in os.listdir(".")}) == 5)
    p.note("device is the directory's", len({os.stat(n).st_dev for n in (".", *os.listdir("."))}))
    p.note("clock", abs(os.stat("f0").st_ctime - time.time()) < 5)
