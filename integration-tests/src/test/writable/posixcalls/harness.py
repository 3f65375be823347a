"""What a case of posix-calls.py has to work with: notes, users, snapshots and calls that Python's os lacks."""

import ctypes
import errno
import hashlib
import os
import pickle
import signal
import stat
import sys
import time
import traceback

CASES = {}  # name -> function(place), in the order of definition
SETUPS = {}  # name -> function() that makes what must be there before


def case(name, setup=None):
    """
    Registers a function as a case. It runs in an empty directory of its own, which is its working directory. What
    setup() makes there first may also be made in another directory that shows the same.
    """

    def register(function):
        assert name not in CASES, name
        CASES[name] = function
        if setup is not None:
            SETUPS[name] = setup
        return function

    return register


class User:
    """A user and its groups, by numbers that need no entry in /etc/passwd."""

    def __init__(self, name, uid, gid, groups=()):
        self.name, self.uid, self.gid, self.groups = name, uid, gid, list(groups)


OWNER = User("owner", 65501, 65601)
MEMBER = User("member", 65502, 65601)  # of the owner's group
SUPPLEMENTARY = User("supplementary", 65503, 65603, [65601])
OTHER = User("other", 65504, 65604)
ROOT = User("root", 0, 0)

TYPES = ("regular", "dir", "fifo", "block", "char", "socket", "symlink")


class Place:
    """Collects what the calls of a case did in one directory."""

    def __init__(self):
        self.outcomes = []

    def note(self, label, value):
        self.outcomes.append((label, value))

    def call(self, label, function, *arguments, **named):
        """Calls, notes the result or the name of the error, and returns the result or None."""
        try:
            result = function(*arguments, **named)
        except OSError as e:
            self.note(label, errno.errorcode.get(e.errno, str(e.errno)))
            return None
        shown = "ok" if result is None or label.startswith("fd ") else result
        self.note(label, shown)
        return result

    def opens(self, label, path, flags, mode=0o644):
        """Notes whether open(2) succeeds, and returns the descriptor or None."""
        try:
            descriptor = os.open(path, flags, mode)
        except OSError as e:
            self.note(label, errno.errorcode.get(e.errno, str(e.errno)))
            return None
        self.note(label, "ok")
        return descriptor

    def tries_open(self, label, path, flags, mode=0o644):
        descriptor = self.opens(label, path, flags, mode)
        if descriptor is not None:
            os.close(descriptor)

    def tree(self, label="tree", where="."):
        self.note(label, snapshot(where))

    def stat(self, label, path, *fields):
        """Notes fields of lstat(2): mode uid gid nlink size rdev."""
        try:
            found = os.lstat(path)
        except OSError as e:
            self.note(label, errno.errorcode[e.errno])
            return
        for field in fields:
            value = getattr(found, "st_" + field)
            self.note(f"{label} {field}", oct(value) if field == "mode" else value)

    def content(self, label, path):
        try:
            with open(path, "rb") as f:
                self.note(label, digest(f.read()))
        except OSError as e:
            self.note(label, errno.errorcode[e.errno])

    def as_user(self, user, function, *arguments):
        """Runs function(place, ...) in a child with the rights of a user, and takes over what it notes."""
        ok, result = in_child(lambda: _as_user(user, function, *arguments), 60)
        if not ok:
            raise RuntimeError(f"as {user.name}: {result}")
        self.outcomes += [(f"{user.name}: {label}", value) for label, value in result]

    def child(self, label, function, *arguments):
        """Runs function(*arguments) in a child as the same user, and notes its result or how it ended."""
        ok, result = in_child(lambda: _result(function, *arguments), 60)
        self.note(label, result if ok else str(result).strip().splitlines()[-1])

    def changes(self, label, function, *paths):
        """Notes which of mtime and ctime of some paths function changes, and that the new times are now."""
        before = {path: _times(path) for path in paths}
        time.sleep(0.012)  # longer than the kernel's tick, which is the grain of ext4's times
        start = time.time()
        self.call(label, function)
        end = time.time()
        for path in paths:
            changed = []
            for name, old, new in zip(("mtime", "ctime"), before[path] or (None, None), _times(path) or (None, None)):
                if old != new:
                    near = new is None or start - 0.02 <= new / 1e9 <= end + 0.02
                    changed.append(name if near else name + " (not now)")
            self.note(f"{label}: times of {path}", changed)


def _times(path):
    try:
        found = os.lstat(path)
        return found.st_mtime_ns, found.st_ctime_ns
    except OSError:
        return None


def _as_user(user, function, *arguments):
    os.setgroups(user.groups)
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)
    place = Place()
    function(place, *arguments)
    return place.outcomes


def _result(function, *arguments):
    try:
        return function(*arguments)
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))


