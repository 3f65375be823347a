"""The FUSE floor: benchmarks/stub.c, which answers every request from memory, over /dev/fuse or over io_uring."""

import json
import os
from pathlib import Path

import machine
from machine import BUILD, BenchmarkError, run
from peers import FuseDaemon
from systems import Absent

DEV, IO_URING = CHANNELS = ("dev", "io_uring")
# What the kernel sends over /dev/fuse in any case.
NEVER_OVER_RINGS = {"forget", "batchForget"}
ENABLE_URING = Path("/sys/module/fuse/parameters/enable_uring")
IO_URING_DISABLED = Path("/proc/sys/kernel/io_uring_disabled")


def why_no_rings(enable_uring=ENABLE_URING, io_uring_disabled=IO_URING_DISABLED):
    """Why this kernel has no FUSE over io_uring; None if it has."""
    if not enable_uring.exists():
        return "this kernel has no FUSE over io_uring (Linux 6.14, CONFIG_FUSE_IO_URING)"
    if enable_uring.read_text().strip() != "Y":
        return f"FUSE over io_uring is off: echo Y > {enable_uring}"
    if not io_uring_disabled.exists():
        return "this kernel has no io_uring"
    if io_uring_disabled.read_text().strip() == "2":
        return "io_uring is off: sysctl kernel.io_uring_disabled=0"
    return None


class Stub(FuseDaemon):
    """The directory, in memory. How it is built and mounted is the same over both channels."""

    kind = "floor"

    def __init__(self, source, work, channel=DEV, options=(), name="stub"):
        self.name, self.channel, self.options = name, channel, ["--channel", channel, *map(str, options)]
        super().__init__(source, work)
        self.about = " ".join(["benchmarks/stub.c", *self.options]) + ": the FUSE floor, answers everything from memory"

    def prepare(self):
        if not machine.is_root():
            raise Absent("needs root")
        reason = why_no_rings() if self.channel == IO_URING else None
        if reason:
            raise Absent(reason)
        self.program = BUILD / "stub"
        source = machine.ROOT / "benchmarks" / "stub.c"
        run("cc", "-O2", "-std=c11", "-Wall", "-Wextra", "-pthread", "-o", self.program, source)

    def mount(self):
        self.start(self.program, *self.options, self.source, self.directory)

    def lower(self, part):
        return []  # nothing lies below it

    def asked(self):
        """What it was asked so far, by channel and operation."""
        return json.loads(os.getxattr(self.directory, "user.operations"))


def check_asked(channel, before, after, operation, least):
    """That so many of these operations came, and that they and all others came over this channel; else a BenchmarkError."""
    came = {each: {kind: count - before[each].get(kind, 0) for kind, count in after[each].items()} for each in CHANNELS}
    for other in CHANNELS:
        wrong = {kind: count for kind, count in came[other].items() if count and kind not in NEVER_OVER_RINGS}
        if other != channel and wrong:
            raise BenchmarkError(f"measured over {channel}, but asked over {other}: {wrong}")
    found = came[channel].get(operation, 0)
    if found < least:
        raise BenchmarkError(f"{found} requests of {operation} over {channel} instead of {least}: the kernel answered from its caches")
    return came[channel]
