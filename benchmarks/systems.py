"""The systems a benchmark compares: the source, pmfs, and what all of them have in common."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import machine
from machine import BenchmarkError, ROOT, memory_kib, run, step

SETTLE_SECONDS = 1800


class Absent(Exception):
    """Why a system cannot be compared on this machine."""


def await_condition(seconds, what, condition):
    """Polls until the condition holds; past the deadline it is a BenchmarkError."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise BenchmarkError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


class Source:
    """The source directory itself: what every ratio refers to. The other systems show the same below their own directory."""

    name = "source"
    # source, kernel (a file system of the kernel), peer (a FUSE file system of others), floor (one that has nothing to do) or pmfs
    kind = "source"
    about = "the files where they lie"

    def __init__(self, source, work):
        self.source, self.work = source, work
        self.directory = source

    def prepare(self):
        """Makes what all mounts need, once; Absent where this machine cannot mount it."""

    def mount(self):
        """Mounts afresh, with nothing kept from before."""

    def settle(self):
        """Waits until nothing is done in the background."""

    def lower(self, part):
        """Directories and files from which the bytes of a part of the dataset come once the mount's own pages are gone."""
        return [self.source / part]

    def source_operations(self):
        """What the source was asked so far, by kind; None where nobody counts."""
        return None

    def daemon(self):
        """The process that serves the mount; None without one."""
        return None

    def memory_kib(self):
        """Resident memory of the daemon, now and at its peak; None without one."""
        pid = self.daemon()
        return memory_kib(pid) if pid else None

    def unmount(self):
        """Unmounts and removes what the mount made."""


class Copied(Source):
    """The directory, copied to the local disk before it is read."""

    name = "cp"

    def __init__(self, source, work):
        super().__init__(source, work)
        self.directory = work / "copied"

    def mount(self):
        run("cp", "-r", self.source, self.directory)

    def unmount(self):
        shutil.rmtree(self.directory, ignore_errors=True)


class Pmfs(Source):
    """pmfs with one SSD tier beside the dataset."""

    kind = "pmfs"
    tier_kind = "ssd"
    capacity = None  # of the tier, in bytes; None for no limit
    pool = None  # the file below the tier that holds all copies; None if each has its own

    def __init__(self, source, work, launcher=ROOT / "scripts" / "pmfs", options=(), name="pmfs", needs_root=False):
        super().__init__(source, work)
        self.name, self.launcher, self.options, self.needs_root = name, launcher, list(options), needs_root
        self.about = " ".join(["pmfs mount", *self.options])
        self.directory, self.tier = work / f"mnt-{name}", work / f"tier-{name}"
        self.environment = {**os.environ, "PMFS_RUNTIME_DIR": str(work / "run")}

    def prepare(self):
        if self.needs_root and not machine.is_root():
            raise Absent("needs root")

    def caller(self):
        """How its commands are run, as subprocess takes it."""
        return {"env": self.environment}

    def mount(self):
        (self.work / "run").mkdir(mode=0o700, exist_ok=True)
        self.directory.mkdir(exist_ok=True)
        self.tier.mkdir(exist_ok=True)
        # Not captured: a daemon may keep the descriptors it was started with.
        capacity = f":{self.capacity}" if self.capacity else ""
        place = self.tier / self.pool if self.pool else self.tier
        command = [self.launcher, "mount", self.source, self.directory, "--tier", f"{self.tier_kind}:{place}{capacity}", *self.options]
        status = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, **self.caller()).returncode
        if status:
            raise BenchmarkError(f"pmfs mount: exit status {status}; the line above says why")

    def status(self):
        """Status 4 says that the mount helps little, or in part; its figures are there."""
        done = subprocess.run([self.launcher, "status", self.directory, "--json"], stdout=subprocess.PIPE, text=True, check=False, **self.caller())
        if done.returncode not in (0, 4):
            raise BenchmarkError(f"pmfs status: exit status {done.returncode}; the line above says why")
        return json.loads(done.stdout)

    def stage(self, *paths):
        """Stages files and directories of the mount, or all of it; a file that could not be staged ends the benchmark."""
        run(self.launcher, "stage", *(paths or [self.directory]), **self.caller())

    def evict(self):
        """Drops all copies from the tiers."""
        run(self.launcher, "evict", self.directory, **self.caller())

    def settle(self):
        await_condition(SETTLE_SECONDS, "staging", lambda: self.status()["staging"]["idle"])

    def lower(self, part):
        copies = [Path(tier["path"]) / kind for tier in self.status()["tiers"] for kind in ("copies", "bundles")]
        if (self.source / part).is_dir():
            return copies
        # A copy is as long as its file, and none of the small ones is as long as the large one.
        size = (self.source / part).stat().st_size
        found = [path for directory in copies for path in directory.rglob("*") if path.is_file() and path.stat().st_size == size]
        if not found:
            raise BenchmarkError(f"{self.name}: no copy of {part} in {self.tier}")
        return found

    def source_operations(self):
        return self.status()["sourceOperations"]

    def daemon(self):
        return self.status()["pid"]

    def unmount(self, keep_copies=False):
        if machine.is_mounted(self.directory) and machine.clean_up(self.launcher, "umount", self.directory, **self.caller()):
            step("pmfs umount failed: detaching the mount")
            machine.detach(self.directory)
        if not keep_copies:
            shutil.rmtree(self.tier, ignore_errors=True)


def of_pmfs(source, work, launcher, options):
    """pmfs in each way it can be mounted."""
    ways = {
        "pmfs": (["--bridge", "kernel", "--read-mode", "page-cache"], True),
        "pmfs-passthrough": (["--bridge", "kernel", "--read-mode", "passthrough"], True),
        "pmfs-jnr": (["--bridge", "jnr"], False),
    }
    return [Pmfs(source, work, launcher, [*words, *options], name, needs_root) for name, (words, needs_root) in ways.items()]
