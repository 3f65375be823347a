# pmfs for Spack: docs/installation.md. Copy it to packages/pmfs/package.py of a package repository.
from spack.package import *


class Pmfs(Package):
    """A FUSE file system that caches datasets on the node."""

    homepage = "https://example.org/pmfs"  # replace
    url = "file:///opt/archives/pmfs-0.1.0-linux-amd64-java.tar.gz"  # where the archive of scripts/package is
    license("Apache-2.0")

    version("0.1.0")  # , sha256="..." from SHA256SUMS; without it install with --no-checksum

    sanity_check_is_file = ["bin/pmfs"]
    sanity_check_is_dir = ["lib/pmfs/runtime", "share/man"]

    def install(self, spec, prefix):
        install_tree(".", prefix)
