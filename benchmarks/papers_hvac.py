"""HVAC: a cache on the nodes' own disks, within 9 % of the local file system where every node has what it reads

Warm epochs of 1, 2 and 4 nodes, which are network namespaces of this machine: each node reads its share of the shuffled files from
a copy of its own on the local file system, and through pmfs, whose first epoch asks the source once for all nodes.
"""

import shutil

import clusters
import comparisons
import dataset
import machine
import systems
from clusters import read_together, settle

NODES, READERS = [1, 2, 4], 2
MEAN_BYTES = 110_000
PART, SEED = "small", 7
LOCAL, OURS = "local file system", "pmfs"
DROPPED, WARM, FIRST = "copies on disk", "in memory", "first epoch"
OPENS = "opens at the source for a file"


def measure(paper):
    counts = NODES[:2] if paper.quick else NODES
    names = paper.missing(f"{count} node{'s' if count > 1 else ''}" for count in counts)
    if not names:
        return
    files = 1000 if paper.quick else 6000
    source, tiers = paper.work / "dataset", paper.work / "tiers"
    dataset.make(source, files, MEAN_BYTES, 0, seed=42)
    tiers.mkdir()
    local = [systems.Source(paper.work / f"local{number}", paper.work) for number in range(max(counts))]
    for node in local:
        shutil.copytree(source, node.directory)
    with clusters.namespaces(max(counts)) as places:
        for name in names:
            count = int(name.split()[0])

            def local_round():
                return later_epochs(local[:count])

            def pmfs_round():
                with clusters.cluster(places[:count], source, paper.work, tiers, paper) as nodes:
                    return round_of_pmfs(nodes, source, files)

            sides = {LOCAL: local_round, OURS: pmfs_round}
            paper.compare(name, lambda: paper.in_turn(sides))


def round_of_pmfs(nodes, source, files):
    machine.drop_caches()
    found = {FIRST: rate(read_together(nodes, PART, SEED, READERS))}
    settle(nodes)
    found[OPENS] = sum(node.source_operations()["opens"] for node in nodes) / files
    for node in nodes:
        # Every node gets a copy of everything, from its peers.
        node.stage(*(["--replicate", "all"] if len(nodes) > 1 else []), node.directory)
        machine.compare(node.directory, source)
    return {**found, **later_epochs(nodes)}


def later_epochs(nodes):
    """Files a second of all nodes together; the same seed gives each node the same files again."""
    machine.drop_caches()
    return {state: rate(read_together(nodes, PART, SEED, READERS)) for state in (DROPPED, WARM)}


def rate(lines):
    return sum(line["files"] for line in lines) / max(line["seconds"] for line in lines)


def tell(found):
    rows = []
    for one in found:
        for state in (DROPPED, WARM):
            share = one.figure(OURS, state) / one.figure(LOCAL, state)
            rows.append([f"{one.name}, {state}", f"{one.value(LOCAL, state):,.0f}", f"{one.value(OURS, state):,.0f}", f"{share:.2f}", "-"])
        rows.append([f"{one.name}, {FIRST}", "-", f"{one.value(OURS, FIRST):,.0f}", "-", f"{one.value(OURS, OPENS):.3f}"])
    return comparisons.table(["nodes, epoch", f"{LOCAL}, files/s", "pmfs, files/s", "pmfs / local", OPENS], rows)


def panels(found):
    return [comparisons.panel(one, f"{one.name},\n{state}", "files/s", state) for one in found for state in (DROPPED, WARM)]
