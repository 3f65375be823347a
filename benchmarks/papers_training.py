"""Training with PyTorch: three epochs from a throttled source, from a copy, and through pmfs, with the same losses to the last digit

docs/tutorial/train over JPEG files, with 1, 2 and 4 workers. Caches are dropped before each epoch, as if there were many more files
than memory holds. A comparison in which any loss of any step differs is an error.
"""

import json
import subprocess
import time

import comparisons
import machine
import sources
import systems
from machine import BenchmarkError, run, step

BANDWIDTH, OPERATIONS = 10_000_000, 400
EPOCHS = 3
WIDTH, BYTES = 256, 40_000  # of a photo; rather too many bytes, for the room
DIRECT = "source"
BEFORE, WHOLE, DEVICE_BYTES, LOSS = "s before", "s", "bytes of the device", "last loss"
TUTORIAL = machine.ROOT / "docs" / "tutorial"
# Network, workers, photos. A step of the larger network takes these two cores many times as long as one of the small.
TRAININGS = {
    "small network, 1 worker": ("small", 1, 20_000),
    "small network, 2 workers": ("small", 2, 20_000),
    "small network, 4 workers": ("small", 4, 20_000),
    "ResNet-18, 2 workers": ("resnet18", 2, 1500),
}


def epoch(number):
    return f"epoch {number + 1}"


def measure(paper):
    run("/usr/bin/python3", "-c", "import numpy, PIL, torch, torchvision")  # scripts/install-requirements tutorial
    missing = paper.missing(["small network, 2 workers"] if paper.quick else TRAININGS)
    for photos in dict.fromkeys(TRAININGS[name][2] for name in missing):
        shown = min(photos, 300) if paper.quick else photos
        work = paper.work / f"photos-{photos}"
        work.mkdir()
        with sources.own_device(work, shown, shown * BYTES) as (directory, device):
            source = directory / "photos"
            step(f"making {shown:,} photos")
            run(TUTORIAL / "make-photos", "--count", shown, "--width", WIDTH, source)
            ways = [systems.Source(source, work), systems.Copied(source, work), systems.Pmfs(source, work, paper.pmfs, paper.pmfs_option)]
            with sources.throttle(device, BANDWIDTH, OPERATIONS):
                for name in (name for name in missing if TRAININGS[name][2] == photos):
                    network, workers, _ = TRAININGS[name]
                    words = ["--network", network, "--workers", workers, "--epochs", EPOCHS]
                    records = work / name.replace(" ", "-")
                    records.mkdir()
                    paper.compare(name, lambda: sides(ways, records, words, device))


def sides(ways, records, words, device):
    """The training in each way; all have the same losses."""
    found, expected = {}, None
    for way in ways:
        step(f"  {way.name}")
        figures, losses = training(way, records / "losses.json", words, device)
        expected = expected or losses
        if losses != expected:
            raise BenchmarkError(f"{way.name}: other losses than {ways[0].name}")
        found[way.name] = [figures]
    return found


def training(way, file, words, device):
    """Seconds of what comes before and of each epoch, bytes of the device until all is copied; and the loss of each step."""
    machine.drop_caches()
    before = sources.bytes_read(device)
    try:
        start = time.monotonic()
        way.mount()
        figures = {BEFORE: time.monotonic() - start}
        record = file.with_name("epochs.json")
        command = [TUTORIAL / "train", "--wait", *words, "--losses", file, "--record", record, "--name", way.name, way.directory]
        with subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            for _ in range(EPOCHS):
                machine.drop_caches()
                process.stdin.write("\n")
                process.stdin.flush()
                step(f"  {way.name}: {process.stdout.readline().strip()}")
        if process.returncode:
            raise BenchmarkError(f"docs/tutorial/train ended with {process.returncode}; the lines above say why")
        way.settle()
        losses = json.loads(file.read_text())
        seconds = [one for _, one in next(one["parts"] for one in json.loads(record.read_text())["runs"] if one["name"] == way.name)]
        figures |= {epoch(number): one for number, one in enumerate(seconds)}
        return {**figures, WHOLE: figures[BEFORE] + sum(seconds), DEVICE_BYTES: sources.bytes_read(device) - before, LOSS: losses[-1]}, losses
    finally:
        with machine.uninterrupted():
            way.unmount()


def tell(found):
    rows = []
    for one in found:
        for side in one.sides:
            whole = one.figure(side, WHOLE)
            parts = [f"{one.value(side, name):.1f}" for name in (BEFORE, *(epoch(number) for number in range(EPOCHS)))]
            compared = f"{whole / one.figure(DIRECT, WHOLE):.0%}"
            rows.append([f"{one.name}, {side}", *parts, f"{whole.value:.1f}", compared, f"{one.value(side, DEVICE_BYTES) / 1e6:,.0f}", repr(one.value(side, LOSS))])
    header = ["training, way", "before, s", *(f"{epoch(number)}, s" for number in range(EPOCHS)), "all, s", "of the source's", "MB from the device", "loss of the last step"]
    return comparisons.table(header, rows)


def panels(found):
    return [comparisons.panel(one, one.name, "s, all", WHOLE) for one in found]
