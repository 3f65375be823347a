#!/usr/bin/env python3
"""Runs crash-writer.py, ends daemons at random moments by a command, and checks mount and source with crash-check.py.

Each writer has a directory below DIRECTORY, and a watcher for the same directory below SOURCE. A round waits for a
random time, runs the command of the kill, waits until DIRECTORY can be listed, stops the writers for a moment, and
checks that what they recorded is there. At the end the writers stop, the command of the drain runs, and the sources
must have come to the last state by states in order, and have it. With --full-kill after each N rounds the writers are
ended too, that command runs (which ends the mount and makes it again), and they go on with what they had recorded.

With --power-cut instead, each round has new writers, which are ended; the command then takes from the machine what was
not synced, and makes the mount again. What was fsynced must be there, and after the drain the source must show what
the mount shows.

Examples:
  crash-rounds.py /mnt/run42 /lustre/run42 --rounds 200 --kill-command 'kill -9 $(cat /run/daemon.pid)' --drain-command 'pmfs drain /mnt/run42'
  crash-rounds.py DIR DIR --rounds 3 --no-watch       # a plain directory, where nothing is found
  crash-rounds.py /mnt/run42 /lustre/run42 --writers 2 --rounds 20 --seed 5 --kill-command ./kill --drain-command ./drain \\
      --full-kill './remount' --full-every 5
  crash-rounds.py /mnt/run42 /lustre/run42 --rounds 20 --power-cut ./cut-and-mount --drain-command 'pmfs drain /mnt/run42'

Exit status: 0 as promised; 1 differences; 2 wrong usage.
"""

import argparse
import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import crashlib

HERE = os.path.dirname(os.path.abspath(__file__))
_spec = importlib.util.spec_from_file_location("crash_check", os.path.join(HERE, "crash-check.py"))
crash_check = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(crash_check)


class Writing:
    """A writer and the watcher of its source."""

    def __init__(self, options, number, place):
        self.options, self.number = options, number
        name = f"crash-{os.getpid()}-{number}"
        self.synced = "synced" if options.power_cut else "written"
        self.directory = os.path.join(options.directory, name)
        self.source = os.path.join(options.source, name)
        self.records = os.path.join(place, f"records-{number}")
        self.log = os.path.join(place, f"writer-{number}.log")
        self.watch_log = os.path.join(place, f"watcher-{number}.log")
        self.writer = self.watcher = None

    def start(self, go_on):
        more = ["--continue"] if go_on else []
        with open(self.log, "a") as log:
            self.writer = subprocess.Popen(
                [sys.executable, os.path.join(HERE, "crash-writer.py"), self.directory, self.records, "--seconds", "100000", "--seed",
                 str(self.options.seed + self.number), "--records", self.synced, *(["--rate", str(self.options.rate)] if self.options.rate else []), *more],
                stdout=log, stderr=log)
        if self.watcher is None and not self.options.no_watch:
            while not os.path.exists(self.records):
                time.sleep(0.01)
            with open(self.watch_log, "a") as log:
                self.watcher = subprocess.Popen(
                    [sys.executable, os.path.join(HERE, "crash-check.py"), self.records, "--watch", self.source, "--rule", self.options.rule, "--settle", "100000",
                     "--interval", "0.02", "--most", "3", *(["--pause", self.options.pause] if self.options.pause else []),
                     *(w for p in self.options.ignore for w in ("--ignore", p))], stdout=log, stderr=log)

    def check(self):
        """Problems of the mount while the writer stands still."""
        if self.writer.poll() is not None:
            with open(self.log) as log:
                return [f"writer {self.number} ended with {self.writer.returncode}: {log.read()[-600:]}"]
        os.kill(self.writer.pid, signal.SIGSTOP)
        try:
            # A request that is under way may still change something.
            time.sleep(0.2)
            history, _ = crashlib.read_records(self.records)
            return crash_check.check_mount(history, self.directory, "daemon")
        finally:
            os.kill(self.writer.pid, signal.SIGCONT)

    def kill(self):
        self.writer.kill()
        self.writer.wait()

    def finish(self):
        """Ends the writer in order: the next life with no operations closes what was open, and says so."""
        self.kill()
        subprocess.run([sys.executable, os.path.join(HERE, "crash-writer.py"), self.directory, self.records, "--continue", "--operations", "5", "--records", "written"],
                       check=True, stdout=open(self.log, "a"), stderr=subprocess.STDOUT)

    def verdict(self):
        problems, status, said = [], 0, ""
        try:
            status = self.watcher.wait(self.options.patience) if self.watcher else 0
        except subprocess.TimeoutExpired:
            self.watcher.kill()
            status = "no end"
        if self.watcher:
            with open(self.watch_log) as log:
                said = log.read().strip()
        if status != 0:
            problems.append(f"watcher {self.number} ended with {status}: {said[-3000:]}")
        history, _ = crashlib.read_records(self.records)
        problems += [f"at the source: {p}" for p in crash_check.check_final(history, self.source, self.directory)]
        problems += [f"on the mount: {p}" for p in crash_check.check_mount(history, self.directory, "daemon")]
        print(f"writer {self.number}: {history.begun} operations, {len(history.gave_up)} given up; watcher: {said.splitlines()[-1] if said else ''}", flush=True)
        return problems


