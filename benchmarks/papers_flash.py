"""Flash study (2023): checkpoints to flash stall training for less than 1 % (BERT) to 5 % (GPT-2) of its time

benchmarks/outputs with the local disk, the throttled source, and a writable mount over that source: a loop of steps that writes a
checkpoint every two seconds, how long it waits for that, and what the devices write for each byte of a checkpoint.
"""

import json

import comparisons
from machine import BenchmarkError

# Of a checkpoint: what a source of 100 MB/s takes in a third of the time between two of them, and in nearly all of it.
SIZES = {"64 MiB": "64M", "180 MiB": "180M"}
WAYS = ["disk", "source", "pmfs"]
STALL, TO_DISK, TO_SOURCE = "stall", "written to the disk", "written to the source"


def measure(paper):
    sizes = ["64 MiB"] if paper.quick else SIZES
    amount = ["--size", "64M", "--files", "100", "--rounds", str(paper.rounds)]
    for name in paper.missing(sizes):
        written = paper.work / "outputs.json"
        words = ["--ways", ",".join(WAYS), "--step-size", SIZES[name], "--no-build", "--pmfs", paper.pmfs]

        def rounds():
            if comparisons.run_script("outputs", *amount, *words, "--json", written):
                raise BenchmarkError("benchmarks/outputs failed; the lines above say why")
            return json.loads(written.read_text())["rounds"]

        paper.compare(name, rounds)


def tell(found):
    header = ["checkpoint every 2 s, way", "stall, % of the steps", "written to the disk, bytes for one", "written to the source, bytes for one"]
    rows = [[f"{one.name}, {side}", *(f"{one.value(side, what):.2f}" for what in (STALL, TO_DISK, TO_SOURCE))] for one in found for side in one.sides]
    return comparisons.table(header, rows)


def panels(found):
    units = {STALL: "% of the steps", TO_DISK: "bytes for one", TO_SOURCE: "bytes for one"}
    return [comparisons.panel(one, f"{one.name}: {what}", unit, what) for one in found for what, unit in units.items()]
