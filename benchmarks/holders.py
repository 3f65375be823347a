"""One large file that one, two and three other nodes have, each behind a link of bounded speed."""

import statistics

import clusters
import machine
from clusters import settle
from machine import BenchmarkError, run

HOLDERS = 3
# Far below what the machine copies: the links decide.
LINK_BYTES = 50_000_000


def measure(places, source, part, work, tiers, arguments):
    """Bytes a second by number of holders, the owner among them: medians of the rounds."""
    for place in places:
        words = ("tbf", "rate", f"{LINK_BYTES}bps", "burst", "1mb", "latency", "100ms")
        run("tc", "-n", place.name, "qdisc", "replace", "dev", "eth0", "root", *words)
    try:
        found = {count: [] for count in range(1, HOLDERS + 1)}
        for _ in range(arguments.rounds):
            with clusters.cluster(places, source, work, tiers, arguments, options=["--remote-copies", "keep"]) as nodes:
                for count, speed in speeds(nodes, source / part, part):
                    found[count].append(speed)
        return {count: statistics.median(values) for count, values in found.items()}
    finally:
        with machine.uninterrupted():
            for place in places:
                machine.clean_up("tc", "-n", place.name, "qdisc", "del", "dev", "eth0", "root")


def speeds(nodes, directory, part):
    """As many holders as there are, one after the other; the reader is none of them."""
    name = f"{part}/{min(directory.iterdir()).name}"
    size = (directory.parent / name).stat().st_size
    owner = owner_of(nodes, name)
    reader, *guests = [node for node in nodes if node is not owner]
    for count in range(1, HOLDERS + 1):
        if count > 1:
            machine.read_once(guests[count - 2].directory / name)
        settle(nodes)
        reader.evict()
        settle(nodes)
        machine.drop_caches(names=False)
        yield count, size / machine.read_once(reader.directory / name)
        run("cmp", reader.directory / name, directory.parent / name)


def owner_of(nodes, name):
    """The node that asked the source when another one read the file."""
    machine.read_once(nodes[0].directory / name)
    settle(nodes)
    owners = [node for node in nodes if node.source_operations()["bytes"] > 0]
    if len(owners) != 1:
        raise BenchmarkError(f"{len(owners)} nodes asked the source for {name}")
    if owners[0] is not nodes[0]:
        nodes[0].evict()
    settle(nodes)
    return owners[0]
