"""The files a benchmark reads: the same ones on every machine for the same numbers."""

import json
import math
import os
import random
import shutil

SIGMA = 0.6  # of the sizes' logarithms: most files lie between half and twice the median, as photographs do
SMALLEST, LARGEST_FACTOR = 256, 12
FILES_IN_A_DIRECTORY = 100
BLOCK = 1 << 20


def sizes(count, mean_bytes, generator):
    """Log-normal file sizes with the given mean."""
    mu = math.log(mean_bytes) - SIGMA**2 / 2
    return [int(min(max(generator.lognormvariate(mu, SIGMA), SMALLEST), mean_bytes * LARGEST_FACTOR)) for _ in range(count)]


def make(directory, count, mean_bytes, large_bytes, seed):
    """Makes directory/small with count files and, if large_bytes, the file directory/large; bytes that do not compress.

    A directory that holds exactly this already is left as it is.
    """
    wanted = {"count": count, "mean": mean_bytes, "large": large_bytes, "seed": seed}
    mark = directory.parent / (directory.name + ".json")
    if mark.exists() and json.loads(mark.read_text()) == wanted:
        return
    if directory.exists():
        shutil.rmtree(directory)
    mark.unlink(missing_ok=True)
    generator = random.Random(seed)
    for index, size in enumerate(sizes(count, mean_bytes, generator)):
        parent = directory / "small" / f"class{index // FILES_IN_A_DIRECTORY:04d}"
        if index % FILES_IN_A_DIRECTORY == 0:
            parent.mkdir(parents=True)
        (parent / f"sample{index:06d}.bin").write_bytes(generator.randbytes(size))
    if large_bytes:
        make_file(directory / "large", large_bytes, generator)
    os.sync()
    mark.write_text(json.dumps(wanted))


def make_file(path, size, generator):
    """One file of bytes that do not compress."""
    with open(path, "wb") as file:
        for offset in range(0, size, BLOCK):
            file.write(generator.randbytes(min(BLOCK, size - offset)))


def make_equal(directory, count, size, seed):
    """Makes count files of size bytes that do not compress, all in one directory; returns their bytes."""
    directory.mkdir(parents=True)
    generator = random.Random(seed)
    for index in range(count):
        make_file(directory / f"f{index:06d}", size, generator)
    os.sync()
    return count * size


def make_tiny(directory, count, directories, size):
    """Makes count files of size bytes, spread evenly over directories; each holds its own number, again and again."""
    for number in range(directories):
        parent = directory / f"d{number:05d}"
        parent.mkdir(parents=True)
        descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for index in range(number, count, directories):
                file = os.open(f"f{index:07d}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=descriptor)
                if size:
                    line = b"%07d\n" % index
                    os.write(file, (line * (size // len(line) + 1))[:size])
                os.close(file)
        finally:
            os.close(descriptor)


def parse_size(text):
    """A number of bytes, as 110000, 110K, 64MiB or 2G (K, M, G are powers of 1024)."""
    units = {"K": 10, "M": 20, "G": 30, "T": 40}
    plain = text.upper().removesuffix("IB").removesuffix("B")
    shift = units.get(plain[-1:], 0)
    number = float(plain[:-1] if shift else plain)
    if not number >= 0:
        raise ValueError(text)
    return int(number * (1 << shift))
