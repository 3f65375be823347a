"""The modelled cluster where what comes out is known without it."""

import collections
import random
import statistics
import unittest
from pathlib import Path

import parameters
from machine import BenchmarkError
from nodes import FIRST_EPOCH, NO_BARRIER, NO_PEERS, REPLICATE, STEP_BARRIER, WARM_LOCAL, WARM_PEERS, Cluster, Job, segment_counts
from parameters import ASSUMED, Parameters, Value

FREE = {
    "node.cores": 64,
    "node.nicBytesPerSecond": None,
    "local.tierBytesPerSecond": None,
    "remote.batchFiles": 10,
    "source.operationsPerSecond": 1e12,
    "source.bytesPerSecond": 1e15,
    "source.bytesPerSecondPerNode": None,
}


def costs(**given):
    """Nothing costs anything, but what is given: local_cpuSecondsPerFile=1e-3."""
    values = {name: FREE.get(name, 0.0) for name in parameters.BY_NAME}
    values.update({name.replace("_", "."): value for name, value in given.items()})
    return Parameters({name: Value(value, ASSUMED, "test") for name, value in values.items()})


def outcome(case, nodes, given, **job):
    plain = {"files": 6400, "mean_bytes": 100_000, "sigma": 0.0, "readers": 4}
    return Cluster(Job(case, nodes, **{**plain, **job}), given, seed=3).run()


