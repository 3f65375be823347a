"""The model of a large file that all nodes read at the same time."""

import unittest

import spreading
from spreading import Spread, simulate

SIZE = 64 << 20
LINK = 50e6


class SpreadingTest(unittest.TestCase):
    def seconds(self, nodes, **more):
        return simulate(Spread(nodes, SIZE, LINK, **{"source": 1e9, **more})).seconds

    def test_one_reader_takes_as_long_as_its_link(self):
        self.assertAlmostEqual(self.seconds(2, round_trip=0), SIZE / LINK, delta=0.03 * SIZE / LINK)

    def test_nothing_is_faster_than_a_link(self):
        for nodes in (2, 3, 4, 8, 16):
            self.assertGreaterEqual(self.seconds(nodes), SIZE / LINK)

    def test_a_slow_source_decides(self):
        seconds = self.seconds(4, source=LINK / 4)
        self.assertAlmostEqual(seconds, 4 * SIZE / LINK, delta=0.1 * seconds)

    def test_each_block_leaves_the_owner_about_once(self):
        for nodes in (2, 4):
            self.assertAlmostEqual(simulate(Spread(nodes, SIZE, LINK, 1e9)).owner_sent, 1, delta=0.05)
        # At the end, when all blocks were given away, it helps the others to pass them on.
        for nodes in (8, 32):
            self.assertLess(simulate(Spread(nodes, SIZE, LINK, 1e9)).owner_sent, 1.2)

    def test_many_nodes_take_hardly_longer(self):
        self.assertLess(self.seconds(32), 1.5 * self.seconds(4))

    def test_the_owner_offers_a_block_to_one_node(self):
        handout = spreading.Handout(100)
        self.assertIn(3, handout.grant("a", [3], [], 0.0))
        self.assertNotIn(3, handout.grant("b", [3], [], 0.1))
        self.assertIn(3, handout.grant("a", [3], [], 0.1))
        self.assertIn(3, handout.grant("b", [3], [], 4.0))


if __name__ == "__main__":
    unittest.main()
