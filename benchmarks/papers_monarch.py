"""Monarch (CCGrid 2022): a node's own storage as a tier before the shared file system, also where the dataset does not fit

Three epochs of training on a throttled source, read directly and through pmfs with tiers of several sizes. The job, the daemon
and all their pages share a limit of memory, as large a part of the dataset as the paper's nodes had.
"""

import json
import time
from functools import partial

import comparisons
import dataset
import machine
import memory
import sources
import systems

BANDWIDTH, OPERATIONS = 100_000_000, 2000
EPOCHS, READERS = 3, 4
MEMORY = 0.34  # 68 GiB for 200 GiB
# Computing an epoch, over the time in which the source delivers it: from a model that waits for files to one that does not.
MODELS = {"LeNet": 0.3, "AlexNet": 0.8, "ResNet-50": 1.3}
TIERS = {0.4: "pmfs, tier 40 %", 0.6: "pmfs, tier 60 %", 1.0: "pmfs, tier 100 %", 1.5: "pmfs, tier 150 %"}
DIRECT = "source"
# Mean size of a file, and files in a batch: images, and TFRecord files of some 150 of them.
FORMS = {"small files": (110_000, 32), "large shards": (16 << 20, 1)}
JOB_BYTES = 24 << 20  # for what the loader allocates
SECONDS, MOUNT, OPENS, READS, DEVICE_READS, DEVICE_BYTES = "s", "mount", "opens", "reads", "reads of the device", "bytes of the device"


def measure(paper):
    size = (120 if paper.quick else 800) * 1_000_000
    models = ["LeNet"] if paper.quick else MODELS
    memory.require_controller()
    for form, (mean, batch) in FORMS.items():
        names = paper.missing(f"{model}, {form}" for model in models)
        if not names:
            continue
        work, files = paper.work / form.replace(" ", "-"), size // mean
        work.mkdir()
        with sources.own_device(work, files, size) as (directory, device):
            source = directory / "dataset"
            if mean > 1 << 20:
                made = dataset.make_equal(source, files, mean, seed=42)
            else:
                dataset.make(source, files, mean, 0, seed=42)
                made = sum(path.stat().st_size for path in source.rglob("*.bin"))
            with sources.throttle(device, BANDWIDTH, OPERATIONS):
                for name in names:
                    compute_us = MODELS[name.split(",")[0]] * made / BANDWIDTH / files * 1e6
                    words = ["--compute", round(compute_us), "--batch", batch]
                    sides = {way.name: partial(job, way, made, words, device) for way in ways(source, work, made, paper)}
                    paper.compare(name, lambda: paper.in_turn(sides, is_throttled=True))


def ways(source, work, size, paper):
    found = [systems.Source(source, work)]
    for share, name in TIERS.items():
        pmfs = systems.Pmfs(source, work, paper.pmfs, paper.pmfs_option, name)
        pmfs.directory, pmfs.tier, pmfs.capacity = work / "mnt", work / "tier", round(share * size)
        found.append(pmfs)
    return found


def job(way, size, words, device):
    """A job that starts from nothing, its mount included; what the source was asked for until everything is copied."""
    machine.drop_caches()
    reads, bytes_read = sources.reads(device), sources.bytes_read(device)
    try:
        start = time.monotonic()
        way.mount()
        mounted = time.monotonic() - start
        with memory.Group(round(MEMORY * size) + JOB_BYTES + (memory.DAEMON_BYTES if way.kind == "pmfs" else 0)) as group:
            if way.kind == "pmfs":
                group.add(way.status()["pid"])
            loader = [machine.BUILD / "epoch", "--threads", READERS, "--epochs", EPOCHS, *words, way.directory]
            start = time.monotonic()
            lines = [json.loads(line) for line in machine.run(*group.words(*loader)).splitlines()]
            seconds = mounted + time.monotonic() - start
            way.settle()
            asked = way.source_operations() or {"opens": sum(line["files"] for line in lines[1:]), "reads": sum(line["reads"] for line in lines)}
            device_reads, device_bytes = sources.reads(device) - reads, sources.bytes_read(device) - bytes_read
        return {
            SECONDS: seconds,
            MOUNT: mounted,
            **{f"epoch {line['epoch']}": line["seconds"] for line in lines[1:]},
            OPENS: asked["opens"],
            READS: asked["reads"],
            DEVICE_READS: device_reads,
            DEVICE_BYTES: device_bytes,
        }
    finally:
        with machine.uninterrupted():
            way.unmount()


def tell(found):
    header = ["model, files, way", "job, s", "mount, s", "epoch 1, 2, 3, s", "time", *(f"{what} of the source" for what in (OPENS, READS)), DEVICE_READS, DEVICE_BYTES]
    rows = []
    for one in found:
        for side in one.sides:
            epochs = ", ".join(f"{one.value(side, f'epoch {number}'):.1f}" for number in range(1, EPOCHS + 1))
            cells = [f"{one.name}: {side}", f"{one.value(side, SECONDS):.1f}", f"{one.value(side, MOUNT):.1f}", epochs]
            rows.append(cells + [f"{one.figure(side, what) / one.figure(DIRECT, what) - 1:+.0%}" for what in (SECONDS, OPENS, READS, DEVICE_READS, DEVICE_BYTES)])
    return comparisons.table(header, rows)


def panels(found):
    return [comparisons.panel(one, one.name.replace(", ", ",\n"), "s for three epochs", SECONDS) for one in found]
