"""Kinds of data that datasets consist of, each as a directory of files; for the same seed the same files, except sources."""

import io
import itertools
import json
import os
import random
import string
from pathlib import Path

import numpy
from machine import BenchmarkError
from PIL import Image

FILES_IN_A_DIRECTORY = 100
SOURCE_ROOTS = ["/usr/include", "/usr/lib/python3"]
SOURCE_SUFFIXES = {".h", ".hpp", ".py"}
SOURCE_LARGEST = 1 << 20
VALUES = 1 << 16  # in one array: 256 KiB of float32
BEAMS = 32


def sources(seed):
    """What the distribution has in C, C++ and Python, in a shuffled order; not the same on every machine."""
    found = []
    for root in SOURCE_ROOTS:
        for path in sorted(Path(root).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path.is_file() and not path.is_symlink() and 0 < path.stat().st_size <= SOURCE_LARGEST:
                found.append(path)
    random.Random(seed).shuffle(found)
    for path in found:
        yield path.suffix, path.read_bytes()


def records(seed):
    """Annotations of images as JSON: words of a language's frequencies, boxes, identifiers, times; 5 to 60 of them a file."""
    generator = random.Random(seed)
    words = ["".join(generator.choices(string.ascii_lowercase, k=generator.randint(2, 11))) for _ in range(5000)]
    # Zipf's law: the n-th most frequent word comes 1/n as often as the first.
    cumulated = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))

    def text(least, most):
        return " ".join(generator.choices(words, cum_weights=cumulated, k=generator.randint(least, most)))

    def box():
        return [round(generator.uniform(0, 640), 2) for _ in range(4)]

    while True:
        content = [
            {
                "id": f"{generator.getrandbits(128):032x}",
                "image": f"train/{generator.randrange(1000):04d}/{generator.randrange(10**6):08d}.jpg",
                "created": f"2026-{generator.randint(1, 12):02d}-{generator.randint(1, 28):02d}T{generator.randrange(24):02d}:{generator.randrange(60):02d}:00Z",
                "width": 640,
                "height": generator.choice([427, 480, 640]),
                "captions": [text(6, 16) for _ in range(generator.randint(1, 5))],
                "objects": [
                    {"category": generator.randrange(80), "box": box(), "crowd": False, "score": round(generator.random(), 4)}
                    for _ in range(generator.randint(1, 8))
                ],
            }
            for _ in range(generator.randint(5, 60))
        ]
        yield ".json", json.dumps(content, indent=1).encode()


def photographs(seed):
    """JPEG files of 375 x 500 pixels, quality 90: clouds of several sizes, one over the other."""
    generator = numpy.random.default_rng(seed)

    def cloud(scale):
        coarse = generator.integers(0, 256, (scale, scale, 3), numpy.uint8)
        return numpy.asarray(Image.fromarray(coarse).resize((1500, 1500), Image.BICUBIC), numpy.float32)

    clouds = [cloud(scale) for scale in (8, 32, 128, 512)]
    while True:
        picture = numpy.zeros((375, 500, 3), numpy.float32)
        for number, whole in enumerate(clouds):
            top, left = int(generator.integers(1500 - 375)), int(generator.integers(1500 - 500))
            picture += float(generator.uniform(0.5, 1.5)) / 2**number * whole[top:top + 375, left:left + 500]
        picture *= 255 / picture.max()
        file = io.BytesIO()
        Image.fromarray(picture.astype(numpy.uint8)).save(file, "JPEG", quality=90)
        yield ".jpg", file.getvalue()


def array_file(values):
    file = io.BytesIO()
    numpy.save(file, values.astype(numpy.float32))
    return file.getvalue()


def dense_arrays(seed):
    """float32 arrays of numpy: a few slow waves and one per cent of noise, as signals and features are."""
    generator = numpy.random.default_rng(seed)
    time = numpy.linspace(0, 1, VALUES)
    while True:
        waves = sum(generator.normal() * numpy.sin(2 * numpy.pi * (generator.uniform(1, 50) * time + generator.random())) for _ in range(5))
        yield ".npy", array_file(waves + 0.01 * generator.normal(size=VALUES))


def sparse_arrays(seed):
    """float32 arrays of numpy of which 95 % are zeros, at random places."""
    generator = numpy.random.default_rng(seed)
    while True:
        yield ".npy", array_file(numpy.where(generator.random(VALUES) < 0.05, generator.normal(size=VALUES), 0))


def point_clouds(seed):
    """A turn of a lidar with 32 beams each: x, y, z in centimetres and the intensity of 32,768 points, int16, one point after the other."""
    generator = numpy.random.default_rng(seed)
    angle = numpy.linspace(0, 2 * numpy.pi, VALUES // BEAMS // 2, endpoint=False)
    height = numpy.linspace(-0.4, 0.05, BEAMS)[:, None]
    while True:
        # Walls and objects at constant distances, some of them before others, and the ground that the lower beams reach first.
        ends = numpy.sort(generator.uniform(0, 2 * numpy.pi, 60))
        distance = generator.uniform(300, 6000, 61)[numpy.searchsorted(ends, angle)][None, :]
        ground = numpy.where(height < 0, 180 / numpy.maximum(-height, 1e-3), numpy.inf)
        reach = numpy.minimum(distance, ground) + generator.normal(0, 2, (BEAMS, len(angle)))
        intensity = generator.integers(10, 60, 61)[numpy.searchsorted(ends, angle)][None, :] + generator.integers(0, 4, reach.shape)
        points = numpy.stack([reach * numpy.cos(angle), reach * numpy.sin(angle), reach * height, intensity], axis=-1)
        yield ".bin", numpy.round(points).astype(numpy.int16).tobytes()


KINDS = {"sources": sources, "JSON": records, "JPEG": photographs, "float32": dense_arrays, "sparse": sparse_arrays, "points": point_clouds}


def make(directory, kind, size, seed):
    """Makes files of one kind with so many bytes together, or a little more; their number and their bytes."""
    files, bytes_made = 0, 0
    for suffix, content in KINDS[kind](seed):
        parent = directory / f"d{files // FILES_IN_A_DIRECTORY:04d}"
        if files % FILES_IN_A_DIRECTORY == 0:
            parent.mkdir(parents=True)
        (parent / f"f{files:06d}{suffix}").write_bytes(content)
        files, bytes_made = files + 1, bytes_made + len(content)
        if bytes_made >= size:
            os.sync()
            return files, bytes_made
    raise BenchmarkError(f"this machine has only {bytes_made} bytes of {kind}: choose a smaller --size")
