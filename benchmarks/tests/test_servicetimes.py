"""What benchmarks/cluster makes of what it measured, and that cluster-model takes it."""

import json
import tempfile
import unittest
from pathlib import Path

import parameters
import servicetimes
from machine import BenchmarkError
from parameters import BY_NAME, FORMAT


class ServiceTimesTest(unittest.TestCase):
    def test_split_costsOfTwoSizes_partOfAFileAndOfAByte(self):
        cost = lambda files, size: (files * (2e-5 + size * 3e-10), files, files * size)
        fixed, byte = servicetimes.split(cost(4000, 110_000), cost(4, 10**12))
        self.assertAlmostEqual(2e-5, fixed)
        self.assertAlmostEqual(3e-10, byte)

    def test_split_largeFilesDearer_neverNegative(self):
        self.assertEqual((0.0, 1e-6), servicetimes.split((1.0, 10, 10_000_000), (100.0, 1, 100_000_000)))

    def test_entries_written_areReadByTheModel(self):
        found = {name: 1e-5 for name in BY_NAME if not name.startswith("node.") and name not in servicetimes.NOT_MEASURED}
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "measured.json"
            path.write_text(json.dumps({"format": FORMAT, "parameters": servicetimes.entries(found, "here", "today")}))
            given, _ = parameters.load(path)
        self.assertEqual(set(servicetimes.NOT_MEASURED), set(given.assumed()))
        self.assertEqual(["node.nicBytesPerSecond", "local.tierBytesPerSecond", "source.bytesPerSecondPerNode"], given.absent())

    def test_entries_somethingMissing_isNamed(self):
        with self.assertRaisesRegex(BenchmarkError, "local.waitSeconds"):
            servicetimes.entries({name: 1.0 for name in BY_NAME if name != "local.waitSeconds"}, "here", "today")


if __name__ == "__main__":
    unittest.main()
