#!/usr/bin/env python3
"""Tries all sequences of up to three operations on a few names, with a command, such as a kill, after each operation.

After CrashMonkey's ACE. Each sequence has a directory of its own, in which foo and A/foo are; the names are foo, bar,
A/foo, A/bar, A and B. The operations are create, write, append, truncate, rename (of files and directories, onto
what is there too), link, symlink, unlink, mkdir, rmdir and fsync. Left out are sequences with an operation that fails,
that fsync what did not change, that read the same as another with two operations on different names swapped, and
those that differ from another only by the names bar and A/bar, or by which of them is used first. The sequences run
in batches: the first operation of all, the command, a comparison of all, the second operation of all, and so on.
Each directory is compared with one below REFERENCE where the same was done: types, contents, sizes, modes, link counts.

Examples:
  ace.py --count                                    # how many sequences there are
  ace.py /mnt/run42 --length 2
  ace.py /mnt/run42 --kill-command 'kill -9 $(pgrep -f "pmfs.*run42")' --batch 1000
  ace.py /mnt/run42 --source /lustre/run42 --drain-command 'pmfs drain /mnt/run42'   # foo and A/foo are at the source first
  ace.py /mnt/run42 --sample 500 --seed 7

Exit status: 0 no difference; 1 differences; 2 wrong usage.
"""

import argparse
import errno
import itertools
import os
import random
import shutil
import subprocess
import sys
import time

from posixcalls.harness import snapshot

FILES = ("foo", "bar", "A/foo", "A/bar")
DIRECTORIES = ("A", "B")
START = {"foo": "file", "A": "directory", "A/foo": "file"}


def operations():
    for f in FILES:
        for kind in ("create", "write", "append", "truncate", "unlink", "fsync", "symlink"):
            yield (kind, f)
        for g in FILES:
            if f != g:
                yield ("rename", f, g)
                yield ("link", f, g)
    for d in DIRECTORIES:
        for kind in ("mkdir", "rmdir", "fsync"):
            yield (kind, d)
    for a, b in itertools.permutations(DIRECTORIES):
        yield ("rename", a, b)


def after(state, op):
    """The names after an operation, or None if it would fail or change nothing. A name maps to its kind and a mark of change."""
    kind, name = op[0], op[1]
    there = state.get(name)
    parent = os.path.dirname(name)
    if parent and state.get(parent, ("",))[0] != "directory":
        return None
    new = dict(state)
    if kind in ("create", "symlink", "mkdir"):
        if there is not None:
            return None
        new[name] = ({"create": "file", "symlink": "link", "mkdir": "directory"}[kind], True)
    elif there is None:
        return None
    elif kind in ("write", "append", "truncate"):
        if there[0] != "file":
            return None
        new[name] = ("file", True)
    elif kind == "fsync":
        if there[0] == "link" or not (there[1] if there[0] == "file" else any(v[1] for p, v in state.items() if p.startswith(name + "/")) or there[1]):
            return None
        new[name] = (there[0], False)
    elif kind == "unlink":
        if there[0] == "directory":
            return None
        del new[name]
    elif kind == "rmdir":
        if there[0] != "directory" or any(p.startswith(name + "/") for p in state):
            return None
        del new[name]
    else:
        target = op[2]
        parent = os.path.dirname(target)
        if parent and state.get(parent, ("",))[0] != "directory":
            return None
        if kind == "link":
            if target in state or there[0] == "directory":
                return None
            new[target] = (there[0], True)
        else:
            onto = state.get(target)
            if onto is not None and (onto[0] == "directory") != (there[0] == "directory"):
                return None
            if there[0] == "directory" and any(p.startswith(target + "/") for p in state):
                return None
            for p in [p for p in state if p == name or p.startswith(name + "/")]:
                new[target + p[len(name):]] = (new.pop(p)[0], True)
    return new


def names_of(op):
    """Names an operation depends on: its own and their directories."""
    return {n for name in op[1:] for n in (name, os.path.dirname(name)) if n}


def independent(a, b):
    return not any(x == y or x.startswith(y + "/") or y.startswith(x + "/") for x in a[1:] for y in b[1:])


def mirrored(sequence):
    """The same sequence with A/bar for bar and back, if nothing else below A is used."""
    swap = {"bar": "A/bar", "A/bar": "bar"}
    return tuple((op[0], *(swap.get(n, n) for n in op[1:])) for op in sequence)


def sequences(length):
    """All sequences of exactly that length that are left, as tuples of operations."""
    every = sorted(operations())

    def extend(prefix, state):
        if len(prefix) == length:
            yield prefix
            return
        for op in every:
            new = after(state, op)
            if new is None:
                continue
            if prefix and independent(prefix[-1], op) and op < prefix[-1] and op[0] != "fsync" and prefix[-1][0] != "fsync":
                continue  # the same as in the other order
            yield from extend(prefix + (op,), new)

    start = {name: (kind, False) for name, kind in START.items()}
    for sequence in extend((), start):
        used = {n for op in sequence for n in op[1:]}
        if "A/foo" not in used and "A" not in used and "B" not in used and mirrored(sequence) < sequence and used & {"bar", "A/bar"}:
            continue
        yield sequence


def prepare(directory):
    os.makedirs(directory + "/A")
    for name in ("foo", "A/foo"):
        with open(f"{directory}/{name}", "wb") as f:
            f.write(name.encode() * 2000)


