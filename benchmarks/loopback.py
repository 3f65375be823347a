"""One large file over loopback: through pmfs from a peer, straight from the peer's server, by nginx with sendfile, and iperf3."""

import contextlib
import hmac
import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse

import clusters
import machine
from clusters import settle
from machine import BenchmarkError, run, step
from systems import await_condition

MOUNT, PEER, NGINX, IPERF = "pmfs, through the mount", "pmfs, the peer's server by curl", "nginx, sendfile, by curl", "iperf3, memory to memory"
NGINX_PORT, IPERF_PORT = 8080, 5201
START_SECONDS, IPERF_SECONDS = 30, 5
# One worker, as few copies as it can: what sendfile gives.
NGINX_CONFIGURATION = """
daemon off;
user root;
worker_processes 1;
pid {work}/nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_body_temp_path {work}/nginx-body;
  proxy_temp_path {work}/nginx-proxy;
  fastcgi_temp_path {work}/nginx-fastcgi;
  uwsgi_temp_path {work}/nginx-uwsgi;
  scgi_temp_path {work}/nginx-scgi;
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


class Local:
    """A namespace under another of its loopback addresses."""

    def __init__(self, namespace, address):
        self.namespace, self.address = namespace, address

    def words(self, *command):
        return self.namespace.words(*command)


def measure(namespace, source, part, work, tiers, arguments):
    """Bytes a second by name; None for what could not be measured. Medians of the rounds, alternating."""
    places = [Local(namespace, f"127.0.0.{number}") for number in (1, 2)]
    with clusters.cluster(places, source, work, tiers, arguments, options=["--remote-copies", "never"]) as nodes:
        reader, peer = nodes
        clusters.read_together([reader], part, 1, 4)
        settle(nodes)
        path = owned_by_the_peer(reader, source / part, part)
        size = (source / path).stat().st_size
        machine.compare(reader.directory / part, source / part)
        # In memory, as the peer's copy is.
        root = tiers / "nginx"
        root.mkdir()
        shutil.copy(source / path, root / "large")
        ways = {
            MOUNT: lambda: through_the_mount(reader, path, size),
            PEER: lambda: by_curl(namespace, signed(peer, work, path), size),
            NGINX: lambda: by_curl(namespace, ["curl", f"http://127.0.0.1:{NGINX_PORT}/large"], size),
            IPERF: lambda: by_iperf(namespace),
        }
        with serving(namespace, root, work) as absent:
            found = {name: [] for name in ways}
            for _ in range(arguments.rounds):
                for name, way in ways.items():
                    if name not in absent:
                        found[name].append(way())
        for name, why in absent.items():
            step(f"not compared with {name}: {why}")
    return {name: sorted(values)[len(values) // 2] if values else None for name, values in found.items()}


def owned_by_the_peer(reader, directory, part):
    """The first file that comes from the peer when it is read, relative to the dataset."""
    for path in sorted(directory.iterdir()):
        machine.drop_caches(names=False)
        before = reader.peer_bytes()
        machine.read_once(reader.directory / part / path.name)
        if reader.peer_bytes() > before:
            return f"{part}/{path.name}"
    raise BenchmarkError("the peer owns none of the large files: use more of them (--large-files)")


def through_the_mount(reader, path, size):
    """The mount's page cache dropped; the peer's copy is in memory, where its tier is."""
    machine.drop_caches(names=False)
    return size / machine.read_once(reader.directory / path)


def signed(peer, work, path):
    """A command of curl for the file's bytes from the peer's server, signed for one use: docs/formats.md, Peers."""
    log = "".join(file.read_text() for file in peer.runtime.glob("**/*.log"))
    found = re.search(r"answers peers at /(\S+), instance ([0-9a-f]+)", log)
    if not found:
        raise BenchmarkError(f"the log of {peer.name} does not say where it answers peers")
    address, instance = found.groups()
    key = hmac.digest(b"pmfs cluster", (work / "secret").read_bytes().rstrip(b"\n"), "sha256")
    key = hmac.digest(key, b"requests\x01", "sha256")
    target = "/v1/data/" + urllib.parse.quote(path)
    time_and_nonce = str(int(time.time() * 1000)), os.urandom(8).hex() + "-0"
    lines = ["PMFS1", "GET", target, "", "", "", "", *time_and_nonce, instance]
    mac = hmac.digest(key, "".join(line + "\n" for line in lines).encode(), "sha256").hex()
    return ["curl", "--header", "Authorization: PMFS1 time=%s, nonce=%s, mac=%s" % (*time_and_nonce, mac), f"http://{address}{target}"]


def by_curl(namespace, command, size):
    """Bytes a second, as curl measures them."""
    words = namespace.words(*command, "-sS", "-f", "-o", "/dev/null", "-w", "%{size_download} %{speed_download}")
    count, speed = run(*words).split()
    if int(count) != size:
        raise BenchmarkError(f"{command[-1]}: {count} bytes instead of {size}")
    return float(speed)


def by_iperf(namespace):
    words = namespace.words("iperf3", "-c", "127.0.0.1", "-p", IPERF_PORT, "-t", IPERF_SECONDS, "-J")
    return json.loads(run(*words))["end"]["sum_received"]["bits_per_second"] / 8


@contextlib.contextmanager
def serving(namespace, root, work):
    """nginx and iperf3 in the namespace, as far as they are installed; names and reasons of those that are absent."""
    configuration = work / "nginx.conf"
    configuration.write_text(NGINX_CONFIGURATION.format(work=work, root=root, port=NGINX_PORT))
    servers = {
        NGINX: ("nginx", ["-c", configuration, "-p", work], NGINX_PORT),
        IPERF: ("iperf3", ["-s", "-p", str(IPERF_PORT)], IPERF_PORT),
    }
    started, absent = [], {}
    try:
        for name, (program, words, port) in servers.items():
            if not shutil.which(program):
                absent[name] = f"{program} is not installed"
                continue
            process = subprocess.Popen(namespace.words(program, *words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
            started.append(process)
            await_condition(START_SECONDS, program, lambda: listens(namespace, program, process, port))
        yield absent
    finally:
        with machine.uninterrupted():
            for process in started:
                process.terminate()
                process.communicate()


def listens(namespace, program, process, port):
    if process.poll() is not None:
        raise BenchmarkError(f"{program} ended with status {process.returncode}: {' '.join(process.stderr.read().split())}")
    return f":{port} " in run(*namespace.words("ss", "-H", "-l", "-t", "-n"))
