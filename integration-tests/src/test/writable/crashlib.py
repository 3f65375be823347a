"""What crash-writer.py recorded: the operations in their order, and the states that they lead to.

A record file has a JSON object a line: first {"seed", "directory"}, then for each operation one line before its first
system call ({"op": number, "do": ..., "path": ...}) and one after its last ({"done": number}); {"gave_up": number} if
the mount was lost meanwhile and it is not known how much of it took effect; {"dropped": path} if a descriptor that was
open was lost; {"end": true} at the end of a life of the writer.

Operations:

  put PATH size          the file gets new content: open with O_CREAT and O_TRUNC, write, close
  append PATH size       open with O_APPEND, write, close
  overwrite PATH at size open, pwrite, close
  truncate PATH size     truncate(2)
  grow PATH size         write to a file that stays open since the first grow of PATH
  close PATH             close it
  mkdir, rmdir, unlink PATH; rename PATH to; link PATH to; symlink PATH to
  chmod PATH mode        does not count for states

"sync" says that fsync(2) of the file succeeded before close(2). Content is a function of the seed and the number of
the operation, so that a record needs no bytes.
"""

import bisect
import hashlib
import json
import os
import random
import stat

WRITE = 50_000  # bytes of a write(2)
ABSENT = ("absent",)
DIRECTORY = ("directory",)


def piece(seed, number, size):
    """Bytes that an operation writes. None is zero, so that a hole or a lost tail shows."""
    return random.Random(f"{seed} {number}").randbytes(size).replace(b"\0", b"\x01")


