"""What Linux refuses on every FUSE file system, whatever the file system would do."""

# (pattern of "case: label", outcome there, reason); the reasons are in fs/fuse of Linux.
KERNEL_LIMITS = [
    ("fallocate/*collapse*", "EOPNOTSUPP", "fuse_file_fallocate knows KEEP_SIZE, PUNCH_HOLE and ZERO_RANGE only"),
    ("fallocate/*insert*", "EOPNOTSUPP", "fuse_file_fallocate knows KEEP_SIZE, PUNCH_HOLE and ZERO_RANGE only"),
    ("fallocate/*unshare*", "EOPNOTSUPP", "fuse_file_fallocate knows KEEP_SIZE, PUNCH_HOLE and ZERO_RANGE only"),
    ("rename/*whiteout*", "EINVAL", "fuse_rename2 knows NOREPLACE and EXCHANGE only"),
]
