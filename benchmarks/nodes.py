"""The model of a job on the nodes of a pmfs cluster: who owns what, what a read asks of whom, and how long an epoch takes.

What is approximated: docs/cluster-model.md.
"""

import bisect
import dataclasses
import itertools
import math
import random
import statistics
from dataclasses import dataclass

from dataset import SIGMA
from machine import BenchmarkError
from simulation import Simulation, Station

WARM_LOCAL, WARM_PEERS, FIRST_EPOCH, NO_PEERS, REPLICATE = "warm-local", "warm-peers", "first-epoch", "no-peers", "replicate"
CASES = {
    WARM_LOCAL: "the dataset fits every node",
    WARM_PEERS: "it fits only the tiers of all nodes together",
    FIRST_EPOCH: "tiers are empty: its owner fetches each file from the source",
    NO_PEERS: "as warm-peers, but each node asks the source for what it cannot hold",
    REPLICATE: "every node fetches from its peers, in batches, what it does not own",
}
WARM = (WARM_LOCAL, WARM_PEERS)
NO_BARRIER, EPOCH_BARRIER, STEP_BARRIER = "none", "epoch", "step"
SEGMENTS = 1 << 12  # as many as io.pmfs.cluster has
SPARE = 1 / 16  # of a tier that copies of others' files leave free, as io.pmfs.stage.copies.Guests does
PERCENT_99 = 2.3263  # standard deviations of a normal distribution
LOCAL, PEER, PEER_MISS, MISS = range(4)


@dataclass(frozen=True)
class Job:
    """What is read, by whom and how. Each node reads its share of the shuffled files, in batches; its readers share each batch's files."""

    case: str
    nodes: int
    readers: int = 8
    files: int = 1_281_167
    mean_bytes: float = 110_000
    sigma: float = SIGMA
    capacity_share: float | None = None  # of the dataset, in the tiers of one node; None: as much as anybody wants
    keep_copies: bool = True  # of what peers own, where there is room
    local_share: float | None = None  # of warm-peers' reads, whatever the capacity; the rest is remote
    fixed_shares: bool = False  # a node reads the same files in each epoch, in another order; else the dataset is shuffled
    readers_own: bool = False  # a node owns what it reads, whatever the hash says; for fixed shares
    ahead: int = 0  # files of a node's order that are known, and fetched from peers in batches before they are read
    batch: int = 32
    prefetch: int = 2  # batches read ahead of the training
    compute_seconds: float = 0.0  # of training on a batch
    barrier: str = EPOCH_BARRIER
    segments: int = SEGMENTS
    shared_cores: int | None = None  # of all nodes together
    most_reads: int = 300_000  # simulated, unless there are more than least_reads of each node
    least_reads: int = 2000

    def __post_init__(self):
        if self.case not in CASES:
            raise BenchmarkError(f"{self.case}: no such case; they are {', '.join(CASES)}")
        if self.barrier not in (NO_BARRIER, EPOCH_BARRIER, STEP_BARRIER):
            raise BenchmarkError(f"barrier {self.barrier}: use {NO_BARRIER}, {EPOCH_BARRIER} or {STEP_BARRIER}")
        if min(self.nodes, self.readers, self.files, self.batch, self.prefetch, self.segments) < 1:
            raise BenchmarkError("nodes, readers, files, batch, prefetch and segments must be positive")
        if self.nodes == 1 and (self.case == REPLICATE or self.local_share is not None):
            raise BenchmarkError("one node has no peers")
        if self.files < self.nodes:
            raise BenchmarkError(f"{self.files} files are fewer than {self.nodes} nodes")
        if not self.mean_bytes > 0 or self.sigma < 0 or self.compute_seconds < 0 or (self.capacity_share or 0) < 0:
            raise BenchmarkError("the mean size must be positive; sigma, compute time and capacity at least 0")
        if self.ahead < 0 or (self.readers_own and not self.fixed_shares):
            raise BenchmarkError("files known ahead must be at least 0; readers own what they read where shares are fixed only")

    def room(self):
        """Of the dataset, in the tiers of a node."""
        return math.inf if self.capacity_share is None else self.capacity_share

    def held_of_others(self, owned):
        """What a node that owns this share holds of those files of others that it ever reads: copies have the room that is left."""
        ever_read = (1 - owned) / (self.nodes if self.fixed_shares else 1)
        copies = max(self.room() * (1 - SPARE) - owned, 0.0) if self.keep_copies else 0.0
        return min(copies / ever_read, 1.0) if ever_read > 0 else 1.0

    def local_reads(self):
        """The share of warm-peers' reads that need no peer, of a node that owns as much as the others."""
        if self.local_share is not None:
            return self.local_share
        owned = 1 / self.nodes
        held = min(self.room() / owned, 1.0)
        return held if self.readers_own else owned * held + (1 - owned) * self.held_of_others(owned)

    def batched(self, most):
        """Files that one request to a peer asks for, of at most so many: those known ahead are spread over all peers."""
        if not self.ahead or self.nodes == 1:
            return 1.0
        known = min(self.ahead, self.files / self.nodes)
        return min(max(known * (1 - self.local_reads()) / (self.nodes - 1), 1.0), most)


