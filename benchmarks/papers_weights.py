"""Model weights: 1, 2 and 4 nodes load the same files at the same time from the source that they share, and through pmfs

Four files as large as those in which weights come, mapped and read in parts, each MiB compared. The nodes are network namespaces of
this machine; each sees the throttled source with a page cache of its own, and has its tier in memory.
"""

import json

import clients
import clusters
import comparisons
import largefiles
import machine
from sources import bytes_read

NODES = [1, 2, 4]
FILES, FILE_BYTES = 4, 1 << 30
BANDWIDTH, OPERATIONS = 100_000_000, 2000
DIRECT, OURS = "source", "pmfs"
SECONDS, DELIVERED = "s until all nodes have them", "times the source was read"


def measure(paper):
    counts = NODES[:2] if paper.quick else NODES
    names = paper.missing(f"{count} node{'s' if count > 1 else ''}, {how}" for count in counts for how in largefiles.READERS)
    if not names:
        return
    size, sums = (32 << 20) if paper.quick else FILE_BYTES, paper.work / "sums.json"

    def fill(directory):
        weights = [f"model-{number:05}-of-{FILES:05}.safetensors" for number in range(1, FILES + 1)]
        sums.write_text(json.dumps(largefiles.make(directory, weights, size)))

    with machine.in_memory(paper.work) as tiers, clusters.namespaces(max(counts)) as places:
        with clients.shared_source(places, paper.work, FILES, FILES * size, fill, BANDWIDTH, OPERATIONS) as (source, device):
            for name in names:
                count, how = int(name.split()[0]), name.split()[-1]

                def load(directories, settle=lambda: None):
                    machine.drop_caches()
                    before = bytes_read(device)
                    seconds = max(largefiles.read_on_all(directories, how, sums, places))
                    settle()
                    return {SECONDS: seconds, DELIVERED: (bytes_read(device) - before) / (FILES * size)}

                def pmfs():
                    with clusters.mounted(places[:count], source, paper.work, tiers, paper) as nodes:
                        return load([node.directory for node in nodes], lambda: clusters.settle(nodes))

                sides = {DIRECT: lambda: load([source] * count), OURS: pmfs}
                paper.compare(name, lambda: paper.in_turn(sides, 1, is_throttled=True))


def tell(found):
    rows = []
    for one in found:
        times = [f"{one.value(side, SECONDS):.1f}" for side in (DIRECT, OURS)]
        shares = [f"{one.value(side, DELIVERED):.2f}" for side in (DIRECT, OURS)]
        rows.append([one.name, *times, f"{one.figure(OURS, SECONDS) / one.figure(DIRECT, SECONDS):.0%}", *shares])
    return comparisons.table(["nodes, read by", "source, s", "pmfs, s", "compared", "source read, times", "by pmfs, times"], rows)


def panels(found):
    return [comparisons.panel(one, one.name, "s", SECONDS) for one in found]
