"""What benchmarks/papers keeps and what it makes of it; nothing is measured."""

import dataclasses
import json
import subprocess
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path
from unittest import mock

from loading import load

HERE = {"commit": "c1", "machine": "m1", "pmfs": "scripts/pmfs", "begun": "2026-11-28 07:00:00", "command": "benchmarks/papers monarch"}


class RecordTest(unittest.TestCase):
    def setUp(self):
        self.papers = load("papers")
        self.comparisons = self.papers.comparisons
        self.here = self.comparisons.Run(**HERE)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name) / "results" / "papers-monarch.json"

    def measuring(self, here=None, again=False):
        arguments = Namespace(quick=True, rounds=1, pmfs="pmfs", pmfs_option=[], again=again)
        return self.comparisons.Measuring(self.comparisons.Record(self.path), here or self.here, arguments, None)

    def test_comparison_outlives_the_call_that_measured_it(self):
        self.measuring().compare("a", lambda: {"source": [{"s": 4}, {"s": 6}], "pmfs": [{"s": 2}]})
        later = self.measuring()
        self.assertEqual(later.missing(["a", "b"]), ["b"])
        self.assertEqual(later.record.comparisons["a"].figure("source", "s").value, 5)

    def test_interrupted_comparison_leaves_those_before_it_and_nothing_of_its_own(self):
        first = self.measuring()
        first.compare("a", lambda: {"source": [{"s": 1}]})
        with self.assertRaises(KeyboardInterrupt):
            first.compare("b", mock.Mock(side_effect=KeyboardInterrupt))
        self.assertEqual(self.measuring().missing(["a", "b"]), ["b"])

    def test_other_commit_machine_or_mount_options_are_measured_again(self):
        self.measuring().compare("a", lambda: {"source": [{"s": 1}]})
        for change in ({"commit": "c2"}, {"machine": "m2"}, {"pmfs": "scripts/pmfs --eviction lru"}):
            with self.subTest(change):
                self.assertEqual(self.measuring(dataclasses.replace(self.here, **change)).missing(["a"]), ["a"])
        same = dataclasses.replace(self.here, begun="2026-11-29 07:00:00", command="benchmarks/papers --all")
        self.assertEqual(self.measuring(same).missing(["a"]), [])
        self.assertEqual(self.measuring(again=True).missing(["a"]), ["a"])

    def test_fewer_rounds_than_wanted_are_measured_again(self):
        thrice = dataclasses.replace(self.here, rounds=3)
        self.measuring().compare("a", lambda: {"source": [{"s": 1}]})
        self.assertEqual(self.measuring(thrice).missing(["a"]), ["a"])
        self.measuring(thrice).compare("a", lambda: {"source": [{"s": 1}] * 3})
        self.assertEqual(self.measuring().missing(["a"]), [])

    def test_commit_names_the_code_and_not_the_pages(self):
        root = self.path.parent
        (root / "docs").mkdir(parents=True)
        seen = []

        def change(name, content, *commands):
            (root / name).write_text(content)
            for command in commands:
                subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command.split()], cwd=root, check=True, stdout=subprocess.DEVNULL)
            seen.append(self.comparisons.commit())

        with mock.patch.object(self.comparisons.machine, "ROOT", root):
            change("code", "1", "init -q -b main", "add .", "commit -m one")
            change("docs/page", "1", "add .", "commit -m two")
            change("README.md", "1", "add .", "commit -m three")
            change("code", "2")
            change("code", "3")
            change("code", "1")
        clean, *pages, first, second, undone = seen
        self.assertEqual([*pages, undone], [clean] * 3)
        self.assertTrue(first.startswith(f"{clean}-dirty-") and second.startswith(f"{clean}-dirty-"))
        self.assertNotEqual(first, second)

    def test_comparisons_that_are_no_longer_wanted_go(self):
        first = self.measuring()
        for name in ("a", "b"):
            first.compare(name, lambda: {"source": [{"s": 1}]})
        later = self.measuring()
        later.missing(["b"])
        later.finish()
        self.assertEqual(list(later.record.comparisons), ["b"])

    def test_ratio_of_figures_of_two_runs_is_refused(self):
        record = self.measuring()
        record.compare("a", lambda: {"source": [{"s": 4}], "pmfs": [{"s": 2}]})
        other = self.comparisons.Comparison("a", dataclasses.replace(self.here, begun="another day"), {"source": [{"s": 4}]})
        one = record.record.comparisons["a"]
        self.assertEqual(one.figure("pmfs", "s") / one.figure("source", "s"), 0.5)
        with self.assertRaises(self.papers.BenchmarkError):
            one.figure("pmfs", "s") / other.figure("source", "s")

    def test_figure_that_another_version_did_not_measure_is_told(self):
        one = self.comparisons.Comparison("a", self.here, {"source": [{"s": 4}]})
        for side, name in (("source", "mount"), ("pmfs", "s")):
            with self.assertRaisesRegex(self.papers.BenchmarkError, f"no figure '{name}' of '{side}'"):
                one.value(side, name)

    def test_each_round_begins_with_another_side(self):
        calls = []
        sides = {name: lambda name=name: calls.append(name) or {"s": len(calls)} for name in "abc"}
        found = self.measuring().in_turn(sides, 2)
        self.assertEqual("".join(calls), "abcbca")
        self.assertEqual(found, {"a": [{"s": 1}, {"s": 6}], "b": [{"s": 2}, {"s": 4}], "c": [{"s": 3}, {"s": 5}]})


