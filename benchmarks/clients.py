"""A throttled source that nodes share, each with a page cache of its own, as clients of a shared file system have."""

import contextlib
import subprocess

import machine
import sources
from machine import BenchmarkError, run

MOUNT_AND_WAIT = 'mount -o ro,noload,noatime "$1" "$2" && echo mounted && exec sleep infinity'


@contextlib.contextmanager
def shared_source(places, work, files, size, fill, bandwidth, operations):
    """The directory at which every place sees the source, and the device that all of them wait for.

    fill(directory) makes the files. They lie in an image on the device, which each place mounts in a mount namespace of its own.
    What is mounted elsewhere below work is seen by all.
    """
    outer = work / "shared"
    outer.mkdir()
    with sources.own_device(outer, files, size) as (below, device):
        image = sources.new_image(below / "image", files, size)
        directory = work / "source"
        with sources.made_on(image, directory):
            fill(directory)
        with sources.throttle_images(device, bandwidth, operations), contextlib.ExitStack() as stack:
            stack.enter_context(bound(work, "shared"))
            stack.enter_context(bound(directory, "private"))
            for place in places:
                stack.enter_context(client(place, image, directory))
            yield directory, device


@contextlib.contextmanager
def bound(directory, propagation):
    """The directory as a mount point, so that what is mounted below it is seen in other mount namespaces, or is not."""
    run("mount", "--rbind", directory, directory)
    try:
        run("mount", f"--make-{propagation}", directory)
        yield
    finally:
        with machine.uninterrupted():
            machine.detach(directory)


@contextlib.contextmanager
def client(place, image, directory):
    """Gives the place a mount namespace in which the image is mounted at the directory."""
    # Another loop device is another file system to the kernel. Direct I/O: the device answers, and not the cache of the file system below.
    device = run("losetup", "--find", "--show", "--read-only", "--direct-io=on", image).strip()
    try:
        words = ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", MOUNT_AND_WAIT, "sh", device, str(directory)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as holder:
            try:
                if not holder.stdout.readline():
                    raise BenchmarkError(f"{place.name}: cannot mount {device}; the line above says why")
                place.mounts = f"/proc/{holder.pid}/ns/mnt"
                yield
            finally:
                place.mounts = None
                holder.kill()
    finally:
        with machine.uninterrupted():
            sources.detach_loop(device)
