#!/usr/bin/env python3
"""Changes a directory at random, and records each operation after it returned, for crash-check.py.

The record file must be outside the mount. An operation is recorded before its first system call and after its last;
with the default --records synced the second line is on the disk before the next operation begins, so a record
survives a power cut. The operations and their content follow from the seed (crashlib.py has the list): new files,
appends, overwrites, truncations, renames over files, renames of directories, links, removals, checkpoints as shards
and an index that is renamed over the old one, logs that are opened and closed for each event, and one that stays open.

If the mount is lost (ENOTCONN, EIO, ESTALE, ECONNABORTED, or the directory is gone), the writer waits until the directory can be used again,
finds out whether the operation took effect, and goes on. With --announce it waits until that file was touched.

Examples:
  crash-writer.py /mnt/run42/w1 /var/tmp/w1.records --operations 1000
  crash-writer.py /mnt/run42/w1 /var/tmp/w1.records --seconds 60 --seed 7 --rate 50
  crash-writer.py /mnt/run42/w1 /var/tmp/w1.records --continue --seconds 60      # the next life of the same writer

Exit status: 0 the writer came to its end; 1 an operation failed, or its result was wrong; 2 wrong usage.
"""

import argparse
import errno
import json
import os
import random
import sys
import time

import crashlib

LOST = (errno.ENOTCONN, errno.EIO, errno.ESTALE, errno.ECONNABORTED, errno.ETIMEDOUT)


