"""What benchmarks/cluster-model is fed with: service times of one node, each with where and when it was measured, or why it is assumed.

The file is JSON. "parameters" has each of PARAMETERS by its name, as {"value": number, "origin": "measured", "where": text,
"when": date} or {"value": number, "origin": "assumed", "why": text}. Where a limit may be absent null is a value, too; that
there is none is always assumed.
"epochs", which may be left out, has what --check compares with, a list of objects with the fields of EPOCH.
docs/cluster-model.md explains both.
"""

import json
import math
from dataclasses import dataclass

from machine import BenchmarkError

FORMAT = "pmfs cluster model 2"
MEASURED, ASSUMED = "measured", "assumed"
MOST, MOST_FILES = 65_536, 10**12


@dataclass(frozen=True)
class Parameter:
    """One number that the model needs."""

    name: str
    unit: str
    meaning: str
    absent: str = ""  # what it means that there is no such limit, where that may be
    positive: bool = False
    whole: bool = False


PARAMETERS = [
    Parameter("node.cores", "cores", "that readers and daemons of a node have", positive=True, whole=True),
    Parameter("node.nicBytesPerSecond", "bytes/s", "in each direction at once", "no limit: links are no bound in what comes out", True),
    Parameter("local.cpuSecondsPerFile", "s", "open, read and close of a file with a local copy: what does not depend on its size"),
    Parameter("local.cpuSecondsPerByte", "s", "and what each byte adds"),
    Parameter("local.waitSeconds", "s", "waiting for the tier that takes no CPU"),
    Parameter("local.tierBytesPerSecond", "bytes/s", "of the tier's device", "no limit: copies are in memory, their device is no bound in what comes out", True),
    Parameter("remote.clientCpuSecondsPerFile", "s", "on the node that reads a file a peer has"),
    Parameter("remote.clientCpuSecondsPerByte", "s", "and what each byte adds"),
    Parameter("remote.serverCpuSecondsPerFile", "s", "on the peer"),
    Parameter("remote.serverCpuSecondsPerByte", "s", "and what each byte adds"),
    Parameter("remote.waitSecondsMedian", "s", "of a remote read beside CPU and bytes on the link: network and scheduling"),
    Parameter("remote.waitSecondsP99", "s", "of the same"),
    Parameter("remote.batchFiles", "files", "that staging asks a peer for at once", positive=True, whole=True),
    Parameter("remote.batchClientCpuSecondsPerFile", "s", "of a file in a batch; bytes cost what they cost above"),
    Parameter("remote.batchServerCpuSecondsPerFile", "s", "of the same, on the peer"),
    Parameter("source.operationsPerSecond", "1/s", "that the source answers to all nodes together", positive=True),
    Parameter("source.operationsPerFile", "", "asked of the source for a file that is read once, its share of the walk with it"),
    Parameter("source.bytesPerSecond", "bytes/s", "that the source delivers to all nodes together", positive=True),
    Parameter("source.bytesPerSecondPerNode", "bytes/s", "that it delivers to one node", "no limit: a node's link to the source is no bound in what comes out", True),
    Parameter("source.waitSeconds", "s", "latency of the source for a file, without what is above"),
    Parameter("source.cpuSecondsPerFile", "s", "on the node that fetches a file from the source"),
    Parameter("source.cpuSecondsPerByte", "s", "and what each byte adds"),
    Parameter("source.copyCpuSecondsPerFile", "s", "on a node that makes a copy of it, while nobody waits"),
    Parameter("source.copyCpuSecondsPerByte", "s", "and what each byte adds"),
]
BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}
EPOCH = {
    "case": "a case of the model",
    "nodes": "how many",
    "readers": "on each node",
    "files": "of the dataset; each node reads its share of them",
    "meanBytes": "of a file",
    "sizeSigma": "of the logarithms of the sizes",
    "capacityShare": "of the dataset that the tiers of one node hold; null: all of it",
    "remoteCopies": "auto or never",
    "sharedCores": "cores that all nodes share, as they do on one machine; null: each has node.cores",
    "seconds": "a list: how long the slowest node took, in each round",
}


@dataclass(frozen=True)
class Value:
    number: float | None
    origin: str
    said: str