class History:
    """States of a directory by the number k of operations that were applied, from 0 to all that were begun."""

    def __init__(self):
        self.seed = 0
        self.directory = ""
        self.operations = []  # as recorded
        self.finished = set()
        self.gave_up = set()
        self.ended = False
        self.deltas = []  # of operation i: path -> value after it
        self.timeline = {}  # path -> ([k], [value])
        self.contents = {}  # digest -> bytes
        self.syncs = []  # (k, path): fsync of what is there then
        self.linked = set()  # paths of files that had several names
        self.appends = set()  # k after which a file had more bytes at its end
        self.puts = set()  # k after which a file was written as a whole
        self.together = {}  # k -> paths of one file, whose content changed then
        self.growing = {}  # path -> [(k of begin, bytes after each write with its k)]
        self._paths = {"": DIRECTORY}  # path -> value, or ("file", number of the file)
        self._files = []  # number -> bytes
        self._open = {}  # path -> bytes with what was written and not closed
        self._unknown = set()

    # ---- reading records

    def feed(self, line):
        entry = json.loads(line)
        if "op" in entry:
            assert entry["op"] == len(self.operations), entry
            self.operations.append(entry)
            self.ended = False
            self._apply(entry)
        elif "done" in entry:
            self.finished.add(entry["done"])
        elif "gave_up" in entry:
            self.gave_up.add(entry["gave_up"])
        elif "dropped" in entry:
            self._open.pop(entry["dropped"], None)
        elif "end" in entry:
            self.ended = True
        elif "seed" in entry:
            self.seed, self.directory = entry["seed"], entry["directory"]

    @property
    def begun(self):
        return len(self.operations)

    def uncertain(self, number):
        """Whether an operation may have taken effect in part, or not at all."""
        return number in self.gave_up or number not in self.finished

    # ---- states

    def value_at(self, path, k):
        moments, values = self.timeline.get(path, ((), ()))
        i = bisect.bisect_right(moments, k) - 1
        return values[i] if i >= 0 else ABSENT

    def values_between(self, path, first, last):
        """Values of a path in the states first to last."""
        moments, values = self.timeline.get(path, ((), ()))
        found = [self.value_at(path, first)]
        i = bisect.bisect_right(moments, first)
        while i < len(moments) and moments[i] <= last:
            found.append(values[i])
            i += 1
        return found

    def state(self, k):
        return {p: v for p in self.timeline if (v := self.value_at(p, k)) != ABSENT}

    def value_of(self, content):
        digest = hashlib.sha256(content).hexdigest()[:24]
        self.contents[digest] = content
        return ("file", len(content), digest)

    def _apply(self, op):
        k = len(self.operations)  # the state after it
        do, path = op["do"], op["path"]
        changed = {}
        if do in ("put", "append", "overwrite", "truncate"):
            changed = self._write(op, k)
            if do == "append":
                self.appends.add(k)
            if do == "put":
                self.puts.add(k)
        elif do == "grow":
            before = self._open.get(path)
            if before is None:
                before = self._bytes(path)
                self.growing.setdefault(path, []).append([k, []])
            self._open[path] = before + piece(self.seed, op["op"], op["size"])
            self.growing[path][-1][1].append((k, self._open[path]))
        elif do == "close":
            changed = self._replace(path, self._open.pop(path, self._bytes(path)))
        elif do == "mkdir":
            changed[path] = self._paths[path] = DIRECTORY
        elif do == "symlink":
            changed[path] = self._paths[path] = ("link", op["to"])
        elif do in ("unlink", "rmdir"):
            del self._paths[path]
            changed[path] = ABSENT
        elif do == "link":
            self._paths[op["to"]] = self._paths[path]
            changed[op["to"]] = self._shown(path)
            self.linked |= {path, op["to"]}
        elif do == "rename":
            changed = self._rename(path, op["to"])
        if op.get("sync"):
            self.syncs.append((k, path))
        self.deltas.append(changed)
        for p, value in changed.items():
            moments, values = self.timeline.setdefault(p, ([], []))
            moments.append(k)
            values.append(value)

    def _bytes(self, path):
        entry = self._paths.get(path)
        return self._files[entry[1]] if entry and entry[0] == "file" else b""

    def _shown(self, path):
        entry = self._paths[path]
        return self.value_of(self._files[entry[1]]) if entry[0] == "file" else entry

    def _write(self, op, k):
        path, old = op["path"], self._bytes(op["path"])
        new = piece(self.seed, op["op"], op["size"])
        if op["do"] == "append":
            new = old + new
        elif op["do"] == "overwrite":
            new = old[: op["at"]] + new + old[op["at"] + len(new):]
        elif op["do"] == "truncate":
            new = old[: op["size"]] + bytes(max(0, op["size"] - len(old)))
        return self._replace(path, new)

    def _replace(self, path, content):
        entry = self._paths.get(path)
        if entry is None:
            entry = self._paths[path] = ("file", len(self._files))
            self._files.append(b"")
        self._files[entry[1]] = content
        value = self.value_of(content)
        changed = {p: value for p, e in self._paths.items() if e == entry}
        if len(changed) > 1:
            self.together[len(self.operations)] = set(changed)
        return changed

    def _rename(self, old, new):
        moved = [p for p in self._paths if p == old or p.startswith(old + "/")]
        if self._paths.get(new) == self._paths[old] and self._paths[old][0] == "file":
            return {}  # two names of one file: rename(2) does nothing
        changed = {p: ABSENT for p in moved}
        for p in moved:
            target = new + p[len(old):]
            entry = self._paths.pop(p)
            self._paths[target] = entry
            changed[target] = self._shown(target)
            if p in self.linked:
                self.linked.add(target)
        return changed


def read_records(path, history=None, position=0):
    """Feeds whole lines behind a position to a history; returns both. A writer that has not begun has no file."""
    history = history or History()
    try:
        with open(path, "rb") as f:
            f.seek(position)
            data = f.read()
    except FileNotFoundError:
        return history, position
    end = data.rfind(b"\n") + 1
    for line in data[:end].splitlines():
        history.feed(line)
    return history, position + end


