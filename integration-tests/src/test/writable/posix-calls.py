#!/usr/bin/env python3
"""Runs the same system calls in two directories, and lists what they did differently.

Covers the calls, flags and errors that pjdfstest covers, and more: O_APPEND, O_TRUNC, O_TMPFILE, renameat2,
copy_file_range, fallocate, extended attributes, statfs, locks, mappings, and reading directories while they change.
REFERENCE is a directory of a file system that is known to be right, such as ext4. Each case runs in a new
directory below both. Its outcomes are compared: the error of each call, and the types, modes, owners, sizes,
contents, link counts and extended attributes of everything that the case left.

Root only: cases act as other users and make device files. All users must be able to reach both directories.

Examples:
  posix-calls.py /mnt/run42 /var/tmp
  posix-calls.py /mnt/run42 --only 'rename/*' --only open/flags
  posix-calls.py /mnt/run42 /var/tmp --fuse        # what Linux decides on every FUSE file system does not count
  posix-calls.py /mnt/run42 /var/tmp --then 'pmfs drain /mnt/run42' --again /lustre/run42
  posix-calls.py /mnt/run42 /var/tmp --prepared /lustre/run42 --only 'existing/*'   # on files that are at the source only
  posix-calls.py --list

Exit status: 0 no difference; 1 differences, or a case that could not run; 2 wrong usage.
"""

import argparse
import fnmatch
import os
import random
import shutil
import subprocess
import sys
import time

