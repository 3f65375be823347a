"""What a read costs: CPU seconds and waiting, for benchmarks/cluster-model, from reads of one node by one reader.

A file's cost is taken as a part that does not depend on its size and one for each byte: large files give the second, small ones
the first. CPU seconds are those of the reader and of the daemons, by the kernel's accounts, in the loader and in /proc.
"""

import itertools
import os
import random
import time

import machine
from clusters import read_together, settle
from machine import BenchmarkError
from parameters import ASSUMED, BY_NAME, MEASURED

MANY_READERS = 16
WARM_UP_READS = 20_000  # until the daemon's code is compiled
BATCH_FILES = 16  # pmfs stage reads 32 files at once, in two requests to a peer
PASSES = 5  # of which the one with the median of CPU counts


def cores():
    return len(os.sched_getaffinity(0))


def percentile(ordered, share):
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def split(small, large):
    """Cost of a file and of a byte, of (seconds, files, bytes) of small and of large files; never negative."""
    byte = large[0] / large[2]
    return max((small[0] - byte * small[2]) / small[1], 0.0), byte


def cold(node, part, readers=1, seed=1, nodes=()):
    """One pass over a part of the dataset with the page cache dropped: what the loader printed, and CPU seconds of the nodes' daemons."""
    nodes = [node, *nodes]
    settle(nodes)
    machine.drop_caches(names=False)
    machine.await_rest([each.pid for each in nodes], seconds=60)  # Java compiles after a warm-up, too
    before = [each.cpu_seconds() for each in nodes]
    line = read_together([node], part, seed, readers)[0]
    return line, [each.cpu_seconds() - used for each, used in zip(nodes, before)]


