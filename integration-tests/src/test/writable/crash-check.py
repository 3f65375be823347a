#!/usr/bin/env python3
"""Checks a directory against what crash-writer.py recorded.

--mount DIRECTORY (the writer's directory, as a mount shows it after the crash). What is checked:
  --after daemon: the daemon died, the machine did not. Each name has the value of the state after the last recorded
      operation; of an operation without an end both states are right, and of its file any content. Of a file that was
      not closed, all that write(2) had returned for is there.
  --after power: the machine died. Each file that was fsynced at operation f has at its name f's value, or that of a
      later state. If a later operation changed what is at the name without fsync, only the name is checked.
  No name is there that no state has. With --after daemon also the sizes by stat are those read.

--final DIRECTORY (the same directory at the source, after a drain). Each name has exactly the value of the last state,
  and there is no other name. With --like MOUNT also modes, owners, modification times, link counts of files and
  extended attributes are those of the mount.

--watch DIRECTORY (the same directory at the source, while the writer works and until the source has its last state).
  Looks again and again, and checks that each look is an earlier state of the mount, by a rule (crashlib.Order has it
  word by word):
  exact    all names have their values of one state k
  ordered  but names that the mount no longer has at the time of the look may be missing or old: what is gone before
           its turn is not copied (default)
  loose    and values that were replaced before the look may be old
  and k never goes back. So no rename without its data, no removal ahead of what came before, no index ahead of its
  shards, no file in part, no tail of zeros. A look is one moment: it is taken again until two walks agree. With
  --pause the processes whose numbers COMMAND prints are stopped meanwhile.

Examples:
  crash-check.py /var/tmp/w1.records --mount /mnt/run42/w1 --after daemon
  crash-check.py /var/tmp/w1.records --final /lustre/run42/w1 --like /mnt/run42/w1
  crash-check.py /var/tmp/w1.records --watch /lustre/run42/w1 --settle 120 --pause 'cat /run/pmfs/pid'

Exit status: 0 as promised; 1 differences; 2 wrong usage.
"""

import argparse
import os
import signal
import stat
import subprocess
import sys
import time

import crashlib
from crashlib import ABSENT


TOLD_SECONDS = 60  # until a writer that died, or waits for a mount, says what became of its last operation


def _look(directory, history):
    # A writer that has not begun has made no directory.
    return crashlib.Eyes(directory, history).look() if history.begun or os.path.isdir(directory) else {}


def check_mount(history, directory, after):
    look = _look(directory, history)
    if look is None:
        return ["the directory did not stand still"]
    n = history.begun
    return [f"{p}: {problem}" for p in sorted(set(look) | set(history.timeline))
            if (problem := (_after_daemon if after == "daemon" else _after_power)(history, p, look.get(p, ABSENT), n))]


def _after_daemon(history, path, seen, n):
    expected = history.value_at(path, n)
    if seen == expected:
        return None
    grown = _open_at_end(history, path)
    if grown is not None:
        writes = grown[1]
        done = [data for k, data in writes if k - 1 in history.finished]
        least = len(done[-1]) if done else 0
        if seen[0] == "file" and seen[1] >= least and writes[-1][1].startswith(history.contents[seen[2]]):
            return None
        if not done and seen == expected:
            return None
        return f"is {crashlib.shown(seen)}, but {least} bytes were written to it while it was open"
    last = [i for i in range(n) if path in history.deltas[i]]
    uncertain = [i for i in last if history.uncertain(i)]
    if uncertain and uncertain[-1] == last[-1]:
        op = history.operations[uncertain[-1]]
        if op["do"] in ("put", "append", "overwrite", "truncate", "close") or seen == history.value_at(path, uncertain[-1]):
            return None
    return _told(history, path, seen, n)


def _open_at_end(history, path):
    sessions = history.growing.get(path)
    if not sessions:
        return None
    closed = any(op["do"] in ("close", "put", "rename") and op["path"] == path for op in history.operations[sessions[-1][0]:])
    return None if closed else sessions[-1]


def _after_power(history, path, seen, n):
    syncs = [k for k, p in history.syncs if p == path and k - 1 in history.finished]
    allowed = history.values_between(path, syncs[-1] if syncs else 0, n)
    if seen in allowed:
        return None
    changed_later = len(allowed) > 1 or history.uncertain(n - 1) and path in history.deltas[n - 1] or not syncs
    kinds = {v[0] for v in allowed}
    if path in history.growing or path in history.linked:
        kinds |= {"file"}
        changed_later = True
    if changed_later and seen[0] in kinds:
        return None  # written again without fsync: not promised
    return _told(history, path, seen, n) + (f", fsynced by operation {syncs[-1] - 1}" if syncs else "")


def _told(history, path, seen, k):
    return crashlib.Order(history)._explain(path, seen, k)


def check_final(history, directory, like):
    look = crashlib.Eyes(directory, history).look()
    if look is None:
        return ["the directory did not stand still"]
    n = history.begun
    problems = [f"{p}: {_told(history, p, look.get(p, ABSENT), n)}" for p in sorted(set(look) | set(history.timeline))
                if look.get(p, ABSENT) != history.value_at(p, n)]
    if like is not None:
        for p in sorted(history.state(n)):
            ours, mount = (_attributes(os.path.join(d, p)) for d in (directory, like))
            problems += [f"{p}: {k} is {ours[k]}, on the mount {mount[k]}" for k in ours if ours[k] != mount[k]]
    return problems


