"""What pmfs is compared with: images mounted by the kernel, and other FUSE file systems, each at its best for reading."""

import os
import resource
import shutil
import subprocess
from pathlib import Path

import machine
from machine import BUILD, BenchmarkError, run, step
from systems import Absent, Source, await_condition

MOUNT_SECONDS = 60
DAY = 86400
READ_AHEAD_KIB = 1024  # as pmfs sets for itself, and as the manual of mergerfs advises
SQUASHFS_WORDS = ("-no-progress", "-quiet")
# The name of an image's kind begins with that of its file system.
PACKERS = {
    "squashfs": lambda source, image: ("mksquashfs", source, image, "-noI", "-noD", "-noF", "-noX", "-no-fragments", *SQUASHFS_WORDS),
    "squashfs-zstd": lambda source, image: ("mksquashfs", source, image, "-comp", "zstd", *SQUASHFS_WORDS),
    "squashfs-zstd-1M": lambda source, image: ("mksquashfs", source, image, "-comp", "zstd", "-b", "1M", *SQUASHFS_WORDS),
    "squashfs-zstd-3": lambda source, image: ("mksquashfs", source, image, "-comp", "zstd", "-Xcompression-level", "3", *SQUASHFS_WORDS),
    "squashfs-zstd-all": lambda source, image: ("mksquashfs", source, image, "-comp", "zstd", "-no-duplicates", *SQUASHFS_WORDS),
    "squashfs-zstd-apart": lambda source, image: ("mksquashfs", source, image, "-comp", "zstd", "-no-fragments", *SQUASHFS_WORDS),
    "erofs": lambda source, image: ("mkfs.erofs", "--quiet", image, source),
}


def need(program):
    """Its path; Absent without it."""
    path = shutil.which(program)
    if not path:
        raise Absent(f"{program} is not installed")
    return path


def pack(kind, source, work):
    """The dataset as an image, made once."""
    image = work / f"dataset.{kind}"
    if not image.exists() or image.stat().st_mtime < source.stat().st_mtime:
        unfinished = image.with_suffix(".unfinished")
        command = PACKERS[kind](source, unfinished)
        need(command[0])
        step(f"packing the dataset into a {kind} image")
        unfinished.unlink(missing_ok=True)
        run(*command)
        unfinished.rename(image)
    return image


class KernelImage(Source):
    """A file system of the kernel on an image, through a loop device that goes when it is unmounted."""

    kind = "kernel"

    def __init__(self, source, work, name, compression="no compression"):
        super().__init__(source, work)
        self.name, self.about, self.directory = name, f"{name} of the kernel, on a loop device; {compression}", work / f"mnt-{name}"
        self.file_system = name.split("-")[0]

    def prepare(self):
        if not machine.is_root():
            raise Absent("a loop mount needs root")
        if shutil.which("modprobe"):
            subprocess.run(["modprobe", "-q", self.file_system], stderr=subprocess.DEVNULL, check=False)
        if self.file_system not in Path("/proc/filesystems").read_text().split():
            raise Absent(f"this kernel has no {self.file_system}")
        self.image = pack(self.name, self.source, self.work)

    def mount(self):
        self.directory.mkdir(exist_ok=True)
        run("mount", "-t", self.file_system, "-o", "loop,ro", self.image, self.directory)

    def lower(self, part):
        return [self.image]

    def unmount(self):
        if machine.is_mounted(self.directory) and machine.clean_up("umount", self.directory):
            machine.detach(self.directory)


def raise_descriptor_limit():
    """passthrough_ll holds a descriptor for every file it has shown."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class FuseDaemon(Source):
    """A FUSE daemon that stays in the foreground, so that it is ours to watch and to end."""

    kind = "peer"
    process = None

    def __init__(self, source, work):
        super().__init__(source, work)
        self.directory = work / f"mnt-{self.name}"

    def start(self, *command):
        self.directory.mkdir(exist_ok=True)
        # In a session of its own, so that Ctrl-C reaches us alone, and we end it in order.
        words = [str(word) for word in command]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True, preexec_fn=raise_descriptor_limit)
        await_condition(MOUNT_SECONDS, f"{self.name}: mount", self.is_up)
        if machine.is_root():
            device = os.stat(self.directory).st_dev
            Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb").write_text(f"{READ_AHEAD_KIB}\n")

    def is_up(self):
        if self.process.poll() is not None:
            raise BenchmarkError(f"{self.name} ended with status {self.process.returncode}")
        return machine.is_mounted(self.directory)

    def daemon(self):
        return self.process.pid

    def unmount(self):
        if machine.is_mounted(self.directory):
            machine.detach(self.directory)
        if not self.process:
            return
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
        self.process = None


class Squashfuse(FuseDaemon):
    """The low-level variant of squashfuse, on the image that the kernel's squashfs is measured with."""

    name = "squashfuse_ll"

    def prepare(self):
        self.program = need("squashfuse_ll")
        self.about = "squashfuse_ll IMAGE"
        self.image = pack("squashfs", self.source, self.work)

    def mount(self):
        self.start(self.program, "-f", self.image, self.directory)

    def lower(self, part):
        return [self.image]


class Bindfs(FuseDaemon):
    """bindfs: a plain pass-through in C."""

    name = "bindfs"
    options = f"ro,kernel_cache,attr_timeout={DAY},entry_timeout={DAY},negative_timeout={DAY}"

    def prepare(self):
        self.program = need("bindfs")
        self.about = f"bindfs --multithreaded -o {self.options}"

    def mount(self):
        others = [] if machine.is_root() else ["--no-allow-other"]
        self.start(self.program, "-f", "--multithreaded", *others, "-o", self.options, self.source, self.directory)


class Mergerfs(FuseDaemon):
    """mergerfs over one branch; what its manual's section on performance names for files that do not change."""

    name = "mergerfs"
    options = (
        f"ro,cache.files=full,cache.entry={DAY},cache.attr={DAY},cache.negative_entry={DAY},cache.open={DAY},cache.statfs={DAY}"
        ",cache.readdir=true,cache.symlinks=true,xattr=nosys,security_capability=false"
    )

    def prepare(self):
        self.program = need("mergerfs")
        self.about = f"mergerfs -o {self.options}"

    def mount(self):
        self.start(self.program, "-f", "-o", self.options, self.source, self.directory)


class PassthroughLl(FuseDaemon):
    """libfuse's own low-level example, built from the source that Debian's libfuse3-dev carries."""

    name = "passthrough_ll"
    example = Path("/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c")
    options = f"cache=always,timeout={DAY},no_xattr,max_idle_threads=10"

    def prepare(self):
        self.about = f"passthrough_ll -o {self.options}"
        if not self.example.exists():
            raise Absent(f"{self.example} is not there (Debian: libfuse3-dev)")
        entries = sum(1 + len(names) for _, _, names in os.walk(self.source))
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if limit < entries + 100:
            raise Absent(f"holds a descriptor for every file, and the limit is {limit} (ulimit -Hn)")
        self.program = BUILD / "passthrough_ll"
        words = ["-O2", "-D_FILE_OFFSET_BITS=64", "-I/usr/include/fuse3", self.example, "-o", self.program, "-lfuse3", "-pthread"]
        run("cc", *words)

    def mount(self):
        self.start(self.program, "-f", "-o", f"{self.options},source={self.source}", self.directory)


def all_peers(source, work):
    return [
        KernelImage(source, work, "squashfs"),
        KernelImage(source, work, "erofs"),
        *(system(source, work) for system in (Squashfuse, Bindfs, Mergerfs, PassthroughLl)),
    ]
