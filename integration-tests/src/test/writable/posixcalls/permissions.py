"""Who may do what: bits of owner, group and others, sticky directories, and what only an owner or root may do."""

import itertools
import os
import stat

from .harness import MEMBER, OTHER, OWNER, ROOT, SUPPLEMENTARY, TYPES, User, case, make, renameat2, utimensat

USERS = (OWNER, MEMBER, SUPPLEMENTARY, OTHER)
NOW, OMIT = (1 << 30) - 1, (1 << 30) - 2

OPENS = {
    "read": os.O_RDONLY,
    "write": os.O_WRONLY,
    "both": os.O_RDWR,
    "truncate": os.O_WRONLY | os.O_TRUNC,
    "read and truncate": os.O_RDONLY | os.O_TRUNC,
    "append": os.O_WRONLY | os.O_APPEND,
    "create": os.O_WRONLY | os.O_CREAT,
    "path": os.O_PATH,
}


def _bits(user, bits):
    """A mode with those bits where they matter for the user, and all others elsewhere, to notice a wrong class."""
    return {"owner": bits << 6 | 0o077, "other": 0o770 | bits}.get(user.name, 0o707 | bits << 3)


for _user, _kind in itertools.product(USERS, ("regular", "fifo", "dir")):

    @case(f"permission/open/{_kind} as {_user.name}")
    def _(p, user=_user, kind=_kind):
        for bits in range(8):
            make(kind, f"f{bits}", owner=OWNER)
            os.chmod(f"f{bits}", _bits(user, bits))

        def calls(p):
            for bits in range(8):
                for name, flags in OPENS.items():
                    p.tries_open(f"{name} with {bits}", f"f{bits}", flags | os.O_NONBLOCK)
                for name, mode in (("r", os.R_OK), ("w", os.W_OK), ("x", os.X_OK)):
                    p.note(f"access {name} with {bits}", os.access(f"f{bits}", mode))
                p.call(f"truncate with {bits}", os.truncate, f"f{bits}", 3)
                p.call(f"getxattr with {bits}", os.getxattr, f"f{bits}", "user.none")
                p.call(f"setxattr with {bits}", os.setxattr, f"f{bits}", "user.a", b"b")
                p.call(f"times of now with {bits}", utimensat, f"f{bits}", (0, NOW), (0, NOW))

        p.as_user(user, calls)


