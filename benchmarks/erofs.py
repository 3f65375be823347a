"""An EROFS image of names whose data lie in other files, its devices: how it is written, and how the kernel mounts it from files.

The format is that of Linux, fs/erofs/erofs_fs.h: uncompressed, each regular file in chunks, each chunk at a block of one device.
"""

import ctypes
import errno
import os
import stat
import struct
from pathlib import Path

import machine
from machine import BenchmarkError
from systems import Absent, Source

MAGIC, SUPERBLOCK_AT, SUPERBLOCK_SIZE = 0xE0F5E1E2, 1024, 128
CHUNKED_FILES, DEVICE_TABLE = 0x4, 0x8
SLOT_SIZE, SLOT_ALIGNMENT, INODE_SIZE = 128, 32, 64
EXTENDED, PLAIN, CHUNKS = 1, 0 << 1, 4 << 1
CHUNKS_HAVE_DEVICES = 0x20
CHUNK_BITS = 21  # one index for each small file
MOST_DEVICES = 0xFFFF
TYPES = {stat.S_IFREG: 1, stat.S_IFDIR: 2, stat.S_IFLNK: 7}
BLOCK_SIZES = [512, 1024, 2048, 4096]  # a page is the most

SYS_MOVE_MOUNT, SYS_FSOPEN, SYS_FSCONFIG, SYS_FSMOUNT = 429, 430, 431, 432  # on all architectures but alpha
FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC, MOVE_MOUNT_F_EMPTY_PATH, AT_FDCWD = 1, 1, 4, -100
SET_FLAG, SET_STRING, CREATE = 0, 1, 6
READ_ONLY_NO_SUID_NO_DEVICES = 1 | 2 | 4


