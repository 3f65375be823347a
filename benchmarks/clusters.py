"""pmfs clusters on one machine: network namespaces on a switch, and a mount in each, with tiers and a state of its own."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess

import machine
from machine import BUILD, BenchmarkError, run
from systems import Pmfs, await_condition

NETWORK = "198.18.0"  # for benchmarks of networks (RFC 2544)
SWITCH = "switch"
MEMBER_SECONDS = 120


class Namespace:
    """A network namespace; commands run in it with the mounts of all others, unless it is given a mount namespace too."""

    def __init__(self, name, address):
        self.name, self.address = name, address
        self.mounts = None  # a file that names its mount namespace

    def words(self, *command):
        # Not ip netns exec: what is mounted there nobody else sees.
        mounts = [f"--mount={self.mounts}"] if self.mounts else []
        return ["nsenter", f"--net=/run/netns/{self.name}", *mounts, *(str(word) for word in command)]


@contextlib.contextmanager
def namespaces(count):
    """So many new namespaces with an address each, linked by veth pairs and a bridge, which is in a namespace of its own."""
    machine.require_root("for network namespaces")
    prefix = f"pmfs-benchmark-{os.getpid()}"
    made = []

    def add(name):
        run("ip", "netns", "add", name)
        made.append(name)
        run("ip", "-n", name, "link", "set", "lo", "up")

    hub = f"{prefix}-hub"
    try:
        add(hub)
        run("ip", "-n", hub, "link", "add", SWITCH, "type", "bridge")
        run("ip", "-n", hub, "link", "set", SWITCH, "up")
        nodes = []
        for number in range(1, count + 1):
            node = Namespace(f"{prefix}-{number}", f"{NETWORK}.{number}")
            add(node.name)
            run("ip", "-n", hub, "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", node.name)
            run("ip", "-n", hub, "link", "set", f"port{number}", "master", SWITCH, "up")
            run("ip", "-n", node.name, "addr", "add", f"{node.address}/24", "dev", "eth0")
            run("ip", "-n", node.name, "link", "set", "eth0", "up")
            nodes.append(node)
        yield nodes
    finally:
        with machine.uninterrupted():
            for name in reversed(made):
                machine.clean_up("ip", "netns", "del", name)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket of the file system."""

    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class ClusterNode(Pmfs):
    """One node: pmfs in a namespace, a member of a cluster."""

    def __init__(self, namespace, number, source, work, tiers, launcher, options, capacity):
        super().__init__(source, work, launcher, options, name=f"node{number}")
        self.namespace = namespace
        self.tier, self.capacity = tiers / self.name, capacity
        # Short: the path of a socket has 107 bytes.
        self.runtime = work / f"run{number}"
        self.environment = {**os.environ, "PMFS_RUNTIME_DIR": str(self.runtime)}
        self.pid = None

    def mount(self):
        for directory in (self.directory, self.tier, self.runtime):
            directory.mkdir(mode=0o700, exist_ok=True)
        capacity = f":{self.capacity}" if self.capacity else ""
        words = [self.launcher, "mount", self.source, self.directory, "--tier", f"ssd:{self.tier}{capacity}", "--state-dir", self.tier / "state", *self.options]
        status = subprocess.run(self.namespace.words(*words), stdout=subprocess.DEVNULL, env=self.environment, check=False).returncode
        if status:
            raise BenchmarkError(f"{self.name}: pmfs mount: exit status {status}; the line above says why")
        self.pid = self.status()["pid"]

    def status(self):
        """As pmfs status --json, without a Java virtual machine for each question."""
        sockets = list(self.runtime.glob("**/*.sock"))
        if len(sockets) != 1:
            raise BenchmarkError(f"{self.name}: {len(sockets)} control sockets below {self.runtime}")
        connection = UnixConnection(sockets[0])
        try:
            connection.request("GET", "/status")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def members(self):
        return len(self.cluster()["members"])

    def peer_bytes(self):
        """Bytes that came from peers so far."""
        return self.cluster()["bytesFromPeers"]

    # What pmfs status says of a cluster is known here and nowhere else.
    def cluster(self):
        status = self.status().get("cluster")
        if not status:
            raise BenchmarkError(f"{self.name}: its status says nothing of a cluster")
        return status

    def cpu_seconds(self):
        """Of the daemon, which was not asked for it: an answer costs milliseconds of CPU."""
        return machine.cpu_seconds(self.pid)

    def unmount(self, keep_copies=False):
        super().unmount(keep_copies)
        shutil.rmtree(self.runtime, ignore_errors=True)


@contextlib.contextmanager
def cluster(places, source, work, tiers, arguments, capacity=None, options=()):
    """A mounted node in each namespace, all of them members of one cluster; tiers are empty at first and removed at the end."""
    secret = work / "secret"
    if not secret.exists():
        secret.touch(mode=0o600)
        secret.write_text(os.urandom(32).hex() + "\n")
    addresses = ",".join(place.address for place in places)
    common = ["--cluster", f"benchmark{os.getpid()}", "--nodes", addresses, "--cluster-secret-file", str(secret)]
    words = [*common, *options, *arguments.pmfs_option]
    nodes = [
        ClusterNode(place, number, source, work, tiers, arguments.pmfs, [*words, "--cluster-address", place.address], capacity)
        for number, place in enumerate(places, 1)
    ]
    try:
        for node in nodes:
            node.mount()
        for node in nodes:
            await_condition(MEMBER_SECONDS, f"{node.name}: {len(nodes)} members", lambda: node.members() == len(nodes))
        yield nodes
    finally:
        with machine.uninterrupted():
            for node in nodes:
                node.unmount()


@contextlib.contextmanager
def mounted(places, source, work, tiers, arguments):
    """A mounted node in each place: a cluster, or a node by itself if there is one place."""
    if len(places) > 1:
        with cluster(places, source, work, tiers, arguments) as nodes:
            yield nodes
        return
    node = ClusterNode(places[0], 1, source, work, tiers, arguments.pmfs, arguments.pmfs_option, None)
    try:
        node.mount()
        yield [node]
    finally:
        with machine.uninterrupted():
            node.unmount()


def settle(nodes):
    for node in nodes:
        node.settle()


def read_together(nodes, part, seed, readers, shares=True, words=(), **options):
    """An epoch: each node reads its share of the shuffled files, or all of them in an order of its own, and all begin at once.

    What each loader printed of it.
    """
    loaders = []
    try:
        for index, node in enumerate(nodes):
            order = ["--seed", seed, "--share", f"{index}/{len(nodes)}"] if shares else ["--seed", seed + index]
            command = [BUILD / "epoch", *order, *words, "--threads", readers, "--wait", node.directory / part]
            loaders.append(
                subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, **options)
            )
        for loader in loaders:
            loader.stdout.readline()  # The walk: names are not part of an epoch.
        for loader in loaders:
            loader.stdin.close()
        lines = [loader.stdout.read() for loader in loaders]
        if any(loader.wait() for loader in loaders):
            raise BenchmarkError("a file could not be read; the lines above say which")
        return [json.loads(line) for line in lines]
    finally:
        with machine.uninterrupted():
            for loader in loaders:
                if loader.poll() is None:
                    loader.send_signal(signal.SIGKILL)
                    loader.wait()
                loader.stdout.close()