@case("permission/execute")
def _(p):
    for user, bits in itertools.product(USERS, range(8)):
        name = f"{user.name}-{bits}"
        with open(name, "w") as f:
            f.write("#!/bin/sh\nexit 7\n")
        os.chown(name, OWNER.uid, OWNER.gid)
        os.chmod(name, _bits(user, bits))

        def execute(p):
            child = os.fork()
            if child == 0:
                try:
                    os.execv("./" + name, [name])
                except OSError as e:
                    os._exit(100 + e.errno)
            p.note(f"execve with {bits}", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        p.as_user(user, execute)


IN_DIRECTORY = {
    "list": lambda d: sorted(os.listdir(d)),
    "look up": lambda d: stat.S_IFMT(os.lstat(d + "/file").st_mode),
    "enter": lambda d: os.close(os.open(d + "/.", os.O_PATH)),
    "read": lambda d: os.close(os.open(d + "/file", os.O_RDONLY)),
    "create": lambda d: os.close(os.open(d + "/new", os.O_CREAT | os.O_WRONLY)),
    "unnamed": lambda d: os.close(os.open(d, os.O_TMPFILE | os.O_WRONLY)),
    "mkdir": lambda d: os.mkdir(d + "/new-dir"),
    "mkfifo": lambda d: os.mkfifo(d + "/new-fifo"),
    "symlink": lambda d: os.symlink("x", d + "/new-symlink"),
    "link": lambda d: os.link(d + "/file", d + "/new-link"),
    "rename": lambda d: os.rename(d + "/file2", d + "/new-name"),
    "rename in": lambda d: os.rename(d + ".own", d + "/moved-in"),
    "exchange": lambda d: renameat2(d + "/file", d + "/file3", 2),
    "rename onto": lambda d: os.rename(d + "/file3", d + "/file4"),
    "unlink": lambda d: os.unlink(d + "/file4"),
    "rmdir": lambda d: os.rmdir(d + "/dir"),
}

for _user in USERS:

    @case(f"permission/directory as {_user.name}")
    def _(p, user=_user):
        os.chmod(".", 0o777)
        for bits in range(8):
            d = f"d{bits}"
            os.mkdir(d)
            for name in ("file", "file2", "file3", "file4"):
                make("regular", f"{d}/{name}", 0o666, user)
            make("regular", d + ".own", 0o666, user)
            os.mkdir(d + "/dir")
            os.chown(d + "/dir", user.uid, user.gid)
            os.chown(d, OWNER.uid, OWNER.gid)
            os.chmod(d, _bits(user, bits))

        def calls(p):
            for bits in range(8):
                for name, function in IN_DIRECTORY.items():
                    p.call(f"{name} with {bits}", function, f"d{bits}")

        p.as_user(user, calls)


# In a sticky directory only the owner of the file, of the directory, and root may take a name away.
for _kind in TYPES:

    @case(f"permission/sticky/{_kind}")
    def _(p, kind=_kind):
        number = itertools.count()
        for sticky, directory, owner, user in itertools.product((0, 0o1000), (OWNER, OTHER, ROOT), (OWNER, OTHER, ROOT), (OWNER, ROOT)):
            d = f"d{next(number)}"
            os.mkdir(d)
            for name in ("a", "b", "c", "e"):
                make(kind, f"{d}/{name}", 0o666, owner)
            make(kind, d + "/mine", 0o666, user)
            os.chown(d, directory.uid, directory.gid)
            os.chmod(d, 0o777 | sticky)
            what = f"{oct(sticky)} dir of {directory.name}, file of {owner.name}"

            def calls(p):
                p.call(f"{what}: remove", os.rmdir if kind == "dir" else os.unlink, d + "/a")
                p.call(f"{what}: rename", os.rename, d + "/b", d + "/new")
                p.call(f"{what}: rename onto", os.rename, d + "/mine", d + "/c")
                p.call(f"{what}: exchange", renameat2, d + "/c", d + "/e", 2)
                p.call(f"{what}: link", os.link, d + "/e", d + "/linked", follow_symlinks=False)

            p.as_user(user, calls)


@case("permission/directory of another user is moved")
def _(p):
    # Renaming a directory changes its "..", which needs the right to write to it if the parent changes.
    os.chmod(".", 0o777)
    for name, mode in (("writable", 0o777), ("closed", 0o755)):
        for target in ("same", "other"):
            os.mkdir(f"{name}-{target}")
            os.chmod(f"{name}-{target}", mode)
    os.mkdir("to")
    os.chmod("to", 0o777)

    def calls(p):
        for name in ("writable", "closed"):
            p.call(f"{name} in the same directory", os.rename, f"{name}-same", f"{name}-new")
            p.call(f"{name} to another directory", os.rename, f"{name}-other", f"to/{name}")

    p.as_user(OTHER, calls)


BITS = (0, 0o777, 0o644, 0o4755, 0o2755, 0o2745, 0o6777, 0o1777, 0o7777, 0o4000, 0o2000, 0o1000, 0o111, 0o222, 0o444)

for _kind in TYPES:

    @case(f"chmod/{_kind}")
    def _(p, kind=_kind):
        for owner, user in itertools.product((OWNER, User("foreign group", OWNER.uid, OTHER.gid)), (ROOT, OWNER, SUPPLEMENTARY)):
            for mode in BITS:
                name = f"{owner.name}-{user.name}-{mode:o}"
                make(kind, name, 0o644, owner)
                p.as_user(user, lambda p: p.call(f"chmod {mode:o} of {owner.name}", os.chmod, name, mode))
                p.stat(name, name, "mode")

    @case(f"chmod/fchmod of {_kind}")
    def _(p, kind=_kind):
        make(kind, "f", 0o644, OWNER)
        flags = os.O_RDONLY | os.O_NONBLOCK if kind in ("regular", "dir", "fifo") else os.O_PATH | os.O_NOFOLLOW
        descriptor = os.open("f", flags)
        for mode in BITS:
            p.call(f"fchmod {mode:o}", os.fchmod, descriptor, mode)
            p.stat(f"after {mode:o}", "f", "mode")

    @case(f"chown/{_kind}")
    def _(p, kind=_kind):
        targets = {"nothing": (-1, -1), "same": (OWNER.uid, OWNER.gid), "user": (OTHER.uid, -1), "own group": (-1, 65605),
                   "own user and group": (OWNER.uid, 65605), "foreign group": (-1, OTHER.gid), "both": (OTHER.uid, OTHER.gid), "root": (0, 0)}
        users = (ROOT, User("owner", OWNER.uid, OWNER.gid, [65605]), OTHER)
        for user, (name, (uid, gid)), mode in itertools.product(users, targets.items(), (0o644, 0o6755, 0o2745, 0o6777)):
            path = f"{user.name}-{name}-{mode:o}"
            make(kind, path, mode, OWNER)
            p.as_user(user, lambda p: p.call(f"{name} {mode:o}", os.lchown, path, uid, gid))
            p.stat(path, path, "mode", "uid", "gid")


@case("chown/links are followed or not")
def _(p):
    make("regular", "target")
    os.symlink("target", "link")
    p.call("chown", os.chown, "link", 65501, 65601)
    p.tree("after chown")
    p.call("lchown", os.lchown, "link", 65502, 65602)
    p.tree("after lchown")
    p.call("chmod", os.chmod, "link", 0o600)
    descriptor = os.open("target", os.O_RDONLY)
    p.call("fchown", os.fchown, descriptor, 65503, -1)
    p.tree("after fchown")
    p.call("huge ids", os.chown, "target", 4294967294, 4294967293)


@case("set-id/cleared by changes of content")
def _(p):
    changes = {
        "write": lambda n: _with(n, os.O_WRONLY, lambda d: os.write(d, b"x")),
        "write of nothing": lambda n: _with(n, os.O_WRONLY, lambda d: os.write(d, b"")),
        "append": lambda n: _with(n, os.O_WRONLY | os.O_APPEND, lambda d: os.write(d, b"x")),
        "open with O_TRUNC": lambda n: _with(n, os.O_WRONLY | os.O_TRUNC, lambda d: None),
        "truncate": lambda n: os.truncate(n, 3),
        "truncate to the same size": lambda n: os.truncate(n, os.stat(n).st_size),
        "truncate longer": lambda n: os.truncate(n, 100),
        "ftruncate": lambda n: _with(n, os.O_WRONLY, lambda d: os.ftruncate(d, 2)),
        "posix_fallocate": lambda n: _with(n, os.O_WRONLY, lambda d: os.posix_fallocate(d, 0, 100)),
        "copy_file_range": lambda n: _with(n, os.O_WRONLY, lambda d: _with("source", os.O_RDONLY, lambda s: os.copy_file_range(s, d, 4))),
        "open only": lambda n: _with(n, os.O_WRONLY, lambda d: None),
        "times": lambda n: os.utime(n),
        "xattr": lambda n: os.setxattr(n, "user.a", b"b"),
    }
    make("regular", "source")
    for (what, function), mode, user in itertools.product(changes.items(), (0o6777, 0o4755, 0o2777, 0o2767, 0o6666, 0o7777), (ROOT, OWNER, OTHER)):
        name = f"{what}-{mode:o}-{user.name}"
        make("regular", name, mode, OWNER)
        p.as_user(user, lambda p: p.call(f"{what} {mode:o}", function, name))
        p.stat(name, name, "mode")


def _with(name, flags, function):
    descriptor = os.open(name, flags)
    try:
        function(descriptor)
    finally:
        os.close(descriptor)


NEW = {
    "regular": lambda n: os.close(os.open(n, os.O_CREAT | os.O_WRONLY, 0o6777)),
    "dir": lambda n: os.mkdir(n, 0o6777),
    "sticky dir": lambda n: os.mkdir(n, 0o1777),
    "fifo": lambda n: os.mkfifo(n, 0o777),
    "mknod": lambda n: os.mknod(n, stat.S_IFREG | 0o2777),
    "symlink": lambda n: os.symlink("x", n),
}

for _mask in (0, 0o022, 0o077, 0o777, 0o4700):

    @case(f"new/umask {_mask:o}")
    def _(p, mask=_mask):
        for directory, mode, owner in (("plain", 0o777, OTHER), ("set-gid", 0o2777, OTHER), ("own", 0o2777, OWNER), ("set-uid", 0o4777, OTHER)):
            os.mkdir(directory)
            os.chown(directory, owner.uid, owner.gid)
            os.chmod(directory, mode)
            for user in (ROOT, OWNER, SUPPLEMENTARY):

                def calls(p):
                    os.umask(mask)
                    for kind, function in NEW.items():
                        p.call(f"{kind} in {directory}", function, f"{directory}/{user.name} {kind}")
                        p.stat(f"{kind} in {directory}", f"{directory}/{user.name} {kind}", "mode", "uid", "gid")
                    descriptor = p.opens(f"unnamed in {directory}", directory, os.O_TMPFILE | os.O_RDWR, 0o6777)
                    if descriptor is not None:
                        found = os.fstat(descriptor)
                        p.note(f"unnamed in {directory}", (oct(found.st_mode), found.st_uid, found.st_gid))

                p.as_user(user, calls)


@case("permission/what only the owner may")
def _(p):
    calls_ = {
        "chmod": lambda n: os.chmod(n, 0o640),
        "times given": lambda n: utimensat(n, (1, 0), (2, 0)),
        "modification time given": lambda n: utimensat(n, (0, OMIT), (2, 0)),
        "both omitted": lambda n: utimensat(n, (0, OMIT), (0, OMIT)),
        "access time now": lambda n: utimensat(n, (0, NOW), (0, OMIT)),
        "both now": lambda n: utimensat(n, (0, NOW), (0, NOW)),
        "trusted xattr": lambda n: os.setxattr(n, "trusted.a", b"b"),
        "security xattr": lambda n: os.setxattr(n, "security.pmfstest", b"b"),
        "user xattr": lambda n: os.setxattr(n, "user.a", b"b"),
        "O_NOATIME": lambda n: os.close(os.open(n, os.O_RDONLY | os.O_NOATIME)),
        "link": lambda n: os.link(n, n + ".linked"),
    }
    os.chmod(".", 0o777)
    for mode, user, (what, function) in itertools.product((0o666, 0o644, 0o600, 0o6777), (ROOT, *USERS), calls_.items()):
        name = f"{mode:o} {user.name} {what}"
        make("regular", name, mode, OWNER)
        p.as_user(user, lambda p: p.call(f"{what} {mode:o}", function, name))
