"""The arithmetic of what bounds many nodes, held against the simulation, and what each remedy does to the reads."""

import dataclasses
import math
import unittest

import nodes
import remedies
from nodes import WARM_PEERS, Cluster, Job
from test_nodes import costs

GIVEN = costs(
    node_cores=2,
    local_cpuSecondsPerFile=1e-4,
    remote_clientCpuSecondsPerFile=3e-4,
    remote_clientCpuSecondsPerByte=1e-9,
    remote_serverCpuSecondsPerFile=2e-4,
    remote_batchFiles=64,
    remote_batchClientCpuSecondsPerFile=2e-4,
    remote_batchServerCpuSecondsPerFile=1e-4,
    source_copyCpuSecondsPerFile=5e-5,
)


def job(count, **given):
    return Job(WARM_PEERS, count, **{"files": 100_000, "mean_bytes": 100_000, "sigma": 0.0, "capacity_share": 1.25 / count, **given})


class ArithmeticTest(unittest.TestCase):
    def test_dearest_withThatCost_reachesTheShare(self):
        cost = remedies.dearest(0.01, 0.2, 0.95)
        self.assertAlmostEqual(0.95, (0.2 + 0.8 * cost) / (0.01 + 0.99 * cost))

    def test_dearest_asManyLocalReads_anyCostIsGood(self):
        self.assertEqual(math.inf, remedies.dearest(0.2, 0.2, 0.95))

    def test_localReadsFor_withThatMany_reachesTheShare(self):
        few = remedies.local_reads_for(0.2, 6.0, 0.95)
        self.assertAlmostEqual(0.95, (0.2 + 0.8 * 6) / (few + (1 - few) * 6))

    def test_meanCost_coresBusy_givesTheSimulatedRate(self):
        for given in ({}, {"keep_copies": False}, {"ahead": 100}, {"fixed_shares": True}, {"local_share": 0.5}):
            one = job(8, **given, files=20_000, readers=32)
            rate = Cluster(one, GIVEN, seed=3).run().files_per_second
            self.assertAlmostEqual(1, rate * remedies.mean_cost(one, GIVEN) / GIVEN["node.cores"], delta=0.03, msg=given)

    def test_explain_goalMissed_saysWhatItWouldTake(self):
        said = remedies.explain(job(8), job(512), GIVEN, 0.95)
        self.assertIn("A remote read costs 6.00 local ones", said)
        self.assertIn("95% by CPU seconds alone would need", said)

    def test_explain_asManyLocalReads_nothingIsNeeded(self):
        said = remedies.explain(job(8, capacity_share=0.2), job(512, capacity_share=0.2), GIVEN, 0.95)
        self.assertIn("gives 100.0% of 8 nodes", said)
        self.assertNotIn("would need", said)

    def test_remoteCost_ofTheParts(self):
        for part, cost in zip([3e-4, 1e-4, 2e-4, 0.0], remedies.remote_cost(GIVEN, 100_000)):
            self.assertAlmostEqual(part, cost)


class LocalReadsTest(unittest.TestCase):
    def test_localReads_shuffled_roomOfANodeButForWhatItLeavesFree(self):
        for count in (8, 512):
            self.assertAlmostEqual(1.25 * 15 / 16 / count, job(count).local_reads())

    def test_localReads_noCopiesOfOthers_whatItOwns(self):
        self.assertAlmostEqual(1 / 8, job(8, keep_copies=False).local_reads())

    def test_localReads_roomForAll_all(self):
        self.assertEqual(1, job(8, capacity_share=None).local_reads())
        self.assertEqual(1, job(8, capacity_share=1.07).local_reads())
        self.assertLess(job(8, capacity_share=1.0).local_reads(), 1)

    def test_localReads_fixedShares_roomThatIsLeftIsForFewerFiles(self):
        left = 1.25 * 15 / 16 - 1
        for count in (8, 512):
            self.assertAlmostEqual(1 / count + left, job(count, fixed_shares=True).local_reads())

    def test_localReads_readersOwn_all(self):
        self.assertEqual(1, job(512, fixed_shares=True, readers_own=True).local_reads())

    def test_localReads_asSimulated(self):
        for given in ({}, {"fixed_shares": True}, {"keep_copies": False}, {"fixed_shares": True, "readers_own": True}):
            one = job(8, **given)
            cluster = Cluster(one, costs(), seed=3)
            kinds = [cluster.place(node)[0] for node in cluster.nodes for _ in range(5000)]
            self.assertAlmostEqual(one.local_reads(), kinds.count(nodes.LOCAL) / len(kinds), delta=0.01, msg=given)


class BatchesTest(unittest.TestCase):
    def test_batched_knownFilesAreSpreadOverPeers(self):
        one = job(512, files=512 * 2000, ahead=1022, local_share=0.0)
        self.assertAlmostEqual(2, one.batched(64))
        self.assertAlmostEqual(2000 / 511, dataclasses.replace(one, ahead=10**6).batched(64))

    def test_batched_fewPeersOrNothingKnown_withinItsLimits(self):
        self.assertEqual(64, job(2, ahead=10_000).batched(64))
        self.assertEqual(1, job(8).batched(64))
        self.assertEqual(1, job(512, ahead=3).batched(64))

    def test_costsInBatches_fullBatch_asMeasured(self):
        self.assertEqual([2e-4, 1e-4], [fixed for fixed, _ in nodes.costs_in_batches(job(2, ahead=10_000), GIVEN)])

    def test_costsInBatches_oneFile_asAReadAndACopy(self):
        for expected, (fixed, _) in zip([3.5e-4, 2e-4], nodes.costs_in_batches(job(512, ahead=1), GIVEN)):
            self.assertAlmostEqual(expected, fixed)


class RemediesTest(unittest.TestCase):
    def test_remedies_eachIsAJob_theFirstAsItIs(self):
        base, many = job(8), job(512)
        changed = [dataclasses.replace(many, **change(many, base)) for change in remedies.REMEDIES.values()]
        self.assertEqual(many, changed[0])
        self.assertEqual(len(changed), len(set(changed)))


if __name__ == "__main__":
    unittest.main()