class ClosedFormTest(unittest.TestCase):
    def test_warmLocal_fewReaders_eachReadsAtItsOwnRate(self):
        seconds = outcome(WARM_LOCAL, 4, costs(local_cpuSecondsPerFile=1e-3, local_waitSeconds=1e-3)).seconds
        self.assertAlmostEqual(1600 / 4 * 2e-3, seconds)

    def test_warmLocal_moreReadersThanCores_coresBound(self):
        result = outcome(WARM_LOCAL, 1, costs(local_cpuSecondsPerFile=1e-3, node_cores=2), readers=16)
        self.assertAlmostEqual(6400 / 2 * 1e-3, result.seconds)
        self.assertAlmostEqual(1, result.utilisation["cores"][0])

    def test_warmLocal_moreNodes_speedUpIsLinear(self):
        given = costs(local_cpuSecondsPerFile=1e-3, local_cpuSecondsPerByte=1e-9)
        alone = outcome(WARM_LOCAL, 1, given)
        for nodes in (2, 16, 64):
            self.assertAlmostEqual(1, nodes * outcome(WARM_LOCAL, nodes, given).seconds / alone.seconds)

    def test_warmLocal_sharedCores_noSpeedUp(self):
        given = costs(local_cpuSecondsPerFile=1e-3)
        for nodes in (1, 2, 4):
            self.assertAlmostEqual(3.2, outcome(WARM_LOCAL, nodes, given, shared_cores=2).seconds)

    def test_warmLocal_tierBound_bytesByItsRate(self):
        result = outcome(WARM_LOCAL, 2, costs(local_tierBytesPerSecond=1e8))
        self.assertAlmostEqual(3200 * 1e5 / 1e8, result.seconds)

    def test_warmPeers_oneReader_sumOfTheParts(self):
        given = costs(
            remote_clientCpuSecondsPerFile=1e-4,
            remote_serverCpuSecondsPerByte=2e-9,
            remote_waitSecondsMedian=3e-4,
            remote_waitSecondsP99=3e-4,
            node_nicBytesPerSecond=1e9,
        )
        # So many nodes that two readers hardly meet, and hardly a file is one's own.
        result = outcome(WARM_PEERS, 64, given, readers=1, files=64 * 300, capacity_share=1.2 / 64)
        p50, _ = result.latency
        self.assertAlmostEqual(1e-4 + 2e-4 + 3e-4 + 1e-4, p50)

    def test_warmPeers_linksSaturated_bytesByBandwidth(self):
        given = costs(node_nicBytesPerSecond=1e8)
        result = outcome(WARM_PEERS, 8, given, readers=64, files=40_000, keep_copies=False, capacity_share=1.0)
        self.assertAlmostEqual(1, result.seconds / (5000 * 7 / 8 * 1e5 / 1e8), delta=0.1)
        self.assertGreater(result.utilisation["link, inward"][0], 0.9)

    def test_warmPeers_serversSaturated_mostLoadedOwnerBounds(self):
        # 24 of 1,000 nodes own 2 of 1,024 segments.
        given = costs(remote_serverCpuSecondsPerFile=1e-3, node_cores=1)
        result = outcome(WARM_PEERS, 1000, given, readers=16, files=1_000_000, capacity_share=0.01, keep_copies=False, least_reads=300, segments=1024)
        mean, most = result.utilisation["cores"]
        self.assertAlmostEqual(1.95, most / mean, delta=0.25)
        self.assertGreater(most, 0.9)

    def test_warmPeers_localShareGiven_restIsRemote(self):
        given = costs(local_cpuSecondsPerFile=1e-3, remote_clientCpuSecondsPerFile=3e-3)
        result = outcome(WARM_PEERS, 8, given, files=80_000, local_share=0.25)
        self.assertAlmostEqual(1, result.seconds / (10_000 / 4 * (0.25 * 1e-3 + 0.75 * 3e-3)), delta=0.03)

    def test_warmPeers_sumDoesNotFit_restFromTheSource(self):
        given = costs(source_bytesPerSecond=1e8)
        result = outcome(WARM_PEERS, 2, given, files=40_000, readers=32, capacity_share=0.4)
        # Of each half a node holds 0.4 of the whole.
        self.assertAlmostEqual(1, result.seconds / (0.2 * 40_000 * 1e5 / 1e8), delta=0.05)

    def test_firstEpoch_sourceBandwidthBounds_bytesByBandwidth(self):
        for nodes in (1, 8, 64):
            result = outcome(FIRST_EPOCH, nodes, costs(source_bytesPerSecond=1e8), readers=16)
            self.assertAlmostEqual(1, result.seconds / (6400 * 1e5 / 1e8), delta=0.01)
            self.assertAlmostEqual(1, result.utilisation["source: bandwidth"][0], delta=0.01)

    def test_firstEpoch_sourceOperationsBound_operationsByRate(self):
        result = outcome(FIRST_EPOCH, 16, costs(source_operationsPerSecond=1000, source_operationsPerFile=3), readers=16)
        self.assertAlmostEqual(1, result.seconds / 19.2, delta=0.01)

    def test_firstEpoch_oneNode_deliveryIsPartOfTheSourcesRead(self):
        given = costs(local_cpuSecondsPerFile=1e-3, source_cpuSecondsPerFile=3e-3, source_copyCpuSecondsPerFile=1e-3, node_cores=1)
        # One core does all: what is read from the source, and a copy of it.
        self.assertAlmostEqual(1, outcome(FIRST_EPOCH, 1, given).seconds / (6400 * 4e-3), delta=0.01)

    def test_firstEpoch_filesOfPeers_ownerDeliversToNoReader(self):
        given = costs(local_cpuSecondsPerFile=1e-3, source_cpuSecondsPerFile=3e-3)
        result = outcome(FIRST_EPOCH, 8, given, readers=1)
        # Seven of eight reads wait for an owner that fetches without delivering.
        self.assertAlmostEqual(1, result.seconds / (800 * (3e-3 + 7 * 2e-3) / 8), delta=0.05)

    def test_noPeers_asksTheSourceForWhatItCannotHold(self):
        given = costs(source_bytesPerSecond=1e8)
        result = outcome(NO_PEERS, 4, given, files=40_000, readers=16, capacity_share=0.25)
        self.assertAlmostEqual(1, result.seconds / (0.75 * 40_000 * 1e5 / 1e8), delta=0.02)

    def test_replicate_linksSaturated_allButOnesOwn(self):
        result = outcome(REPLICATE, 8, costs(node_nicBytesPerSecond=1e8), readers=32, files=40_000)
        self.assertAlmostEqual(1, result.seconds / (40_000 * 7 / 8 * 1e5 / 1e8), delta=0.1)

    def test_moved_isWhatComesFromPeersAndTheSource(self):
        result = outcome(WARM_PEERS, 8, costs(remote_clientCpuSecondsPerFile=1e-3), files=40_000, local_share=0.25)
        for moved in result.moved:
            self.assertAlmostEqual(1, moved / (result.files_per_second * 0.75 * 1e5), delta=0.05)
        received, sent = outcome(FIRST_EPOCH, 1, costs(source_bytesPerSecond=1e8)).moved
        self.assertAlmostEqual(1, received / 1e8, delta=0.01)
        self.assertEqual(0, sent)

    def test_utilisation_isThroughputTimesDemand(self):
        given = costs(local_cpuSecondsPerFile=1e-3, local_waitSeconds=5e-3, node_cores=8)
        result = outcome(WARM_LOCAL, 4, given, readers=6, sigma=0.6)
        self.assertAlmostEqual(result.files_per_second * 1e-3 / 8, result.utilisation["cores"][0])


class TrainingTest(unittest.TestCase):
    def test_training_slowerThanReading_bounds(self):
        result = outcome(WARM_LOCAL, 2, costs(local_cpuSecondsPerFile=1e-4), compute_seconds=0.1, batch=32)
        # The first batch is read before there is anything to train on.
        self.assertAlmostEqual(100 * 0.1 + 8 * 1e-4, result.seconds)

    def test_training_fasterThanReading_isHidden(self):
        given = costs(local_cpuSecondsPerFile=1e-3)
        reading = outcome(WARM_LOCAL, 2, given, batch=32).seconds
        self.assertAlmostEqual(1, outcome(WARM_LOCAL, 2, given, batch=32, compute_seconds=1e-4).seconds / reading, delta=0.01)

    def test_stepBarrier_unevenFiles_slowestOfEachStepCounts(self):
        given = costs(local_cpuSecondsPerByte=1e-8)
        job = {"sigma": 0.6, "batch": 1, "readers": 1, "prefetch": 1}
        free = outcome(WARM_LOCAL, 16, given, barrier=NO_BARRIER, **job).seconds
        epoch = outcome(WARM_LOCAL, 16, given, **job).seconds
        step = outcome(WARM_LOCAL, 16, given, barrier=STEP_BARRIER, **job).seconds
        self.assertAlmostEqual(free, epoch)
        # By the recursion over steps that this is: 1.51 times, the mean of 20 runs.
        self.assertAlmostEqual(1.51, step / epoch, delta=0.1)

    def test_stepBarrier_equalNodes_costsNothing(self):
        given = costs(local_cpuSecondsPerFile=1e-3)
        self.assertAlmostEqual(0.4, outcome(WARM_LOCAL, 4, given, barrier=STEP_BARRIER, batch=32).seconds)


