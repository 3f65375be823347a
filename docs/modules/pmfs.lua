-- An environment module of pmfs, for Lmod: docs/installation.md. Copy it to pmfs/VERSION.lua in a directory of
-- MODULEPATH. Replace the directory in which the archives are unpacked.
help("pmfs mounts a dataset and keeps copies on storage of the node: pmfs --help, man pmfs")
whatis("Description: a FUSE file system that caches datasets on the node")
local root = pathJoin("/opt/pmfs", "pmfs-" .. myModuleVersion())
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
append_path("MANPATH", "") -- the system's pages too