def align(offset, unit):
    return -(-offset // unit) * unit


class Node:
    """A file, a directory or a symbolic link of the image, with the attributes of the source's."""

    def __init__(self, path, status, extent=None):
        self.path, self.status, self.extent = path, status, extent
        self.type = stat.S_IFMT(status.st_mode)
        self.children = {}  # by name, in bytes
        self.parent = self
        self.number = self.block = 0
        self.data = os.readlink(os.fsencode(path)) if self.type == stat.S_IFLNK else b""

    def chunks(self):
        return align(self.status.st_size, 1 << CHUNK_BITS) >> CHUNK_BITS if self.type == stat.S_IFREG else 0

    def size(self):
        return self.status.st_size if self.type == stat.S_IFREG else len(self.data)

    def links(self):
        if self.type == stat.S_IFDIR:
            return 2 + sum(child.type == stat.S_IFDIR for child in self.children.values())
        return self.status.st_nlink

    def inode(self, block_size):
        """The inode as it is on the disk, with the indexes of its chunks."""
        bits = block_size.bit_length() - 1
        where = (CHUNK_BITS - bits | CHUNKS_HAVE_DEVICES) if self.type == stat.S_IFREG else self.block
        layout = EXTENDED | (CHUNKS if self.type == stat.S_IFREG else PLAIN)
        status = self.status
        seconds, nanoseconds = divmod(status.st_mtime_ns, 10**9)
        attributes = layout, 0, status.st_mode, 0, self.size(), where, self.number & 0xFFFFFFFF, status.st_uid, status.st_gid, seconds, nanoseconds, self.links()
        found = struct.pack("<HHHHQIIIIqII16x", *attributes)
        for index in range(self.chunks()):
            device, offset = self.extent
            found += struct.pack("<HHI", 0, device + 1, (offset + (index << CHUNK_BITS)) >> bits)
        return found

    def list(self, block_size):
        """A directory's content: blocks of entries in the order of their names, in each first the entries and then the names."""
        entries = sorted({b".": self, b"..": self.parent, **self.children}.items())
        blocks, room = [[]], block_size
        for name, node in entries:
            if room < 12 + len(name):
                blocks.append([])
                room = block_size
            blocks[-1].append((name, node))
            room -= 12 + len(name)
        self.data = b"".join(one_block(block).ljust(block_size, b"\0") for block in blocks)


def one_block(entries):
    heads, at = b"", 12 * len(entries)
    for name, node in entries:
        heads += struct.pack("<QHBB", node.number, at, TYPES[node.type], 0)
        at += len(name)
    return heads + b"".join(name for name, _ in entries)


def read_tree(root, extents):
    """The nodes of a tree, its root first; a file with several names is one node."""
    known = {}

    def node(path):
        status = os.lstat(path)
        if stat.S_IFMT(status.st_mode) not in TYPES:
            raise BenchmarkError(f"{path}: neither a file nor a directory nor a symbolic link")
        same = known.get((status.st_dev, status.st_ino))
        return same or known.setdefault((status.st_dev, status.st_ino), Node(path, status, extents.get(path)))

    first = node(str(root))
    left = [first]
    while left:
        directory = left.pop()
        for name in os.listdir(directory.path):
            child = directory.children[os.fsencode(name)] = node(os.path.join(directory.path, name))
            if child.type == stat.S_IFDIR:
                child.parent = directory
                left.append(child)
    return list(known.values())


def write_image(image, root, extents, device_sizes, block_size):
    """Writes an image that shows the tree at root.

    The data of a file lie where extents has it, by its path: the number of the device and the offset there, a multiple of the block
    size. A device is padded to whole blocks.
    """
    if len(device_sizes) > MOST_DEVICES:
        raise BenchmarkError(f"{len(device_sizes)} bundles: an image has {MOST_DEVICES} at most; make them larger")
    nodes = read_tree(root, extents)
    slots_at = align(SUPERBLOCK_AT + SUPERBLOCK_SIZE, SLOT_SIZE)
    at = align(slots_at + SLOT_SIZE * len(device_sizes), SLOT_ALIGNMENT)
    for node in nodes:
        node.number = at // SLOT_ALIGNMENT
        at = align(at + INODE_SIZE + 8 * node.chunks(), SLOT_ALIGNMENT)
    for node in nodes:
        if node.type == stat.S_IFDIR:
            node.list(block_size)
        if node.data:
            at = align(at, block_size)
            node.block = at // block_size
            at += len(node.data)
    blocks = align(at, block_size) // block_size
    with open(image, "wb") as file:
        file.truncate(blocks * block_size)
        file.seek(SUPERBLOCK_AT)
        features = CHUNKED_FILES | (DEVICE_TABLE if device_sizes else 0)
        head = MAGIC, 0, 0, block_size.bit_length() - 1, 0, nodes[0].number, len(nodes), 0, 0, blocks, 0, 0
        file.write(struct.pack("<IIIBBHQQIIII16x16x", *head))
        file.write(struct.pack("<IHHH38x", features, 0, len(device_sizes), slots_at // SLOT_SIZE))
        file.seek(slots_at)
        for size in device_sizes:
            file.write(struct.pack("<64xI60x", size // block_size))
        for node in nodes:
            file.seek(node.number * SLOT_ALIGNMENT)
            file.write(node.inode(block_size))
            if node.data:
                file.seek(node.block * block_size)
                file.write(node.data)


class Bundles:
    """The contents of all files of a tree, in few files: one behind the other, each at a multiple of the block size.

    That is how pmfs keeps small copies, but for the alignment. A file is in one bundle only; a larger one has one for itself.
    """

    def __init__(self, root, directory, block_size, bundle_size):
        self.root, self.directory, self.block_size, self.bundle_size = root, directory, block_size, bundle_size
        self.extents, self.paths, self.content_bytes = {}, [], 0

    def write(self):
        """Writes them, once."""
        if self.paths:
            return
        self.directory.mkdir()
        file, at = None, 0
        for path in sorted(path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()):
            content = path.read_bytes()
            if not file or at and at + len(content) > self.bundle_size:
                if file:
                    file.close()
                self.paths.append(self.directory / f"{len(self.paths) + 1:06x}")
                file, at = open(self.paths[-1], "wb"), 0
            self.extents[str(path)] = len(self.paths) - 1, at
            at += file.write(content.ljust(align(len(content), self.block_size), b"\0"))
            self.content_bytes += len(content)
        if file:
            file.close()

    def sizes(self):
        return [path.stat().st_size for path in self.paths]

    def padding(self):
        """Which share of the contents the alignment adds."""
        return sum(self.sizes()) / self.content_bytes - 1


def system_call(number, *arguments):
    """The result of a system call; an OSError where it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    converted = [ctypes.c_char_p(os.fsencode(word)) if isinstance(word, (str, Path)) else ctypes.c_long(word or 0) for word in arguments]
    result = libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def mount(image, devices, directory, options=()):
    """Mounts an image from its file, with these files as its devices. mount(8) would make a loop device, and take few devices."""
    descriptor = system_call(SYS_FSOPEN, "erofs", FSOPEN_CLOEXEC)
    try:
        # Without any device the kernel would look for their data in the image, and show wrong bytes.
        words = [(SET_FLAG, "ro", None), (SET_STRING, "source", image), *((SET_STRING, "device", path) for path in devices)]
        for kind, key, value in [*words, *((SET_FLAG, option, None) for option in options)]:
            system_call(SYS_FSCONFIG, descriptor, kind, key, value, 0)
        system_call(SYS_FSCONFIG, descriptor, CREATE, None, None, 0)
        mounted = system_call(SYS_FSMOUNT, descriptor, FSMOUNT_CLOEXEC, READ_ONLY_NO_SUID_NO_DEVICES)
    finally:
        os.close(descriptor)
    try:
        system_call(SYS_MOVE_MOUNT, mounted, "", AT_FDCWD, directory, MOVE_MOUNT_F_EMPTY_PATH)
    finally:
        os.close(mounted)


def why_not(directory, file_systems=Path("/proc/filesystems")):
    """Why no image can be mounted from a file in this directory; None if one can. Tries it."""
    if "erofs" not in file_systems.read_text().split():
        return "this kernel has no EROFS (CONFIG_EROFS_FS; or modprobe erofs)"
    image, tree, mountpoint = (directory / f"probe.{name}" for name in ("erofs", "tree", "mnt"))
    tree.mkdir()
    mountpoint.mkdir()
    try:
        write_image(image, tree, {}, [], 4096)
        mount(image, [], mountpoint)
        unmount(mountpoint)
        return None
    except OSError as error:
        if error.errno == errno.ENOTBLK:
            on = machine.run("findmnt", "-n", "-o", "FSTYPE", "-T", directory).strip()
            return f"this kernel does not mount EROFS from a file on {on} (Linux 6.12, CONFIG_EROFS_FS_BACKED_BY_FILE; never on tmpfs)"
        return f"EROFS cannot be mounted from a file: {error.strerror}"
    finally:
        image.unlink(missing_ok=True)
        tree.rmdir()
        mountpoint.rmdir()


def unmount(directory):
    if machine.is_mounted(directory) and machine.clean_up("umount", directory):
        machine.detach(directory)


class Native(Source):
    """An image on the disk whose data are bundles in a tier."""

    kind = "kernel"

    def __init__(self, source, work, bundles, name="native", options=()):
        super().__init__(source, work)
        self.name, self.bundles, self.options = name, bundles, options
        self.about = f"EROFS from a file, blocks of {bundles.block_size}, data in bundles{''.join(f', {option}' for option in options)}"
        self.directory, self.image = work / f"mnt-{name}", work / f"{name}.erofs"

    def prepare(self):
        reason = why_not(self.work) if machine.is_root() else "needs root"
        if reason:
            raise Absent(reason)
        self.bundles.write()
        write_image(self.image, self.source, self.bundles.extents, self.bundles.sizes(), self.bundles.block_size)

    def mount(self):
        self.directory.mkdir(exist_ok=True)
        try:
            mount(self.image, self.bundles.paths, self.directory, self.options)
        except OSError as error:
            raise BenchmarkError(f"{self.name}: mount: {error.strerror}") from error

    def lower(self, part):
        return self.bundles.paths

    def unmount(self):
        unmount(self.directory)
