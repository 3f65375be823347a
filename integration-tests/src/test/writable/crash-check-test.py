#!/usr/bin/env python3
"""Shows that crash-check.py sees faults: feeds it histories of sources made by ways to the source that are wrong on purpose.

Examples:
  crash-check-test.py
  crash-check-test.py Orders.test_shards_behind_their_index_are_seen
  SEEDS=20 crash-check-test.py

Exit status: 0 all faults were seen, and nothing was reported of ways that are right; 1 otherwise.
"""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import crashlib
from crashlib import ABSENT, EXACT, LOOSE, ORDERED

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = range(int(os.environ.get("SEEDS", "4")))
_spec = importlib.util.spec_from_file_location("crash_check", os.path.join(HERE, "crash-check.py"))
crash_check = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(crash_check)


def written(seed, operations=150):
    """A history as the writer records it, and what is left of its directory."""
    place = tempfile.mkdtemp(prefix="crash-check-test.")
    try:
        subprocess.run([sys.executable, os.path.join(HERE, "crash-writer.py"), place + "/d", place + "/records",
                        "--operations", str(operations), "--seed", str(seed), "--records", "written"],
                       check=True, stdout=subprocess.DEVNULL)
        return crashlib.read_records(place + "/records")[0]
    finally:
        shutil.rmtree(place)


HISTORIES = {}


def history(seed):
    if seed not in HISTORIES:
        HISTORIES[seed] = written(seed)
    return HISTORIES[seed]


def judged(h, looks, rule):
    """The first complaint about a sequence of looks."""
    order = crashlib.Order(h)
    for look in looks:
        complaint = order.judge({p: v for p, v in look.items() if v != ABSENT}, rule)
        if complaint:
            return complaint
    return None


def everything(h, k):
    return {p: h.value_at(p, k) for p in h.timeline}


def file_changes(h):
    """(k, path, value before, value) of files that get new content by a close."""
    for i, op in enumerate(h.operations):
        if op["do"] in ("put", "append", "overwrite", "close") and op["path"] not in h.linked:
            before, after = h.value_at(op["path"], i), h.value_at(op["path"], i + 1)
            if after != before and after[0] == "file" and not h.growing.get(op["path"]):
                yield i + 1, op["path"], before, after


