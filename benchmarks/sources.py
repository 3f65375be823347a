"""Slow sources, emulated on one machine: a throttled device, and a directory whose operations take longer."""

import contextlib
import json
import os
from pathlib import Path

import machine
from machine import BUILD, BenchmarkError, run
from peers import FuseDaemon
from systems import await_condition

BLKIO = Path("/sys/fs/cgroup/blkio")
SECTOR_BYTES = 512
# Names, inodes and journal of ext4 beside the files' own blocks.
FILE_SYSTEM_BYTES, BYTES_FOR_A_FILE = 256 << 20, 8192


def own_device(work, files, size):
    """A new ext4 on a loop device of its own, with room for so many files of so many bytes: its directory and the device's name."""
    return made_on(new_image(work / "source.img", files, size), work / "source")


def new_image(path, files, size):
    """An image with room for that."""
    with open(path, "wb") as file:
        file.truncate(int((size + files * BYTES_FOR_A_FILE) * 1.2) + FILE_SYSTEM_BYTES)
    return path


@contextlib.contextmanager
def made_on(image, directory):
    """A new ext4 in the image, mounted at the directory: the directory and the loop device's name."""
    # Whole, so that the kernel does not go on making it later, which the device counts as writes.
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", image)
    directory.mkdir(exist_ok=True)
    # Direct I/O keeps the image's blocks out of the page cache, so that only the device answers.
    device = run("losetup", "--find", "--show", "--direct-io=on", image).strip()
    try:
        run("mount", "-o", "noatime", device, directory)
        try:
            yield directory, device
        finally:
            with machine.uninterrupted():
                machine.detach(directory)
    finally:
        with machine.uninterrupted():
            detach_loop(device)


def detach_loop(device):
    """Gives the loop device back; the image is not written any more."""
    machine.clean_up("losetup", "--detach", device)
    # A daemon that is still ending keeps it.
    await_condition(60, f"{device}: detached", lambda: not Path(f"/sys/block/{Path(device).name}/loop").exists())


@contextlib.contextmanager
def throttle(device, bandwidth, operations):
    """A control group in which the device gives so many bytes and operations a second; this process, and so all it starts, is in it."""
    if not (BLKIO / "tasks").exists():
        raise BenchmarkError(f"no cgroup v1 blkio controller at {BLKIO}; boot with systemd.unified_cgroup_hierarchy=0")
    group = BLKIO / f"pmfs-benchmark-{os.getpid()}"
    number = os.stat(device).st_rdev
    device_number = f"{os.major(number)}:{os.minor(number)}"
    # Where this process was before, to go back there.
    before = next(line.split(":")[2].strip() for line in open("/proc/self/cgroup") if line.split(":")[1] == "blkio")
    group.mkdir()
    try:
        (group / "blkio.throttle.read_bps_device").write_text(f"{device_number} {bandwidth}\n")
        (group / "blkio.throttle.read_iops_device").write_text(f"{device_number} {operations}\n")
        (group / "tasks").write_text(f"{os.getpid()}\n")
        yield
    finally:
        with machine.uninterrupted():
            (BLKIO / before.lstrip("/") / "tasks").write_text(f"{os.getpid()}\n")
            await_condition(120, f"leaving {group}", lambda: not (group / "tasks").read_text())
            group.rmdir()


@contextlib.contextmanager
def in_root_group(device, kind, limit):
    file = BLKIO / f"blkio.throttle.{kind}_device"
    if not file.exists():
        raise BenchmarkError(f"no cgroup v1 blkio controller at {BLKIO}; boot with systemd.unified_cgroup_hierarchy=0")
    number = os.stat(device).st_rdev
    device_number = f"{os.major(number)}:{os.minor(number)}"
    file.write_text(f"{device_number} {limit}\n")
    try:
        yield
    finally:
        with machine.uninterrupted():
            file.write_text(f"{device_number} 0\n")


def throttle_writes(device, bandwidth):
    """The device takes so many bytes a second from all writers together.

    In the root group: it is the kernel's own threads that write pages back, and cgroup v1 counts these there.
    """
    return in_root_group(device, "write_bps", bandwidth)


@contextlib.contextmanager
def throttle_images(device, bandwidth, operations):
    """Throttles those who read images on the device through loop devices: the kernel's own threads, in the root group."""
    with in_root_group(device, "read_bps", bandwidth), in_root_group(device, "read_iops", operations):
        yield


def bytes_read(device):
    """Bytes the block device delivered since it was set up (field 3 of its stat: sectors read)."""
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[2]) * SECTOR_BYTES


def bytes_written(device):
    """Bytes the block device took since it was set up (field 7 of its stat: sectors written)."""
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[6]) * SECTOR_BYTES


def reads(device):
    """Requests to read that the block device completed (field 1 of its stat)."""
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[0])


class Latency(FuseDaemon):
    """The directory, read-only, with so many milliseconds more for each operation; benchmarks/latency.c."""

    name = "latency"

    def __init__(self, source, work, milliseconds, kept_seconds):
        super().__init__(source, work)
        self.milliseconds, self.kept_seconds = milliseconds, kept_seconds

    def __enter__(self):
        if not Path("/usr/include/fuse3/fuse.h").exists():
            raise BenchmarkError("libfuse 3's headers are not there (Debian: libfuse3-dev)")
        program = BUILD / "latency"
        words = ["-O2", "-std=c11", "-Wall", "-Wextra", "-I/usr/include/fuse3", machine.ROOT / "benchmarks" / "latency.c"]
        run("cc", *words, "-o", program, "-lfuse3", "-pthread")
        try:
            self.start(program, self.source, self.directory, self.milliseconds, self.kept_seconds)
        except BaseException:
            self.__exit__()
            raise
        return self

    def operations(self):
        """What it was asked so far, by kind and in total."""
        counts = json.loads(os.getxattr(self.directory, "user.operations"))
        return {**counts, "total": sum(counts.values())}

    def __exit__(self, *failure):
        with machine.uninterrupted():
            self.unmount()