from posixcalls import harness
from posixcalls import attributes, contents, directories, existing, linked, openings, paths, permissions, renames, sharing, times  # noqa: F401
from posixcalls.fuse import KERNEL_LIMITS, NODEV


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", help="where the calls are tried")
    parser.add_argument("reference", nargs="?", default="/var/tmp", help="where they are known to be right (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="only cases with such a name; may be repeated")
    parser.add_argument("--without", action="append", default=[], metavar="PATTERN", help="leave out cases with such a name")
    parser.add_argument("--seed", type=int, default=None, help="run the cases in a random order")
    parser.add_argument("--fuse", action="store_true", help="list separately, and do not count, what Linux decides on every FUSE file system")
    parser.add_argument("--keep", action="store_true", help="keep the directories of the cases")
    parser.add_argument("--then", metavar="COMMAND", help="after all cases run COMMAND by sh, and compare once more what the cases left")
    parser.add_argument("--again", metavar="DIRECTORY", help="compare once more there, not in the directory of the calls")
    parser.add_argument("--prepared", metavar="DIRECTORY", help="make what some cases need to be there before in this directory, whose changes the directory of the calls shows within 1 s")
    parser.add_argument("--timeout", type=int, default=120, metavar="SECONDS", help="a case that takes longer has failed (default: %(default)s)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each case and how long it took")
    options = parser.parse_args()
    if not options.list and options.directory is None:
        parser.error("DIRECTORY is missing")
    if not options.list and os.geteuid() != 0:
        parser.error("only root can run this")
    return options


def prepare(name, directory):
    """Makes the directory of a case, and in it what must be there before."""
    os.mkdir(directory)
    os.chmod(directory, 0o755)
    if name in harness.SETUPS:

        def work():
            os.chdir(directory)
            os.umask(0o022)
            harness.SETUPS[name]()

        ok, problem = harness.in_child(work, 60)
        if not ok:
            raise SystemExit(f"{name}: cannot make what must be there before: {problem}")


def run(name, directory, timeout, prepared):
    """Outcomes of a case in its directory, or a single one that says why there are none."""
    function = harness.CASES[name]

    def work():
        if not prepared:
            prepare(name, directory)
        os.chdir(directory)
        os.umask(0o022)
        place = harness.Place()
        function(place)
        os.umask(0o022)
        place.tree("tree at the end")
        return place.outcomes

    ok, result = harness.in_child(work, timeout)
    return result if ok else [("broken", result)]


def compare(name, ours, reference, limits):
    """Differences that count and those that do not because of the limits, as sentences."""
    count, excused = [], []
    for i in range(max(len(ours), len(reference))):
        label, value = ours[i] if i < len(ours) else ("missing", None)
        expected_label, expected = reference[i] if i < len(reference) else ("missing", None)
        if (label, value) == (expected_label, expected):
            continue
        if label != expected_label:
            count.append(f"{name}: did '{label}' ({value}) where the reference did '{expected_label}' ({expected})")
            break
        reason = next((why for pattern, outcome, why in limits
                       if fnmatch.fnmatchcase(f"{name}: {label}", pattern) and outcome in (value, "any")), None)
        (excused if reason else count).append(
            f"{name}: {label}: {difference(value, expected)}" + (f" [{reason}]" if reason else ""))
    return count, excused


def difference(value, expected):
    if not (isinstance(value, dict) and isinstance(expected, dict)):
        return f"{value!r}, reference: {expected!r}"
    parts = []
    for path in sorted(set(value) | set(expected)):
        a, b = value.get(path), expected.get(path)
        if a is None or b is None:
            parts.append(f"{path} is {'missing' if a is None else 'there'}, reference: {b or 'missing'}")
        elif a != b:
            parts += [f"{path} {k}: {a.get(k)!r}, reference: {b.get(k)!r}" for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]
    return "; ".join(parts)


def main():
    options = arguments()
    names = [n for n in harness.CASES
             if any(fnmatch.fnmatchcase(n, p) for p in options.only or ["*"])
             and not any(fnmatch.fnmatchcase(n, p) for p in options.without)]
    if options.list:
        print("\n".join(names))
        return 0
    if not names:
        print("no case has such a name", file=sys.stderr)
        return 2
    if options.seed is not None:
        print(f"seed {options.seed}")
        random.Random(options.seed).shuffle(names)
    base = f"posix-calls-{os.getpid()}"
    places = [os.path.join(os.path.abspath(d), base) for d in (options.directory, options.reference)]
    if options.prepared and not os.path.isdir(options.prepared):
        print(f"{options.prepared} is not a directory", file=sys.stderr)
        return 2
    for place in [os.path.join(options.prepared, base) if options.prepared else places[0], places[1]]:
        try:
            os.mkdir(place)
        except OSError as e:
            print(f"{place}: {e.strerror}", file=sys.stderr)
            return 2
        os.chmod(place, 0o755)
    prepared = {n for n in names if n in harness.SETUPS} if options.prepared else set()
    if prepared:
        for number, name in enumerate(names):
            if name in prepared:
                prepare(name, os.path.join(options.prepared, base, f"{number}"))
        time.sleep(2.5)  # longer than names and attributes are valid
    if not os.path.isdir(places[0]):
        print(f"{places[0]} does not show what is in {options.prepared}", file=sys.stderr)
        return 1
    limits = [] if not options.fuse else KERNEL_LIMITS + (NODEV if os.statvfs(places[0]).f_flag & 4 else [])
    outcomes, differing, excused, trees = 0, [], [], []
    for number, name in enumerate(names):
        start = time.monotonic()
        ours, reference = (run(name, os.path.join(p, f"{number}"), options.timeout, p == places[0] and name in prepared) for p in places)
        count, fine = compare(name, ours, reference, limits)
        for side, result in (("", ours), ("reference", reference)):
            count += [f"{name}: {side} could not run: {value}" for label, value in result if label == "broken"]
        outcomes += len(reference)
        if count:
            differing.append(name)
        excused += fine
        trees.append((name, number))
        for line in count:
            print("differs: " + line, flush=True)
        if options.verbose:
            print(f"{name}: {len(reference)} outcomes, {len(count)} differences, {time.monotonic() - start:.1f} s", flush=True)
    if options.then is not None or options.again is not None:
        differing += compared_again(options, base, places[1], trees)
    for line in excused:
        print("decided by Linux on FUSE: " + line)
    if not options.keep:
        for place in places:
            shutil.rmtree(place, onerror=lambda f, path, e: print(f"cannot remove {path}: {e[1]}", file=sys.stderr))
    print(f"{len(names)} cases, {outcomes} outcomes compared, {len(set(differing))} cases differ"
          + (f", {len(excused)} outcomes decided by Linux on FUSE" if options.fuse else ""))
    return 1 if differing else 0


def compared_again(options, base, reference, trees):
    """Names of the cases whose remains differ after the command."""
    if options.then is not None:
        status = subprocess.run(["sh", "-c", options.then]).returncode
        if status != 0:
            print(f"differs: '{options.then}' ended with {status}")
            return ["--then"]
    place = os.path.join(options.again or options.directory, base)
    differing = []
    for name, number in trees:
        ours, expected = (harness.in_child(lambda: harness.snapshot(os.path.join(p, f"{number}")), options.timeout)
                          for p in (place, reference))
        if ours != expected:
            differing.append(name)
            both = ours[0] and expected[0]
            print(f"differs after the command: {name}: " + (difference(ours[1], expected[1]) if both else f"{ours[1]!r}"))
    return differing


if __name__ == "__main__":
    sys.exit(main())