class Orders(unittest.TestCase):
    def test_every_state_in_order_is_right(self):
        for seed in SEEDS:
            h = history(seed)
            self.assertIsNone(judged(h, (h.state(k) for k in range(h.begun + 1)), EXACT))
            self.assertIsNone(judged(h, (h.state(k) for k in range(0, h.begun + 1, 7)), EXACT))

    def test_names_that_vanish_may_be_left_out_by_the_ordered_rule(self):
        for seed in SEEDS:
            h = history(seed)
            looks = [{p: v for p, v in h.state(k).items() if p != ".metadata.tmp"} for k in range(h.begun + 1)]
            self.assertIsNone(judged(h, looks, ORDERED))
            self.assertIsNotNone(judged(h, looks, EXACT))

    def test_going_back_is_seen(self):
        for seed in SEEDS:
            h = history(seed)
            for rule in (EXACT, ORDERED, LOOSE):
                self.assertIsNotNone(judged(h, [h.state(h.begun), h.state(h.begun // 2)], rule))

    def test_two_operations_in_the_wrong_order_are_seen(self):
        seen, made = 0, 0
        for seed in SEEDS:
            h = history(seed)
            states = [h.state(k) for k in range(h.begun + 1)]
            for k in range(h.begun - 1):
                first, second = h.deltas[k], h.deltas[k + 1]
                if not first or not second or set(first) & set(second) or (set(first) | set(second)) & (h.linked | set(h.growing)):
                    continue
                look = {**states[k], **second}
                if any(v == ABSENT for v in first.values()):
                    continue  # a name that vanishes next may do so early
                if {p: v for p, v in look.items() if v != ABSENT} in states:
                    continue
                made += 1
                seen += judged(h, states[: k + 1] + [look], EXACT) is not None
        self.assertGreater(made, 20)
        self.assertEqual(seen, made)

    def names_changed_together(self):
        """(history, states, k, paths) of operations that gave a file with several names new content."""
        for seed in SEEDS:
            h = history(seed)
            for k, paths in sorted(h.together.items()):
                if h.deltas[k - 1] and not paths & set(h.growing) and all(h.value_at(p, k - 1)[0] == "file" for p in paths):
                    yield h, [h.state(i) for i in range(k)], k, sorted(paths)

    def test_names_of_one_file_get_new_content_in_turn(self):
        made = 0
        for h, states, k, paths in self.names_changed_together():
            made += 1
            half = {**h.state(k), paths[-1]: h.value_at(paths[-1], k - 1)}
            self.assertIsNone(judged(h, states + [half, h.state(k)], EXACT))
        self.assertGreater(made, 10)

    def test_names_of_one_file_that_stay_behind_are_seen(self):
        made = 0
        for h, states, k, paths in self.names_changed_together():
            last = paths[-1]
            if k + 1 > h.begun or not h.deltas[k - 1] or h.value_at(last, k + 1) != h.value_at(last, k) or h.value_at(last, k - 1) == h.value_at(last, k):
                continue
            made += 1
            older = {**h.state(k), last: h.value_at(last, k - 1)}
            self.assertIsNotNone(judged(h, states + [h.state(k), older], EXACT))
            torn = {**h.state(k), last: h.value_of(h.contents[h.value_at(last, k)[2]][:-1] + b"?")}
            self.assertIsNotNone(judged(h, states + [torn], EXACT))
        self.assertGreater(made, 10)

    def test_shards_behind_their_index_are_seen(self):
        # Where the index was renamed, the shards still are those of the checkpoint before.
        made = 0
        for seed in SEEDS:
            h = history(seed)
            old = None
            for i, op in enumerate(h.operations):
                if op["do"] == "rename" and op["to"] == ".metadata":
                    now = h.state(i + 1)
                    if old is not None and "__0_0.distcp" in old and "__0_0.distcp" in now and old["__0_0.distcp"] != now["__0_0.distcp"]:
                        made += 1
                        look = {**now, "__0_0.distcp": old["__0_0.distcp"]}
                        if "__0_0.distcp" not in h.linked and ABSENT not in h.values_between("__0_0.distcp", i + 1, h.begun):
                            self.assertIsNotNone(judged(h, [look], ORDERED))
                    old = now
        self.assertGreater(made, 5)

    def each_change(self, spoil, rules=(EXACT, ORDERED, LOOSE)):
        made = 0
        for seed in SEEDS:
            h, r = history(seed), random.Random(seed)
            for k, path, before, after in file_changes(h):
                content = spoil(h, before, h.contents[after[2]], r)
                if content is None:
                    continue
                value = h.value_of(content)
                is_part_of_append = k in h.appends and len(content) >= before[1] and h.contents[after[2]].startswith(content)
                if value in h.timeline[path][1] or is_part_of_append:
                    continue
                made += 1
                for rule in rules:
                    complaint = judged(h, [h.state(k - 1), {**h.state(k), path: value}], rule)
                    self.assertIsNotNone(complaint, f"seed {seed}, operation {k - 1}, {path}")
        self.assertGreater(made, 20)

    def test_torn_files_are_seen(self):
        self.each_change(lambda h, before, new, r: new[: r.randrange(len(new))] if len(new) > 1 else None)

    def test_tails_of_zeros_are_seen(self):
        self.each_change(lambda h, before, new, r: new[:-1] + b"\0" if new else None)

    def test_files_of_zeros_are_seen(self):
        self.each_change(lambda h, before, new, r: bytes(len(new)) if new else None)

    def test_files_overwritten_in_place_are_seen(self):
        def half(h, before, new, r):
            old = h.contents[before[2]] if before[0] == "file" else b""
            return new[: len(new) // 2] + old[len(new) // 2:] if len(old) > 1 and len(new) > 1 else None

        self.each_change(half)

    def test_a_rename_without_its_data_is_seen(self):
        made = 0
        for seed in SEEDS:
            h = history(seed)
            for i, op in enumerate(h.operations):
                if op["do"] == "rename" and op["to"] == ".metadata" and h.value_at(".metadata", i + 1)[1] > 0:
                    made += 1
                    empty = {**h.state(i + 1), ".metadata": h.value_of(b"")}
                    self.assertIsNotNone(judged(h, [h.state(i), empty], LOOSE))
        self.assertGreater(made, 5)

    def test_a_removal_ahead_of_its_turn_is_seen(self):
        made = 0
        for seed in SEEDS:
            h = history(seed)
            for i, op in enumerate(h.operations):
                if op["do"] == "unlink" and i > 5 and op["path"] not in h.linked:
                    look = h.state(i - 5)
                    if op["path"] in look and len(h.values_between(op["path"], i - 5, i)) == 1:
                        del look[op["path"]]
                        free = h.linked | set(h.growing)  # may have other values than a state's
                        if any(all(look.get(p, ABSENT) == v for p, v in everything(h, k).items() if p not in free) for k in range(i - 5, h.begun + 1)):
                            continue
                        made += 1
                        self.assertIsNotNone(judged(h, [h.state(i - 5), look], EXACT))
        self.assertGreater(made, 3)

    def test_a_name_that_was_never_made_is_seen(self):
        h = history(0)
        self.assertIsNotNone(judged(h, [{**h.state(50), "n7.pmfs-conflict-host-1": h.value_of(b"x")}], LOOSE))

    def test_an_append_may_be_there_in_part_but_not_torn_elsewhere(self):
        made = 0
        for seed in SEEDS:
            h = history(seed)
            for k, path, before, after in file_changes(h):
                if k not in h.appends or path in h.linked or path in h.growing or before[0] != "file" or not 0 < before[1] < after[1] - 1:
                    continue
                made += 1
                whole, least = h.contents[after[2]], before[1]
                part = h.value_of(whole[:(least + len(whole)) // 2])
                self.assertIsNone(judged(h, [{**h.state(k - 1), path: part}, h.state(k)], EXACT))
                for wrong in (whole[:least] + bytes(len(whole) - least), whole[:least] + whole[least + 1:], whole[:least - 1]):
                    if h.value_of(wrong) not in h.timeline[path][1]:
                        self.assertIsNotNone(judged(h, [h.state(k - 1), {**h.state(k - 1), path: h.value_of(wrong)}], EXACT))
        self.assertGreater(made, 3)

    def test_a_new_file_may_show_some_of_its_writes_but_no_part_of_one(self):
        checked = 0
        for seed in SEEDS:
            h = history(seed)
            for k, path, before, after in file_changes(h):
                if h.operations[k - 1]["do"] != "put" or before != ABSENT or after[1] <= crashlib.WRITE:
                    continue
                content = h.contents[after[2]]
                for size, is_right in ((crashlib.WRITE, True), (crashlib.WRITE - 1, False), (crashlib.WRITE + 1, False), (0, False)):
                    look = {**everything(h, k - 1), path: h.value_of(content[:size])}
                    self.assertEqual(judged(h, [look], EXACT) is None, is_right, f"seed {seed}, operation {k - 1}, {size} bytes")
                    checked += 1
        self.assertGreater(checked, 0)

    def test_a_file_that_grows_may_show_any_prefix_but_no_zeros(self):
        made = 0
        for seed in SEEDS:
            h = history(seed)
            for path, sessions in h.growing.items():
                for k, writes in sessions:
                    whole = writes[-1][1]
                    least = h.value_at(path, k)[1] if h.value_at(path, k)[0] == "file" else 0
                    for n in (len(whole), (len(whole) + least) // 2):
                        made += 1
                        self.assertIsNone(judged(h, [{**h.state(k), path: h.value_of(whole[:n])}], EXACT))
                        if n + 9 != len(whole):
                            self.assertIsNotNone(judged(h, [{**h.state(k), path: h.value_of(whole[:n] + bytes(9))}], LOOSE))
                    if least:
                        self.assertIsNotNone(judged(h, [{**h.state(h.begun), path: h.value_of(whole[:least - 1])}], EXACT))
        self.assertGreater(made, 3)


class Mounts(unittest.TestCase):
    """--mount and --final, over real directories."""

    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="crash-check-test.")
        self.directory, self.records = self.place + "/d", self.place + "/records"
        self.run_program("crash-writer.py", self.directory, self.records, "--operations", "120", "--seed", "11", "--records", "written")

    def tearDown(self):
        shutil.rmtree(self.place)

    def run_program(self, name, *arguments):
        return subprocess.run([sys.executable, os.path.join(HERE, name), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def statuses(self):
        return [self.run_program("crash-check.py", self.records, *w).returncode for w in (
            ["--mount", self.directory], ["--mount", self.directory, "--after", "power"], ["--final", self.directory])]

    def last_synced(self):
        h = crashlib.read_records(self.records)[0]
        for k, path in reversed(h.syncs):
            if len(h.values_between(path, k, h.begun)) == 1 and h.value_at(path, k)[1] > 0 and path not in h.linked:
                return os.path.join(self.directory, path)
        raise AssertionError("no file stayed as it was fsynced")

    def test_what_is_right_is_right(self):
        self.assertEqual(self.statuses(), [0, 0, 0])

    def test_a_synced_file_that_is_gone_is_seen(self):
        os.unlink(self.last_synced())
        self.assertEqual(self.statuses(), [1, 1, 1])

    def test_a_synced_file_that_is_short_is_seen(self):
        path = self.last_synced()
        os.truncate(path, os.stat(path).st_size - 1)
        self.assertEqual(self.statuses(), [1, 1, 1])

    def test_one_wrong_byte_is_seen(self):
        with open(self.last_synced(), "r+b") as f:
            f.write(b"\0")
        self.assertEqual(self.statuses(), [1, 1, 1])

    def test_an_unknown_name_is_seen(self):
        open(self.directory + "/new", "w").close()
        self.assertEqual(self.statuses(), [1, 1, 1])

    def test_attributes_that_differ_are_seen(self):
        copy = self.place + "/copy"
        subprocess.run(["cp", "-a", self.directory, copy], check=True)
        final = ["--final", copy, "--like", self.directory]
        self.assertEqual(self.run_program("crash-check.py", self.records, *final).returncode, 0)
        os.chmod(copy + "/events.log", 0o601)
        self.assertEqual(self.run_program("crash-check.py", self.records, *final).returncode, 1)

    def test_a_writer_that_was_killed_goes_on(self):
        again = self.place + "/again"
        records = self.place + "/records2"
        writer = subprocess.Popen([sys.executable, os.path.join(HERE, "crash-writer.py"), again, records, "--seconds", "30", "--seed", "3", "--records", "written"],
                                  stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not (os.path.exists(records) and os.path.getsize(records) > 20000):
            time.sleep(0.01)
        writer.kill()
        writer.wait()
        self.assertEqual(self.run_program("crash-check.py", records, "--mount", again).returncode, 0)
        went_on = self.run_program("crash-writer.py", again, records, "--continue", "--operations", "50")
        self.assertEqual(went_on.returncode, 0, went_on.stdout)
        checked = self.run_program("crash-check.py", records, "--mount", again)
        self.assertEqual(checked.returncode, 0, checked.stdout)


class Watches(unittest.TestCase):
    """--watch, over a directory that a way to the source changes meanwhile."""

    def watched(self, drain, *options):
        place = tempfile.mkdtemp(prefix="crash-check-test.")
        try:
            h = written(23, 60)
            os.mkdir(place + "/source")
            with open(place + "/records", "w") as f:
                import json

                f.write(json.dumps({"seed": h.seed, "directory": "x"}) + "\n")
                for op in h.operations:
                    f.write(json.dumps(op) + "\n" + json.dumps({"done": op["op"]}) + "\n")
                f.write('{"end": true}\n')
            thread = threading.Thread(target=drain, args=(h, place + "/source"))
            thread.start()
            result = subprocess.run([sys.executable, os.path.join(HERE, "crash-check.py"), place + "/records", "--watch", place + "/source",
                                     "--settle", "3", "--interval", "0.001", "--ignore", ".part-*", *options], stdout=subprocess.PIPE, text=True)
            thread.join()
            return result
        finally:
            shutil.rmtree(place)

    @staticmethod
    def put(h, source, path, value, torn=False):
        if value[0] == "file":
            if torn:
                with open(os.path.join(source, path), "wb") as f:
                    f.write(h.contents[value[2]][: value[1] // 2])
                    f.flush()
                    time.sleep(0.02)
                    f.write(h.contents[value[2]][value[1] // 2:])
                return
            temporary = os.path.join(source, ".part-1")
            with open(temporary, "wb") as f:
                f.write(h.contents[value[2]])
            os.rename(temporary, os.path.join(source, path))
        elif value[0] == "directory":
            os.mkdir(os.path.join(source, path))
        elif value[0] == "link":
            os.symlink(value[1], os.path.join(source, path))

    def apply(self, h, source, k, torn=False):
        op, delta = h.operations[k], h.deltas[k]
        if op["do"] == "rename" and delta:
            os.rename(os.path.join(source, op["path"]), os.path.join(source, op["to"]))
            return
        for p, v in delta.items():
            if v == ABSENT:
                (os.rmdir if op["do"] == "rmdir" else os.unlink)(os.path.join(source, p))
            elif not (op["do"] == "symlink" and p != op["path"]):
                self.put(h, source, p, v, torn)

    def test_a_right_way_is_right(self):
        def drain(h, source):
            for k in range(h.begun):
                self.apply(h, source, k)
                time.sleep(0.003)

        result = self.watched(drain)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_way_that_writes_in_place_is_seen(self):
        def drain(h, source):
            for k in range(h.begun):
                self.apply(h, source, k, torn=True)

        result = self.watched(drain)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("torn", result.stdout)

    def test_a_way_that_stops_is_seen(self):
        def drain(h, source):
            for k in range(h.begun // 2):
                self.apply(h, source, k)

        result = self.watched(drain)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("did not come to the last state", result.stdout)

    def test_a_way_of_small_files_first_is_seen(self):
        def drain(h, source):
            # Large files come last, as with several copiers and no order.
            late = []
            for k in range(h.begun):
                op = h.operations[k]
                if op["do"] == "put" and op["size"] > 5000:
                    late.append(k)
                else:
                    try:
                        self.apply(h, source, k)
                    except OSError:
                        pass
                time.sleep(0.003)

        result = self.watched(drain)
        self.assertEqual(result.returncode, 1, result.stdout)


if __name__ == "__main__":
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        sys.exit(0)
    unittest.main()
