#!/usr/bin/env python3
"""Checks what several nodes see of one directory that they all write to.

Each MOUNT is the same directory as one node sees it, all on this machine, so that one clock times everything. Programs
on all nodes do at random, and note when each call began and ended:

- whole files that get their name by rename, in a few places: a read must be explained by an order of all writes and
  reads that keeps the order of calls that did not overlap (a linearizable register, as Jepsen checks it)
- files that are written in their place: a read that overlaps no write has the last one that was closed
- names that are made once and removed once: a look must see them from the end of the first call to the begin of the
  second
- lines that are appended: none is lost, none is there twice
- without faults, files that one node holds open for writing: another's open must fail with EBUSY

With --fault, a command runs now and then meanwhile, such as a kill of a daemon. With --cut the command also cuts a node
off: what that node reads until it is in touch again only must be whole. A call that fails with EIO, EBUSY or
ENOTCONN counts as made or not made. Ends with 0 if all is right, 1 if something is wrong, 2 for wrong usage.

  ./nodes-check.py /mnt/a /mnt/b --seconds 30 --seed 7
  ./nodes-check.py /mnt/a /mnt/b --fault 'kill -9 $(cat /run/a.pid)' --fault 'kill -9 $(cat /run/b.pid)' --every 5
  ./nodes-check.py /mnt/a /mnt/b --cut 1 'ip -n sw link set pb down; sleep 20; ip -n sw link set pb up' --every 40
"""
import argparse
import bisect
import errno
import multiprocessing
import os
import random
import subprocess
import sys
import time

PLACES = 4

# A large file stays on the node where it was written; a small one does not.
COUNTS = (100, 100, 100, 150_000)
UNSURE = {errno.EIO, errno.EBUSY, errno.ENOTCONN, errno.ECONNABORTED, errno.ETIMEDOUT, errno.ESTALE}
FOREVER = float('inf')


def timed(call):
    """When a call began and ended, and what it returned or the number of its error."""
    begin = time.monotonic()
    try:
        result, error = call(), 0
    except OSError as e:
        result, error = None, e.errno
    return begin, time.monotonic(), result, error


def put(path, text, flags):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    try:
        while text:
            text = text[os.write(file, text):]
    finally:
        os.close(file)


def get(path):
    with open(path, 'rb') as file:
        return file.read()


def whole(value, count):
    """A content that tells whether it is all there."""
    return f'{value}:{count};'.encode() * count


def value_of(text):
    """What a whole file says, or that it is torn."""
    value, _, count = text.partition(b';')[0].decode(errors='replace').partition(':')
    if not count.isdigit() or text != whole(value, int(count)):
        return f'torn: {len(text)} bytes, {text[:60]!r}'
    return value


def program(mount, node, number, seed, end, holds, results):
    """What one program does until the end; its history goes to the queue."""
    rng = random.Random(seed)
    history = []
    own = []  # names that this program made and has not removed
    known = []  # names that may be looked at: all programs make the same kinds of names
    count = 0
    me = f'{node}.{number}'
    while time.monotonic() < end:
        count += 1
        value = f'{me}.{count}'
        kind = rng.choice(['rename', 'read', 'read', 'place', 'reread', 'reread', 'make', 'remove', 'look', 'look', 'append', 'hold'])
        place = rng.randrange(PLACES)
        if kind == 'rename':
            def change():
                put(f'{mount}/tmp.{me}', whole(value, rng.choice(COUNTS)), os.O_TRUNC)
                os.rename(f'{mount}/tmp.{me}', f'{mount}/whole{place}')
            begin, ended, _, error = timed(change)
            history.append(('write', place, value, begin, ended, error))
        elif kind == 'read':
            begin, ended, text, error = timed(lambda: get(f'{mount}/whole{place}'))
            if error == errno.ENOENT:
                history.append(('read', place, '', begin, ended, 0, node))
            elif not error:
                history.append(('read', place, value_of(text), begin, ended, 0, node))
        elif kind == 'place':
            begin, ended, _, error = timed(lambda: put(f'{mount}/place{place}', value.encode(), os.O_TRUNC))
            history.append(('place', place, value, begin, ended, error))
        elif kind == 'reread':
            begin, ended, text, error = timed(lambda: get(f'{mount}/place{place}'))
            if not error:
                history.append(('reread', place, text.decode(), begin, ended, 0, node))
        elif kind == 'make':
            begin, ended, _, error = timed(lambda: os.mkdir(f'{mount}/name.{value}'))
            history.append(('make', value, None, begin, ended, error))
            own.append(value)
        elif kind == 'remove' and own:
            name = own.pop(rng.randrange(len(own)))
            begin, ended, _, error = timed(lambda: os.rmdir(f'{mount}/name.{name}'))
            history.append(('remove', name, None, begin, ended, 0 if error == errno.ENOENT else error))
        elif kind == 'look':
            if not known or rng.random() < 0.3:
                begin, ended, names, error = timed(lambda: os.listdir(mount))
                known = [one[5:] for one in names or [] if one.startswith('name.')][-50:] + known[:50]
            else:
                name = rng.choice(known)
                begin, ended, _, error = timed(lambda: os.stat(f'{mount}/name.{name}'))
                if error in (0, errno.ENOENT):
                    history.append(('look', name, error == 0, begin, ended, 0, node))
        elif kind == 'append':
            begin, ended, _, error = timed(lambda: put(f'{mount}/log.{me}', f'{count}\n'.encode(), os.O_APPEND))
            history.append(('append', me, count, begin, ended, error))
        elif kind == 'hold' and holds:
            try:
                file = os.open(f'{mount}/held', os.O_WRONLY | os.O_CREAT, 0o644)
            except OSError as e:
                if e.errno != errno.EBUSY:
                    history.append(('odd', 'held', e.errno, 0, 0, 0))
                continue
            begin = time.monotonic()
            time.sleep(rng.random() * 0.2)
            history.append(('hold', node, None, begin, time.monotonic(), 0))
            os.close(file)
    results.put(history)


