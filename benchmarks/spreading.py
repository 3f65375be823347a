"""The model of one large file that all nodes of a cluster read at the same time, and whose blocks they pass on to each other.

The rules are those of io.pmfs.cluster.Handout (what an owner offers to whom) and io.pmfs.cluster.FileHolders (what a node reads next, and from
whom). Links are stations that serve block by block, in both directions of each node; questions take a round trip, and no room on a link.
"""

import random
from dataclasses import dataclass

from simulation import Simulation

BLOCK = 1 << 20
STREAMS, MOST_OF_ONE = 4, 2
MOST_HOLDERS, MOST_TOLD = 16, 7
MOST_PENDING, MOST_LISTED, LEASE, ARRIVAL = 16, 16, 3.0, 0.2
MOST_PASSED_ON = 3  # io.pmfs.cluster.DatasetService
AGAIN, LEAST_AGAIN, OWNER_AGAIN, LEAST_OWNER_AGAIN, NEWS = 0.005, 0.020, 0.001, 0.010, 0.005


@dataclass(frozen=True)
class Spread:
    """What is read by how many nodes, over what."""

    nodes: int
    size: int
    link: float  # bytes/s of each node, in each direction
    source: float  # bytes/s that the source gives to the owner
    round_trip: float = 0.001
    block_seconds: float = 0.0  # of work for a block, beside its time on the links


@dataclass(frozen=True)
class Outcome:
    seconds: float  # until the last node has all
    first_seconds: float  # until the first one has
    owner_sent: float  # times the file's size
    most_sent: float  # by any other node
    questions: float  # to the owner, per second

    def share_of_ideal(self, spread):
        return max(spread.size / spread.source, spread.size / spread.link) / self.seconds


def lowest(mask):
    return (mask & -mask).bit_length() - 1


def listed(mask, most):
    found = []
    while mask and len(found) < most:
        found.append(lowest(mask))
        mask &= mask - 1
    return found


