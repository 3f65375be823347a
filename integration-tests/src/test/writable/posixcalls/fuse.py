"""What Linux decides on every FUSE file system, whatever the file system would do."""

_RANGES = "fuse_file_fallocate knows KEEP_SIZE, PUNCH_HOLE and ZERO_RANGE only"
_ZEROS = "a store behind the end of a mapped page stays in the page cache, which only the kernel could clear"
_NODEV = "mounted with nodev"
_OFFSETS = "FUSE has no largest file; ext4 has one of 16 TiB"

# (pattern of "case: label", outcome there or "any", reason); the reasons are in fs/fuse of Linux.
KERNEL_LIMITS = [
    *((f"fallocate/{mode}: *", outcome, _RANGES) for mode in ("collapse", "insert", "unshare") for outcome in ("ENOTSUP", "any")),
    ("rename/*whiteout: *onto*", "EINVAL", "fuse_rename2 knows NOREPLACE and EXCHANGE only"),
    ("rename/*whiteout: *", "any", "a rename with WHITEOUT was refused"),
    ("rename/a name onto itself: * whiteout", "EINVAL", "fuse_rename2 knows NOREPLACE and EXCHANGE only"),
    ("mmap/beyond the end: grown again", False, _ZEROS),
    ("write/offsets and sizes: lseek 4611686018427387904 *", "any", _OFFSETS),
]

# The same on a mount with nodev, as those of FUSE by ordinary users are.
NODEV = [(pattern, "EACCES", _NODEV) for pattern in (
    "exists/regular over block: make", "exists/regular over char: make", "open/flags/block *", "open/flags/char *", "path/*: a block", "path/*: a char",
    "mknod/devices and numbers: write *")]
