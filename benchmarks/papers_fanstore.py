"""FanStore (2018): files of a compute node's own disk at the speed of its hardware, and more of them by compression

Files of one size, from 16 KiB to 16 MiB, by the local file system itself, from images that the kernel mounts, and through pmfs,
all on one disk: everything dropped, and in memory. Then what compression gains for each kind of data, by benchmarks/compression.
"""

import json
from functools import partial

import comparisons
import dataset
import machine
import peers
import systems
from machine import BenchmarkError

READERS = 4
SIZES = {"16 KiB": 1 << 14, "64 KiB": 1 << 16, "256 KiB": 1 << 18, "1 MiB": 1 << 20, "4 MiB": 1 << 22, "16 MiB": 1 << 24}
QUICK_SIZES = ["16 KiB", "1 MiB", "16 MiB"]
LOCAL, OURS = "source", "pmfs"
IMAGES = ["squashfs", "erofs"]
DROPPED, WARM = "everything dropped", "in memory"
WARM_EPOCHS = 5
PACKED, UNIT = "compressed", "MB/s"
GAIN = "files / on disk"


def measure(paper):
    total = (64 if paper.quick else 512) << 20
    for name in paper.missing(QUICK_SIZES if paper.quick else SIZES):
        size, work = SIZES[name], paper.work / name.replace(" ", "")
        work.mkdir()
        source = work / "dataset"
        dataset.make_equal(source, total // size, size, seed=42)
        images = [peers.KernelImage(source, work, image) for image in IMAGES]
        for image in images:
            image.prepare()
        compared = [systems.Source(source, work), *images, systems.Pmfs(source, work, paper.pmfs, paper.pmfs_option)]
        sides = {system.name: partial(rates, system) for system in compared}
        paper.compare(name, lambda: paper.in_turn(sides))
    compress(paper)


def rates(system):
    """MB/s from both states; every byte is compared first."""
    try:
        system.mount()
        if system.kind == "pmfs":
            system.stage()
        machine.compare(system.directory, system.source)
        found = {}
        for state in (DROPPED, WARM):
            # The epoch after everything was dropped leaves those after it in memory.
            if state == DROPPED:
                machine.drop_caches()
            lines = machine.load(system.directory, threads=READERS, epochs=WARM_EPOCHS if state == WARM else 1)[1:]
            found[state] = sum(line["bytes"] for line in lines) / 1e6 / sum(line["seconds"] for line in lines)
        return found
    finally:
        with machine.uninterrupted():
            system.unmount()


def compress(paper):
    """Runs benchmarks/compression once for all kinds."""
    if not paper.missing([PACKED]):
        return
    written = paper.work / "compression.json"
    words = ["--dictionaries", "", "--images", "squashfs-zstd", "--compressions", "none,auto", "--size", "24M" if paper.quick else "64M"]
    kinds = ["--kinds", "JSON" if paper.quick else "sources,JSON,JPEG,float32,sparse,points"]
    rounds = ["--epochs", "1", "--rounds", "1", "--no-build", "--pmfs", paper.pmfs, *(f"--pmfs-option={word}" for word in paper.pmfs_option)]

    def sides():
        # Its status says whether the goals of docs/results/compression.md are reached, which are not ours.
        comparisons.run_script("compression", *kinds, *words, *rounds, "--json", written)
        if not written.exists():
            raise BenchmarkError("benchmarks/compression failed; the lines above say why")
        return gains(json.loads(written.read_text()))

    paper.compare(PACKED, sides)


def gains(record):
    """Of each system: what it gains by kind of data."""
    kinds = record["kinds"]
    names = [name for name in next(iter(kinds.values()))["systems"] if name not in (LOCAL, "pmfs-none")]
    return {name: [{kind: found["bytes"] / found["systems"][name][0]["onDisk"] for kind, found in kinds.items()}] for name in names}


def tell(found):
    sizes = [one for one in found if one.name != PACKED]
    header = ["file size, state", *(f"{name}, {UNIT}" for name in (LOCAL, *IMAGES, OURS)), *(f"{name} / local" for name in (*IMAGES, OURS))]
    rows = []
    for one in sizes:
        for state in (DROPPED, WARM):
            speeds = [f"{one.value(side, state):,.0f}" for side in (LOCAL, *IMAGES, OURS)]
            rows.append([f"{one.name}, {state}", *speeds, *(f"{one.figure(side, state) / one.figure(LOCAL, state):.2f}" for side in (*IMAGES, OURS))])
    tables = [comparisons.table(header, rows)] if rows else []
    for one in found:
        if one.name == PACKED:
            kinds = list(next(iter(one.sides.values()))[0])
            rows = [[side, *(f"{one.value(side, kind):.2f}" for kind in kinds)] for side in one.sides]
            tables.append(comparisons.table([GAIN, *kinds], rows))
    return "\n\n".join(tables)


def panels(found):
    shown = []
    for one in found:
        # States, or kinds of data.
        names = next(iter(one.sides.values()))[0]
        shown += [comparisons.panel(one, f"{one.name},\n{name}", GAIN if one.name == PACKED else UNIT, name) for name in names]
    return shown
