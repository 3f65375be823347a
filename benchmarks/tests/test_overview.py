"""The picture of docs/results/epochs.md against the record that it is drawn from."""

import json
import unittest

from loading import ROOT, load


class OverviewTest(unittest.TestCase):
    def setUp(self):
        self.overview = load("overview")
        self.record = json.loads((ROOT / "docs/figures/whole-mount.json").read_text(encoding="utf-8"))

    def test_picture_is_that_of_the_record(self):
        drawn = (ROOT / "docs/figures/overview.svg").read_text(encoding="utf-8")
        self.assertEqual(drawn, self.overview.draw(self.record), "draw it anew: benchmarks/overview")

    def test_values_are_medians_and_the_source_comes_first(self):
        figures = [{"work": "w", "state": "s", "readers": 1, "unit": "u", "values": {"a": [1, 9], "source": [2, 4, 3], "b": [7]}}]
        _, _, values = self.overview.panel(figures, ["a", "source", "b"], "title", "w", "s", 1, "u")
        self.assertEqual(values, [("source", 3), ("b", 7), ("a", 5)])

    def test_work_that_was_not_measured_is_told(self):
        with self.assertRaises(SystemExit):
            self.overview.panel([], ["source"], "title", "w", "s", 1, "u")


if __name__ == "__main__":
    unittest.main()
