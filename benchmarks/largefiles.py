"""Large files that several nodes read at the same moment; each MiB is compared with the checksum that it has at the source.

`mmap` maps a file whole and touches its pages in order, `preads` reads it by eight threads, each another part. Called as a program, this
is one of the readers.
"""

import json
import mmap
import os
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import machine
from machine import BenchmarkError

BLOCK = 1 << 20
THREADS = 8
READERS = ("mmap", "preads")


def make(directory, names, size):
    """Files of random bytes; their checksums by name."""
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        with open(directory / name, "wb") as file:
            for first in range(0, size, 64 * BLOCK):
                file.write(os.urandom(min(64 * BLOCK, size - first)))
    return {name: checksums(directory / name) for name in names}


def checksums(path):
    with open(path, "rb") as file:
        return [zlib.crc32(block) for block in iter(lambda: file.read(BLOCK), b"")]


def read_mapped(file, sums, wrong):
    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory, memoryview(memory) as view:
        wrong.extend(block for block, known in enumerate(sums) if zlib.crc32(view[block * BLOCK : (block + 1) * BLOCK]) != known)


def read_in_parts(file, sums, wrong):
    def part(first, end):
        for block in range(first, end):
            if zlib.crc32(os.pread(file.fileno(), BLOCK, block * BLOCK)) != sums[block]:
                wrong.append(block)

    ends = [len(sums) * number // THREADS for number in range(THREADS + 1)]
    threads = [threading.Thread(target=part, args=ends[number : number + 2]) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def read(how, directory, sums):
    """Says that it is ready, waits for the start, and prints the seconds."""
    known = json.loads(Path(sums).read_text())
    print("ready", flush=True)
    sys.stdin.read()
    begin = time.monotonic()
    for name, blocks in known.items():
        wrong = []
        with open(Path(directory, name), "rb") as file:
            (read_mapped if how == "mmap" else read_in_parts)(file, blocks, wrong)
        if wrong:
            raise BenchmarkError(f"{directory}/{name}: {len(wrong)} blocks differ from the source")
    print(time.monotonic() - begin)


def read_on_all(directories, how, sums, places=None):
    """The seconds of a reader for each directory; all begin together. A reader runs in its place, if there are any."""
    readers = []
    try:
        for number, directory in enumerate(directories):
            words = [sys.executable, "-B", __file__, how, str(directory), str(sums)]
            words = places[number].words(*words) if places else words
            readers.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for reader in readers:
            reader.stdout.readline()
        for reader in readers:
            reader.stdin.close()
        lines = [reader.stdout.read() for reader in readers]
        if any(reader.wait() for reader in readers):
            raise BenchmarkError("a file could not be read; the lines above say why")
        return [float(line) for line in lines]
    finally:
        with machine.uninterrupted():
            for reader in readers:
                if reader.poll() is None:
                    reader.kill()
                    reader.wait()
                reader.stdout.close()


if __name__ == "__main__":
    machine.main(lambda: read(*sys.argv[1:]))
