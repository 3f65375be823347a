"""The model of benchmarks/eviction; nothing is measured."""

import unittest

from loading import load


class EvictionTest(unittest.TestCase):
    def setUp(self):
        self.module = load("eviction")

    def asked(self, rule, room, *epochs):
        """For which reads the source is asked, as a text of x and dots."""
        modelled = self.module.RULES[rule](room, [list(epoch) for epoch in epochs])
        return "".join("x" if modelled.read(now, file) else "." for now, file in enumerate("".join(epochs)))

    def test_none_keeps_what_came_first(self):
        self.assertEqual(self.asked("none", 2, "abcd", "dcba"), "xxxxxx..")

    def test_lru_keeps_what_was_read_last_and_loses_all_if_the_order_repeats(self):
        self.assertEqual(self.asked("lru", 2, "abcd", "dcba"), "xxxx..xx")
        self.assertEqual(self.asked("lru", 3, "abcd", "abcd"), "xxxxxxxx")

    def test_read_first_evicts_nothing_that_the_epoch_has_yet_to_read(self):
        # In the second epoch a and c are there; d takes the room of what was read before it, and never that of c.
        self.assertEqual(self.asked("read first", 2, "abdc", "bdac"), "xxxxxx..")

    def test_least_often_keeps_what_is_read_most(self):
        self.assertEqual(self.asked("least often", 1, "aaba", "bbbb"), "x.x.xxx.")

    def test_order_known_evicts_what_is_read_again_last(self):
        self.assertEqual(self.asked("order known", 2, "abc", "bca"), "xxx..x")

    def test_shuffled_epochs_hit_no_more_than_there_is_room_for(self):
        epochs = self.module.shuffled(200, 4)
        for share in (0.2, 0.8):
            for rule in self.module.RULES:
                self.assertGreaterEqual(round(self.module.predicted(rule, share, epochs), 9), round(1 - share, 9), rule)
            self.assertAlmostEqual(self.module.predicted("none", share, epochs), 1 - share)

    def test_weighted_reads_ask_least_with_the_order_known(self):
        epochs = self.module.weighted(200, 4)
        best = self.module.predicted("order known", 0.4, epochs)
        for rule in self.module.RULES:
            self.assertLessEqual(best, self.module.predicted(rule, 0.4, epochs), rule)


if __name__ == "__main__":
    unittest.main()