class Eyes:
    """Looks at a directory again and again, and reads only what changed since."""

    def __init__(self, root, history, ignore=()):
        self.root, self.history, self.ignore = root, history, ignore
        self.known = {}  # path -> (identity, value)

    def names(self):
        """path -> lstat of everything below, or None if something vanished while it was read."""
        import fnmatch

        found, waiting = {}, [""]
        try:
            while waiting:
                directory = waiting.pop()
                with os.scandir(os.path.join(self.root, directory)) as entries:
                    for entry in entries:
                        if any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in self.ignore):
                            continue
                        path = os.path.join(directory, entry.name)
                        found[path] = os.lstat(os.path.join(self.root, path))
                        if stat.S_ISDIR(found[path].st_mode):
                            waiting.append(path)
        except FileNotFoundError:
            return None
        return found

    @staticmethod
    def _identity(s):
        return s.st_mode, s.st_ino, s.st_size if not stat.S_ISDIR(s.st_mode) else 0, s.st_mtime_ns, s.st_ctime_ns

    def look(self, tries=50):
        """
        path -> value at one moment, or None if the directory changed each time. Two walks with the same names,
        numbers, sizes and times have the content between them.
        """
        before = self.names()
        for _ in range(tries):
            values = {} if before is None else self._values(before)
            after = self.names()
            if before is not None and after is not None and values is not None and \
                    {p: self._identity(s) for p, s in before.items()} == {p: self._identity(s) for p, s in after.items()}:
                return values
            before = after
        return None

    def _values(self, names):
        values = {}
        for path, s in names.items():
            identity = self._identity(s)
            known = self.known.get(path)
            if known is None or known[0] != identity:
                try:
                    known = (identity, self._value(path, s))
                except FileNotFoundError:
                    return None
                self.known[path] = known
            values[path] = known[1]
        return values

    def _value(self, path, s):
        full = os.path.join(self.root, path)
        if stat.S_ISDIR(s.st_mode):
            return DIRECTORY
        if stat.S_ISLNK(s.st_mode):
            return ("link", os.readlink(full))
        with open(full, "rb") as f:
            return self.history.value_of(f.read())


EXACT, ORDERED, LOOSE = 0, 1, 2
RULES = ("exact", "ordered", "loose")


