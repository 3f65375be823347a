"""MLPerf Storage 2.0: how many accelerators a source keeps busy, for 90 % (3D U-Net, ResNet-50) and 70 % (CosmoFlow) of their time

Its three training workloads with emulated accelerators, which sleep as long as theirs compute: from the throttled source, from a
copy by cp, from a squashfs image that lies at the source, and through pmfs, in the first epoch and in a later one.
"""

import contextlib
import statistics
import time
from dataclasses import dataclass

import comparisons
import dataset
import machine
import peers
import sources
import systems
from clusters import read_together
from machine import step

BANDWIDTH, OPERATIONS = 200_000_000, 4000
DIRECT, FIRST, LATER = "source", "pmfs, first epoch", "pmfs, later epoch"
ACCELERATORS, LIMIT, RATE, BEFORE = "accelerators", "limit of accelerators", "MB/s", "s before"
PROBE_READERS = 16
FEWEST_FILES = 10  # of an accelerator in an epoch


@dataclass(frozen=True)
class Workload:
    """Of configs/dlio/workload/*_h100.yaml in mlcommons/storage, scaled down: smaller files, slower accelerators."""

    mean_bytes: int
    readers: int
    bytes_per_second: float  # that an accelerator computes
    pass_mark: float
    varied: bool  # sizes of files vary

    def compute_seconds(self):
        """Of a file."""
        return self.mean_bytes / self.bytes_per_second


WORKLOADS = {
    # 7 samples of 147 MB in 0.323 s. Here: samples of 1/32 of that, an accelerator of 1/128.
    "3D U-Net": Workload(146_600_628 // 32, 4, 7 * 146_600_628 / 0.323 / 128, 0.9, True),
    # 400 samples of 115 KB, 1,251 in a file, in 0.224 s. Here: 20 in a file, an accelerator of 1/8.
    "ResNet-50": Workload(20 * 114_660, 8, 400 * 114_660 / 0.224 / 8, 0.9, False),
    # A sample of 2.8 MB in 3.5 ms. Here: an accelerator of 1/32.
    "CosmoFlow": Workload(2_828_486, 4, 2_828_486 / 0.0035 / 32, 0.7, False),
}


def measure(paper):
    size = (400 if paper.quick else 2000) * 1_000_000
    for name in paper.missing(["CosmoFlow"] if paper.quick else WORKLOADS):
        workload, work = WORKLOADS[name], paper.work / name.replace(" ", "")
        work.mkdir()
        files = size // workload.mean_bytes
        with sources.own_device(work, files, 3 * size) as (directory, device):
            source = directory / "dataset"
            if workload.varied:
                dataset.make(source, files, workload.mean_bytes, 0, seed=42)
            else:
                dataset.make_equal(source, files, workload.mean_bytes, seed=42)
            image = peers.KernelImage(source, directory, "squashfs")
            image.prepare()
            pmfs = systems.Pmfs(source, work, paper.pmfs, paper.pmfs_option)
            ways = [systems.Source(source, work), systems.Copied(source, work), image]
            with sources.throttle(device, BANDWIDTH, OPERATIONS), sources.throttle_images(device, BANDWIDTH, OPERATIONS):
                paper.compare(name, lambda: sides(ways, pmfs, workload))


def sides(ways, pmfs, workload):
    """Of each way the number of accelerators, and the seconds before the first could begin."""
    found = {}
    for way in ways:
        step(f"  {way.name}")
        with mounted(way) as seconds:
            found[way.name] = [{BEFORE: seconds, **most(way, workload, machine.drop_caches)}]
    step(f"  {FIRST}")
    with mounted(pmfs) as seconds:
        found[FIRST] = [{BEFORE: seconds, **most(pmfs, workload, lambda: forget(pmfs))}]
        step(f"  {LATER}")
        pmfs.stage()
        found[LATER] = [{BEFORE: seconds, **most(pmfs, workload, machine.drop_caches)}]
    return found


@contextlib.contextmanager
def mounted(way):
    """Seconds of what comes before the first epoch: a mount, or a copy."""
    machine.drop_caches()
    try:
        start = time.monotonic()
        way.mount()
        yield time.monotonic() - start
    finally:
        with machine.uninterrupted():
            way.unmount()


def forget(pmfs):
    """No copies, and nothing in memory."""
    pmfs.settle()
    pmfs.evict()
    machine.drop_caches()


def most(way, workload, prepare):
    """The most accelerators that stay above the pass mark. Each trial is an epoch that they share, after prepare()."""
    prepare()
    line = machine.load(way.directory, threads=PROBE_READERS)[1]
    rate = line["bytes"] / line["seconds"]
    limit = line["files"] // FEWEST_FILES

    def sustains(number):
        prepare()
        share = utilisation(way, workload, number)
        step(f"  {way.name}: {number} accelerators: {share:.1%}")
        return share >= workload.pass_mark

    guess = round(rate / workload.bytes_per_second / workload.pass_mark)
    return {ACCELERATORS: largest(sustains, guess, limit), LIMIT: limit, RATE: rate / 1e6}


def largest(sustains, guess, limit):
    """The largest number up to the limit for which it holds, within a twentieth; trials begin at the guess."""
    low, high, number = 0, limit + 1, min(max(guess, 1), limit)
    above = False  # whether something failed
    while high - low > max(1, low // 20):
        if sustains(number):
            low = number
        else:
            high, above = number, True
        if low == 0:
            number = high - max(high // 4, 1)
        else:
            number = (low + high) // 2 if above else min(low + max(low // 4, 1), limit)
    return low


def utilisation(way, workload, number):
    """The mean share of an epoch that an accelerator computes, the wait for its first file included."""
    compute_us = round(workload.compute_seconds() * 1e6)
    lines = read_together([way] * number, ".", 42, workload.readers, words=["--compute", compute_us])
    return statistics.fmean(line["files"] * compute_us / 1e6 / line["seconds"] for line in lines)


def tell(found):
    rows = []
    for one in found:
        for side in one.sides:
            number, direct = one.figure(side, ACCELERATORS), one.figure(DIRECT, ACCELERATORS)
            most = "at least " if number.value == one.value(side, LIMIT) else ""
            compared = f"{number / direct:.1f}" if direct.value else "-"
            seconds, speed = one.value(side, BEFORE), one.value(side, RATE)
            rows.append([f"{one.name}, {side}", f"{seconds:.1f}", f"{speed:,.0f}", f"{most}{number.value}", compared])
    return comparisons.table(["workload, way", "before the first epoch, s", f"{PROBE_READERS} readers, MB/s", "accelerators", "times the source's"], rows)


def panels(found):
    return [comparisons.panel(one, f"{one.name},\n{WORKLOADS[one.name].pass_mark:.0%} busy", ACCELERATORS, ACCELERATORS) for one in found]
