"""Reading directories: completely, in parts, from positions, and while they change."""

import os
import stat

from .harness import DirectoryStream, TYPES, case, make, write
from .linked import race


@case("list/types and numbers")
def _(p):
    os.mkdir("d")
    for kind in TYPES:
        make(kind, f"d/{kind}")
    stream = DirectoryStream("d")
    entries = {}
    while (entry := stream.read()) is not None:
        entries[entry[0]] = entry
    p.note("names", sorted(entries))
    p.note("types", {n: e[2] for n, e in sorted(entries.items())})
    p.note("numbers", {n: e[1] == os.lstat("d/" + n).st_ino for n, e in sorted(entries.items()) if n != ".."})
    p.note("number of ..", entries[".."][1] == os.stat(".").st_ino)
    stream.close()


@case("list/many entries")
def _(p):
    os.mkdir("d")
    names = [f"{i:04d}-" + "n" * (i % 200) for i in range(3000)]
    for name in names:
        write("d/" + name)
    p.note("all", sorted(os.listdir("d")) == sorted(names))
    with os.scandir("d") as entries:
        p.note("scandir", sorted(e.name for e in entries if e.is_file()) == sorted(names))
    stream = DirectoryStream("d")
    positions, order = [], []
    while True:
        position = stream.tell()
        entry = stream.read()
        if entry is None:
            break
        positions.append(position)
        order.append(entry[0])
    p.note("once each", len(order) == len(set(order)) == 3002)
    good = 0
    for i in range(0, 3002, 97):
        stream.seek(positions[i])
        good += stream.read()[0] == order[i]
    p.note("positions lead back", good == len(range(0, 3002, 97)))
    stream.seek(positions[1500])
    p.note("the rest from a position", stream.names() == order[1500:])
    stream.rewind()
    p.note("rewound", stream.names() == order)
    stream.close()


@case("list/removed while reading")
def _(p):
    os.mkdir("d")
    for i in range(2000):
        write(f"d/{i}")
    stream = DirectoryStream("d")
    seen = 0
    while (entry := stream.read()) is not None:
        if entry[0] not in (".", ".."):
            os.unlink("d/" + entry[0])
            seen += 1
    p.note("seen and removed", seen)
    p.note("left", len(os.listdir("d")))
    p.call("rmdir", os.rmdir, "d")
    p.call("read of the removed", stream.read)
    stream.rewind()
    p.call("read after rewinding", stream.names)


@case("list/positions stay while names go and come")
def _(p):
    os.mkdir("d")
    for i in range(1000):
        write(f"d/{i}")
    stream = DirectoryStream("d")
    first = stream.names(300)
    position = stream.tell()
    kept = {n for n in (str(i) for i in range(1000)) if n not in first}
    for i in range(0, 1000, 3):
        os.unlink(f"d/{i}")
        kept.discard(str(i))
    for i in range(500):
        write(f"d/new{i}")
    rest = stream.names()
    p.note("what stayed is seen once", sorted(n for n in rest if n in kept) == sorted(kept))
    p.note("nothing twice", len(rest) == len(set(rest)) and not set(rest) & set(first))
    stream.seek(position)
    again = stream.names()
    p.note("again from the position", sorted(n for n in again if n in kept) == sorted(kept))
    stream.close()


@case("list/renamed while reading")
def _(p):
    os.mkdir("d")
    for i in range(500):
        write(f"d/{i}")
    stream = DirectoryStream("d")
    stream.names(100)
    for i in range(500):
        os.rename(f"d/{i}", f"d/{i}") if i % 2 else write(f"d/{i}", b"x")
    rest = stream.names()
    p.note("no more and no less", len(rest) == 402 and len(set(rest)) == 402)


@case("list/by others while they make and remove")
def _(p):
    os.mkdir("d")
    for i in range(300):
        write(f"d/stays{i}")

    def work(me):
        if me < 2:
            for i in range(400):
                write(f"d/t{me}-{i}")
                os.rename(f"d/t{me}-{i}", f"d/u{me}-{i}")
                os.unlink(f"d/u{me}-{i}")
            return True
        good = True
        for _ in range(20):
            names = os.listdir("d")
            good = good and len(names) == len(set(names)) and sum(n.startswith("stays") for n in names) == 300
        return good

    p.note("each listing had what stays, once", race(4, work))
    p.note("left", len(os.listdir("d")))


@case("list/seen at once")
def _(p):
    os.mkdir("d")
    for i in range(30):
        os.listdir("d")
        write(f"d/{i}")
        if i % 3 == 0:
            os.rename(f"d/{i}", f"d/r{i}")
        if i % 5 == 0 and os.path.exists(f"d/{i}"):
            os.unlink(f"d/{i}")
        p.note(f"after {i}", sorted(os.listdir("d")))
        p.child(f"by another process after {i}", lambda: sorted(os.listdir("d")))


@case("list/what another process made and removed is known at once")
def _(p):
    for i in range(30):
        p.note(f"absent {i}", os.path.exists(f"f{i}"))
        p.child(f"make {i}", write, f"f{i}", b"made")
        p.content(f"there {i}", f"f{i}")
        p.child(f"rename {i}", os.rename, f"f{i}", f"g{i}")
        p.note(f"moved {i}", (os.path.exists(f"f{i}"), os.path.exists(f"g{i}")))
        p.child(f"append {i}", write, f"g{i}", b" more", os.O_WRONLY | os.O_APPEND)
        p.content(f"longer {i}", f"g{i}")
        p.child(f"chmod {i}", os.chmod, f"g{i}", 0o600 + i % 8)
        p.stat(f"mode {i}", f"g{i}", "mode", "size")
        p.child(f"unlink {i}", os.unlink, f"g{i}")
        p.note(f"gone {i}", os.path.exists(f"g{i}"))


@case("list/file instead of directory and back")
def _(p):
    for i in range(10):
        os.mkdir("x")
        write("x/in", b"1")
        p.note(f"directory {i}", (stat.S_ISDIR(os.stat("x").st_mode), os.listdir("x")))
        os.unlink("x/in")
        os.rmdir("x")
        write("x", b"file %d" % i)
        p.content(f"file {i}", "x")
        p.call(f"below it {i}", os.stat, "x/in")
        os.unlink("x")
        os.symlink("y", "x")
        p.call(f"link {i}", os.readlink, "x")
        os.unlink("x")


@case("list/fsync of directories and files without rights")
def _(p):
    os.mkdir("d", 0o500)
    directory = os.open("d", os.O_RDONLY)
    p.call("fsync", os.fsync, directory)
    p.call("fdatasync", os.fdatasync, directory)
    p.call("read", os.read, directory, 1)
    p.call("lseek", os.lseek, directory, 0, os.SEEK_SET)
    p.tries_open("writing", "d", os.O_WRONLY)
    p.call("sync", os.sync)
