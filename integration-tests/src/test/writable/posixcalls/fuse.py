"""What Linux decides on every FUSE file system, whatever the file system would do."""

_RANGES = "fuse_file_fallocate knows KEEP_SIZE, PUNCH_HOLE and ZERO_RANGE only"
_OFFSETS = "FUSE has no largest file; ext4 has one of 16 TiB"

# (pattern of "case: label", outcome there or "any", reason); the reasons are in fs/fuse of Linux.
KERNEL_LIMITS = [
    *((f"fallocate/{mode}: *", outcome, _RANGES) for mode in ("collapse", "insert", "unshare") for outcome in ("ENOTSUP", "any")),
    ("rename/*whiteout: *onto*", "EINVAL", "fuse_rename2 knows NOREPLACE and EXCHANGE only"),
    ("rename/*whiteout: *", "any", "a rename with WHITEOUT was refused"),
    ("rename/a name onto itself: * whiteout", "EINVAL", "fuse_rename2 knows NOREPLACE and EXCHANGE only"),
    ("write/offsets and sizes: lseek 4611686018427387904 *", "any", _OFFSETS),
]
