"""What bounds warm-peers on many nodes, by the CPU seconds of a read, and jobs that differ in what could lift it.

Where a node's cores are busy all the time, its files a second are the cores by the CPU seconds that a read takes on all nodes
together. Those follow from the share of local reads and from what a remote read costs of a local one.
"""

import dataclasses
import math

import figures
import nodes

MICRO = 1e6
# By name: what of a job is another, given the job and the one with the base number of nodes.
REMEDIES = {
    "as it is: copies of others' files in the room that is left": lambda job, base: {},
    "no copies of others' files (--remote-copies never)": lambda job, base: {"keep_copies": False},
    "tiers four times as large": lambda job, base: {"capacity_share": 4 * job.capacity_share},
    "tiers of a node as large as those with the fewer nodes": lambda job, base: {"capacity_share": base.capacity_share},
    "order known 1,000 files ahead, fetched in batches": lambda job, base: {"ahead": 1000},
    "order of the whole epoch known, fetched in batches": lambda job, base: {"ahead": job.files},
    "a node reads the same files in each epoch": lambda job, base: {"fixed_shares": True},
    "the same, and owns what it reads": lambda job, base: {"fixed_shares": True, "readers_own": True},
}


def local_cost(given, size):
    """CPU seconds of a local read: of the file, of its bytes."""
    return [given["local.cpuSecondsPerFile"], given["local.cpuSecondsPerByte"] * size]


def remote_cost(given, size):
    """CPU seconds of a remote read: of the file and of its bytes, first on the client, then on the server."""
    return [part for side in ("client", "server") for part in (given[f"remote.{side}CpuSecondsPerFile"], given[f"remote.{side}CpuSecondsPerByte"] * size)]


def batched_cost(job, given):
    """The same of a file that was fetched in a batch; the client also reads the copy."""
    (client, client_byte), (server, server_byte) = nodes.costs_in_batches(job, given)
    file, read = local_cost(given, job.mean_bytes)
    return [client + file, client_byte * job.mean_bytes + read, server, server_byte * job.mean_bytes]


def mean_cost(job, given):
    """CPU seconds of a read on all nodes together, on average."""
    local = job.local_reads()
    remote = batched_cost(job, given) if job.ahead else remote_cost(given, job.mean_bytes)
    return local * sum(local_cost(given, job.mean_bytes)) + (1 - local) * sum(remote)


def dearest(few, many, share):
    """What a remote read may cost of a local one, so that nodes with this share of local reads, few, reach that share of those with many."""
    # share = (many + (1 - many) x) / (few + (1 - few) x)
    lost = share * (1 - few) - (1 - many)
    return (many - share * few) / lost if lost > 0 else math.inf


def local_reads_for(many, dearer, share):
    """The share of local reads with which nodes reach that share of those with many, where a remote read costs so much of a local one."""
    cost = (many + (1 - many) * dearer) / share
    return min(max((dearer - cost) / (dearer - 1), 0.0), 1.0)


def costs_table(job, given):
    """Where the CPU seconds of a read go; a batch is as large as is measured."""
    in_batches = dataclasses.replace(job, local_share=0.0, ahead=job.files, files=job.files * job.nodes)
    local = local_cost(given, job.mean_bytes)
    rows = {
        "local": [*local, 0.0, 0.0],
        "remote": remote_cost(given, job.mean_bytes),
        f"fetched in batches of {in_batches.batched(given['remote.batchFiles']):g}, then local": batched_cost(in_batches, given),
    }
    header = ["CPU, µs", "reader's node, file", "its bytes", "owner's node, file", "its bytes", "all", "of a local one"]
    lines = [[name, *(f"{part * MICRO:.0f}" for part in parts), f"{sum(parts) * MICRO:.0f}", f"{sum(parts) / sum(local):.2f}"] for name, parts in rows.items()]
    return figures.table(header, lines)


def explain(base, job, given, goal):
    """In words what the shares of local reads make of a goal, base and job being the same job on fewer and on more nodes."""
    many, few = base.local_reads(), job.local_reads()
    cost, local = remote_cost(given, job.mean_bytes), sum(local_cost(given, job.mean_bytes))
    dearer = sum(cost) / local
    of_base = mean_cost(base, given) / mean_cost(job, given)
    said = (
        f"With {base.nodes} nodes {many:.1%} of the reads are local, with {job.nodes} nodes {few:.1%}. A remote read costs {dearer:.2f} local ones. By CPU seconds alone"
        f" that gives {of_base:.1%} of {base.nodes} nodes."
    )
    if of_base > goal:
        return said
    return said + (
        f"\n{goal:.0%} by CPU seconds alone would need a remote read that costs {dearest(few, many, goal):.2f} local ones (its bytes alone cost {(cost[1] + cost[3]) / local:.2f}),"
        f" or {local_reads_for(many, dearer, goal):.1%} local reads with {job.nodes} nodes."
    )


def outcomes(base, job, given, seed, step):
    """A row for each remedy: both jobs with it, and their outcomes."""
    rows = []
    for name, change in REMEDIES.items():
        pair = [dataclasses.replace(one, **change(one, base)) for one in (base, job)]
        step(name)
        rows.append((name, pair, [nodes.Cluster(one, given, seed).run() for one in pair]))
    return rows


def outcomes_table(rows, given):
    """Ratios are of files a second of a node: to fewer nodes with the same remedy, and to fewer nodes as they are."""
    _, (base, job), (as_it_is, _) = rows[0]
    few, many = base.nodes, job.nodes
    header = ["remedy", f"local reads: {few}, {many}", f"CPU of a read, µs: {few}, {many}", f"images/s of a node: {few}", str(many), f"{many} of {few}", f"{many} of {few} as it is"]
    lines = []
    for name, pair, (fewer, more) in rows:
        locals_ = ", ".join(f"{one.local_reads():.1%}" for one in pair)
        costs = ", ".join(f"{mean_cost(one, given) * MICRO:.0f}" for one in pair)
        rates = [outcome.files_per_second for outcome in (fewer, more)]
        ratios = [rates[1] / rates[0], rates[1] / as_it_is.files_per_second]
        lines.append([name, locals_, costs, *(f"{rate:,.0f}" for rate in rates), *(f"{ratio:.1%}" for ratio in ratios)])
    return figures.table(header, lines)