def power_cuts(options, r, place):
    """Problems of rounds with new writers each."""
    problems = []
    for number in range(options.rounds):
        writings = [Writing(options, number * options.writers + i, place) for i in range(options.writers)]
        for w in writings:
            w.start(False)
        time.sleep(r.uniform(options.shortest, options.longest))
        for w in writings:
            w.kill()
        for what, command in (("the power cut", options.power_cut), ("the drain", options.drain_command)):
            status = subprocess.run(["sh", "-c", command]).returncode
            if status != 0:
                problems.append(f"round {number}: '{command}' ended with {status}")
            if not usable(options.directory, options.patience):
                return problems + [f"round {number}: {options.directory} did not come back within {options.patience} s"]
            for w in writings:
                history, _ = crashlib.read_records(w.records)
                problems += [f"round {number}, after {what}, writer {w.number}: {p}" for p in crash_check.check_mount(history, w.directory, "power")]
        for w in writings:
            history, _ = crashlib.read_records(w.records)
            mount, source = (crashlib.Eyes(d, history).look() if os.path.isdir(d) else {} for d in (w.directory, w.source))
            problems += [f"round {number}, after the drain, writer {w.number}: {p} at the source is {crashlib.shown((source or {}).get(p, crashlib.ABSENT))}, "
                         f"on the mount {crashlib.shown((mount or {}).get(p, crashlib.ABSENT))}"
                         for p in sorted(set(mount or {}) | set(source or {})) if (mount or {}).get(p) != (source or {}).get(p)]
            print(f"round {number}: {history.begun} operations, {len(history.syncs)} with fsync, {len(mount or {})} names of {len(history.state(history.begun))}, {len(problems)} problems", flush=True)
        if problems:
            break
    return problems


def usable(directory, patience):
    deadline = time.monotonic() + patience
    while True:
        try:
            os.listdir(directory)
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("source")
    parser.add_argument("--rounds", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--kill-command", default="true", metavar="COMMAND", help="run by sh in each round (default: %(default)s)")
    parser.add_argument("--drain-command", default="true", metavar="COMMAND", help="run by sh at the end (default: %(default)s)")
    parser.add_argument("--full-kill", metavar="COMMAND", help="run by sh after the writers were ended; ends the mount and makes it again")
    parser.add_argument("--full-every", type=int, default=5, metavar="N", help="rounds (default: %(default)s)")
    parser.add_argument("--power-cut", metavar="COMMAND", help="run by sh in each round after the writers were ended")
    parser.add_argument("--writers", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--rate", type=float, default=100, help="steps a second of each writer (default: %(default)s)")
    parser.add_argument("--shortest", type=float, default=0.1, metavar="SECONDS", help="of a round before the kill (default: %(default)s)")
    parser.add_argument("--longest", type=float, default=2, metavar="SECONDS", help="(default: %(default)s)")
    parser.add_argument("--rule", choices=crashlib.RULES, default="ordered", help="of the watcher (default: %(default)s)")
    parser.add_argument("--no-watch", action="store_true", help="do not look at the source meanwhile")
    parser.add_argument("--ignore", action="append", default=[".pmfs-tmp-*"], metavar="PATTERN", help="temporary names at the source (default: %(default)s)")
    parser.add_argument("--pause", metavar="COMMAND", help="prints numbers of processes to stop during a look at the source")
    parser.add_argument("--patience", type=float, default=60, metavar="SECONDS", help="until the mount is back, and until the source has all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    options = parser.parse_args()
    r = random.Random(options.seed)
    place = tempfile.mkdtemp(prefix="crash-rounds.", dir="/var/tmp")
    print(f"seed {options.seed}; records and logs are in {place}", flush=True)
    if options.power_cut:
        options.no_watch = True
        problems = power_cuts(options, r, place)
        for problem in problems[:40]:
            print(problem)
        print(f"{options.rounds} power cuts, {len(problems)} problems")
        return 1 if problems else 0
    writings = [Writing(options, i, place) for i in range(options.writers)]
    problems = []
    for w in writings:
        w.start(False)
    try:
        for number in range(options.rounds):
            time.sleep(r.uniform(options.shortest, options.longest))
            full = options.full_kill and number % options.full_every == options.full_every - 1
            if full:
                for w in writings:
                    w.kill()
            status = subprocess.run(["sh", "-c", options.full_kill if full else options.kill_command]).returncode
            if status != 0:
                problems.append(f"round {number}: the command ended with {status}")
            if not usable(options.directory, options.patience):
                problems.append(f"round {number}: {options.directory} did not come back within {options.patience} s")
                break
            if full:
                for w in writings:
                    history, _ = crashlib.read_records(w.records)
                    problems += [f"round {number}, after the mount was made again, writer {w.number}: {p}" for p in crash_check.check_mount(history, w.directory, "daemon")]
                    w.start(True)
            else:
                for w in writings:
                    problems += [f"round {number}, writer {w.number}: {p}" for p in w.check()]
            dead = [w.number for w in writings if w.watcher and w.watcher.poll() is not None]
            if dead:
                problems.append(f"round {number}: the watchers {dead} ended")
            if problems:
                break
            print(f"round {number}: fine", flush=True)
        for w in writings:
            w.finish()
        status = subprocess.run(["sh", "-c", options.drain_command]).returncode
        if status != 0:
            problems.append(f"'{options.drain_command}' ended with {status}")
        for w in writings:
            problems += w.verdict()
    finally:
        for w in writings:
            for process in (w.writer, w.watcher):
                if process and process.poll() is None:
                    process.kill()
    for problem in problems:
        print(problem)
    print(f"{options.rounds} rounds, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