class Parameters:
    """Values by name: values["node.cores"]; where each is from."""

    def __init__(self, values):
        self.values = values

    def __getitem__(self, name):
        return self.values[name].number

    def assumed(self):
        return [name for name, value in self.values.items() if value.origin == ASSUMED]

    def absent(self):
        """Limits that nothing has in what comes out. They are among what is assumed."""
        return [name for name, value in self.values.items() if value.number is None]

    def replaced(self, name, text):
        """The same with one value from the command line, NAME=VALUE or NAME=VALUE:WHY."""
        if name not in BY_NAME:
            raise BenchmarkError(f"--set {name}: no such parameter; they are {', '.join(BY_NAME)}")
        text, _, why = text.partition(":")
        try:
            number = None if text == "null" else float(text)
        except ValueError:
            raise BenchmarkError(f"--set {name}={text}: not a number") from None
        said = why.strip() or "given by --set, without a reason"
        return Parameters({**self.values, name: value(name, check(name, number, "--set"), ASSUMED, said)})

    def as_list(self):
        """For the record and the table."""
        return [
            {"name": name, "value": value.number, "unit": BY_NAME[name].unit, "origin": value.origin, "said": value.said}
            for name, value in self.values.items()
        ]


def is_number(value):
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def check(name, number, place):
    parameter = BY_NAME[name]
    if number is None and parameter.absent:
        return None
    if not is_number(number):
        raise BenchmarkError(f"{place}: {name}: not a finite number of at least 0: {number!r}")
    if parameter.positive and not number:
        raise BenchmarkError(f"{place}: {name}: must be more than 0")
    if parameter.whole and (number != int(number) or number > MOST):
        raise BenchmarkError(f"{place}: {name}: must be a whole number of at most {MOST}")
    return number


def value_of(name, entry, place):
    if not isinstance(entry, dict) or "value" not in entry:
        raise BenchmarkError(f"{place}: {name}: must be an object with value and origin")
    origin = entry.get("origin")
    words = {MEASURED: ["where", "when"], ASSUMED: ["why"]}.get(origin)
    if not words or not all(isinstance(entry.get(word), str) and entry[word] for word in words):
        raise BenchmarkError(f'{place}: {name}: say "origin": "measured" with "where" and "when", or "assumed" with "why"')
    return value(name, check(name, entry["value"], place), origin, ", ".join(entry[word] for word in words))


def value(name, number, origin, said):
    """A limit that is not there was not measured, whatever a file says of it."""
    if number is not None:
        return Value(number, origin, said)
    absent = BY_NAME[name].absent
    return Value(None, ASSUMED, f"{absent} ({said})" if origin == ASSUMED else absent)


def load(path):
    """Parameters and the measured epochs of a file; what is wrong with it is a BenchmarkError of one line."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"{path}: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("parameters"), dict):
        raise BenchmarkError(f'{path}: must be an object with "format": "{FORMAT}" and "parameters"')
    given = content["parameters"]
    missing, unknown = [name for name in BY_NAME if name not in given], [name for name in given if name not in BY_NAME]
    if missing or unknown:
        raise BenchmarkError(f"{path}: parameters: missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}")
    values = {name: value_of(name, given[name], path) for name in BY_NAME}
    if values["remote.waitSecondsP99"].number < values["remote.waitSecondsMedian"].number:
        raise BenchmarkError(f"{path}: remote.waitSecondsP99 is less than the median")
    return Parameters(values), epochs_of(content.get("epochs", []), path)


def epochs_of(entries, path):
    if not isinstance(entries, list):
        raise BenchmarkError(f"{path}: epochs: must be a list")
    for index, entry in enumerate(entries):
        wrong = wrong_in_epoch(entry)
        if wrong:
            raise BenchmarkError(f"{path}: epochs[{index}]: {wrong}")
    return entries


def wrong_in_epoch(entry):
    """What is wrong with a measured epoch, or nothing."""
    if not isinstance(entry, dict) or set(entry) != set(EPOCH):
        return f"must have exactly {', '.join(EPOCH)}"
    counts = ["nodes", "readers", "files", *(["sharedCores"] if entry["sharedCores"] is not None else [])]
    for name in counts:
        most = MOST_FILES if name == "files" else MOST
        if type(entry[name]) is not int or not 1 <= entry[name] <= most:
            return f"{name}: must be a whole number from 1 to {most}"
    for name in ["meanBytes", "sizeSigma", *(["capacityShare"] if entry["capacityShare"] is not None else [])]:
        if not is_number(entry[name]):
            return f"{name}: must be a finite number of at least 0"
    if entry["remoteCopies"] not in ("auto", "never"):
        return "remoteCopies: must be auto or never"
    if not isinstance(entry["seconds"], list) or not entry["seconds"] or not all(is_number(value) and value for value in entry["seconds"]):
        return "seconds: must be a list of positive numbers"
    return None
