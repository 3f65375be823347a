"""Short memory: a control group whose processes share a limit for all their pages."""

import os
from pathlib import Path

import machine
from machine import BenchmarkError

CONTROLLER = Path("/sys/fs/cgroup/memory")
DAEMON_BYTES = 48 << 20  # for what a daemon allocates; what it has already is charged where it was before


def require_controller():
    if not (CONTROLLER / "memory.limit_in_bytes").exists() and not (CONTROLLER / "memory.stat").exists():
        raise BenchmarkError(f"{CONTROLLER}: no memory controller of cgroup v1")


class Group:
    """A cgroup with a memory limit; at the end its processes go back to where they were."""

    def __init__(self, limit):
        self.directory, self.limit = CONTROLLER / f"pmfs-benchmark-{os.getpid()}", limit
        self.before = {}

    def __enter__(self):
        self.directory.mkdir(exist_ok=True)
        (self.directory / "memory.limit_in_bytes").write_text(str(self.limit))
        return self

    def add(self, pid):
        """What the process starts from now on is in the group, too."""
        groups = (line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
        self.before[str(pid)] = next(path.lstrip("/") for _, controller, path in groups if controller == "memory")
        (self.directory / "cgroup.procs").write_text(str(pid))

    def words(self, *command):
        """The command, so that it is in the group from its start."""
        return ["sh", "-c", f'echo $$ >{self.directory}/cgroup.procs && exec "$@"', "sh", *command]

    def __exit__(self, *failure):
        with machine.uninterrupted():
            for pid in (self.directory / "cgroup.procs").read_text().split():
                (CONTROLLER / self.before.get(pid, "") / "cgroup.procs").write_text(pid)
            machine.drop_caches()
            fields = dict(line.split() for line in (self.directory / "memory.oom_control").read_text().splitlines())
            self.directory.rmdir()
        if int(fields["oom_kill"]):
            raise BenchmarkError(f"a process was killed: {self.limit >> 20} MiB are too little memory")