@dataclass(frozen=True)
class Outcome:
    """What the model says of one epoch."""

    seconds: float  # until the slowest node has read and trained on its share
    mean_seconds: float  # of all nodes
    files_per_second: float  # of one node
    latency: tuple  # p50 and p99 of a read of a file without a local copy; Nones without any
    utilisation: dict  # of each kind of resource: the mean over the nodes and that of the busiest
    moved: tuple  # bytes/s that the busiest node got from peers and the source, and that the busiest node sent
    reads: int  # simulated


def segment_counts(nodes, segments, generator):
    """How many segments each node owns by Infinispan 16's SyncConsistentHashFactory.

    It hands them out in rounds, in each of which no node gets more than a limit that grows by a step; which node
    fills up to the limit first is left to the hashes, here to chance. Seen alike for 2 to 1,024 nodes.
    """
    ideal = segments / nodes
    step = max(ideal * 0.05, 1)
    counts = [0] * nodes
    left = segments
    order = list(range(nodes))
    for number in itertools.count(2):
        limit = max(int(ideal + (number - 2.5) * step), 0)
        generator.shuffle(order)
        for node in order:
            more = min(max(limit - counts[node], 0), left)
            counts[node] += more
            left -= more
        if not left:
            return counts


def owned_shares(job, generator):
    """The share of the files that each node owns: its segments', which the files' hashes fill by chance."""
    segments = [count / job.segments for count in segment_counts(job.nodes, job.segments, generator)]
    # Of so many files a share is binomial, near enough to normal.
    shares = [max(share + generator.gauss(0, math.sqrt(share * (1 - share) / job.files)), 0) for share in segments]
    total = sum(shares)
    return [share / total for share in shares]


def costs_in_batches(job, parameters):
    """CPU seconds of a file and of a byte on the client and on the server, where files are staged before they are read.

    What was measured is a batch of so many files with their copies, and one file without. What a request costs by itself
    is the difference; the files of a batch share it.
    """
    get = parameters.__getitem__
    most = get("remote.batchFiles")
    copy = get("source.copyCpuSecondsPerFile") + get("source.copyCpuSecondsPerByte") * job.mean_bytes
    alone = (1 / job.batched(most) - 1 / most) / (1 - 1 / most) if most > 1 else 1.0
    costs = []
    for side, added in (("client", copy), ("server", 0.0)):
        single, batch = get(f"remote.{side}CpuSecondsPerFile") + added, get(f"remote.batch{side.capitalize()}CpuSecondsPerFile")
        costs.append((batch + max(single - batch, 0.0) * alone, get(f"remote.{side}CpuSecondsPerByte")))
    return costs


class Node:
    """One node: its resources, what its tiers hold, and how far its job is."""

    def __init__(self, owned, job, cores):
        self.cpu, self.inward, self.outward, self.tier, self.fetch = cores, Station(), Station(), Station(), Station()
        # What a node owns comes first; copies of what others own have the rest.
        self.holds_owned = min(job.room() / owned, 1.0) if owned else 1.0
        self.holds_others = job.held_of_others(owned)
        self.holds_any = min(job.room(), 1.0)
        self.received = self.sent = 0.0
        self.next = self.trained = self.idle = 0
        self.training = False
        self.left = []
        self.finished = 0.0


