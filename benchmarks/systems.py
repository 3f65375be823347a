"""The systems a benchmark compares. Each shows the same source directory below its own."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from machine import BenchmarkError, ROOT, memory_kib, run, step

MOUNT_SECONDS = 60
SETTLE_SECONDS = 1800
FUSE_TIMEOUTS = "attr_timeout=86400,entry_timeout=86400,negative_timeout=86400"


def await_condition(seconds, what, condition):
    """Polls until the condition holds; past the deadline it is a BenchmarkError."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise BenchmarkError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


class Source:
    """The source directory itself: what every ratio refers to."""

    name = "source"
    fuse = False

    def __init__(self, source, work):
        self.directory = source

    def mount(self):
        """Mounts afresh, with nothing kept from before."""

    def settle(self):
        """Waits until nothing is done in the background."""

    def source_operations(self):
        """What the source was asked so far, by kind; None where nobody counts."""
        return None

    def memory_kib(self):
        """Resident memory of the daemon, now and at its peak; None without one."""
        return None

    def unmount(self):
        """Unmounts and removes what the mount made."""


class Pmfs(Source):
    """pmfs with one SSD tier beside the dataset."""

    name = "pmfs"
    fuse = True

    def __init__(self, source, work, launcher=ROOT / "scripts" / "pmfs", options=()):
        self.source, self.launcher, self.options = source, launcher, list(options)
        self.directory, self.tier = work / "mnt-pmfs", work / "tier-pmfs"
        self.mounted = False

    def mount(self):
        self.directory.mkdir(exist_ok=True)
        self.tier.mkdir()
        self.mounted = True
        # Not captured: a daemon may keep the descriptors it was started with.
        tier = f"ssd:{self.tier}"
        command = [self.launcher, "mount", self.source, self.directory, "--tier", tier, *self.options]
        status = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        if status:
            raise BenchmarkError(f"pmfs mount: exit status {status}; the line above says why")

    def status(self):
        return json.loads(run(self.launcher, "status", self.directory, "--json"))

    def settle(self):
        await_condition(SETTLE_SECONDS, "staging", lambda: self.status()["staging"]["idle"])

    def source_operations(self):
        return self.status()["sourceOperations"]

    def memory_kib(self):
        return memory_kib(self.status()["pid"])

    def unmount(self):
        if self.mounted and os.path.ismount(self.directory):
            if subprocess.run([self.launcher, "umount", self.directory], stdout=subprocess.DEVNULL, check=False).returncode:
                step("pmfs umount failed: detaching the mount")
                subprocess.run(["umount", "-l", self.directory], check=False)
        self.mounted = False
        shutil.rmtree(self.tier, ignore_errors=True)


class ForegroundDaemon(Source):
    """A FUSE daemon that stays in the foreground, so that it is ours to watch and to end."""

    fuse = True
    process = None

    def start(self, *command):
        self.directory.mkdir(exist_ok=True)
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
        await_condition(MOUNT_SECONDS, f"{self.name}: mount", self.is_up)

    def is_up(self):
        if self.process.poll() is not None:
            raise BenchmarkError(f"{self.name} ended with status {self.process.returncode}")
        return os.path.ismount(self.directory)

    def memory_kib(self):
        return memory_kib(self.process.pid)

    def unmount(self):
        if not self.process:
            return
        if os.path.ismount(self.directory):
            tool = "fusermount3" if shutil.which("fusermount3") else "fusermount"
            subprocess.run([tool, "-u", "-z", self.directory], check=False)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
        self.process = None


class Bindfs(ForegroundDaemon):
    """bindfs: a plain FUSE pass-through in C, with every cache that it and the kernel offer turned on."""

    name = "bindfs"

    def __init__(self, source, work):
        self.source, self.directory = source, work / "mnt-bindfs"

    def mount(self):
        options = f"ro,kernel_cache,{FUSE_TIMEOUTS}"
        self.start("bindfs", "-f", "--multithreaded", "-o", options, self.source, self.directory)


class Squashfuse(ForegroundDaemon):
    """squashfuse on an image without compression; the low-level variant where there is one."""

    def __init__(self, source, work):
        self.program = shutil.which("squashfuse_ll") or shutil.which("squashfuse")
        self.name = Path(self.program).name
        self.image, self.directory = work / "dataset.squashfs", work / "mnt-squashfuse"
        if not self.image.exists() or self.image.stat().st_mtime < source.stat().st_mtime:
            self.image.unlink(missing_ok=True)
            step("packing the dataset into a squashfs image")
            run("mksquashfs", source, self.image, "-noI", "-noD", "-noF", "-noX", "-no-progress", "-quiet")

    def mount(self):
        self.start(self.program, "-f", self.image, self.directory)
