"""DLFS (2019): random small samples, many of them at once, at little CPU

Samples of one size, each a file, in shuffled order by 1 to 64 readers: from the local file system, from an EROFS image, through
pmfs from a directory, from a tar file, and on one of two nodes, network namespaces of this machine, each of which has about half
of the samples in its tier and keeps none of the other's. CPU seconds are those of the readers and of the daemons.
"""

import shutil
from functools import partial

import clusters
import comparisons
import dataset
import machine
import peers
import systems

SIZES = {"512 B": 512, "4 KiB": 4 << 10, "16 KiB": 16 << 10, "64 KiB": 64 << 10}
READERS = [1, 4, 64]
LOCAL, TAR, PEER = "source", "pmfs, tar", "pmfs, half from a peer"
DROPPED, WARM = "everything dropped", "in memory"
WARM_EPOCHS = 5
RATE, CPU = "samples/s", "µs of CPU a sample"
REMOTE = "share of the bytes that came from the peer"


def measure(paper):
    with clusters.namespaces(2) as places:
        for name in paper.missing(["512 B", "64 KiB"] if paper.quick else SIZES):
            work = paper.work / name.replace(" ", "")
            work.mkdir()
            measure_size(paper, name, work, places)
            shutil.rmtree(work)


def measure_size(paper, name, work, places):
    files = 2_000 if paper.quick else 10_000
    source, tar, tiers = work / "dataset", work / "dataset.tar", work / "tiers"
    tiers.mkdir()
    dataset.make_tiny(source, files, files // dataset.FILES_IN_A_DIRECTORY, SIZES[name])
    machine.run("tar", "-C", source, "-cf", tar, ".")
    image = peers.KernelImage(source, work, "erofs")
    image.prepare()
    packed = systems.Pmfs(tar, work, paper.pmfs, paper.pmfs_option, TAR)
    packed.directory, packed.tier = work / "mnt-tar", work / "tier-tar"
    compared = [systems.Source(source, work), image, systems.Pmfs(source, work, paper.pmfs, paper.pmfs_option), packed]
    readers = READERS[::2] if paper.quick else READERS
    sides = {system.name: partial(rates, system, source, readers) for system in compared}
    sides[PEER] = partial(rates_of_two_nodes, paper, places, source, work, tiers, readers)
    paper.compare(name, lambda: paper.in_turn(sides))


def rates(system, source, readers):
    """Samples a second and CPU of a sample for each number of readers, from both states; every byte is compared first."""
    try:
        system.mount()
        pids = []
        if system.kind == "pmfs":
            system.stage()
            pids = [system.status()["pid"]]
        machine.compare(system.directory, source)
        return epochs(system.directory, readers, pids)
    finally:
        with machine.uninterrupted():
            system.unmount()


def rates_of_two_nodes(paper, places, source, work, tiers, readers):
    """Like rates, on the first of two nodes; and how much of an epoch came from the other, which the source was not asked for."""
    with clusters.cluster(places, source, work, tiers, paper, options=["--remote-copies", "never"]) as nodes:
        for node in nodes:
            node.stage()
        here = nodes[0]
        machine.compare(here.directory, source)
        clusters.settle(nodes)
        machine.drop_caches()
        asked, came = [node.source_operations()["bytes"] for node in nodes], here.peer_bytes()
        size = machine.load(here.directory)[1]["bytes"]
        if asked != [node.source_operations()["bytes"] for node in nodes]:
            raise machine.BenchmarkError("the source was asked for samples that a node has")
        share = (here.peer_bytes() - came) / size
        return {REMOTE: share, **epochs(here.directory, readers, [node.pid for node in nodes])}


def epochs(directory, readers, pids):
    """Samples a second and CPU of a sample, of the readers and of these daemons."""
    found = {}
    for count in readers:
        for state in (DROPPED, WARM):
            if state == DROPPED:
                machine.drop_caches()
            before = sum(machine.cpu_seconds(pid) for pid in pids)
            lines = machine.load(directory, threads=count, epochs=WARM_EPOCHS if state == WARM else 1)[1:]
            files = sum(line["files"] for line in lines)
            cpu = sum(line["cpu_seconds"] for line in lines) + sum(machine.cpu_seconds(pid) for pid in pids) - before
            found[key(count, state, RATE)] = files / sum(line["seconds"] for line in lines)
            found[key(count, state, CPU)] = cpu / files * 1e6
    return found


def key(readers, state, what):
    return f"{state}, {readers} reader{'s' if readers > 1 else ''}, {what}"


def measured(one):
    """States and numbers of readers of a comparison."""
    names = next(iter(one.sides.values()))[0]
    return [(state, count) for state in (DROPPED, WARM) for count in READERS if key(count, state, RATE) in names]


def tell(found):
    rows = []
    for one in found:
        for state, count in measured(one):
            rate, cpu = key(count, state, RATE), key(count, state, CPU)
            local = one.figure(LOCAL, rate)
            cells = [f"{one.value(side, rate):,.0f} ({one.figure(side, rate) / local:.2f}), {one.value(side, cpu):.0f} µs" for side in one.sides]
            rows.append([f"{one.name}, {state}, {count}", *cells])
    table = comparisons.table(["sample, state, readers: samples/s (of the local file system's), CPU a sample", *found[0].sides], rows)
    remote = [f"{one.name} {one.value(PEER, REMOTE):.2f}" for one in found if PEER in one.sides]
    return "\n\n".join([table, *([f"{REMOTE}: {', '.join(remote)}"] if remote else [])])


def panels(found):
    shown = []
    for one in found:
        for state, count in [(DROPPED, max(READERS)), (WARM, 1)]:
            work = f"{one.name},\n{state},\n{count} reader{'s' if count > 1 else ''}"
            shown.append(comparisons.panel(one, work, RATE, key(count, state, RATE)))
    return shown
