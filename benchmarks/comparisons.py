"""What benchmarks/papers keeps of a paper: comparisons, each of them with all its sides, measured in one go.

A comparison is kept whole or not at all, with the commit, the machine and the time it was measured at: its run. What was kept
by an earlier call on the same commit and machine is not measured again.
"""

import dataclasses
import datetime
import hashlib
import json
import os
import statistics
import subprocess
import time
from dataclasses import dataclass

import machine
from machine import BenchmarkError, run, step

# Pictures and pages change without a change of what is measured.
CODE = ("--", ".", ":!docs", ":!*.md")


@dataclass(frozen=True)
class Run:
    """Where the figures of a comparison come from."""

    commit: str
    machine: str
    pmfs: str  # the launcher and further options of mount
    begun: str
    command: str
    rounds: int = 1

    def serves(self, wanted):
        """Whether what was measured in this run is what the other one would measure, at least as often."""
        same = (self.commit, self.machine, self.pmfs) == (wanted.commit, wanted.machine, wanted.pmfs)
        return same and self.rounds >= wanted.rounds


class Figure:
    """A median of a comparison. Figures of different runs have no ratio."""

    def __init__(self, value, source):
        self.value, self.source = value, source

    def __truediv__(self, other):
        if self.source != other.source:
            raise BenchmarkError(f"no ratio of figures of two runs: {self.source.begun} and {other.source.begun}")
        return self.value / other.value


class Comparison:
    """The figures of each side, round by round: {side: [{name of the figure: value}]}."""

    def __init__(self, name, source, sides):
        self.name, self.run, self.sides = name, source, sides

    def figure(self, side, name):
        """The median of the rounds."""
        values = [figures[name] for figures in self.sides.get(side, []) if name in figures]
        if not values:
            raise BenchmarkError(f"{self.name} has no figure '{name}' of '{side}': it was measured by another version; measure it again")
        return Figure(statistics.median(values), self.run)

    def value(self, side, name):
        return self.figure(side, name).value


def commit():
    """The last commit of the code, and a hash of what was changed since."""
    changed = run("git", "diff", "HEAD", *CODE, cwd=machine.ROOT)
    name = run("git", "log", "-1", "--format=%h", "--abbrev=10", *CODE, cwd=machine.ROOT).strip()
    return f"{name}-dirty-{hashlib.sha256(changed.encode()).hexdigest()[:6]}" if changed else name


def now():
    return datetime.datetime.now().isoformat(" ", "milliseconds")


def this_run(arguments, words):
    described = machine.describe(machine.BUILD)
    place = "; ".join(line.split(": ", 1)[1] for line in described[:2])
    launcher = str(arguments.pmfs).removeprefix(f"{machine.ROOT}/")
    return Run(commit(), place, " ".join([launcher, *arguments.pmfs_option]), now(), " ".join(words), arguments.rounds)


class Record:
    """The comparisons of one paper, in a file that is written after each."""

    def __init__(self, path):
        self.path, self.comparisons = path, {}
        if path.exists():
            for entry in json.loads(path.read_text())["comparisons"]:
                self.comparisons[entry["name"]] = Comparison(entry["name"], Run(**entry["run"]), entry["sides"])

    def keep(self, comparison):
        self.comparisons[comparison.name] = comparison
        self.write({})

    def write(self, extra):
        """Replaces the file whole: an interruption leaves the one before."""
        entries = [{"name": one.name, "run": dataclasses.asdict(one.run), "sides": one.sides} for one in self.comparisons.values()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({**extra, "comparisons": entries}, indent=1) + "\n")
        os.replace(unfinished, self.path)


class Measuring:
    """One paper while it is measured: what its module needs to know, and where it hands over its comparisons."""

    def __init__(self, record, here, arguments, work):
        self.record, self.here, self.work = record, here, work
        self.quick, self.pmfs, self.pmfs_option = arguments.quick, arguments.pmfs, arguments.pmfs_option
        self.rounds = arguments.rounds
        self.again = arguments.again
        self.wanted = []

    def missing(self, names):
        """Those that are to be measured: not kept, or kept from another commit or machine."""
        names = list(names)
        self.wanted += names
        kept = [name for name in names if self.is_kept(name)]
        if kept:
            step(f"{len(kept)} of {len(names)} comparisons are kept: {', '.join(kept)}")
        return [name for name in names if name not in kept]

    def is_kept(self, name):
        found = self.record.comparisons.get(name)
        return not self.again and found is not None and found.run.serves(self.here)

    def compare(self, name, measure):
        """Calls measure for the sides and keeps them."""
        step(f"{self.record.path.stem}: {name}")
        begun, start = now(), time.monotonic()
        sides = measure()
        self.record.keep(Comparison(name, dataclasses.replace(self.here, begun=begun), sides))
        step(f"{self.record.path.stem}: {name}: measured in {time.monotonic() - start:.0f} s, kept in {self.record.path}")

    def in_turn(self, sides, rounds=None, is_throttled=False):
        """Calls, by name, the measurement of each side; each round begins with another one. The figures of a comparison.

        Where everything waits for a throttled source, memory is not touched before each side, which takes 20 s.
        """
        rounds = rounds or self.rounds
        names, found = list(sides), {name: [] for name in sides}
        for number in range(rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                step(f"  round {number + 1} of {rounds}: {name}")
                if not self.quick and not is_throttled:
                    machine.touch_memory()
                found[name].append(sides[name]())
        return found

    def finish(self):
        """Drops what nobody wants any more, such as comparisons of another size."""
        self.record.comparisons = {name: self.record.comparisons[name] for name in self.wanted}


def run_script(name, *words):
    """Runs another script of benchmarks; its exit status. Whatever stops this one stops that one, which cleans up first."""
    command = [machine.ROOT / "benchmarks" / name, *words]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            return process.wait()
        except BaseException:
            with machine.uninterrupted():
                process.terminate()
                process.wait()
            raise


def panel(one, work, unit, name):
    """A picture's panel: one figure of all sides."""
    return {"work": work, "unit": unit, "bars": {side: one.value(side, name) for side in one.sides}}


def table(header, rows):
    """In Markdown, with the first column to the left and the others to the right."""
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], f"|---|{'---:|' * (len(header) - 1)}", *lines[1:]])
