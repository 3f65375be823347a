"""Persistent memory (poster): reads from it cost no copies, and are as fast as from memory

Large and small files by kind of tier, from which they come anew: an SSD, and memory in the place of persistent memory, as files
and as a pool, beside ext4 on the disk and tmpfs itself; how much the page cache grows by it. And in a virtual machine with ext4-dax,
whose clock counts instructions and not time: instructions a reader and the daemon need, beside ext4-dax itself.
"""

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import comparisons
import dataset
import machine
import systems
from machine import BenchmarkError, run

KINDS, GUEST = "kinds of tiers", "ext4-dax"
DISK, MEMORY, DAX = "ext4", "memory", "ext4-dax"
SSD, FILES, POOL = "pmfs, SSD", "pmfs, files in memory", "pmfs, pool in memory"
ON_DAX = "pmfs on ext4-dax"
LARGE, SMALL = "large", "small"  # directories of the dataset
READ, MAPPED, SMALL_FILES, GROWTH = "large files, MB/s", "mapped at random, MB/s", "small files/s", "page cache / files read"
SMALL_BYTES = 16 << 10
POOL_BYTES = 4 << 30
READERS = 2
GUEST_SECONDS = 3000


def make(directory, large_bytes, small_files):
    directory.mkdir()
    dataset.make_equal(directory / LARGE, 4, large_bytes // 4, seed=1)
    dataset.make_tiny(directory / SMALL, small_files, 10, SMALL_BYTES)


def measure(paper):
    for name in paper.missing([KINDS] if paper.quick else [KINDS, GUEST]):
        work = paper.work / name.replace(" ", "-")
        work.mkdir()
        if name == GUEST:
            paper.compare(name, lambda: in_machine(work))
            continue
        source = work / "dataset"
        make(source, 256 << 20 if paper.quick else 1 << 30, 1000 if paper.quick else 10_000)
        with machine.in_memory(work) as memory:
            shutil.copytree(source, memory / "dataset")
            pmfs = partial(of_pmfs, source, work, paper.pmfs, paper.pmfs_option)
            ways = [
                named(systems.Source(source, work), DISK),
                named(systems.Source(memory / "dataset", work), MEMORY),
                pmfs(SSD, "ssd", work / "ssd"),
                pmfs(FILES, "pm", memory / "files", "--read-mode", "passthrough"),
                pmfs(POOL, "pm", memory / "pool", pool="copies.pool"),
            ]
            sides = {way.name: partial(rates, way) for way in ways}
            paper.compare(name, lambda: paper.in_turn(sides))


def named(system, name):
    system.name = name
    return system


def of_pmfs(source, work, launcher, options, name, kind, tier, *words, pool=None):
    system = systems.Pmfs(source, work, launcher, [*words, "--state-dir", str(work / "state"), *options], name)
    system.tier_kind, system.tier = kind, tier
    if pool:
        system.pool, system.capacity = pool, POOL_BYTES
    system.directory = work / "mnt"
    return system


def begin(system):
    """Mounts, and has all files in the tier; the process of the daemon."""
    if system.kind != "pmfs":
        return None
    system.directory.mkdir(exist_ok=True)
    system.mount()
    system.stage()
    return system.status()["pid"]


def end(system):
    with machine.uninterrupted():
        system.unmount()
        shutil.rmtree(system.work / "state", ignore_errors=True)


def rates(system):
    try:
        begin(system)
        found = {}
        for what, part, mode in ((READ, LARGE, "read"), (MAPPED, LARGE, "map-random"), (SMALL_FILES, SMALL, "read")):
            machine.drop_caches()
            before = cached_bytes()
            line = machine.load(system.directory / part, mode, READERS)[1]
            if what == READ:
                found[GROWTH] = (cached_bytes() - before) / line["bytes"]
            found[what] = (line["files"] if what == SMALL_FILES else line["bytes"] / 1e6) / line["seconds"]
        return found
    finally:
        end(system)


def cached_bytes():
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["Cached"].split()[0]) * 1024


# ---- in the virtual machine

PER_MIB, PER_SMALL, PER_MAPPED = "thousand instructions a MiB", "thousand instructions a small file", "thousand instructions a MiB, mapped"


def in_machine(work):
    out = work / "out"
    out.mkdir()
    words = [sys.executable, "-c", f"import papers_pm; papers_pm.guest({str(out)!r})"]
    options = ["--count-instructions", "--out", out, "--timeout", GUEST_SECONDS, "--env", f"PYTHONPATH={machine.ROOT / 'benchmarks'}"]
    status = subprocess.run([machine.ROOT / "scripts" / "dax-vm", *map(str, options), "--", *words], stdout=sys.stderr, check=False).returncode
    if status:
        raise BenchmarkError(f"dax-vm: exit status {status}; the lines above say why")
    return json.loads((out / "sides.json").read_text())


def guest(out):
    """Runs in the machine: instructions of reading, which its clock counts as nanoseconds."""
    work, pmem = Path("/run/papers"), Path("/pmem")
    work.mkdir()
    source = work / "dataset"
    make(source, 64 << 20, 500)
    shutil.copytree(source, pmem / "dataset")
    ways = [
        named(systems.Source(source, work), MEMORY),
        named(systems.Source(pmem / "dataset", work), DAX),
        of_pmfs(source, work, machine.ROOT / "scripts" / "pmfs", ["--ready-timeout", "600s", "--require-dax"], ON_DAX, "pm", pmem / "tier"),
    ]
    found = {way.name: [instructions(way)] for way in ways}
    (Path(out) / "sides.json").write_text(json.dumps(found))


def instructions(system):
    try:
        pid = begin(system)
        found = {}
        for what, part, mode in ((PER_MIB, LARGE, "read"), (PER_MAPPED, LARGE, "map-random"), (PER_SMALL, SMALL, "read")):
            machine.load(system.directory / part)  # the first opens, and what the compiler does about them
            machine.drop_caches(names=False)
            before, cached = machine.cpu_seconds(pid) if pid else 0, cached_bytes()
            line = machine.load(system.directory / part, mode)[1]
            if what == PER_MIB:
                found[GROWTH] = (cached_bytes() - cached) / line["bytes"]
            spent = line["cpu_seconds"] + (machine.cpu_seconds(pid) - before if pid else 0)
            found[what] = spent * 1e6 / (line["files"] if what == PER_SMALL else line["bytes"] / 2**20)
        return found
    finally:
        end(system)


# ---- the page

def tell(found):
    tables = []
    for one in found:
        names = [READ, MAPPED, SMALL_FILES] if one.name == KINDS else [PER_MIB, PER_MAPPED, PER_SMALL]
        base = DISK if one.name == KINDS else DAX
        rows = []
        for side in one.sides:
            cells = [f"{one.value(side, name):,.0f} ({one.figure(side, name) / one.figure(base, name):.2f})" for name in names]
            rows.append([side, *cells, f"{one.value(side, GROWTH):.2f}"])
        tables.append(comparisons.table([f"{one.name}: (compared with {base})", *names, GROWTH], rows))
    return "\n\n".join(tables)


def panels(found):
    shown = []
    for one in found:
        for name in (READ, MAPPED, SMALL_FILES) if one.name == KINDS else (PER_MIB, PER_SMALL):
            shown.append(comparisons.panel(one, f"{one.name},\n{name}", name.rsplit(", ", 1)[-1], name))
    return shown