class Order:
    """
    Says whether looks at the source are earlier states, one after the other.

    A look is *exact* at k if each name has its value of state k. It is *ordered* at k if that is true but for names
    that vanish from the mount before the look (removed or renamed away): they may be absent or have an older value,
    because what is gone before its turn is not copied. It is *loose* if the same holds for values that were replaced
    before the look. By every rule
      - k never goes back, and never beyond what was begun;
      - a file that was written without being closed may show any prefix of what was written, not shorter than its
        value at k, whatever k is;
      - a file that is appended to next may show a part of its new value, longer than the one at k;
      - a new file that is written next may show some of its writes, because open files are copied every few seconds;
      - names of a file with several names get new content one after the other: meanwhile each may have, whole, the
        value of k or the one before, which is of a state since the last look at which all names of all files agreed;
      - what an operation that was given up did is open at the names it touches, until the next one there.
    """

    def __init__(self, history):
        self.history = history
        self.k = 0
        self.agreed = 0  # the last state at which no name was behind another of its file
        self.counts = [0, 0, 0]

    def judge(self, look, rule):
        """Returns None, or a sentence that says why no state matches by the rule. Counts the strictest rule that holds."""
        for strictness in range(rule + 1):
            k = self._first(look, strictness)
            if k is not None:
                self.k = k
                if not any(self._behind(p, look.get(p, ABSENT), k) for p in look if look[p] != self.history.value_at(p, k)):
                    self.agreed = k
                self.counts[strictness] += 1
                return None
        return self._why(look, rule)

    def _first(self, look, rule):
        h = self.history
        wrong = {p for p in set(look) | set(h.timeline) if look.get(p, ABSENT) != h.value_at(p, self.k)}
        k = self.k
        while True:
            if all(self._excused(p, look.get(p, ABSENT), k, rule) for p in wrong):
                return k
            if k == h.begun:
                return None
            for p, value in h.deltas[k].items():
                (wrong.discard if look.get(p, ABSENT) == value else wrong.add)(p)
            k += 1

    def _excused(self, path, seen, k, rule):
        h = self.history
        value = h.value_at(path, k)
        if self._prefix_of_growing(path, seen, value):
            return True
        if self._behind(path, seen, k) or self._being_written(path, seen, value, k):
            return True
        if self._open_end(path, k):
            return True
        if rule >= ORDERED and seen in h.values_between(path, 0, k) + [ABSENT]:
            later = h.values_between(path, k, h.begun)[1:]
            if ABSENT in later or (rule >= LOOSE and later):
                return True
        return False

    def _behind(self, path, seen, k):
        """Whether a name has the value before the change that its file got last, and other names may have it already."""
        h = self.history
        moments = h.timeline.get(path, ((), ()))[0]
        i = bisect.bisect_right(moments, k) - 1
        return i >= 0 and moments[i] > self.agreed and path in h.together.get(moments[i], ()) and seen[0] == "file" \
            and seen in h.values_between(path, self.agreed, moments[i] - 1)

    def _prefix_of_growing(self, path, seen, value):
        for _, writes in self.history.growing.get(path, ()):
            if seen[0] == "file" and seen[1] >= (value[1] if value[0] == "file" else 0):
                if writes[-1][1].startswith(self.history.contents[seen[2]]):
                    return True
        return False

    def _being_written(self, path, seen, value, k):
        h = self.history
        moments, values = h.timeline.get(path, ((), ()))
        i = bisect.bisect_right(moments, k)
        if seen[0] != "file" or i == len(moments):
            return False
        is_appended = moments[i] in h.appends and value[0] == "file" and seen[1] > value[1]
        is_new = moments[i] in h.puts and value == ABSENT and seen[1] > 0 and seen[1] % WRITE == 0
        return (is_appended or is_new) and seen[1] < values[i][1] and h.contents[values[i][2]].startswith(h.contents[seen[2]])

    def _open_end(self, path, k):
        # Until the next operation on the name, what was given up may have done anything there.
        h = self.history
        return any(k > number and path in h.deltas[number] and not any(path in h.deltas[i] for i in range(number + 1, k))
                   for number in h.gave_up)

    def _why(self, look, rule):
        """Names the state that fits best, and what does not fit there."""
        h = self.history
        best, best_wrong = None, None
        for k in range(self.k, h.begun + 1):
            wrong = [p for p in sorted(set(look) | set(h.timeline)) if look.get(p, ABSENT) != h.value_at(p, k)
                     and not self._excused(p, look.get(p, ABSENT), k, rule)]
            if best_wrong is None or len(wrong) < len(best_wrong):
                best, best_wrong = k, wrong
        lines = [f"the look is no state from {self.k} to {h.begun}; nearest is {best}"
                 + (f" (after {describe(h.operations[best - 1])})" if best else "")]
        for p in best_wrong[:8]:
            lines.append(f"  {p}: {self._explain(p, look.get(p, ABSENT), best)}")
        if len(best_wrong) > 8:
            lines.append(f"  and {len(best_wrong) - 8} more")
        return "\n".join(lines)

    def _explain(self, path, seen, k):
        h = self.history
        text = f"is {shown(seen)}, in that state {shown(h.value_at(path, k))}"
        if seen in h.timeline.get(path, ((), ()))[1]:
            moments, values = h.timeline[path]
            at = [m for m, v in zip(moments, values) if v == seen]
            return text + f"; it had that value after operation {', '.join(map(str, [m - 1 for m in at][:5]))}"
        if seen[0] == "file":
            return text + "; " + what_is_wrong(h, path, h.contents[seen[2]])
        return text


def what_is_wrong(history, path, found):
    """Compares bytes that no state has with the value that has the longest common beginning."""
    candidates = [history.contents[v[2]] for v in history.timeline.get(path, ((), ()))[1] if v[0] == "file"]
    candidates += [w[-1][1] for _, w in history.growing.get(path, ()) if w]
    if not candidates:
        return "no state has a file there"
    best = max(candidates, key=lambda c: common(c, found))
    same = common(best, found)
    rest = found[same:]
    if not rest:
        return f"it is torn: only the first {same} of {len(best)} bytes of a version"
    if not rest.strip(b"\0"):
        return f"{len(rest)} zero bytes behind the first {same} of {len(best)} bytes of a version"
    return f"equal to a version of {len(best)} bytes up to {same} only"


def common(a, b):
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle
    return low


def shown(value):
    return f"a file of {value[1]} bytes ({value[2][:8]})" if value[0] == "file" else " ".join(value)


def describe(op):
    return f"operation {op['op']}: {op['do']} {op['path']}" + (f" to {op['to']}" if "to" in op else "") + (
        f" {op['size']} bytes" if "size" in op else "")
