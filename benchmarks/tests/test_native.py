"""That an image shows exactly the tree it was made of, with data in bundles, and what benchmarks/native makes of its figures."""

import contextlib
import errno
import io
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import erofs
import machine
from loading import load
from machine import BenchmarkError

BUNDLE = 1 << 20
# What must be the same of each path; the size of a directory is the file system's own affair.
ATTRIBUTES = r"%y %m %n %U %G %T@ %P %l\n"


class MountedTest(unittest.TestCase):
    """Images, mounted from files."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.work = Path(directory.name)
        reason = erofs.why_not(self.work) if machine.is_root() else "needs root"
        if reason:
            self.skipTest(reason)
        self.source = self.work / "dataset"
        self.make(random.Random(42))

    def make(self, generator):
        (self.source / "many" / "empty").mkdir(parents=True)
        for number in range(700):
            # Names of up to 200 characters: directories of several blocks, in the images of all sizes of blocks.
            name = f"f{number:0{1 + number % 200}d}"
            (self.source / "many" / name).write_bytes(generator.randbytes(generator.randrange(9000)))
        for size in (0, 1, 511, 512, 513, 4095, 4096, 4097, BUNDLE, (2 << 20) - 1, 2 << 20, (5 << 20) + 77):
            (self.source / f"size{size}").write_bytes(generator.randbytes(size))
        os.link(self.source / "size4097", self.source / "hard")
        os.symlink("many/../size1", self.source / "link")
        os.symlink("missing", self.source / "many" / "dangling")
        os.chmod(self.source / "size1", 0o4640)
        os.chown(self.source / "size1", 70000, 80000)
        os.utime(self.source / "size512", ns=(0, -1_500_000_000))

    def bundles(self, block_size):
        return erofs.Bundles(self.source, self.work / f"bundles-{block_size}", block_size, BUNDLE)

    def mounted(self, bundles, options=()):
        system = erofs.Native(self.source, self.work, bundles, f"native-{bundles.block_size}", options)
        system.prepare()
        self.addCleanup(system.unmount)
        system.mount()
        return system

    def attributes(self, directory):
        return sorted(subprocess.run(["find", ".", "-printf", ATTRIBUTES], cwd=directory, stdout=subprocess.PIPE, check=True).stdout.splitlines())

    def test_image_shows_its_tree(self):
        for bundles in map(self.bundles, erofs.BLOCK_SIZES):
            for options in ((), ("directio",)):
                with self.subTest(block_size=bundles.block_size, options=options):
                    system = self.mounted(bundles, options)
                    self.assertGreater(len(system.bundles.paths), 5)
                    machine.drop_caches()
                    subprocess.run(["diff", "-r", "--no-dereference", self.source, system.directory], check=True)
                    self.assertEqual(self.attributes(self.source), self.attributes(system.directory))
                    self.assertEqual(os.stat(system.directory / "hard").st_ino, os.stat(system.directory / "size4097").st_ino)
                    with self.assertRaises(FileNotFoundError):
                        os.stat(system.directory / "many" / "g")
                    with self.assertRaises(OSError) as failed:
                        (system.directory / "new").touch()
                    self.assertEqual(errno.EROFS, failed.exception.errno)
                    system.unmount()
                    self.assertFalse(machine.is_mounted(system.directory))

    def test_bytes_come_from_the_bundles(self):
        system = self.mounted(self.bundles(4096))
        device, offset = system.bundles.extents[str(self.source / "size4096")]
        with open(system.bundles.paths[device], "r+b") as bundle:
            bundle.seek(offset)
            bundle.write(b"changed")
        machine.drop_caches()
        self.assertEqual(b"changed", (system.directory / "size4096").read_bytes()[:7])

    def test_removed_bundle_is_still_read_and_a_truncated_one_fails(self):
        system = self.mounted(self.bundles(4096))
        content = (self.source / "size4096").read_bytes()
        device, _ = system.bundles.extents[str(self.source / "size4096")]
        bundle = system.bundles.paths[device]
        descriptor = os.open(bundle, os.O_RDWR)
        try:
            bundle.unlink()
            machine.drop_caches()
            self.assertEqual(content, (system.directory / "size4096").read_bytes())
            os.truncate(descriptor, 0)
            machine.drop_caches()
            with self.assertRaises(OSError) as failed:
                (system.directory / "size4096").read_bytes()
            self.assertEqual(errno.EIO, failed.exception.errno)
        finally:
            os.close(descriptor)

    def test_too_few_devices_are_refused(self):
        system = self.mounted(self.bundles(4096))
        other = self.work / "other"
        other.mkdir()
        with self.assertRaises(OSError):
            erofs.mount(system.image, system.bundles.paths[1:], other)
        self.assertFalse(machine.is_mounted(other))

    def test_image_in_memory_is_refused_with_a_reason(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory, machine.in_memory(Path(directory)) as tiers:
            self.assertIn("on tmpfs", erofs.why_not(tiers))
            self.assertEqual([], os.listdir(tiers))


class RefusalTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = Path(directory.name)

    def test_kernel_without_erofs_has_a_reason(self):
        listed = self.work / "filesystems"
        listed.write_text("nodev\ttmpfs\n\text4\n")
        self.assertIn("no EROFS", erofs.why_not(self.work, listed))

    def test_kernel_that_wants_a_block_device_has_a_reason_and_nothing_is_left(self):
        listed = self.work / "filesystems"
        listed.write_text("\terofs\n")
        for number, said in ((errno.ENOTBLK, "Linux 6.12"), (errno.EPERM, "Operation not permitted")):
            with self.subTest(said), mock.patch.object(erofs, "mount", side_effect=OSError(number, os.strerror(number))):
                self.assertIn(said, erofs.why_not(self.work, listed))
                self.assertEqual(["filesystems"], os.listdir(self.work))

    def test_tree_with_a_device_is_refused(self):
        os.mkfifo(self.work / "fifo")
        with self.assertRaisesRegex(BenchmarkError, "fifo: neither"):
            erofs.read_tree(self.work, {})

    def test_more_bundles_than_an_image_has_devices_are_refused(self):
        with self.assertRaisesRegex(BenchmarkError, "65536 bundles"):
            erofs.write_image(self.work / "image", self.work, {}, [4096] * 65536, 4096)


class BundlesTest(unittest.TestCase):
    def test_files_lie_at_blocks_and_in_one_bundle_each(self):
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "dataset"
            source.mkdir()
            for name, size in (("a", 700), ("b", 512), ("c", 100), ("d", 9000), ("e", 0)):
                (source / name).write_bytes(name.encode() * size)
            bundles = erofs.Bundles(source, Path(directory) / "bundles", 512, 2048)
            bundles.write()
            bundles.write()
            extents = {Path(path).name: extent for path, extent in bundles.extents.items()}
            self.assertEqual({"a": (0, 0), "b": (0, 1024), "c": (0, 1536), "d": (1, 0), "e": (2, 0)}, extents)
            self.assertEqual([2048, 9216, 0], bundles.sizes())
            self.assertEqual(b"b" * 512, bundles.paths[0].read_bytes()[1024:1536])
            self.assertAlmostEqual((2048 + 9216) / 10312 - 1, bundles.padding())


class NativeTest(unittest.TestCase):
    def setUp(self):
        self.module = load("native")
        self.arguments = self.module.parse_arguments(["--readers", "2,16", "--tiers", "disk", "--share", "0"])
        self.state = self.module.PAGES_DROPPED

    def found(self, rates, costs):
        """Two rounds of 100 files by name; CPU seconds only where they are given."""
        return {
            (self.state, readers, name): [self.module.Figure(100, 100 / rate, cost, cost / 2, 0) for rate, cost in zip(values, costs[name])]
            for readers in (2, 16)
            for name, values in rates.items()
        }

    def printed(self, report, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            report(*arguments, self.arguments)
        return out.getvalue().splitlines()

    def worth(self, native=(150, 150), native_costs=(0.03, 0.03)):
        rates = {"stub": (100, 100), "pmfs": (90, 90), "pmfs-passthrough": (80, 80), "native": native}
        costs = {"stub": (0.01, 0.01), "pmfs": (0.04, 0.04), "pmfs-passthrough": (0.05, 0.05), "native": native_costs}
        lines = self.printed(self.module.report_worth, {"disk": (self.found(rates, costs), {})})
        return next(line for line in lines if "| native |" in line)

    def test_arguments_are_checked(self):
        for words in (["--readers", "1,x"], ["--rounds", "0"], ["--tiers", "tape"], ["--tiers", ""], ["--share", "-1"], ["--block", "100"], ["--bundle", "0"]):
            with self.subTest(words), contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                self.module.parse_arguments(words)

    def test_twice_the_floor_is_worth_it_and_less_is_not(self):
        self.assertEqual("| disk | pages dropped | native | 2.10 (2.00 to 2.20) | 2.33 (2.22 to 2.44) | 0.75 (0.75 to 0.75) | by speed |", self.worth(native=(200, 220)))
        self.assertTrue(self.worth(native=(199, 199)).endswith("| NO |"))

    def test_half_of_the_cheaper_modes_cpu_is_worth_it_and_more_is_not(self):
        self.assertTrue(self.worth(native_costs=(0.02, 0.02)).endswith("| 0.50 (0.50 to 0.50) | by CPU |"))
        self.assertTrue(self.worth(native_costs=(0.021, 0.021)).endswith("| NO |"))

    def test_what_was_not_measured_is_worth_nothing(self):
        lines = self.printed(self.module.report_worth, {"disk": ({}, {})})
        self.assertIn("| disk | pages dropped | native | - | - | - | not measured |", lines)

    def test_tables_have_shares_of_the_floor_and_cpu_for_a_file(self):
        found = self.found({"stub": (100, 200), "native": (200, 300)}, {"stub": (0.01, 0.01), "native": (0.02, 0.02)})
        lines = self.printed(self.module.report_tier, found, {"stub": [0.5], "native": [0.25]}, "disk")
        self.assertIn("| native | 250 (1.75) | 250 (1.75) | 0.250 s |", lines)
        self.assertIn("| native | 200 (100 + 0) | 200 (100 + 0) |", lines)


class MachineTest(unittest.TestCase):
    def test_busy_seconds_grow_with_work(self):
        before = machine.busy_seconds()
        end = os.times().user + 0.3
        while os.times().user < end:
            pass
        self.assertGreaterEqual(machine.busy_seconds() - before, 0.2)


if __name__ == "__main__":
    unittest.main()
