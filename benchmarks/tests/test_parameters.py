"""What a file of service times must have, and how it is refused in one line."""

import json
import tempfile
import unittest
from pathlib import Path

import parameters
from machine import BenchmarkError
from parameters import FORMAT

GOOD = {"value": 1, "origin": "measured", "where": "a machine", "when": "2026-01-01"}
EPOCH = {
    "case": "warm-local",
    "nodes": 2,
    "readers": 4,
    "files": 100,
    "meanBytes": 1000,
    "sizeSigma": 0.6,
    "capacityShare": None,
    "remoteCopies": "auto",
    "sharedCores": 2,
    "seconds": [1.5],
}


def content(**changed):
    return {"format": FORMAT, "parameters": {name: dict(GOOD) for name in parameters.BY_NAME}, "epochs": [dict(EPOCH)], **changed}


def load(given):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "measured.json"
        path.write_text(given if isinstance(given, str) else json.dumps(given))
        return parameters.load(path)


class ParametersTest(unittest.TestCase):
    def assert_refused(self, given, said):
        with self.assertRaisesRegex(BenchmarkError, said) as caught:
            load(given)
        self.assertNotIn("\n", str(caught.exception))

    def test_load_complete_valuesAndOrigins(self):
        given, epochs = load(content())
        self.assertEqual(1, given["node.cores"])
        self.assertEqual([], given.assumed())
        self.assertEqual([EPOCH], epochs)
        self.assertEqual("a machine, 2026-01-01", given.as_list()[0]["said"])

    def test_load_limitThatIsAbsent_isAssumedAndSaysWhatThatMeans(self):
        entries = content()["parameters"]
        entries["node.nicBytesPerSecond"]["value"] = None
        entries["local.tierBytesPerSecond"] = {"value": None, "origin": "assumed", "why": "a test"}
        given, _ = load(content(parameters=entries))
        self.assertIsNone(given["node.nicBytesPerSecond"])
        self.assertEqual(["node.nicBytesPerSecond", "local.tierBytesPerSecond"], given.assumed())
        self.assertEqual(given.assumed(), given.absent())
        self.assertEqual("no limit: links are no bound in what comes out", given.values["node.nicBytesPerSecond"].said)
        self.assertTrue(given.values["local.tierBytesPerSecond"].said.endswith("(a test)"))

    def test_load_noJsonOrOtherFormat_isRefused(self):
        for text in ("", "{", "[]", "{}", '{"format": "x", "parameters": {}}'):
            self.assert_refused(text, "measured.json: ")

    def test_load_missingAndUnknown_areNamed(self):
        entries = content()["parameters"]
        entries["node.core"] = entries.pop("node.cores")
        self.assert_refused(content(parameters=entries), "missing: node.cores; unknown: node.core$")

    def test_load_valueWithoutOrigin_isRefused(self):
        for entry in (3, {}, {"value": 1}, {"value": 1, "origin": "measured"}, {"value": 1, "origin": "assumed", "why": ""}):
            self.assert_refused(content(parameters={**content()["parameters"], "node.cores": entry}), "node.cores: ")

    def test_load_senselessNumbers_areRefused(self):
        for number in (None, -1, "8", True, 0, 1.5, 1e9, float("nan"), float("inf")):
            entries = {**content()["parameters"], "node.cores": {**GOOD, "value": number}}
            self.assert_refused(content(parameters=entries), "node.cores: ")

    def test_load_p99BelowTheMedian_isRefused(self):
        entries = {**content()["parameters"], "remote.waitSecondsP99": {**GOOD, "value": 0.5}}
        self.assert_refused(content(parameters=entries), "P99")

    def test_load_epochs_areComplete(self):
        for changed in ({"seconds": []}, {"seconds": [0]}, {"nodes": 0}, {"nodes": "2"}, {"extra": 1}, {"readers": True}, {"meanBytes": "x"}, {"capacityShare": -1}):
            self.assert_refused(content(epochs=[{**EPOCH, **changed}]), r"epochs\[0\]")
        self.assert_refused(content(epochs={}), "epochs")

    def test_replaced_isAssumed(self):
        given = load(content())[0].replaced("node.cores", "16")
        self.assertEqual(16, given["node.cores"])
        self.assertEqual(["node.cores"], given.assumed())
        self.assertIn("without a reason", given.values["node.cores"].said)

    def test_replaced_withReason_saysIt(self):
        given = load(content())[0].replaced("node.nicBytesPerSecond", "12.5e9: 100 Gbit/s")
        self.assertEqual(12.5e9, given["node.nicBytesPerSecond"])
        self.assertEqual("100 Gbit/s", given.values["node.nicBytesPerSecond"].said)

    def test_replaced_byNoLimit_isAbsent(self):
        given = load(content())[0].replaced("node.nicBytesPerSecond", "null")
        self.assertEqual(["node.nicBytesPerSecond"], given.absent())

    def test_replaced_unknownOrNoNumber_isRefused(self):
        for name, text in (("node.core", "1"), ("node.cores", "x"), ("node.cores", ""), ("node.cores", "null"), ("node.cores", "inf")):
            with self.assertRaises(BenchmarkError, msg=(name, text)):
                load(content())[0].replaced(name, text)


if __name__ == "__main__":
    unittest.main()