class Writer:
    def __init__(self, options):
        self.options = options
        self.root = os.path.abspath(options.directory)
        self.records = os.open(options.records, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.history = crashlib.History()
        self.descriptors = {}  # path -> descriptor of a file that stays open

    def record(self, entry, sync):
        line = json.dumps(entry).encode() + b"\n"
        os.write(self.records, line)
        if sync and self.options.records_are == "synced":
            os.fsync(self.records)
        self.history.feed(line)

    def path(self, name):
        return os.path.join(self.root, name) if name else self.root

    # ---- carrying out

    def do(self, do, path, **named):
        op = {"op": self.history.begun, "do": do, "path": path, **named}
        self.record(op, False)
        try:
            self.carry_out(op)
        except OSError as e:
            if e.errno not in LOST and os.path.isdir(self.root):
                raise
            self.lost(op, e)
            return
        self.record({"done": op["op"]}, True)

    def carry_out(self, op):
        do, path = op["do"], self.path(op["path"])
        data = crashlib.piece(self.history.seed, op["op"], op["size"]) if "size" in op and do != "truncate" else b""
        if do in ("put", "append", "overwrite"):
            flags = {"put": os.O_CREAT | os.O_TRUNC, "append": os.O_APPEND, "overwrite": 0}[do]
            descriptor = os.open(path, os.O_WRONLY | flags, 0o644)
            try:
                self.write(descriptor, data, op.get("at"))
                if op.get("sync"):
                    os.fsync(descriptor)
            except OSError:
                try:
                    os.close(descriptor)
                except OSError:
                    pass
                raise
            os.close(descriptor)
        elif do == "truncate":
            os.truncate(path, op["size"])
        elif do == "grow":
            if op["path"] not in self.descriptors:
                self.descriptors[op["path"]] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self.write(self.descriptors[op["path"]], data, None)
        elif do == "close":
            os.close(self.descriptors.pop(op["path"]))
        elif do == "mkdir":
            os.mkdir(path)
        elif do == "rmdir":
            os.rmdir(path)
        elif do == "unlink":
            os.unlink(path)
        elif do == "rename":
            os.rename(path, self.path(op["to"]))
        elif do == "link":
            os.link(path, self.path(op["to"]))
        elif do == "symlink":
            os.symlink(op["to"], path)
        elif do == "chmod":
            os.chmod(path, op["mode"])

    @staticmethod
    def write(descriptor, data, at):
        view, done = memoryview(data), 0
        while done < len(data):
            part = view[done:done + crashlib.WRITE]
            done += os.write(descriptor, part) if at is None else os.pwrite(descriptor, part, at + done)

    # ---- after the mount was lost

    def lost(self, op, error):
        print(f"operation {op['op']}: {error}; waiting for the mount", flush=True)
        self.wait_for_mount()
        for name, descriptor in list(self.descriptors.items()):
            # Descriptors of the former connection are dead; what was written counts as not closed.
            try:
                os.close(descriptor)
            except OSError:
                pass
            del self.descriptors[name]
        eyes = crashlib.Eyes(self.root, self.history)
        look = eyes.look() or {}
        k = self.history.begun
        touched = self.history.deltas[op["op"]]
        after = all(look.get(p, crashlib.ABSENT) == v for p, v in touched.items())
        before = all(look.get(p, crashlib.ABSENT) == self.history.value_at(p, k - 1) for p in touched)
        print(f"operation {op['op']}: " + ("took effect" if after else "did not take effect" if before else "took effect in part"), flush=True)
        if after and touched:
            self.record({"done": op["op"]}, True)
        elif op["do"] in ("put", "append", "overwrite", "truncate", "grow", "close"):
            self.record({"gave_up": op["op"]}, True)
            self.repair(op["path"])
        else:
            try:
                self.carry_out(op)
            except OSError as e:
                print(f"operation {op['op']}: after the mount came back: {e}", flush=True)
                raise
            self.record({"done": op["op"]}, True)
        for name in [n for n in self.history._open if n not in self.descriptors]:
            self.repair(name)

    def repair(self, path):
        self.record({"dropped": path}, False)
        self.do("put", path, size=1000)

    def wait_for_mount(self):
        deadline = time.monotonic() + self.options.patience
        announced = os.stat(self.options.announce).st_mtime_ns if self.options.announce and os.path.exists(self.options.announce) else 0
        while time.monotonic() < deadline:
            try:
                if self.options.announce and os.stat(self.options.announce).st_mtime_ns == announced:
                    raise OSError(errno.EAGAIN, "not announced")
                os.listdir(self.root)
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{self.root} did not come back within {self.options.patience} s")

    # ---- choosing

    def of(self, kind):
        return sorted(p for p, v in self.history._paths.items() if v[0] == kind and p and p not in self.descriptors)

    def new_name(self, r):
        directory = r.choice(self.of("directory") + [""])
        return os.path.join(directory, f"n{self.history.begun}")

    def size(self, r):
        return r.choice((0, 1, 10, 100, 4096, r.randrange(1, 20000), r.randrange(1, 300000)))

    def step(self, r, number):
        files, directories = self.of("file"), self.of("directory")
        # The file that grows has one name only: what other names do to it while it is open is not followed.
        once = [f for f in files if f != "growing.log"]
        sync = r.random() < 0.3
        choices = ["put new"] * 4 + ["mkdir"] * (3 if len(directories) < 8 else 0) + ["checkpoint"] * 3 + ["event"] * 4 + ["grow"] * 3 + ["symlink"]
        if once:
            choices += ["put"] * 3 + ["append"] * 3 + ["overwrite"] * 2 + ["truncate", "link", "chmod"] + ["rename"] * 3 + ["rename over"] * 3
            choices += ["unlink"] * (2 + len(files) // 15)
        if directories:
            choices += ["rename directory"] * 2 + ["rmdir"] * (1 + len(directories) // 4)
        if self.descriptors and number % 97 == 0:
            choices = ["close"]
        choice = r.choice(choices)
        if choice == "put new":
            self.do("put", self.new_name(r), size=self.size(r), sync=sync)
        elif choice in ("put", "append"):
            self.do(choice, r.choice(files), size=self.size(r), sync=sync)
        elif choice == "overwrite":
            path = r.choice(files)
            length = len(self.history._bytes(path))
            if length:
                at = r.randrange(length)
                self.do("overwrite", path, at=at, size=r.randrange(1, length - at + 1), sync=sync)
        elif choice == "truncate":
            path = r.choice(files)
            self.do("truncate", path, size=r.randrange(len(self.history._bytes(path)) + 1))
        elif choice == "link":
            self.do("link", r.choice(once), to=self.new_name(r))
        elif choice == "chmod":
            self.do("chmod", r.choice(files), mode=r.choice((0o600, 0o640, 0o644, 0o755)))
        elif choice == "rename":
            self.do("rename", r.choice(files), to=self.new_name(r))
        elif choice == "rename over" and len(files) > 1:
            self.do("rename", r.choice(files), to=r.choice(once))
        elif choice == "unlink":
            self.do("unlink", r.choice(files))
        elif choice == "mkdir":
            self.do("mkdir", self.new_name(r))
        elif choice == "symlink":
            self.do("symlink", self.new_name(r), to=r.choice(files + ["nowhere"]))
        elif choice == "rename directory":
            old = r.choice(directories)
            if any(p.startswith(old + "/") for p in self.descriptors):
                return
            targets = [d for d in directories + [""] if d != old and not d.startswith(old + "/")]
            self.do("rename", old, to=os.path.join(r.choice(targets or [""]), f"d{self.history.begun}"))
        elif choice == "rmdir":
            empty = [d for d in directories if not any(p.startswith(d + "/") for p in self.history._paths)]
            if empty:
                self.do("rmdir", r.choice(empty))
            else:
                victim = r.choice(directories)
                inside = sorted((p for p in self.history._paths if p.startswith(victim + "/")), reverse=True)
                if not any(p in self.descriptors for p in inside):
                    for p in inside:  # rm -r
                        self.do("rmdir" if self.history._paths[p] == crashlib.DIRECTORY else "unlink", p)
        elif choice == "checkpoint":
            self.checkpoint(r)
        elif choice == "event":
            log = "events.log"
            self.do("append" if log in self.history._paths else "put", log, size=r.randrange(1, 300))
        elif choice == "grow":
            self.do("grow", "growing.log", size=r.randrange(1, 2000))
        elif choice == "close":
            self.do("close", "growing.log")

    def checkpoint(self, r):
        """As PyTorch's distributed checkpoints: shards, then the index by a temporary name, over the old one."""
        sync = r.random() < 0.7
        shards = r.randrange(1, 4)
        for i in range(shards):
            self.do("put", f"__{i}_0.distcp", size=r.randrange(1000, 200000), sync=sync)
        self.do("put", ".metadata.tmp", size=r.randrange(10, 500), sync=sync)
        if ".metadata" in self.history._paths and r.random() < 0.5:
            self.do("unlink", ".metadata")
        self.do("rename", ".metadata.tmp", to=".metadata")

    def run(self):
        options = self.options
        if options.go_on:
            self.history, _ = crashlib.read_records(options.records)
            last = self.history.begun - 1
            if last >= 0 and last not in self.history.finished | self.history.gave_up:
                self.lost(self.history.operations[last], OSError(errno.EIO, "left unfinished by the writer's former life"))
            for name in list(self.history._open):
                self.record({"op": self.history.begun, "do": "close", "path": name}, False)
                self.record({"gave_up": self.history.begun - 1}, True)
                self.repair(name)
        else:
            os.makedirs(self.root, exist_ok=True)
            if os.listdir(self.root):
                raise SystemExit(f"{self.root} is not empty")
            self.record({"seed": options.seed, "directory": self.root}, True)
        r = random.Random(f"{options.seed} from {self.history.begun}")
        end = time.monotonic() + options.seconds if options.seconds else None
        for number in range(options.operations):
            if end and time.monotonic() > end:
                break
            self.step(r, number)
            if options.rate:
                time.sleep(r.random() * 2 / options.rate)
        for name in list(self.descriptors):
            self.do("close", name)
        self.record({"end": True}, True)
        print(f"{self.history.begun} operations, {len(self.history.syncs)} with fsync, {len(self.history.gave_up)} given up")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="a new or empty directory of the mount")
    parser.add_argument("records", help="the record file, outside the mount")
    parser.add_argument("--operations", type=int, default=1 << 40, help="at most so many steps of one or more operations")
    parser.add_argument("--seconds", type=float, help="end after that time")
    parser.add_argument("--rate", type=float, help="steps a second on average (default: as fast as it goes)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="(default: by the clock)")
    parser.add_argument("--records", dest="records_are", choices=("synced", "written"), default="synced", help="written: no fsync of records; enough if only daemons die (default: %(default)s)")
    parser.add_argument("--continue", dest="go_on", action="store_true", help="continue what the record file has, after this writer was killed")
    parser.add_argument("--announce", metavar="FILE", help="after the mount was lost, wait until FILE was touched")
    parser.add_argument("--patience", type=float, default=120, metavar="SECONDS", help="how long to wait for a lost mount (default: %(default)s)")
    options = parser.parse_args()
    if options.operations == 1 << 40 and not options.seconds:
        parser.error("give --operations or --seconds")
    print(f"seed {options.seed}", flush=True)
    Writer(options).run()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, AssertionError) as e:
        print(f"failed: {e}", file=sys.stderr)
        sys.exit(1)
