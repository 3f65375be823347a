"""What benchmarks/shared makes of the figures of its rounds."""

import contextlib
import io
import unittest
from argparse import Namespace

from loading import load


def jobs(*rates):
    return [{"bytesPerSecond": rate * 1e6, "deliveredOfDataset": 1.02} for rate in rates]


class SharedTest(unittest.TestCase):
    def setUp(self):
        self.module = load("shared")

    def printed(self, report, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            result = report(*arguments)
        return result, out.getvalue().splitlines()

    def test_jobs_are_compared_by_their_medians(self):
        for shared, reached in ((350, True), (349, False)):
            with self.subTest(shared):
                found = {"shared": jobs(200, shared, 900), "private": jobs(100, 90, 110)}
                good, lines = self.printed(self.module.report_together, found, Namespace(jobs=4))
                self.assertEqual(good, reached)
                self.assertEqual(lines[3], "| 4 private | 100.0 (90.0 to 110.0) | 1.020 (1.020 to 1.020) |")

    def test_joined_goal_is_missed_by_one_state(self):
        same = {"first": [2.0, 2.0], "joined": [2.0, 2.0]}
        for warm, reached in ((2.05, True), (2.2, False)):
            with self.subTest(warm):
                found = {"cold": same, "copied": same, "warm": {"first": [2.0], "joined": [warm]}}
                good, lines = self.printed(self.module.report_joined, found, 200_000_000)
                self.assertEqual(good, reached)
                self.assertEqual(lines[2], "| cold | 100.0 (100.0 to 100.0) | 100.0 (100.0 to 100.0) | 1.000 |")


if __name__ == "__main__":
    unittest.main()
