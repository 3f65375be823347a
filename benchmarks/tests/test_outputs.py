"""What benchmarks/outputs records of the figures of its rounds."""

import json
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

from loading import load


class OutputsTest(unittest.TestCase):
    def test_record_has_medians_of_what_was_measured_and_every_figure(self):
        module = load("outputs")
        disk = [{module.CHECKPOINT: 900.0}, {module.CHECKPOINT: 100.0}, {module.CHECKPOINT: 800.0}]
        pmfs = [{module.CHECKPOINT: 700.0, module.AT_SOURCE: 9.0}]
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "record.json"
            module.write_record({"disk": disk, "pmfs": pmfs}, ["Machine: m"], Namespace(json=file, plot=None))
            record = json.loads(file.read_text(encoding="utf-8"))
        bars = {panel["work"]: panel["bars"] for panel in record["panels"]}
        self.assertEqual(bars[module.CHECKPOINT], {"disk": 800.0, "pmfs": 700.0})
        self.assertEqual(bars[module.AT_SOURCE], {"pmfs": 9.0})
        self.assertEqual(record["rounds"]["disk"], disk)


if __name__ == "__main__":
    unittest.main()