class Cluster:
    """One epoch, or the first part of a long one, of a job on a cluster."""

    def __init__(self, job, parameters, seed=1):
        if job.case == WARM_LOCAL:
            job = dataclasses.replace(job, capacity_share=None, keep_copies=True)
        elif job.case == REPLICATE:
            job = dataclasses.replace(job, capacity_share=None, keep_copies=False, batch=1, compute_seconds=0)
        elif job.case == FIRST_EPOCH:
            job = dataclasses.replace(job, capacity_share=0.0)
        self.job, self.parameters, self.random = job, parameters, random.Random(seed)
        self.simulation = Simulation()
        shares = owned_shares(job, self.random)
        shared = Station(job.shared_cores) if job.shared_cores else None
        self.nodes = [Node(share, job, shared or Station(int(parameters["node.cores"]))) for share in shares]
        self.cumulative = list(itertools.accumulate(shares))
        self.operations, self.bandwidth = Station(), Station()
        self.latencies = []
        self.steps_done, self.trained_in_step = 0, {}
        self.prepare_costs()
        self.plan_reads()

    def prepare_costs(self):
        """Parameters as plain numbers, since they are needed for each read."""
        get = self.parameters.__getitem__
        seconds_per = lambda name: 1 / get(name) if get(name) else 0.0
        batched = self.job.case == REPLICATE
        self.unit = int(get("remote.batchFiles")) if batched else 1
        self.local = get("local.cpuSecondsPerFile"), get("local.cpuSecondsPerByte")
        self.local_wait, self.tier_byte = get("local.waitSeconds"), seconds_per("local.tierBytesPerSecond")
        client, server = ("batchClient", "batchServer") if batched else ("client", "server")
        self.client = get(f"remote.{client}CpuSecondsPerFile") * self.unit, get("remote.clientCpuSecondsPerByte")
        self.server = get(f"remote.{server}CpuSecondsPerFile") * self.unit, get("remote.serverCpuSecondsPerByte")
        self.fetches_ahead = self.job.ahead and self.job.case == WARM_PEERS
        if self.fetches_ahead:
            self.client, self.server = costs_in_batches(self.job, self.parameters)
        median, p99 = get("remote.waitSecondsMedian"), get("remote.waitSecondsP99")
        self.wait = (math.log(median), math.log(p99 / median) / PERCENT_99) if median else None
        self.longest_wait = p99  # what is beyond was not measured
        self.nic_byte = seconds_per("node.nicBytesPerSecond")
        self.source_operations = get("source.operationsPerFile") / get("source.operationsPerSecond")
        self.source_byte, self.fetch_byte = seconds_per("source.bytesPerSecond"), seconds_per("source.bytesPerSecondPerNode")
        self.source_wait = get("source.waitSeconds")
        # Measured with the delivery to a reader on the same node. A node does not deliver what it fetches for a peer: that is
        # taken off, as what a local read costs.
        self.source_read = get("source.cpuSecondsPerFile"), get("source.cpuSecondsPerByte")
        self.source_fetch = tuple(max(whole - local, 0.0) for whole, local in zip(self.source_read, self.local))
        # Where copies are missing because there is no room, none are made.
        makes = self.job.case == FIRST_EPOCH
        self.copy_cpu = (get("source.copyCpuSecondsPerFile"), get("source.copyCpuSecondsPerByte")) if makes else (0.0, 0.0)

    def plan_reads(self):
        """How many reads each node does, and how many of them are simulated: whole batches if it is not all."""
        job = self.job
        # Each node reads its share of the files, or all that it does not own.
        self.whole = max(job.files * (1 - 1 / job.nodes) / self.unit, 1) if job.case == REPLICATE else job.files // job.nodes
        self.reads = min(math.ceil(self.whole), max(job.most_reads // job.nodes, math.ceil(job.least_reads / self.unit)))
        if self.reads < self.whole:
            self.reads = max(self.reads // job.batch, 1) * job.batch
        batches = math.ceil(self.reads / job.batch)
        for node in self.nodes:
            node.left = [job.batch] * batches
            node.left[-1] = self.reads - job.batch * (batches - 1)
        self.mu = math.log(job.mean_bytes) - job.sigma**2 / 2

    def run(self):
        """The outcome; a cluster runs once."""
        for node in self.nodes:
            for _ in range(self.job.readers):
                self.simulation.at(0.0, self.begin, node)
        self.simulation.run()
        longest = max(node.finished for node in self.nodes)
        mean = statistics.fmean(node.finished for node in self.nodes)
        factor = self.whole / self.reads
        lasts = longest if self.job.barrier != NO_BARRIER else mean
        return Outcome(
            longest * factor,
            mean * factor,
            self.reads * self.unit / lasts if lasts else math.inf,
            self.percentiles(),
            self.utilisation(longest),
            tuple(max(moved) / longest if longest else 0.0 for moved in ([node.received for node in self.nodes], [node.sent for node in self.nodes])),
            self.reads * self.job.nodes,
        )

    # One reader.

    def begin(self, node):
        """A reader takes the next file, or waits for the training to get on."""
        job, index = self.job, node.next
        if index >= self.reads:
            return
        batch = index // job.batch
        if batch >= node.trained + job.prefetch and (job.compute_seconds or job.barrier == STEP_BARRIER):
            node.idle += 1
            return
        node.next += 1
        size = self.unit * job.mean_bytes if self.unit > 1 else self.random.lognormvariate(self.mu, job.sigma)
        kind, owner = self.place(node)
        if kind == LOCAL:
            self.read_local(node, size, batch)
        elif kind == MISS:
            self.fetch(node, size, self.source_read, self.end, node, batch, self.simulation.now)
        else:
            self.ask_peer(node, owner, kind, size, batch)

    def place(self, node):
        """Where the next file is, and who owns it: files are random, so owners come as often as their shares are large."""
        draw, job, case = self.random.random, self.job, self.job.case
        if case == NO_PEERS:
            return (LOCAL if draw() < node.holds_any else MISS), node
        if case == REPLICATE:
            return PEER, self.draw_other(node)
        if case == WARM_LOCAL or (job.local_share is not None and draw() < job.local_share):
            return LOCAL, node
        if job.readers_own:
            return (LOCAL if draw() < node.holds_owned else MISS), node
        if job.local_share is not None:
            return PEER, self.draw_other(node)
        owner = self.draw_owner()
        if owner is node:
            return (LOCAL if draw() < node.holds_owned else MISS), node
        if draw() < node.holds_others:
            return LOCAL, owner
        return (PEER if draw() < owner.holds_owned else PEER_MISS), owner

    def draw_owner(self):
        # The last of the cumulated shares is 1 but for rounding.
        return self.nodes[min(bisect.bisect(self.cumulative, self.random.random()), len(self.nodes) - 1)]

    def draw_other(self, node):
        owner = self.draw_owner()
        while owner is node:
            owner = self.draw_owner()
        return owner

    def read_local(self, node, size, batch):
        now = self.simulation.now
        done = node.tier.serve(now, size * self.tier_byte) + self.local_wait
        if done > now:
            self.simulation.at(done, self.copy_local, node, size, batch)
        else:
            self.copy_local(node, size, batch)

    def copy_local(self, node, size, batch):
        fixed, byte = self.local
        self.simulation.at(node.cpu.serve(self.simulation.now, fixed + byte * size), self.end, node, batch, None)

    def ask_peer(self, node, owner, kind, size, batch):
        # Half of the client's fixed work and of the wait is before the request, the other half after the answer.
        started = self.simulation.now
        wait = min(self.random.lognormvariate(*self.wait), self.longest_wait) / 2 if self.wait else 0.0
        asked = node.cpu.serve(started, self.client[0] / 2)
        read = (node, owner, size, wait, batch, started)
        if kind == PEER:
            self.simulation.at(asked + wait, self.answer, *read)
        else:
            self.simulation.at(asked + wait, self.fetch, owner, size, self.source_fetch, self.answer, *read)

    def answer(self, node, owner, size, wait, batch, started):
        fixed, byte = self.server
        self.simulation.at(owner.cpu.serve(self.simulation.now, fixed + byte * size), self.send, node, owner, size, wait, batch, started)

    def send(self, node, owner, size, wait, batch, started):
        """The bytes reach the receiver's link as they leave the sender's."""
        owner.sent += size
        duration = size * self.nic_byte
        left = owner.outward.serve(self.simulation.now, duration)
        self.simulation.at(max(left - duration, self.simulation.now) + wait, self.receive, node, size, batch, started)

    def receive(self, node, size, batch, started):
        node.received += size
        self.simulation.at(node.inward.serve(self.simulation.now, size * self.nic_byte), self.take, node, size, batch, started)

    def take(self, node, size, batch, started):
        fixed, byte = self.client
        taken = node.cpu.serve(self.simulation.now, fixed / 2 + byte * size)
        if self.fetches_ahead:
            self.simulation.at(taken, self.copy_local, node, size, batch)
            return
        self.simulation.at(taken, self.end, node, batch, started)
        if self.job.keep_copies:
            self.simulation.at(taken, self.make_copy, node, size)

    # The source, for whoever asks it; costs are what the node's cores take for a file and for a byte.

    def fetch(self, node, size, costs, then, *arguments):
        done = self.operations.serve(self.simulation.now, self.source_operations)
        self.simulation.at(done, self.fetch_bytes, node, size, costs, then, *arguments)

    def fetch_bytes(self, node, size, costs, then, *arguments):
        left = self.bandwidth.serve(self.simulation.now, size * self.source_byte)
        arrived = max(left, node.fetch.serve(self.simulation.now, size * self.fetch_byte)) + self.source_wait
        self.simulation.at(arrived, self.fetched, node, size, costs, then, *arguments)

    def fetched(self, node, size, costs, then, *arguments):
        node.received += size
        received = node.inward.serve(self.simulation.now, size * self.nic_byte)
        self.simulation.at(received, self.take_fetched, node, size, costs, then, *arguments)

    def take_fetched(self, node, size, costs, then, *arguments):
        fixed, byte = costs
        taken = node.cpu.serve(self.simulation.now, fixed + byte * size)
        self.simulation.at(taken, then, *arguments)
        self.simulation.at(taken, self.make_copy, node, size)

    def make_copy(self, node, size):
        """In the background: nobody waits for it, but for the cores that it takes."""
        fixed, byte = self.copy_cpu
        node.cpu.serve(self.simulation.now, fixed + byte * size)

    # The training of a node.

    def end(self, node, batch, started):
        """A file was read; started unless it was local. Its reader goes on."""
        if started is not None:
            self.latencies.append(self.simulation.now - started)
        node.left[batch] -= 1
        if not node.left[batch]:
            self.train(node)
        self.begin(node)

    def train(self, node):
        """Trains on the batches that were read, one after the other; with a barrier no node is a step ahead."""
        while not node.training and node.trained < len(node.left) and not node.left[node.trained]:
            if self.job.barrier == STEP_BARRIER and node.trained > self.steps_done:
                return
            if self.job.compute_seconds:
                node.training = True
                self.simulation.at(self.simulation.now + self.job.compute_seconds, self.end_training, node)
                return
            self.count_trained(node)

    def end_training(self, node):
        node.training = False
        self.count_trained(node)
        self.train(node)

    def count_trained(self, node):
        step = node.trained
        node.trained += 1
        node.finished = self.simulation.now
        if self.job.barrier == STEP_BARRIER:
            self.trained_in_step[step] = self.trained_in_step.get(step, 0) + 1
            if self.trained_in_step[step] == len(self.nodes):
                self.steps_done = step + 1
                for other in self.nodes:
                    self.simulation.at(self.simulation.now, self.train, other)
        for _ in range(node.idle):
            self.simulation.at(self.simulation.now, self.begin, node)
        node.idle = 0

    # What is told of it.

    def percentiles(self):
        if not self.latencies:
            return None, None
        ordered = sorted(self.latencies)
        return ordered[len(ordered) // 2], ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]

    def utilisation(self, seconds):
        kinds = {
            "cores": [node.cpu for node in self.nodes],
            "link, inward": [node.inward for node in self.nodes],
            "link, outward": [node.outward for node in self.nodes],
            "tier": [node.tier for node in self.nodes],
            "source: link of a node": [node.fetch for node in self.nodes],
            "source: operations": [self.operations],
            "source: bandwidth": [self.bandwidth],
        }
        used = {kind: [station.utilisation(seconds) for station in stations] for kind, stations in kinds.items()}
        if self.job.compute_seconds:
            used["training"] = [node.trained * self.job.compute_seconds / seconds for node in self.nodes]
        return {kind: (statistics.fmean(shares), max(shares)) for kind, shares in used.items()}