def median_pass(pass_over, part):
    """What pass_over gave for a part of the dataset, the one of several with the median of its first value."""
    return sorted((pass_over(part) for _ in range(PASSES)), key=lambda result: result[0])[PASSES // 2]


def warm_up(nodes, part, readers=1, fetching=False):
    """Reads everything on each node again and again, page cache dropped, as it is measured afterwards; fetching all of it each time or once."""
    done, number = 0, 0
    while done < WARM_UP_READS:
        settle(nodes)
        if fetching:
            evict(nodes)
        machine.drop_caches(names=False)
        done += read_together(nodes, part, number, readers, shares=False)[0]["files"]
        number += 1


def evict(nodes):
    """No copy is left on any of them."""
    for node in nodes:
        node.evict()
    settle(nodes)


def of_source(source, small, large):
    """Latency of one reader; files a second and bytes a second of many. Operations are counted by pmfs, later."""

    def pass_over(part, threads):
        machine.drop_caches()
        return machine.load(source / part, threads=threads)[1]

    alone, many, bulk = pass_over(small, 1), pass_over(small, MANY_READERS), pass_over(large, MANY_READERS)
    wait = alone["seconds"] / alone["files"] - alone["bytes"] / alone["files"] * bulk["seconds"] / bulk["bytes"]
    return {
        "source.operationsPerSecond": many["files"] / many["seconds"],
        "source.bytesPerSecond": bulk["bytes"] / bulk["seconds"],
        "source.waitSeconds": max(wait, 0.0),
    }


def of_source_reads(node, small, large):
    """Where tiers have no room: CPU for fetching from the source, which a reader waits for."""

    def pass_over(part):
        line, (daemon,) = cold(node, part)
        return line["cpu_seconds"] + daemon, line["files"], line["bytes"]

    warm_up([node], small)
    fixed, byte = split(median_pass(pass_over, small), median_pass(pass_over, large))
    return {"source.cpuSecondsPerFile": fixed, "source.cpuSecondsPerByte": byte}


def of_copies(node, small, large, found):
    """With empty tiers: what making copies takes beside fetching, until all are made."""

    def pass_over(part):
        settle([node])
        evict([node])
        machine.drop_caches(names=False)
        before = node.cpu_seconds()
        line = read_together([node], part, 1, 1)[0]
        settle([node])
        fetching = found["source.cpuSecondsPerFile"] * line["files"] + found["source.cpuSecondsPerByte"] * line["bytes"]
        return max(line["cpu_seconds"] + node.cpu_seconds() - before - fetching, 0.0), line["files"], line["bytes"]

    warm_up([node], small, fetching=True)
    fixed, byte = split(median_pass(pass_over, small), median_pass(pass_over, large))
    return {"source.copyCpuSecondsPerFile": fixed, "source.copyCpuSecondsPerByte": byte}


def of_local_reads(node, small, large):
    """Copies in the tier, which is in memory. Waiting is what one reader needs beside CPU."""

    def pass_over(part):
        line, (daemon,) = cold(node, part)
        return line["cpu_seconds"] + daemon, line["files"], line["bytes"], line["seconds"]

    warm_up([node], small)
    *cpu, seconds = median_pass(pass_over, small)
    fixed, byte = split(cpu, median_pass(pass_over, large))
    wait = (seconds - cpu[0]) / cpu[1]
    return {"local.cpuSecondsPerFile": fixed, "local.cpuSecondsPerByte": byte, "local.waitSeconds": max(wait, 0.0)}


def of_remote_reads(nodes, small, large, found, arguments):
    """What is read of a peer's copies by a node that keeps none; and the reads' latencies.

    A node owns a part of the files itself: their cost is taken off as that of local reads.
    """
    reader, peer = nodes
    for part in (small, large):
        read_together([reader], part, 1, MANY_READERS)
    warm_up([reader], small)

    def pass_over(part):
        came = reader.peer_bytes()
        line, (client, server) = cold(reader, part, nodes=[peer])
        remote_bytes = reader.peer_bytes() - came
        if not remote_bytes:
            raise BenchmarkError(f"{part}: the peer owns none of {line['files']} files: use more")
        # By bytes, which are counted; files are as many, on average.
        remote_files = line["files"] * remote_bytes / line["bytes"]
        local_files, local_bytes = line["files"] - remote_files, line["bytes"] - remote_bytes
        local = found["local.cpuSecondsPerFile"] * local_files + found["local.cpuSecondsPerByte"] * local_bytes
        mine = max(client + line["cpu_seconds"] - local, 0.0)
        return mine + server, (mine, remote_files, remote_bytes), (server, remote_files, remote_bytes)

    _, small_client, small_server = median_pass(pass_over, small)
    _, large_client, large_server = median_pass(pass_over, large)
    result = {}
    for side, costs in (("client", (small_client, large_client)), ("server", (small_server, large_server))):
        fixed, byte = split(*costs)
        result[f"remote.{side}CpuSecondsPerFile"], result[f"remote.{side}CpuSecondsPerByte"] = fixed, byte
    latencies = one_by_one(reader, small, arguments)
    cpu = lambda size: sum(remote_cpu(result, size))
    waits = sorted(max(seconds - cpu(size), 0.0) for seconds, size in latencies)
    result["remote.waitSecondsMedian"], result["remote.waitSecondsP99"] = percentile(waits, 0.5), percentile(waits, 0.99)
    near = sorted(seconds for seconds, size in latencies if 0.8 <= size / 100_000 <= 1.25) or sorted(seconds for seconds, _ in latencies)
    told = {"count": len(near), "fewestBytes": 80_000, "mostBytes": 125_000, "p50": percentile(near, 0.5), "p99": percentile(near, 0.99)}
    return result, told


def daemon_cpu(nodes, part, readers):
    """CPU seconds of the nodes' daemons in one pass of the first node over a part: the median of several, and files and peers' bytes."""
    found = []
    for number in range(PASSES):
        came = nodes[0].peer_bytes()
        line, used = cold(nodes[0], part, readers, number, nodes[1:])
        found.append((sum(used), line["files"], line["bytes"], nodes[0].peer_bytes() - came))
    return sorted(found)[PASSES // 2]


def of_local_rates(node, parts):
    """CPU seconds of the daemon for a file in its own tier, by part and number of readers."""
    result = {}
    for part, readers in itertools.product(parts, (1, MANY_READERS)):
        warm_up([node], part, readers)
        cpu, files, _, _ = daemon_cpu([node], part, readers)
        result[part, readers] = cpu / files
    return result


def of_remote_rates(nodes, parts, local):
    """CPU seconds of both daemons for a file that the other has, by part and number of readers; what the reader itself owns is taken off."""
    result = {}
    for part, readers in itertools.product(parts, (1, MANY_READERS)):
        read_together([nodes[0]], part, 1, MANY_READERS)
        warm_up(nodes[:1], part, readers)
        cpu, files, size, came = daemon_cpu(nodes, part, readers)
        remote_files = files * came / size
        result[part, readers] = (cpu - local[part, readers] * (files - remote_files)) / remote_files
    return result


def remote_cpu(found, size):
    """CPU seconds of a remote read of so many bytes, on the client and on the server."""
    return [found[f"remote.{side}CpuSecondsPerFile"] + size * found[f"remote.{side}CpuSecondsPerByte"] for side in ("client", "server")]


def one_by_one(reader, part, arguments):
    """Seconds and size of each read of a file that a peer served; the others are read, too, and left out."""
    paths = sorted(path for path in (reader.directory / part).rglob("*") if path.is_file())
    random.Random(arguments.seed).shuffle(paths)
    machine.drop_caches(names=False)
    served, before = [], reader.peer_bytes()
    for path in paths[: arguments.reads]:
        start = time.perf_counter()
        descriptor = os.open(path, os.O_RDONLY)
        try:
            size = 0
            while piece := os.read(descriptor, 1 << 20):
                size += len(piece)
        finally:
            os.close(descriptor)
        seconds = time.perf_counter() - start
        after = reader.peer_bytes()
        if after > before:
            served.append((seconds, size))
        before = after
    if len(served) < 20:
        raise BenchmarkError(f"only {len(served)} of {arguments.reads} reads were answered by a peer: use more")
    return served


def of_batches(nodes, part, found):
    """Staging a copy of everything on one node, of what the other has.

    What the node owns itself it fetches from the source; that is taken off.
    """
    reader, peer = nodes
    sizes = [path.stat().st_size for path in (reader.source / part).rglob("*") if path.is_file()]

    def pass_over(part):
        settle(nodes)
        evict([reader])
        came, before = reader.peer_bytes(), [node.cpu_seconds() for node in nodes]
        reader.stage("--replicate", "all", reader.directory / part)
        settle(nodes)
        client, server = (node.cpu_seconds() - used for node, used in zip(nodes, before))
        remote_bytes = reader.peer_bytes() - came
        if not remote_bytes:
            raise BenchmarkError("staging everything fetched nothing from the peer")
        remote_files = len(sizes) * remote_bytes / sum(sizes)
        for what in ("source.cpu", "source.copyCpu"):
            client -= found[f"{what}SecondsPerFile"] * (len(sizes) - remote_files) + found[f"{what}SecondsPerByte"] * (sum(sizes) - remote_bytes)
        return client + server, client, server, remote_files, remote_bytes

    read_together([reader], part, 1, MANY_READERS)
    for _ in range(2 * PASSES):  # until the daemons' code is compiled
        pass_over(part)
    _, client, server, files, size = median_pass(pass_over, part)
    byte = {side: found[f"remote.{side}CpuSecondsPerByte"] for side in ("client", "server")}
    return {
        "remote.batchClientCpuSecondsPerFile": max((client - byte["client"] * size) / files, 0.0),
        "remote.batchServerCpuSecondsPerFile": max((server - byte["server"] * size) / files, 0.0),
    }


# What is not measured, and why it is as it is.
NOT_MEASURED = {
    "node.nicBytesPerSecond": (None, "all nodes are on one machine, whose cores carry the bytes"),
    "local.tierBytesPerSecond": (None, "tiers are in memory"),
    "source.bytesPerSecondPerNode": (None, "all nodes are on the machine that has the source"),
    "remote.batchFiles": (BATCH_FILES, "staging reads 32 files at once, in two requests to a peer; how many files a request had was not measured"),
}


def entries(found, where, when):
    """All that the model needs as it is written to the file: with what is known of this machine without measuring, and what is not."""
    result = {name: {"value": value, "origin": ASSUMED, "why": why} for name, (value, why) in NOT_MEASURED.items()}
    values = {"node.cores": cores(), **found}
    result.update({name: {"value": value, "origin": MEASURED, "where": where, "when": when} for name, value in values.items()})
    missing = [name for name in BY_NAME if name not in result]
    if missing:
        raise BenchmarkError(f"not measured: {', '.join(missing)}")
    return {name: result[name] for name in BY_NAME}