class Handout:
    """What the owner offers."""

    def __init__(self, count):
        self.count, self.given, self.given_to, self.pending, self.next, self.askers = count, {}, {}, {}, 0, {}

    def grant(self, asker, missed, more, now):
        self.askers[asker] = True
        for block in [block for block, since in self.pending.items() if now - since > LEASE]:
            del self.pending[block]
        most = max(2, MOST_PENDING // 2 // len(self.askers))
        granted = [block for block in missed + more if block in self.pending and self.given_to[block] is asker][:most]
        self.give(missed, asker, most, granted, now)
        if not missed:
            self.give(more, asker, most, granted, now)
        while self.next < self.count and self.has_room(granted, most):
            if self.next not in self.given:
                self.give([self.next], asker, most, granted, now)
            self.next += 1
        if self.next >= self.count and not missed:
            for block in more:
                if self.has_room(granted, most) and block not in self.pending:
                    self.give_one(block, asker, granted, now)
        return granted

    def has_room(self, granted, most):
        return len(granted) < most and len(self.pending) < MOST_PENDING

    def is_free(self, block, asker, now):
        age = now - self.given.get(block, -LEASE)
        is_lost = self.given_to.get(block) is asker and block not in self.pending and age >= ARRIVAL
        return age >= LEASE or is_lost

    def give(self, blocks, asker, most, granted, now):
        for block in blocks:
            if self.has_room(granted, most) and self.is_free(block, asker, now):
                self.give_one(block, asker, granted, now)

    def give_one(self, block, asker, granted, now):
        self.given[block] = self.pending[block] = now
        self.given_to[block] = asker
        granted.append(block)


class Node:
    """A node that reads: what it has, what it knows of others, and when its links are free."""

    def __init__(self, number, count):
        self.number, self.all = number, (1 << count) - 1
        self.has = self.planned = 0
        self.granted, self.owner_due, self.askers = [], 0.0, 0
        self.known, self.due, self.loads, self.turns = {}, {}, {}, {}
        self.outward = self.inward = 0.0
        self.sending, self.busy = 0, {}
        self.sent, self.done = 0, None


class Reading:
    """One run."""

    def __init__(self, spread, seed):
        self.spread, self.random, self.simulation = spread, random.Random(seed), Simulation()
        self.count = -(-spread.size // BLOCK)
        self.handout = Handout(self.count)
        self.owner = Node(0, self.count)
        self.readers = [Node(number, self.count) for number in range(1, spread.nodes)]
        self.turn = self.asked = 0
        self.source_free = 0.0
        self.from_source = {}

    @property
    def now(self):
        return self.simulation.now

    def at(self, time, act, *arguments):
        self.simulation.at(time, act, *arguments)

    def run(self):
        for node in self.readers:
            for _ in range(STREAMS):
                self.at(0.0, self.next_block, node)
        self.simulation.run()
        size, ends = self.spread.size, [node.done for node in self.readers]
        seconds = max(*ends, size / self.spread.source)
        most = max(node.sent for node in self.readers)
        return Outcome(seconds, min(ends), self.owner.sent / size, most / size, self.asked / seconds)

    def missing(self, node):
        return node.all & ~node.has & ~node.planned

    def next_block(self, node):
        """A stream of a node is free."""
        missing = self.missing(node)
        if not missing:
            return
        node.granted = [block for block in node.granted if missing >> block & 1]
        is_owner_idle = not node.granted and self.now >= node.owner_due and not node.loads.get(0)
        if is_owner_idle or any(self.now >= due and not node.known[other] for other, due in node.due.items()):
            self.ask(node, missing)
            return
        giver, block = self.choice(node, missing)
        if giver:
            self.transfer(node, giver, block)
        else:
            self.ask(node, missing)

    def choice(self, node, missing):
        """From whom to read which block: of the nodes that have one, the least busy with this node."""
        best, block, least = None, None, None
        if node.granted and node.loads.get(0, 0) < (MOST_OF_ONE if node.askers > 1 else STREAMS):
            best, block, least = self.owner, node.granted[0], (node.loads.get(0, 0), node.turns.get(0, 0))
        for other, mask in node.known.items():
            rank = node.loads.get(other.number, 0), node.turns.get(other.number, 0)
            is_free = rank[0] < MOST_OF_ONE and node.busy.get(other.number, 0) <= self.now
            if is_free and mask & missing and (best is None or rank < least):
                best, block, least = other, lowest(mask & missing), rank
        return best, block

    def transfer(self, node, giver, block):
        if giver is not self.owner and giver.sending >= MOST_PASSED_ON:
            node.busy[giver.number] = self.now + LEAST_AGAIN
            self.at(self.now + self.spread.round_trip, self.next_block, node)
            return
        giver.sending += 1
        if giver is self.owner:
            node.granted.remove(block)
        node.planned |= 1 << block
        self.turn += 1
        node.turns[giver.number] = self.turn
        node.loads[giver.number] = node.loads.get(giver.number, 0) + 1
        start = self.now + self.spread.round_trip
        if giver is self.owner and block not in self.from_source:
            self.source_free = max(self.source_free, self.now) + BLOCK / self.spread.source
            self.from_source[block] = self.source_free
        if giver is self.owner:
            start = max(start, self.from_source[block])
        seconds = BLOCK / self.spread.link
        giver.outward = max(giver.outward, start) + seconds
        giver.sent += BLOCK
        self.at(giver.outward, self.left, node, giver, block)

    def left(self, node, giver, block):
        """Cut through: the receiver's link is used while the sender's is, unless it is busy."""
        giver.sending -= 1
        if giver is self.owner:
            self.handout.pending.pop(block, None)
        node.inward = max(node.inward + BLOCK / self.spread.link, self.now)
        self.at(node.inward + self.spread.block_seconds, self.arrived, node, giver, block)

    def arrived(self, node, giver, block):
        node.has |= 1 << block
        node.planned &= ~(1 << block)
        node.loads[giver.number] -= 1
        if node.has == node.all:
            node.done = self.now
        self.next_block(node)

    def ask(self, node, missing):
        if not node.granted and self.now >= node.owner_due:
            known = 0
            for mask in node.known.values():
                known |= mask
            self.asked += 1
            missed, more = listed(missing & ~known, MOST_LISTED), listed(missing & known, MOST_LISTED)
            node.granted = self.handout.grant(node, missed, more, self.now)
            node.askers = len(self.handout.askers)
            again = 0.0 if node.granted and node.askers <= MOST_PENDING else max(LEAST_OWNER_AGAIN, min(node.askers, 1024) * OWNER_AGAIN)
            node.owner_due = self.now + again
            others = [other for other in self.handout.askers if other is not node]
            for other in self.random.sample(others, min(MOST_TOLD, len(others))):
                if len(node.known) < MOST_HOLDERS:
                    node.known.setdefault(other, 0)
                    node.due.setdefault(other, self.now)
            self.at(self.now + self.spread.round_trip, self.next_block, node)
            return
        for other, due in node.due.items():
            if self.now >= due:
                node.known[other] = other.has
                node.due[other] = self.now + (1e9 if other.has == other.all else max(LEAST_AGAIN, len(node.known) * AGAIN))
                self.at(self.now + self.spread.round_trip, self.next_block, node)
                return
        self.at(self.now + NEWS, self.next_block, node)


def simulate(spread, seed=1):
    return Reading(spread, seed).run()