def without_cuts(history, cuts):
    """
    Reads of a node that may not have reached the others show what it saw before. Here they only must be whole.

    cuts: for each the node, and when it was cut off and when it was in touch again
    """
    kept, wrong = [], []
    for one in history:
        is_cut = len(one) > 6 and any(one[6] == node and one[3] < after and before < one[4] for node, before, after in cuts)
        if not is_cut:
            kept.append(one[:6])
        elif one[0] == 'read' and one[2].startswith('torn'):
            wrong.append(f'whole{one[1]}: {one[2]!r} was read by a node that was cut off')
    return kept, wrong


def explain(register, history):
    """Violations of a register of unique values: zones that cannot be ordered (Gibbons and Korach, 1997)."""
    writes, reads = {'': (-1.0, 0.0)}, []
    for kind, place, value, begin, ended, error in history:
        if place == register and kind == 'write':
            writes[value] = (begin, FOREVER if error else ended)
        elif place == register and kind == 'read':
            reads.append((value, begin, ended))
    wrong = []
    spans = {value: [span] for value, span in writes.items()}
    for value, begin, ended in reads:
        if value not in writes:
            wrong.append(f'whole{register}: read {value!r}, which nobody wrote whole')
        elif ended < writes[value][0]:
            wrong.append(f'whole{register}: read {value} before it was written')
        else:
            spans[value].append((begin, ended))
    zones = []
    for value, calls in spans.items():
        if len(calls) == 1 and calls[0][1] == FOREVER:
            continue  # nobody saw a write that may not have been made
        first_end, last_begin = min(end for _, end in calls), max(begin for begin, _ in calls)
        zones.append((first_end, last_begin, value))
    forward = sorted(zone for zone in zones if zone[0] < zone[1])
    for (_, last, one), (first, _, other) in zip(forward, forward[1:]):
        if first < last:
            wrong.append(f'whole{register}: {one} and {other} were each seen after the other')
    for last, first, value in (zone for zone in zones if zone[0] >= zone[1]):
        for start, stop, other in forward:
            if start < first and last < stop:
                wrong.append(f'whole{register}: {other} was seen before and after {value}, which was written between')
    return wrong


def explain_place(place, history):
    """Reads that overlap no write must have the last one that was closed before them, or an unsure one."""
    writes = sorted((begin, ended, value, error) for kind, where, value, begin, ended, error in history
                    if kind == 'place' and where == place)
    # Of the first writes, and so many as there are: the end of all, of one that may have been made later, and of the one
    # before the last; the last one.
    none = float('-inf')
    ends, unsure, second, last = [none], [none], [none], [None]
    for one in writes:
        ends.append(max(ends[-1], one[1]))
        unsure.append(max(unsure[-1], one[1]) if one[3] and one[3] != errno.EBUSY else unsure[-1])
        if one[3]:
            second.append(second[-1])
            last.append(last[-1])
        elif last[-1] is None or one[1] > last[-1][1]:
            second.append(last[-1][1] if last[-1] else none)
            last.append(one)
        else:
            second.append(max(second[-1], one[1]))
            last.append(last[-1])
    begins = [one[0] for one in writes]
    wrong = []
    for kind, where, value, begin, ended, _ in history:
        if kind != 'reread' or where != place:
            continue
        before = bisect.bisect_left(begins, ended)
        if ends[before] >= begin:
            continue  # overlaps a write
        if last[before] is None or unsure[before] > last[before][0]:
            continue  # a write that may have been made, perhaps later
        if second[before] > last[before][0]:
            continue  # two programs wrote at once: parts of both may be there
        if value != last[before][2]:
            wrong.append(f'place{place}: read {value!r}, but {last[before][2]} was closed before')
    return wrong


