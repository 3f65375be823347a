"""A Python environment: a program that imports PyTorch starts on 1 and 4 nodes, from the source that they share and through pmfs

The environment has the layout of one by conda or venv: Debian's Python packages, more packages that the program does not need, and the
shared libraries that PyTorch loads. The program imports it and ends; it checks that the module came from the environment. All nodes
start it at the same time. Caches are dropped before the first start and before the second, not before the third.
"""

import re
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

import clients
import clusters
import comparisons
import machine
from machine import BenchmarkError, run, step
from sources import bytes_read

NODES = [1, 4]
BANDWIDTH, OPERATIONS = 100_000_000, 2000
MODULE = "torch"  # scripts/install-requirements tutorial
FILES, BYTES = 100_000, 3 << 30  # rather too many, for the room
MORE_PACKAGES = 6  # times those of Debian, without what is not Python
PYTHON = Path("/usr/bin/python3")
PACKAGES = Path("/usr/lib/python3/dist-packages")
# The loader's own, which every program on the machine has in memory.
NOT_COPIED = re.compile(r"/(ld-linux|lib(c|m|dl|pthread|rt)\.so)")
DIRECT, OURS = "source", "pmfs"
STARTS = ["first, nothing in memory", "second, nothing in memory", "third, in memory"]
DELIVERED = "bytes of the device"


def libraries():
    """The shared libraries that are loaded with the module and lie outside of the packages, by the names they are loaded by."""
    maps = run(PYTHON, "-c", f"import {MODULE}; print(open('/proc/self/maps').read())")
    loaded = {Path(line.split()[5]) for line in maps.splitlines() if len(line.split()) > 5 and ".so" in line.split()[5]}
    outside = [path for path in loaded if PACKAGES not in path.parents and "python3" not in str(path) and not NOT_COPIED.search(str(path))]
    names = {}
    for path in outside:
        sonames = re.findall(r"SONAME\s+(\S+)", run("objdump", "-p", path))
        names[sonames[0] if sonames else path.name] = path
    return names


def fill(more, directory):
    (directory / "lib").mkdir()
    packages = directory / "packages"
    # Ends with 1 because some of Debian's links lead nowhere. What the program needs is checked by starting it.
    subprocess.run(["cp", "-rL", PACKAGES, packages], stderr=subprocess.DEVNULL, check=False)
    for number in range(more):
        shutil.copytree(packages, directory / f"more{number}", ignore=other_than_python)
    for name, path in libraries().items():
        shutil.copyfile(path, directory / "lib" / name)
    files = [path for path in directory.rglob("*") if path.is_file()]
    step(f"the environment has {len(files):,} files, {sum(path.stat().st_size for path in files) / 1e6:,.0f} MB")


def other_than_python(directory, names):
    return [name for name in names if not name.endswith(".py") and not Path(directory, name).is_dir()]


def measure(paper):
    run(PYTHON, "-c", f"import {MODULE}")
    counts = NODES[:1] if paper.quick else NODES
    names = paper.missing(f"{count} node{'s' if count > 1 else ''}" for count in counts)
    if not names:
        return
    tiers = paper.work / "tiers"
    tiers.mkdir()
    make = partial(fill, 1 if paper.quick else MORE_PACKAGES)
    with clusters.namespaces(max(counts)) as places:
        with clients.shared_source(places, paper.work, FILES, BYTES, make, BANDWIDTH, OPERATIONS) as (source, device):
            for name in names:
                count = int(name.split()[0])

                def pmfs():
                    before = bytes_read(device)
                    with clusters.mounted(places[:count], source, paper.work, tiers, paper) as nodes:
                        return starts([node.directory for node in nodes], places, device, before, lambda: clusters.settle(nodes))

                sides = {DIRECT: lambda: starts([source] * count, places, device, bytes_read(device)), OURS: pmfs}
                paper.compare(name, lambda: paper.in_turn(sides, is_throttled=True))


def starts(directories, places, device, before, settle=lambda: None):
    """Three starts on nodes that have nothing yet: seconds of each, and bytes of the device in all."""
    found = {}
    for name in STARTS:
        if name is not STARTS[-1]:
            machine.drop_caches()
        found[name] = start(directories, places)
        settle()
    return {**found, DELIVERED: bytes_read(device) - before}


def start(directories, places):
    """Seconds until the last of the programs has ended, which begin together, one in each place."""
    begin = time.monotonic()
    programs = []
    for directory, place in zip(directories, places):
        program = f"import {MODULE}, sys; sys.exit(not {MODULE}.__file__.startswith({str(directory)!r}))"
        paths = {"PYTHONPATH": str(directory / "packages"), "LD_LIBRARY_PATH": str(directory / "lib")}
        environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", **paths}
        words = [f"{name}={value}" for name, value in environment.items()]
        programs.append(subprocess.Popen(place.words("env", "-i", *words, PYTHON, "-s", "-c", program)))
    if any([program.wait() for program in programs]):
        raise BenchmarkError("a program could not import from its environment; the lines above say why")
    return time.monotonic() - begin


def tell(found):
    rows = []
    for one in found:
        for name in STARTS:
            share = one.figure(OURS, name) / one.figure(DIRECT, name)
            rows.append([f"{one.name}, {name}", f"{one.value(DIRECT, name):.2f}", f"{one.value(OURS, name):.2f}", f"{share:.0%}"])
        megabytes = [f"{one.value(side, DELIVERED) / 1e6:,.0f}" for side in (DIRECT, OURS)]
        rows.append([f"{one.name}, MB from the device, all three", *megabytes, f"{one.figure(OURS, DELIVERED) / one.figure(DIRECT, DELIVERED):.0%}"])
    return comparisons.table(["nodes, start", "source, s", "pmfs, s", "compared"], rows)


def panels(found):
    return [comparisons.panel(one, f"{one.name},\n{name}", "s", name) for one in found for name in STARTS]
