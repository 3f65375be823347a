"""What benchmarks/fuse-floor makes of its figures, and that the stub serves the channel it was told to, and no other."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import machine
import stub
import systems
from loading import ROOT, load
from machine import BenchmarkError

SECONDS = 20


def why_no_mounts():
    """Why this machine cannot mount the stub; None if it can."""
    if not machine.is_root() or not os.path.exists("/dev/fuse"):
        return "needs root and /dev/fuse"
    return None if shutil.which("cc") else "no C compiler"


class ChannelTest(unittest.TestCase):
    """What counts as proof that requests went over a channel."""

    def check(self, channel, dev, rings, least=10):
        before = {"dev": {"lookup": 5}, "io_uring": {"lookup": 7}}
        after = {"dev": {"lookup": 5 + dev, "forget": 99, "batchForget": 9}, "io_uring": {"lookup": 7 + rings}}
        return stub.check_asked(channel, before, after, "lookup", least)

    def test_all_over_the_channel_is_accepted(self):
        self.assertEqual(10, self.check("dev", 10, 0)["lookup"])
        self.assertEqual(11, self.check("io_uring", 0, 11)["lookup"])

    def test_one_over_the_other_channel_is_refused(self):
        for channel, dev, rings in (("dev", 10, 1), ("io_uring", 1, 10)):
            with self.subTest(channel), self.assertRaisesRegex(BenchmarkError, "lookup.*1"):
                self.check(channel, dev, rings)

    def test_one_from_the_caches_is_refused(self):
        with self.assertRaisesRegex(BenchmarkError, "9 requests of lookup over io_uring instead of 10"):
            self.check("io_uring", 0, 9)

    def test_rings_that_are_off_or_missing_have_a_reason(self):
        with tempfile.TemporaryDirectory() as directory:
            enabled, disabled, nowhere = Path(directory) / "enabled", Path(directory) / "disabled", Path(directory) / "nowhere"
            for parameter, setting, said in (("Y", "0", None), ("Y", "1", None), ("N", "0", "echo Y"), ("Y", "2", "io_uring_disabled=0")):
                enabled.write_text(f"{parameter}\n")
                disabled.write_text(f"{setting}\n")
                reason = stub.why_no_rings(enabled, disabled)
                self.assertEqual(reason is None, said is None, reason)
                self.assertIn(said or "", reason or "")
            self.assertIn("Linux 6.14", stub.why_no_rings(nowhere, disabled))
            self.assertIn("no io_uring", stub.why_no_rings(enabled, nowhere))


class StubTest(unittest.TestCase):
    """The stub itself, mounted."""

    def setUp(self):
        reason = why_no_mounts()
        if reason and os.environ.get("PMFS_REQUIRE_FUSE") == "1":
            self.fail(reason)
        if reason:
            self.skipTest(reason)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = Path(directory.name)
        (self.work / "dataset" / "deep" / "empty").mkdir(parents=True)
        for number in range(300):
            (self.work / "dataset" / "deep" / f"file{number}").write_bytes(os.urandom(17 * number))
        (self.work / "dataset" / "large").write_bytes(os.urandom(3 << 20))
        machine.BUILD.mkdir(exist_ok=True)
        self.program = self.work / "stub"
        words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", self.program, ROOT / "benchmarks" / "stub.c"]
        subprocess.run(words, check=True)

    def serve(self, channel, *options):
        system = stub.Stub(self.work / "dataset", self.work, channel, options)
        system.program = self.program
        self.addCleanup(system.unmount)
        system.mount()
        return system

    def check(self, channel):
        system = self.serve(channel, "--opens")
        subprocess.run(["diff", "-r", system.source, system.directory], check=True, timeout=SECONDS)
        self.assertEqual(302, sum(1 for path in system.directory.rglob("*") if path.name != "deep"))
        asked = stub.check_asked(channel, {each: {} for each in stub.CHANNELS}, system.asked(), "open", 301)
        # A file of 3 MiB and 299 that are not empty.
        self.assertGreaterEqual(asked["read"], 302)
        with self.assertRaises(OSError):
            (system.directory / "new").touch()
        system.process.terminate()
        self.assertEqual(0, system.process.wait(SECONDS))
        self.assertFalse(machine.is_mounted(system.directory))

    def test_over_dev_the_directory_is_shown(self):
        self.check(stub.DEV)

    def test_over_rings_the_directory_is_shown_or_nothing_is(self):
        reason = stub.why_no_rings()
        if reason is None:
            self.check(stub.IO_URING)
            return
        mountpoint = self.work / "mnt"
        mountpoint.mkdir()
        words = [self.program, "--channel", "io_uring", self.work / "dataset", mountpoint]
        done = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr, "^stub: io_uring.*\n$")
        self.assertFalse(machine.is_mounted(mountpoint))
        with self.assertRaises(systems.Absent):
            stub.Stub(self.work / "dataset", self.work, stub.IO_URING).prepare()

    def test_opens_are_left_to_the_kernel_unless_told_otherwise(self):
        system = self.serve(stub.DEV)
        subprocess.run(["diff", "-r", system.source, system.directory], check=True, timeout=SECONDS)
        self.assertEqual(1, system.asked()["dev"]["open"])

    def test_unmounted_by_others_it_ends(self):
        system = self.serve(stub.DEV)
        subprocess.run(["umount", system.directory], check=True)
        self.assertEqual(0, system.process.wait(SECONDS))


class FuseFloorTest(unittest.TestCase):
    def setUp(self):
        self.module = load("fuse-floor")
        self.arguments = self.module.parse_arguments(["--readers", "1"])
        self.rings, self.pmfs = (self.module.OVER_RINGS, self.module.PMFS)

    def figures(self, *rates):
        return [self.module.Figure(100, 100 / rate, 0.002, 0.001) for rate in rates]

    def found(self, **by_name):
        return {(work, 1, name): figures for work in self.module.WORKS for name, figures in by_name.items()}

    def printed(self, report, found):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            report(found, self.arguments)
        return out.getvalue().splitlines()

    def test_arguments_are_checked(self):
        for words in (["--readers", "1,x"], ["--rounds", "0"], ["--readers", "0"], ["--large", "1M", "--readers", "2"], ["--files", "9"]):
            with self.subTest(words), contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                self.module.parse_arguments(words)

    def test_ratios_are_those_of_the_same_round(self):
        found = self.found(**{"/dev/fuse": self.figures(100, 200, 400), self.rings: self.figures(150, 200, 800), self.pmfs: self.figures(50, 60, 80)})
        line = self.printed(self.module.report, found)[2]
        self.assertEqual(line, "| look-ups | 1 | files/s | 200 | 200 | 60 | 1.50 (1.00 to 2.00) | 0.30 (0.20 to 0.50) |")

    def test_cost_is_for_each_unit_of_daemon_and_reader(self):
        found = self.found(**{"/dev/fuse": self.figures(100, 200), self.pmfs: self.figures(50, 60)})
        lines = self.printed(self.module.report, found)
        self.assertIn("| open and close | 1 | 20.0 + 10.0 | - | 20.0 + 10.0 |", lines)

    def test_without_rings_their_columns_are_empty_and_nothing_is_concluded(self):
        found = self.found(**{"/dev/fuse": self.figures(100), self.pmfs: self.figures(50)})
        self.assertRegex(self.printed(self.module.report, found)[2], re.escape("| 100 | - | 50 | - | 0.50"))
        self.assertEqual([], self.printed(self.module.report_round_trips, found))

    def test_rings_must_win_twofold_in_every_round_trip(self):
        for name, rate, said in (("all", 200, "reached"), ("one does not", 199, "MISSED")):
            found = self.found(**{"/dev/fuse": self.figures(100), self.rings: self.figures(200)})
            found[self.module.WORKS[0], 1, self.rings] = self.figures(rate)
            with self.subTest(name):
                self.assertTrue(self.printed(self.module.report_round_trips, found)[1].endswith(said))

    def test_large_reads_are_no_round_trips(self):
        found = self.found(**{"/dev/fuse": self.figures(100), self.rings: self.figures(200)})
        found[self.module.WORKS[-1], 1, self.rings] = self.figures(10)
        self.assertTrue(self.printed(self.module.report_round_trips, found)[1].endswith("reached"))

    def test_readers_of_fio_count_together_and_the_slowest_one_ends(self):
        job = {"error": 0, "usr_cpu": 10, "sys_cpu": 30, "job_runtime": 1000, "read": {"io_bytes": 4096, "total_ios": 1, "runtime": 900}}
        slow = {**job, "read": {**job["read"], "runtime": 1000}}
        self.assertEqual((8192, 2, 1.0, 0.8), self.module.of_fio([job, slow]))
        with self.assertRaises(BenchmarkError):
            self.module.of_fio([job, {**job, "error": 5}])


class WholeMountTest(unittest.TestCase):
    def test_stub_is_compared_but_is_no_peer(self):
        module = load("whole-mount")
        chosen = module.chosen_systems(Path("/source"), Path("/work"), type("", (), {"pmfs": "pmfs", "pmfs_option": [], "systems": None}))
        self.assertEqual({"stub"}, {system.name for system in chosen if system.kind == "floor"})
        row = {"unit": "files/s", "values": {"stub": [9], "bindfs": [5]}}
        systems_of = [{"name": name, "kind": kind} for name, kind in (("stub", "floor"), ("bindfs", "peer"))]
        self.assertEqual(("bindfs", 5), module.figures.best_peer(row, systems_of))


if __name__ == "__main__":
    unittest.main()