def in_child(function, seconds):
    """Returns (True, result), or (False, why there is none) also if the child hangs."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            answer = (True, function())
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(writing, "wb") as f:
            pickle.dump(answer, f)
        os._exit(0)
    os.close(writing)
    os.set_blocking(reading, False)
    deadline, received, ended = time.monotonic() + seconds, b"", False
    import select

    while not ended:
        left = deadline - time.monotonic()
        if left <= 0:
            os.kill(child, signal.SIGKILL)
            break
        ready, _, _ = select.select([reading], [], [], left)
        if ready:
            piece = os.read(reading, 1 << 20)
            received += piece
            ended = not piece
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if not ended:
        return False, f"did not end within {seconds} s"
    if not received:
        return False, f"ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "ended without result"
    return pickle.loads(received)


def digest(data):
    """Short data as they are, long ones by length and hash, so that differences can be read."""
    return data if len(data) <= 64 else f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}"


def snapshot(where="."):
    """All that lstat(2), read(2), readlink(2) and getxattr(2) show below a directory, but times and numbers."""
    found = {}

    def visit(path, shown):
        s = os.lstat(path)
        entry = {"mode": oct(s.st_mode), "owner": f"{s.st_uid}:{s.st_gid}", "nlink": s.st_nlink}
        if stat.S_ISREG(s.st_mode):
            entry["size"] = s.st_size
            if s.st_size <= 16 << 20:
                with open(path, "rb") as f:
                    entry["content"] = digest(f.read())
        elif stat.S_ISLNK(s.st_mode):
            entry["size"], entry["target"] = s.st_size, os.readlink(path)
        elif stat.S_ISBLK(s.st_mode) or stat.S_ISCHR(s.st_mode):
            entry["rdev"] = s.st_rdev
        attributes = {n: digest(os.getxattr(path, n, follow_symlinks=False)) for n in xattrs(path)}
        if attributes:
            entry["xattrs"] = attributes
        found[shown] = entry
        if stat.S_ISDIR(s.st_mode):
            for name in sorted(os.listdir(path)):
                visit(os.path.join(path, name), os.path.join(shown, name))

    visit(where, ".")
    return found


def xattrs(path):
    return sorted(n for n in os.listxattr(path, follow_symlinks=False) if n.startswith(("user.", "trusted.")))


def make(kind, name, mode=0o644, owner=None):
    """Makes a file of one of TYPES. A regular file and a symlink have something in them."""
    if kind == "regular":
        # O_NONBLOCK: where a FIFO has that name already, nothing waits for its other side.
        write(name, b"content of a file\n", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK)
    elif kind == "dir":
        os.mkdir(name)
        mode = mode | (mode & 0o444) >> 2
    elif kind == "fifo":
        os.mkfifo(name)
    elif kind == "block":
        os.mknod(name, stat.S_IFBLK | 0o644, os.makedev(7, 250))
    elif kind == "char":
        os.mknod(name, stat.S_IFCHR | 0o644, os.makedev(1, 3))
    elif kind == "socket":
        os.mknod(name, stat.S_IFSOCK | 0o644)
    elif kind == "symlink":
        os.symlink("nowhere", name)
    if kind != "symlink":
        os.chmod(name, mode)
    if owner is not None:
        os.lchown(name, owner.uid, owner.gid)
        if kind != "symlink":
            os.chmod(name, mode)


def write(path, data=b"", flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
    descriptor = os.open(path, flags, 0o644)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


# ---- calls that Python's os has not, or not with all arguments

_libc = ctypes.CDLL(None, use_errno=True)
_libc.telldir.restype = ctypes.c_long
_libc.opendir.restype = ctypes.c_void_p
_libc.fdopendir.restype = ctypes.c_void_p
_libc.readdir.restype = ctypes.c_void_p
AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH = -100, 0x100, 0x400, 0x1000
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4  # renameat2(2)
KEEP_SIZE, PUNCH_HOLE, COLLAPSE, ZERO_RANGE, INSERT, UNSHARE = 1, 2, 8, 16, 32, 64  # fallocate(2)


def _check(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def renameat2(old, new, flags):
    _check(_libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags))


def fallocate(descriptor, mode, offset, length):
    _check(_libc.fallocate(descriptor, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def linkat(old, new, flags, old_directory=AT_FDCWD):
    _check(_libc.linkat(old_directory, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags))


def utimensat(path, access, modification, flags=0):
    """Times are (seconds, nanoseconds)."""
    times = (ctypes.c_long * 4)(*access, *modification)
    _check(_libc.utimensat(AT_FDCWD, os.fsencode(path), times, flags))


def getxattr_sized(path, name, size):
    buffer = ctypes.create_string_buffer(max(size, 1))
    return _check(_libc.getxattr(os.fsencode(path), os.fsencode(name), buffer, ctypes.c_size_t(size)))


class DirectoryStream:
    """opendir(3) and its relatives, with positions."""

    def __init__(self, path):
        self.stream = _libc.opendir(os.fsencode(path))
        if not self.stream:
            _check(-1)

    def read(self):
        """The next (name, inode, type), or None at the end."""
        ctypes.set_errno(0)
        entry = _libc.readdir(ctypes.c_void_p(self.stream))
        if not entry:
            if ctypes.get_errno():
                _check(-1)
            return None
        inode = ctypes.c_uint64.from_address(entry).value
        kind = ctypes.c_uint8.from_address(entry + 18).value
        return os.fsdecode(ctypes.string_at(entry + 19)), inode, kind

    def names(self, limit=1 << 30):
        names = []
        while len(names) < limit:
            entry = self.read()
            if entry is None:
                break
            names.append(entry[0])
        return names

    def tell(self):
        return _libc.telldir(ctypes.c_void_p(self.stream))

    def seek(self, position):
        _libc.seekdir(ctypes.c_void_p(self.stream), ctypes.c_long(position))

    def rewind(self):
        _libc.rewinddir(ctypes.c_void_p(self.stream))

    def close(self):
        _libc.closedir(ctypes.c_void_p(self.stream))
