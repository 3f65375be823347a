"""What benchmarks/slow-source makes of the figures of its rounds."""

import contextlib
import io
import json
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

from loading import load


def figures(before, *reads, asked=100):
    return {"before": before, "walks": [0.5] * len(reads), "reads": list(reads), "bytes": 100, "delivered": 102, "asked": {"bytes": asked}}


class SlowSourceTest(unittest.TestCase):
    def setUp(self):
        self.module = load("slow-source")
        self.arguments = Namespace(readers=[1], epochs=2)

    def printed(self, report, results):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            result = report(results, self.arguments)
        return result, out.getvalue().splitlines()

    def test_parts_are_medians_and_epochs_include_the_listing(self):
        rounds = [figures(1, 10, 2), figures(9, 30, 4), figures(2, 20, 3)]
        self.assertEqual(self.module.parts(rounds), [2, 20.5, 3.5])

    def test_epochs_end_after_everything_before_them(self):
        self.assertEqual(self.module.ends([2, 20.5, 3.5]), [22.5, 26])

    def test_jobs_are_compared_with_reading_directly(self):
        results = {(1, "source"): [figures(0, 9.5, 9.5)], (1, "cp"): [figures(10, 1.5, 1.5)], (1, "pmfs"): [figures(1, 9.5, 0.5)]}
        _, lines = self.printed(self.module.report_jobs, results)
        self.assertEqual(lines[2], "| 1 | read directly | 0.0 s | 10.0 s | 10.0 s | 10.0 s, 100% | 20.0 s, 100% |")
        self.assertEqual(lines[3], "| 1 | cp -r, then read the copy | 10.0 s | 2.0 s | 2.0 s | 12.0 s, 120% | 14.0 s, 70% |")
        self.assertEqual(lines[4], "| 1 | read through pmfs | 1.0 s | 10.0 s | 1.0 s | 11.0 s, 110% | 12.0 s, 60% |")

    def test_record_has_the_job_with_the_most_readers(self):
        of_one = {(1, name): [figures(5, 1, 1)] for name in ("source", "cp", "pmfs")}
        of_four = {(4, name): [figures(3, 1.5, 0.5)] for name in ("source", "cp", "pmfs")}
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "record.json"
            self.module.write_record({**of_one, **of_four}, ["Machine: m"], Namespace(readers=[1, 4], json=file, plot=None))
            record = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(record["description"], ["Machine: m", "4 readers"])
        epochs = [["epoch", 2.0], ["epoch", 1.0]]
        self.assertEqual([run["parts"] for run in record["runs"]], [epochs, [["copy", 3], *epochs], [["mount", 3], *epochs]])
        self.assertEqual(len(record["figures"]), 6)

    def test_goal_is_missed_by_a_slow_first_epoch_and_by_a_byte_read_twice(self):
        for name, pmfs, reached in (
            ("good", figures(1, 10.2, 1), True),
            ("slow", figures(1, 10.4, 1), False),
            ("twice", figures(1, 10.2, 1, asked=101), False),
        ):
            with self.subTest(name):
                good, _ = self.printed(self.module.report_goal, {(1, "source"): [figures(0, 10, 10)], (1, "pmfs"): [pmfs]})
                self.assertEqual(good, reached)


if __name__ == "__main__":
    unittest.main()