class SliceTest(unittest.TestCase):
    def test_longEpoch_partOfItIsSimulated_secondsAreOfAll(self):
        given = costs(local_cpuSecondsPerFile=1e-3)
        result = outcome(WARM_LOCAL, 4, given, files=4_000_000, most_reads=6400, least_reads=1)
        self.assertEqual(6400, result.reads)
        self.assertAlmostEqual(1_000_000 / 4 * 1e-3, result.seconds)

    def test_part_againstTheWhole_nearlyTheSame(self):
        given = costs(remote_clientCpuSecondsPerFile=1e-4, remote_waitSecondsMedian=1e-4, remote_waitSecondsP99=1e-3, node_nicBytesPerSecond=1e9)
        job = {"files": 160_000, "capacity_share": 0.1, "sigma": 0.6}
        whole = outcome(WARM_PEERS, 8, given, **job).seconds
        self.assertAlmostEqual(1, outcome(WARM_PEERS, 8, given, most_reads=30_000, **job).seconds / whole, delta=0.03)

    def test_sameSeed_sameOutcome(self):
        given = costs(remote_waitSecondsMedian=1e-4, remote_waitSecondsP99=1e-3)
        self.assertEqual(*(outcome(WARM_PEERS, 8, given, capacity_share=0.2) for _ in range(2)))


class OwnershipTest(unittest.TestCase):
    # Counted with infinispan-core 16.0.5, SyncConsistentHashFactory.create(1, segments, members, null), random ids.
    SEEN = {
        (32, 1024): {32: 32},
        (48, 1024): {21: 32, 22: 16},
        (100, 1024): {10: 76, 11: 24},
        (500, 1024): {2: 476, 3: 24},
        (512, 1024): {2: 512},
        (768, 1024): {1: 512, 2: 256},
        (1000, 1024): {1: 976, 2: 24},
        (300, 4096): {13: 104, 14: 196},
        (500, 4096): {8: 404, 9: 96},
        (1000, 4096): {4: 904, 5: 96},
        (1000, 8192): {8: 808, 9: 192},
    }

    def test_segmentCounts_asInfinispanHandsThemOut(self):
        for (nodes, segments), seen in self.SEEN.items():
            self.assertEqual(seen, collections.Counter(segment_counts(nodes, segments, random.Random(nodes))), (nodes, segments))

    def test_segmentCounts_fewNodes_withinTheRangeSeen(self):
        for nodes, least, most in ((2, 500, 524), (8, 124, 131), (16, 62, 65), (24, 41, 43)):
            counts = segment_counts(nodes, 1024, random.Random(nodes))
            self.assertTrue(least <= min(counts) and max(counts) <= most, counts)

    def test_segmentCounts_all_areHandedOut(self):
        for nodes in [*range(1, 130), 1023, 1024, 1025, 3000]:
            self.assertEqual(1024, sum(segment_counts(nodes, 1024, random.Random(nodes))))

    def test_files_fillSegmentsByChance(self):
        shares = Cluster(Job(WARM_PEERS, 512, files=512 * 400, most_reads=1, least_reads=1), costs()).cumulative
        owned = [after - before for before, after in zip([0, *shares], shares)]
        # 400 files, give or take 20.
        self.assertAlmostEqual(0.05, statistics.pstdev(owned) * 512, delta=0.01)


class JobTest(unittest.TestCase):
    def test_job_senseless_isRefused(self):
        for words in ({"ahead": -1}, {"readers_own": True}, {"case": "x"}, {"nodes": 0}, {"files": 3}, {"mean_bytes": 0}, {"barrier": "x"}, {"capacity_share": -1}, {"nodes": 1, "case": REPLICATE}):
            with self.assertRaises(BenchmarkError, msg=words):
                Job(**{"case": WARM_LOCAL, "nodes": 4, **words})

    def test_assumedValues_areComplete(self):
        given, epochs = parameters.load(Path(__file__).parent.parent / "cluster-assumed.json")
        self.assertEqual(list(parameters.BY_NAME), given.assumed())
        self.assertEqual([], epochs)


if __name__ == "__main__":
    unittest.main()