def _attributes(path):
    try:
        s = os.lstat(path)
    except OSError as e:
        return {"mode": e.strerror, "owner": None, "mtime": None, "nlink": None, "xattrs": None}
    directory = stat.S_ISDIR(s.st_mode)
    return {"mode": oct(s.st_mode), "owner": (s.st_uid, s.st_gid), "mtime": None if directory else s.st_mtime_ns,
            "nlink": None if directory else s.st_nlink,
            "xattrs": sorted((n, os.getxattr(path, n, follow_symlinks=False)) for n in os.listxattr(path, follow_symlinks=False) if n.startswith("user."))}


class Pause:
    """Stops processes while something is done."""

    def __init__(self, command):
        self.command, self.pids = command, []

    def __enter__(self):
        if self.command:
            output = subprocess.run(["sh", "-c", self.command], capture_output=True, text=True).stdout
            for pid in map(int, output.split()):
                try:
                    os.kill(pid, signal.SIGSTOP)
                    self.pids.append(pid)
                except ProcessLookupError:
                    pass

    def __exit__(self, *_):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.pids = []


def _until_told(records, history, position):
    last, end = history.begun - 1, time.monotonic() + TOLD_SECONDS
    while last >= 0 and last not in history.finished | history.gave_up and time.monotonic() < end:
        time.sleep(0.05)
        history, position = crashlib.read_records(records, history, position)
    return history, position


def watch(options, rule):
    history, position = crashlib.read_records(options.records)
    order, eyes = crashlib.Order(history), crashlib.Eyes(options.watch, history, options.ignore)
    looks, moving, reached, last, ended, problems = 0, 0, 0, None, None, 0
    pause = Pause(options.pause)
    print(f"watching {options.watch} by the rule '{options.rule}'", flush=True)
    while True:
        if os.path.isdir(options.watch):
            with pause:
                look = eyes.look()
            history, position = crashlib.read_records(options.records, history, position)
        else:
            look = {}
            history, position = crashlib.read_records(options.records, history, position)
        if look is None:
            moving += 1
        elif look != last:
            looks += 1
            problem = order.judge(look, rule)
            if problem:
                # If the writer died in the middle of its last operation, it says so when it goes on.
                history, position = _until_told(options.records, history, position)
                problem = order.judge(look, rule)
            if problem:
                problems += 1
                print(f"look {looks}: {problem}", flush=True)
                if problems >= options.most:
                    break
            reached = order.k
            last = look
        if history.ended and ended is None:
            ended = time.monotonic()
        if history.ended and look == history.state(history.begun):
            break
        if ended is not None and time.monotonic() - ended > options.settle:
            problems += 1
            print(f"the source did not come to the last state within {options.settle} s after the writer's end: state {order.k} of {history.begun}")
            if look is not None:
                for p in sorted(set(look) | set(history.timeline)):
                    if look.get(p, ABSENT) != history.value_at(p, history.begun):
                        print(f"  {p}: {_told(history, p, look.get(p, ABSENT), history.begun)}")
            break
        time.sleep(options.interval)
    print(f"{looks} different looks ({', '.join(f'{c} {r}' for c, r in zip(order.counts, crashlib.RULES))}), {moving} that did not stand still, "
          f"state {reached} of {history.begun}, {problems} problems")
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", help="the record file of the writer")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--mount", metavar="DIRECTORY")
    what.add_argument("--final", metavar="DIRECTORY")
    what.add_argument("--watch", metavar="DIRECTORY")
    parser.add_argument("--after", choices=("daemon", "power"), default="daemon", help="what died (default: %(default)s)")
    parser.add_argument("--like", metavar="MOUNT", help="with --final: compare attributes with the mount's")
    parser.add_argument("--rule", choices=crashlib.RULES, default="ordered", help="with --watch (default: %(default)s)")
    parser.add_argument("--ignore", action="append", default=[], metavar="PATTERN", help="with --watch: temporary names of the way to the source")
    parser.add_argument("--interval", type=float, default=0.01, metavar="SECONDS", help="between two looks (default: %(default)s)")
    parser.add_argument("--settle", type=float, default=60, metavar="SECONDS", help="how long after the writer's end the source may take (default: %(default)s)")
    parser.add_argument("--pause", metavar="COMMAND", help="prints numbers of processes to stop during a look")
    parser.add_argument("--most", type=int, default=10, metavar="N", help="end after so many problems (default: %(default)s)")
    options = parser.parse_args()
    if not os.path.exists(options.records):
        parser.error(f"{options.records} is not there")
    if options.watch:
        return watch(options, crashlib.RULES.index(options.rule))
    history, _ = crashlib.read_records(options.records)
    if options.mount:
        problems = check_mount(history, options.mount, options.after)
    else:
        problems = check_final(history, options.final, options.like)
    for problem in problems:
        print(problem)
    print(f"seed {history.seed}: {history.begun} operations, {len(history.syncs)} with fsync, {len(history.state(history.begun))} names, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