class PapersTest(unittest.TestCase):
    def setUp(self):
        self.papers = load("papers")

    def comparison(self, name, sides):
        one = self.papers.comparisons
        return one.Comparison(name, one.Run(**HERE), {side: [figures] for side, figures in sides.items()})

    def rows(self, paper, *found):
        """The table's rows without its head; each panel has a bar for each side."""
        module = self.papers.PAPERS[paper]
        for panel in module.panels(found):
            self.assertEqual(list(panel["bars"]), list(found[0].sides))
        return [line for line in module.tell(found).splitlines() if line.startswith("| ")][1:]

    def test_monarch_compares_each_tier_with_the_source(self):
        epochs = {"epoch 1": 3.0, "epoch 2": 2.0, "epoch 3": 1.0}
        direct = {"s": 10.0, "mount": 0.0, **epochs, "opens": 100, "reads": 200, "reads of the device": 50, "bytes of the device": 1000}
        ours = {"s": 7.0, "mount": 1.0, **epochs, "opens": 62, "reads": 88, "reads of the device": 50, "bytes of the device": 500}
        rows = self.rows("monarch", self.comparison("LeNet, small files", {"source": direct, "pmfs, tier 60 %": ours}))
        self.assertEqual(rows[1], "| LeNet, small files: pmfs, tier 60 % | 7.0 | 1.0 | 3.0, 2.0, 1.0 | -30% | -38% | -56% | +0% | -50% |")

    def test_fanstore_has_speeds_of_both_states_and_the_gain_of_compression(self):
        speeds = {"everything dropped": 400.0, "in memory": 2000.0}
        sides = {"source": speeds, "squashfs": speeds, "erofs": speeds, "pmfs": {"everything dropped": 300.0, "in memory": 1500.0}}
        gains = {name: {"JSON": gain} for name, gain in (("squashfs-zstd", 8.0), ("pmfs-auto", 7.0))}
        rows = self.rows("fanstore", self.comparison("1 MiB", sides))
        self.assertEqual(rows[1], "| 1 MiB, in memory | 2,000 | 2,000 | 2,000 | 1,500 | 1.00 | 1.00 | 0.75 |")
        self.assertEqual(self.rows("fanstore", self.comparison("compressed", gains)), ["| squashfs-zstd | 8.00 |", "| pmfs-auto | 7.00 |"])

    def test_fanstore_gain_is_that_on_the_disk(self):
        systems = {name: [{"stored": 1, "onDisk": size}] for name, size in (("source", 100), ("pmfs-none", 100), ("squashfs-zstd", 20), ("pmfs-auto", 25))}
        gains = self.papers.papers_fanstore.gains({"kinds": {"JSON": {"bytes": 100, "systems": systems}}})
        self.assertEqual(gains, {"squashfs-zstd": [{"JSON": 5}], "pmfs-auto": [{"JSON": 4}]})

    def test_dlfs_has_rate_share_and_cpu_of_each_side(self):
        dlfs, states = self.papers.papers_dlfs, ("everything dropped", "in memory")
        key = dlfs.key
        figures = {key(count, state, what): value for count in (1, 64) for state in states for what, value in (("samples/s", 1000.0), ("µs of CPU a sample", 20.0))}
        twice = {name: 2 * value for name, value in figures.items()}
        one = self.comparison("512 B", {"source": figures, dlfs.PEER: {**twice, dlfs.REMOTE: 0.48}})
        rows = self.rows("dlfs", one)
        self.assertEqual(len(rows), 4)
        self.assertEqual(rows[0], "| 512 B, everything dropped, 1 | 1,000 (1.00), 20 µs | 2,000 (2.00), 40 µs |")
        self.assertTrue(dlfs.tell([one]).endswith("that came from the peer: 512 B 0.48"))

    def test_flash_has_stall_and_bytes_written(self):
        figures = {"stall": 0.4, "written to the disk": 2.01, "written to the source": 1.02, "checkpoint": 900}
        self.assertEqual(self.rows("flash", self.comparison("64 MiB", {"pmfs": figures})), ["| 64 MiB, pmfs | 0.40 | 2.01 | 1.02 |"])

    def test_mlperf_says_where_the_trials_ended_and_divides_by_no_accelerator(self):
        def figures(number):
            return {"accelerators": number, "limit of accelerators": 40, "MB/s": 900.0, "s before": 1.0}

        rows = self.rows("mlperf", self.comparison("CosmoFlow", {"source": figures(8), "pmfs, later epoch": figures(40)}))
        self.assertEqual(rows[1], "| CosmoFlow, pmfs, later epoch | 1.0 | 900 | at least 40 | 5.0 |")
        self.assertTrue(self.rows("mlperf", self.comparison("CosmoFlow", {"source": figures(0), "cp": figures(8)}))[1].endswith("| 8 | - |"))

    def test_mlperf_finds_the_largest_number_within_a_twentieth(self):
        for truth in (0, 1, 2, 7, 8, 9, 33, 100):
            for guess in (0, 1, 8, 30, 100):
                with self.subTest(truth=truth, guess=guess):
                    found = self.papers.papers_mlperf.largest(lambda number: number <= truth, guess, 100)
                    self.assertLessEqual(found, truth)
                    self.assertGreaterEqual(found, truth - max(1, truth // 20) + 1)

    def test_mlperf_utilisation_is_the_mean_share_of_computing(self):
        module = self.papers.papers_mlperf
        workload = module.Workload(1000, 4, 10_000, 0.9, False)  # 0.1 s of computing for a file
        line = {"files": 10, "seconds": 1.25}
        with mock.patch.object(module, "read_together", return_value=[line, {**line, "seconds": 2.0}]) as read:
            self.assertAlmostEqual(module.utilisation("way", workload, 2), (0.8 + 0.5) / 2)
        self.assertEqual(read.call_args.kwargs["words"], ["--compute", 100_000])

    def test_hvac_compares_later_epochs_and_counts_the_first_ones_operations(self):
        local = {"copies on disk": 1000.0, "in memory": 4000.0}
        ours = {"copies on disk": 950.0, "in memory": 3800.0, "first epoch": 500.0, "opens at the source for a file": 1.0}
        rows = self.rows("hvac", self.comparison("4 nodes", {"local file system": local, "pmfs": ours}))
        self.assertEqual(rows[0], "| 4 nodes, copies on disk | 1,000 | 950 | 0.95 | - |")
        self.assertEqual(rows[2], "| 4 nodes, first epoch | - | 500 | - | 1.000 |")

    def test_training_compares_whole_jobs_and_shows_the_loss_in_full(self):
        figures = {"s before": 0.0, "epoch 1": 50.0, "epoch 2": 50.0, "epoch 3": 50.0, "s": 150.0, "bytes of the device": 9e8, "last loss": 0.1 + 0.2}
        ours = {**figures, "s before": 2.0, "epoch 2": 20.0, "epoch 3": 18.0, "s": 90.0, "bytes of the device": 3e8}
        rows = self.rows("training", self.comparison("small network, 2 workers", {"source": figures, "pmfs": ours}))
        self.assertEqual(rows[1], "| small network, 2 workers, pmfs | 2.0 | 50.0 | 20.0 | 18.0 | 90.0 | 60% | 300 | 0.30000000000000004 |")

    def test_training_with_other_losses_is_an_error(self):
        module = self.papers.papers_training
        ways = [Namespace(name="source"), Namespace(name="pmfs")]
        with mock.patch.object(module, "training", side_effect=[({}, [2.5, 0.1]), ({}, [2.5, 0.1 + 1e-16])]):
            with self.assertRaisesRegex(self.papers.BenchmarkError, "pmfs: other losses than source"):
                module.sides(ways, Path("work"), [], "device")
        with mock.patch.object(module, "training", return_value=({"s": 1.0}, [2.5, 0.1])):
            self.assertEqual(module.sides(ways, Path("work"), [], "device"), {"source": [{"s": 1.0}], "pmfs": [{"s": 1.0}]})

    def test_weights_compares_times_and_how_often_the_source_was_read(self):
        seconds, times = "s until all nodes have them", "times the source was read"
        sides = {"source": {seconds: 172.0, times: 4.0}, "pmfs": {seconds: 43.0, times: 1.0}}
        self.assertEqual(self.rows("weights", self.comparison("4 nodes, mmap", sides)), ["| 4 nodes, mmap | 172.0 | 43.0 | 25% | 4.00 | 1.00 |"])

    def test_environment_has_a_row_for_each_start_and_the_bytes_of_the_device(self):
        starts = self.papers.papers_environment.STARTS
        sides = {"source": dict.fromkeys(starts, 6.0), "pmfs": dict.fromkeys(starts, 3.0)}
        for figures, size in zip(sides.values(), (3.2e9, 0.8e9)):
            figures["bytes of the device"] = size
        rows = self.rows("environment", self.comparison("4 nodes", sides))
        self.assertEqual(rows[1], "| 4 nodes, second, nothing in memory | 6.00 | 3.00 | 50% |")
        self.assertEqual(rows[3], "| 4 nodes, MB from the device, all three | 3,200 | 800 | 25% |")


class HeadlinesTest(unittest.TestCase):
    def setUp(self):
        self.papers = load("papers")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def keep(self, name, comparison, figure, ours):
        one = self.papers.comparisons
        record = one.Record(self.directory / f"papers-{name}.json")
        record.keep(one.Comparison(comparison, one.Run(**HERE), {"source": [{figure: 4.0}], ours: [{figure: 1.0}]}))

    def test_picture_has_a_panel_of_each_paper_that_is_kept(self):
        with mock.patch.object(self.papers, "run") as plot:
            self.papers.draw_headlines(self.directory)
            plot.assert_not_called()
            for number, (name, comparison, figure, ours, work, _) in enumerate(self.papers.HEADLINES, 1):
                self.keep(name, comparison, figure, ours)
                self.papers.draw_headlines(self.directory)
                panels = json.loads((self.directory / "papers.json").read_text())["panels"]
                self.assertEqual([panel["bars"] for panel in panels], [{"source": 4.0, "pmfs": 1.0}] * number)
                self.assertEqual(panels[-1]["work"], work)
                self.assertEqual(plot.call_count, number)

    def test_headlines_are_comparisons_that_the_papers_make(self):
        for name, comparison, *_ in self.papers.HEADLINES:
            known = (self.papers.PAPERS[name].__dict__.get(names) or {} for names in ("TRAININGS", "WORKLOADS", "SIZES"))
            if name in ("training", "mlperf", "flash"):
                self.assertIn(comparison, {key for keys in known for key in keys})


class LargeFilesTest(unittest.TestCase):
    def setUp(self):
        self.files = load("papers").papers_weights.largefiles
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.sums = self.directory / "sums.json"

    def make(self, size):
        known = self.files.make(self.directory, ["a/one", "two"], size)
        self.sums.write_text(json.dumps(known))
        return known

    def test_each_reader_reads_every_file(self):
        known = self.make(self.files.BLOCK * 9 + 5)
        self.assertEqual([len(blocks) for blocks in known.values()], [10, 10])
        for how in self.files.READERS:
            self.assertEqual(len(self.files.read_on_all([self.directory] * 2, how, self.sums)), 2)

    def test_other_bytes_are_an_error(self):
        self.make(self.files.BLOCK + 1)
        with open(self.directory / "two", "r+b") as file:
            file.seek(self.files.BLOCK)
            byte = file.read(1)[0]
            file.seek(self.files.BLOCK)
            file.write(bytes([byte ^ 1]))
        for how in self.files.READERS:
            with self.assertRaises(self.files.BenchmarkError):
                self.files.read_on_all([self.directory], how, self.sums)


if __name__ == "__main__":
    unittest.main()