def carry_out(directory, op, step):
    kind, name = op[0], os.path.join(directory, op[1])
    data = f"<{step} {' '.join(op)}>".encode() * 300
    if kind in ("create", "write", "append"):
        flags = {"create": os.O_CREAT | os.O_EXCL, "write": os.O_TRUNC, "append": os.O_APPEND}[kind]
        descriptor = os.open(name, os.O_WRONLY | flags, 0o644)
        if kind != "create":
            os.write(descriptor, data)
        os.close(descriptor)
    elif kind == "truncate":
        os.truncate(name, 1000 if step % 2 == 0 else 20000)
    elif kind == "fsync":
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    elif kind == "symlink":
        os.symlink("nowhere", name)
    elif kind == "link":
        os.link(name, os.path.join(directory, op[2]), follow_symlinks=False)
    elif kind == "rename":
        os.rename(name, os.path.join(directory, op[2]))
    else:
        getattr(os, kind)(name)


def attempt(directory, op, step):
    try:
        carry_out(directory, op, step)
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]


def told(sequence):
    return ", ".join(" ".join(op) for op in sequence)


def shown_difference(ours, reference):
    if not isinstance(ours, dict):
        return str(ours)
    parts = []
    for p in sorted(set(ours) | set(reference)):
        if p not in ours or p not in reference:
            parts.append(f"{p} is {'missing' if p not in ours else 'there'}")
        else:
            parts += [f"{p} {k} is {ours[p].get(k)!r}, reference {reference[p].get(k)!r}"[:300]
                      for k in sorted(set(ours[p]) | set(reference[p])) if ours[p].get(k) != reference[p].get(k)]
    return "; ".join(parts)


def run_command(command, directory, patience):
    status = subprocess.run(["sh", "-c", command]).returncode
    if status != 0:
        print(f"'{command}' ended with {status}", file=sys.stderr)
        raise SystemExit(1)
    deadline = time.monotonic() + patience
    while True:
        try:
            os.listdir(directory)
            return
        except OSError as e:
            if time.monotonic() > deadline:
                print(f"differs: {directory} cannot be listed {patience} s after '{command}': {e}")
                raise SystemExit(1)
            time.sleep(0.05)


class Batch:
    def __init__(self, options, number, chosen):
        self.options, self.chosen = options, chosen
        name = f"ace-{os.getpid()}-{number}"
        self.ours = os.path.join(os.path.abspath(options.directory), name)
        self.reference = os.path.join(os.path.abspath(options.reference), name)
        self.source = os.path.join(os.path.abspath(options.source), name) if options.source else None
        self.bad = {}

    def places(self, base):
        return [os.path.join(base, str(i)) for i in range(len(self.chosen))]

    def compare(self, base, when):
        for i, sequence in enumerate(self.chosen):
            if i in self.bad:
                continue
            try:
                ours = snapshot(os.path.join(base, str(i)))
            except OSError as e:
                ours = str(e)
            reference = snapshot(os.path.join(self.reference, str(i)))
            if ours != reference:
                self.bad[i] = True
                print(f"differs {when}: {told(sequence)}: {shown_difference(ours, reference)} ({base}/{i})", flush=True)

    def run(self):
        for base in (self.source or self.ours, self.reference):
            for place in self.places(base):
                prepare(place)
        deadline = time.monotonic() + 10
        while not all(os.path.exists(p + "/A/foo") for p in self.places(self.ours)):
            if time.monotonic() > deadline:
                print(f"what was made in {self.source} does not show in {self.ours}")
                raise SystemExit(1)
            time.sleep(0.1)
        for step in range(max(map(len, self.chosen))):
            for i, sequence in enumerate(self.chosen):
                if step < len(sequence) and i not in self.bad:
                    # Both may fail: a rename onto another name of the same file did nothing.
                    ours, reference = (attempt(os.path.join(base, str(i)), sequence[step], step) for base in (self.ours, self.reference))
                    if ours != reference:
                        self.bad[i] = True
                        print(f"differs: {told(sequence)}: operation {step}: {ours}, reference {reference} ({self.ours}/{i})", flush=True)
            if self.options.kill_command:
                run_command(self.options.kill_command, self.ours, self.options.patience)
            self.compare(self.ours, f"after operation {step}" + (" and the command" if self.options.kill_command else ""))
        if self.options.drain_command:
            run_command(self.options.drain_command, self.ours, self.options.patience)
        if self.source:
            self.compare(self.source, "at the source")
        for base in (self.ours, self.reference):
            if not self.options.keep and not (self.bad and base == self.ours):
                shutil.rmtree(base, ignore_errors=True)
        return len(self.bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?")
    parser.add_argument("--reference", default="/var/tmp", help="(default: %(default)s)")
    parser.add_argument("--length", type=int, default=3, help="the longest sequences (default: %(default)s)")
    parser.add_argument("--count", action="store_true", help="only print how many there are")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them, at random")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of --sample (default: by the clock)")
    parser.add_argument("--batch", type=int, default=1000, help="sequences side by side (default: %(default)s)")
    parser.add_argument("--kill-command", metavar="COMMAND", help="run by sh after each operation of a batch")
    parser.add_argument("--drain-command", metavar="COMMAND", help="run by sh after a batch")
    parser.add_argument("--source", metavar="DIRECTORY", help="of the mount: the directories are made there, and compared there at the end")
    parser.add_argument("--patience", type=float, default=60, metavar="SECONDS", help="until the directory is usable after a command (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the directories")
    options = parser.parse_args()
    chosen = []
    for length in range(1, options.length + 1):
        found = list(sequences(length))
        print(f"{len(found)} sequences of {length} of {len(list(operations())) ** length}")
        chosen += found
    if options.count:
        return 0
    if options.directory is None:
        parser.error("DIRECTORY is missing")
    if options.sample is not None:
        print(f"seed {options.seed}")
        chosen = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
    bad = 0
    for number, start in enumerate(range(0, len(chosen), options.batch)):
        part = chosen[start:start + options.batch]
        bad += Batch(options, number, part).run()
        print(f"{start + len(part)} of {len(chosen)} sequences, {bad} differ", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
