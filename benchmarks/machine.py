"""The machine a benchmark runs on: what it is, its kernel's caches, its processes, and the tools built for it."""

import contextlib
import datetime
import json
import mmap
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "benchmarks" / "build"
MADV_POPULATE_WRITE = 23  # of madvise(2) since Linux 5.14; Python has no name for it


class BenchmarkError(Exception):
    """What stops a benchmark: one line for the person who started it."""


def step(text):
    """Says on standard error what happens now; standard output is for results."""
    print(f"{Path(sys.argv[0]).name}: {text}", file=sys.stderr, flush=True)


def main(body):
    """Runs body and turns what stopped it into one line and an exit status. SIGTERM cleans up as Ctrl-C does."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        sys.exit(body() or 0)
    except BenchmarkError as error:
        step(f"FAILED: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def run(*command, **options):
    """Runs a command; its standard output is the result, and its failure a BenchmarkError with its last lines."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-5:]
        raise BenchmarkError(f"{' '.join(command)}: exit status {done.returncode}: {'; '.join(said)}")
    return done.stdout


@contextlib.contextmanager
def uninterrupted():
    """What is cleaned up here is cleaned up to the end; a signal that would have ended the program does so afterwards."""
    pending = []
    handlers = {number: signal.signal(number, lambda number, frame: pending.append(number)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if pending:
            signal.raise_signal(pending[0])


def clean_up(*command, **options):
    """Runs a command that Ctrl-C at the terminal does not reach; its exit status."""
    words = [str(word) for word in command]
    return subprocess.run(words, stdout=subprocess.DEVNULL, start_new_session=True, check=False, **options).returncode


def detach(directory):
    """Unmounts what may be busy or have no daemon."""
    clean_up(*(["umount", "-l"] if is_root() else [shutil.which("fusermount3") or "fusermount", "-u", "-z"]), directory)


def is_root():
    return os.geteuid() == 0


def require_root(why):
    if not is_root():
        raise BenchmarkError(f"needs root: {why}")


def build(build_pmfs=True):
    """Installs what is missing and builds the loader and, unless told otherwise, pmfs."""
    sets = ["build", "mount", "benchmark"]
    if subprocess.run([ROOT / "scripts" / "install-requirements", *sets], stdout=sys.stderr, check=False).returncode:
        raise BenchmarkError("something that is needed is missing; the lines above say what")
    if build_pmfs:
        step("building pmfs")
        run("mvn", "-q", "-B", "-ntp", "-DskipTests", "-Dpmfs.noPackages", "package", cwd=ROOT)
    BUILD.mkdir(exist_ok=True)
    source = ROOT / "benchmarks" / "epoch.c"
    run("cc", "-O2", "-std=c11", "-Wall", "-Wextra", "-pthread", "-o", BUILD / "epoch", source)


def load(directory, mode="read", threads=1, epochs=1, **options):
    """Runs the loader on a directory; a list of what it printed, the walk first. Any file's error ends the benchmark."""
    command = [BUILD / "epoch", "--mode", mode, "--threads", threads, "--epochs", epochs, directory]
    return [json.loads(line) for line in run(*command, **options).splitlines()]


def load_after_walk(directory, before, mode="read", threads=1, prefix=()):
    """Runs the loader for one epoch, with before() between its walk and the epoch; what it printed of both."""
    words = [*prefix, BUILD / "epoch", "--mode", mode, "--threads", threads, "--wait", directory]
    with subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        walk = process.stdout.readline()
        before()
        epoch = process.communicate()[0]
    if process.returncode:
        raise BenchmarkError(f"{directory}: a file could not be read; the lines above say which")
    return json.loads(walk), json.loads(epoch)


def compare(directory, reference, threads=2, **options):
    """Compares every byte of the files below directory with those below reference; a difference ends the benchmark."""
    run(BUILD / "epoch", "--mode", "compare", "--reference", reference, "--threads", threads, directory, **options)


def read_once(path):
    """Reads a file from start to end, 1 MiB at a time; the seconds it took."""
    start = time.monotonic()
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(1 << 20)
        while file.readinto(buffer):
            pass
    return time.monotonic() - start


def can_drop_caches():
    return os.access("/proc/sys/vm/drop_caches", os.W_OK) and is_root()


def drop_caches(names=True):
    """Writes back what is dirty and drops the page cache and, if wanted, the cached names and inodes."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n" if names else "1\n")


def takes_memory_back():
    """Whether the host of this virtual machine takes back what is free: free page reporting, bit 5 of a virtio balloon's features."""
    balloons = Path("/sys/bus/virtio/drivers/virtio_balloon").glob("*/features")
    return any(features.read_text()[5:6] == "1" for features in balloons)


def touch_memory(size=8 << 30):
    """Touches free memory where the host takes it back: the first touch of a page takes five times as long there.

    Else a way that uses more memory than those before it seems slow.
    """
    if not takes_memory_back():
        return
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with mmap.mmap(-1, min(size, free * 3 // 4)) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        memory.madvise(MADV_POPULATE_WRITE)


def memory_kib(pid):
    """Resident memory of a process now and at its peak, in KiB."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]), int(fields["VmHWM"].split()[0])


def cpu_seconds(pid):
    """Of a process so far, in user and system mode, threads that have ended included."""
    # What clock_getcpuclockid(3) returns, which Python does not offer.
    return time.clock_gettime(~pid << 3 | 2)


def busy_seconds():
    """CPU seconds of the whole machine so far: all processes and the kernel's own work, in units of 10 ms."""
    user, nice, system, _, _, irq, soft_irq = map(int, Path("/proc/stat").read_text().split(None, 8)[1:8])
    return (user + nice + system + irq + soft_irq) / os.sysconf("SC_CLK_TCK")


def await_rest(pids, seconds=30):
    """Waits until these processes do nothing."""
    deadline = time.monotonic() + seconds
    while True:
        before = [cpu_seconds(pid) for pid in pids]
        time.sleep(0.05)
        if all(cpu_seconds(pid) - used < 0.0025 for pid, used in zip(pids, before)):
            return
        if time.monotonic() > deadline:
            raise BenchmarkError(f"daemons come to rest: not within {seconds} s")


def mounts_below(path):
    """Mount points below a directory, the last mounted first. Unlike os.path.ismount, also those whose daemon is dead."""
    points = [line.split()[1].encode().decode("unicode_escape") for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [point for point in reversed(points) if point.startswith(f"{path}/")]


def is_mounted(path):
    return str(path) in mounts_below(Path(path).parent)


@contextlib.contextmanager
def work_directory(chosen=None):
    """A directory for everything a run makes: a new one that is removed, or the chosen one, which is kept.

    At the end nothing is mounted below it, whatever happened before.
    """
    if chosen:
        path = Path(chosen).resolve()
        path.mkdir(parents=True, exist_ok=True)
    else:
        path = Path(tempfile.mkdtemp(prefix="pmfs-benchmark.", dir=os.environ.get("TMPDIR", "/var/tmp"))).resolve()
    try:
        yield path
    finally:
        with uninterrupted():
            for point in mounts_below(path):
                step(f"{point} is still mounted: detaching it")
                detach(point)
            if mounts_below(path):
                step(f"{path} is kept: still mounted: {', '.join(mounts_below(path))}")
            elif not chosen:
                shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def in_memory(work):
    """An empty directory in memory of its own, for tiers."""
    directory = work / "tiers"
    directory.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=90%,mode=0700", "pmfs-benchmark", directory)
    try:
        yield directory
    finally:
        with uninterrupted():
            detach(directory)


def describe(directory):
    """Machine, kernel, date and commit, as the lines above a table."""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = dict(line.rstrip().split("=", 1) for line in open("/etc/os-release") if "=" in line)
    file_system = run("findmnt", "-n", "-o", "FSTYPE", "-T", directory).strip()
    java = subprocess.run(["java", "-version"], stderr=subprocess.PIPE, text=True, check=False).stderr.splitlines()
    commit = run("git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=10").strip()
    return [
        f"Machine: {os.cpu_count()} cores ({cpu}), {memory_gib:.0f} GiB; {file_system}",
        f"System: Linux {platform.release()}; {system['PRETTY_NAME'].strip(chr(34))}; {java[0] if java else 'no java'}",
        f"Date: {datetime.date.today().isoformat()}; commit {commit}",
        f"Command: {' '.join(['benchmarks/' + Path(sys.argv[0]).name, *sys.argv[1:]])}",
    ]