def explain_names(history):
    made, removed, wrong = {}, {}, []
    for kind, name, _, begin, ended, error in history:
        if kind == 'make':
            made[name] = (begin, FOREVER if error else ended)
        elif kind == 'remove':
            removed[name] = (begin, FOREVER if error else ended)
    for kind, name, is_there, begin, ended, _ in history:
        if kind != 'look' or name not in made:
            continue
        gone = removed.get(name, (FOREVER, FOREVER))
        if is_there and (ended < made[name][0] or gone[1] < begin):
            wrong.append(f'{name}: seen although it was not there')
        if not is_there and made[name][1] < begin and ended < gone[0]:
            wrong.append(f'{name}: not seen although it was there')
    return wrong


def explain_holds(history):
    holds = sorted((begin, ended, node) for kind, node, _, begin, ended, _ in history if kind == 'hold')
    wrong = [f'odd error {value} of an open for writing' for kind, _, value, _, _, _ in history if kind == 'odd']
    for i, (_, ended, node) in enumerate(holds):
        for begin, _, other in holds[i + 1:]:
            if begin >= ended:
                break
            if other != node:
                wrong.append(f'nodes {node} and {other} had a file open for writing at the same time')
    return wrong


def explain_logs(history, mounts):
    wrong = []
    for me in sorted({one[1] for one in history if one[0] == 'append'}):
        sure = [value for kind, who, value, _, _, error in history if kind == 'append' and who == me and not error]
        unsure = {value for kind, who, value, _, _, error in history if kind == 'append' and who == me and error}
        for mount in mounts:
            try:
                lines = [int(line) for line in get(f'{mount}/log.{me}').split()]
            except FileNotFoundError:
                lines = []
            if [line for line in lines if line not in unsure] != sure or len(set(lines)) != len(lines):
                wrong.append(f'log.{me} at {mount}: {len(lines)} lines of {len(sure)} and {len(unsure)} unsure ones')
    return wrong


def explain_all(history, cuts=()):
    history, wrong = without_cuts(history, cuts)
    for place in range(PLACES):
        wrong += explain(place, history) + explain_place(place, history)
    return wrong + explain_names(history) + explain_holds(history)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('mounts', nargs='+', metavar='MOUNT')
    parser.add_argument('--seconds', type=float, default=30)
    parser.add_argument('--seed', type=int, default=random.randrange(1 << 30))
    parser.add_argument('--programs', type=int, default=3, help='on each node')
    parser.add_argument('--fault', action='append', default=[], metavar='COMMAND')
    parser.add_argument('--cut', nargs=2, action='append', default=[], metavar=('NODE', 'COMMAND'),
                        help='a fault that cuts off a node, 0 for the first, while the command runs')
    parser.add_argument('--every', type=float, default=5, metavar='SECONDS', help='between faults')
    parser.add_argument('--settle', type=float, default=15, metavar='SECONDS', help='until a node is in touch again after a fault')
    args = parser.parse_args()
    directories = []
    name = f'nodes-check-{args.seed}-{os.getpid()}'
    os.mkdir(os.path.join(args.mounts[0], name))
    for mount in args.mounts:
        directories.append(os.path.join(mount, name))
        if not os.path.isdir(directories[-1]):
            print(f'{directories[-1]}: not there after mkdir at {args.mounts[0]}')
            return 1
    print(f'seed {args.seed}, {args.seconds:.0f} s, {len(directories)} nodes with {args.programs} programs each')
    results = multiprocessing.Queue()
    end = time.monotonic() + args.seconds
    running = []
    for node, directory in enumerate(directories):
        for number in range(args.programs):
            seed = args.seed * 1000 + node * 100 + number
            task = multiprocessing.Process(
                target=program, args=(directory, node, number, seed, end, not args.fault and not args.cut, results))
            task.start()
            running.append(task)
    rng = random.Random(args.seed)
    faults, cuts = 0, []
    commands = [(None, command) for command in args.fault] + [(int(node), command) for node, command in args.cut]
    while commands and time.monotonic() + args.every < end:
        time.sleep(args.every * (0.5 + rng.random()))
        faults += 1
        node, command = rng.choice(commands)
        begin = time.monotonic()
        subprocess.run(['bash', '-c', command], check=False)
        if node is not None:
            cuts.append((node, begin, time.monotonic() + args.settle))
    history = []
    for _ in running:
        history += results.get()
    for task in running:
        task.join()
    time.sleep(args.settle if commands else 0)
    wrong = explain_all(history, cuts) + explain_logs([one[:6] for one in history], directories)
    failed = [f'{one[0]} {errno.errorcode[one[5]]}' for one in history if one[5]]
    kinds = {kind: sum(1 for one in history if one[0] == kind) for kind in sorted({one[0] for one in history})}
    print(f'{len(history)} calls, {len(failed)} of them failed, {faults} faults: ' + ', '.join(f'{k} {n}' for k, n in kinds.items()))
    for one in sorted(set(failed)):
        print(f'  {one}: {failed.count(one)}')
    for line in wrong[:20]:
        print('WRONG', line)
    print(f'{len(wrong)} wrong' if wrong else 'all is explained')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
