#!/usr/bin/env bash
# Runs programs that write in a directory, and checks what they wrote.
#
#   programs.sh [--only NAME[,NAME]] [--list] [--reference DIR] [--seconds N] [--files N]
#               [--then COMMAND --again DIR] [--keep] DIRECTORY
#
# Each program works in a directory of its own below DIRECTORY and is reported as ok, failed or not installed. What a
# program prints is in FILE.log below a temporary directory, whose name is printed. --reference (default: a directory
# below $TMPDIR or /var/tmp) is where programs run that are compared: stress-ng's stressors count as failed only if they do not
# fail there too. --files is the size of the tree for tar and rsync, --seconds how long each stressor and dbench run.
# --then runs COMMAND after each program, and compares what the program left with DIR, such as the source of a mount:
# names, types, modes, owners, sizes, modification times, link targets and content. --keep leaves what the programs left,
# and what stressors left in the middle of their work.
#
# Examples:
#   programs.sh /mnt/run42
#   programs.sh --only git,tar,rsync /mnt/run42
#   programs.sh --then 'pmfs drain /mnt/run42' --again /lustre/run42 /mnt/run42
#
# scripts/install-requirements writable installs the programs on Debian and Ubuntu.
# Exit status: 0 none failed; 1 one failed; 2 wrong usage.
# shellcheck disable=SC2317  # the functions run_* are called by name
set -uo pipefail

all=(git tar rsync sqlite-delete sqlite-wal sqlite-concurrent make zip dcp safetensors tensorboard memmap h5py fio stress-ng dbench bonnie postmark)
only=() reference='' seconds=2 files=3000 command='' again='' keep=''

usage() {
  printf 'programs: %s; see --help\n' "$1" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --list) printf '%s\n' "${all[@]}"; exit 0 ;;
    --keep) keep=1; shift; continue ;;
    --only | --reference | --seconds | --files | --then | --again) [ $# -ge 2 ] || usage "$1 needs a value" ;;
    -*) usage "there is no option $1" ;;
    *) break ;;
  esac
  case $1 in
    --only) IFS=, read -ra only <<<"$2" ;;
    --reference) reference=$2 ;;
    --seconds) seconds=$2 ;;
    --files) files=$2 ;;
    --then) command=$2 ;;
    --again) again=$2 ;;
  esac
  shift 2
done
[ $# -eq 1 ] || usage 'give one DIRECTORY'
[ -d "$1" ] || usage "$1 is not a directory"
[ -z "$again" ] || [ -d "$again" ] || usage "$again is not a directory"
for name in "${only[@]}"; do
  case " ${all[*]} " in *" $name "*) ;; *) usage "there is no program $name" ;; esac
done
[ ${#only[@]} -gt 0 ] || only=("${all[@]}")

work=$(mktemp -d "${TMPDIR:-/var/tmp}/programs.XXXXXX")
printf 'programs: logs and inputs are in %s\n' "$work"
base=programs-$$
top=$(cd "$1" && pwd)/$base
mkdir "$top" || exit 2
if [ -z "$reference" ]; then reference=$work/reference; fi
mkdir -p "$reference/$base"
remove() {
  [ -n "$keep" ] || rm -rf "$top" "${reference:?}/$base"
}
trap remove EXIT

missing=127
has() { command -v "$1" >/dev/null; }
# The distribution's Python first: it has the distribution's numpy and h5py.
python=/usr/bin/python3
[ -x $python ] || python=python3

# A tree with files of all sizes, links, directories and odd names, the same each time.
tree() {
  [ -d "$work/tree" ] && return
  $python - "$work/tree" "$files" <<'PYTHON'
import os, random, sys
root, count = sys.argv[1], int(sys.argv[2])
r = random.Random(42)
os.makedirs(root)
directories, made = [root], []
for i in range(count):
    d = r.choice(directories)
    if r.random() < 0.1:
        d = os.path.join(d, f"dir{i}")
        os.mkdir(d, 0o755)
        directories.append(d)
    name = os.path.join(d, r.choice((f"f{i}", f"name with spaces {i}", f"long-{i}-" + "x" * 200, f"ümläut-{i}")))
    kind = r.random()
    if kind < 0.05:
        os.symlink(r.choice(("../up", "nowhere", os.path.basename(made[-1]) if made else "x")), name)
    elif kind < 0.1 and made:
        os.link(r.choice(made), name)
    else:
        with open(name, "wb") as f:
            f.write(r.randbytes(r.choice((0, 1, 100, 4096, r.randrange(20000), r.randrange(300000) if i % 50 == 0 else 5))))
        os.chmod(name, r.choice((0o644, 0o600, 0o755, 0o444)))
        os.utime(name, ns=(r.randrange(10**18), r.randrange(10**18)))
        made.append(name)
for d in reversed(directories):
    os.utime(d, ns=(10**17, r.randrange(10**18)))
PYTHON
}

# What two trees have, but sizes of directories, and times of these and of links: not each rsync keeps them.
listing() {
  (cd "$1" && find . -type d -printf '%P %y %m %U:%G\n' -o -type l -printf '%P %y %U:%G %l\n' -o -printf '%P %y %m %U:%G %s %n %l %T@\n' | LC_ALL=C sort)
}
same() {
  listing "$1" >"$work/listing.1"
  listing "$2" >"$work/listing.2"
  diff "$work/listing.1" "$work/listing.2" | head -20
  [ "${PIPESTATUS[0]}" -eq 0 ] && diff -r --no-dereference "$1" "$2"
}

run_git() {
  has git || return $missing
  tree
  export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
  [ -d "$work/origin" ] || {
    git init -q "$work/origin" && cp -a "$work/tree" "$work/origin/tree" &&
      git -C "$work/origin" add -A && git -C "$work/origin" commit -qm first
  } || return 1
  git clone -q --no-local "$work/origin" clone && cd clone || return 1
  for i in 1 2 3 4 5; do
    echo "line $i" >>"file$i" && git add -A && git commit -qm "commit $i" || return 1
  done
  git checkout -qb branch HEAD~2 && echo x >other && git add other && git commit -qm other && git merge -q -m merged - && git gc -q &&
    git fsck --strict --no-progress && git repack -adq && git stash list && [ -z "$(git status --porcelain)" ] &&
    git rev-list --count HEAD && git worktree add -q ../worktree HEAD && git -C ../worktree fsck --no-progress
}

run_tar() {
  has tar || return $missing
  tree
  [ -e "$work/tree.tar" ] || tar -C "$work" --format=posix -cf "$work/tree.tar" tree || return 1
  tar -xpf "$work/tree.tar" && same "$work/tree" tree && tar -df "$work/tree.tar" && tar -cf again.tar tree && tar -tf again.tar | wc -l
}

run_rsync() {
  has rsync || return $missing
  tree
  rsync -aHJ "$work/tree/" copy && same "$work/tree" copy || return 1
  local again
  again=$(rsync -aHJi --delete "$work/tree/" copy) || return 1
  [ -z "$again" ] || { printf 'the second rsync copied:\n%s\n' "$again"; return 1; }
  rsync -aHJc --inplace --delete --exclude '*long*' "$work/tree/" copy2 && rsync -aHJc --append-verify "$work/tree/" copy2 && same "$work/tree" copy2
}

sqlite() {
  has sqlite3 || return $missing
  local mode=$1
  sqlite3 db "PRAGMA journal_mode=$mode; CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB); CREATE INDEX i ON t(v);" || return 1
  for i in $(seq 30); do
    sqlite3 -cmd '.timeout 5000' db "BEGIN; WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<200) INSERT INTO t(v) SELECT randomblob(300) FROM c; COMMIT;" || return 1
    [ $((i % 10)) -ne 0 ] || sqlite3 db "DELETE FROM t WHERE id % 3 = 0; VACUUM;" || return 1
  done
  [ "$(sqlite3 db 'PRAGMA integrity_check')" = ok ] && sqlite3 db 'SELECT count(*), sum(length(v)) FROM t'
}
run_sqlite-delete() { sqlite delete; }
run_sqlite-wal() { sqlite wal; }
run_sqlite-concurrent() {
  has sqlite3 || return $missing
  local mode i w
  for mode in wal delete; do
    sqlite3 "$mode.db" "PRAGMA journal_mode=$mode; CREATE TABLE t(w, n);" || return 1
    for w in 1 2 3 4; do
      for i in $(seq 25); do
        sqlite3 -cmd '.timeout 30000' "$mode.db" "BEGIN IMMEDIATE; INSERT INTO t VALUES($w, $i); COMMIT;" || echo "$w $i" >>failed
      done &
    done
    wait
    [ ! -e failed ] && [ "$(sqlite3 "$mode.db" 'PRAGMA integrity_check; SELECT count(*), count(DISTINCT w*1000+n) FROM t' | tr '\n' ' ')" = 'ok 100|100 ' ] || return 1
  done
}

run_make() {
  has make && has cc || return $missing
  mkdir src && cd src || return 1
  for i in $(seq 40); do printf 'int f%d(int x) { return x + %d; }\n' "$i" "$i" >"f$i.c"; done
  { seq -f 'int f%g(int);' 40; printf 'int main(void) { int s = 0;\n'; seq -f 's = f%g(s);' 40; printf 'return s == 820 ? 0 : 1; }\n'; } >main.c
  printf 'OBJECTS = main.o %s\nprogram: $(OBJECTS)\n\tcc -o $@ $(OBJECTS)\n%%.o: %%.c\n\tcc -O1 -c -o $@ $<\nlib.a: $(OBJECTS)\n\tar rcs $@ $^\n' "$(seq -f 'f%g.o' -s ' ' 40)" >Makefile
  make -s -j4 program lib.a && ./program && [ -z "$(make -s -n program)" ] || return 1
  touch f7.c && [ "$(make -n program | grep -c 'cc ')" = 2 ] && make -s program && ./program && ar t lib.a | wc -l
}

run_zip() { # as torch.save: a zip stream with seeks, to the final name
  $python - <<'PYTHON'
import os, random, zipfile
for n in range(4):
    data = [random.Random(i + n).randbytes(400000 + i) for i in range(8)]
    with zipfile.ZipFile("model.pt", "w", zipfile.ZIP_STORED) as z:
        z.writestr("archive/data.pkl", b"p" * 999)
        for i, d in enumerate(data):
            with z.open(f"archive/data/{i}", "w") as f:
                for at in range(0, len(d), 65536):
                    f.write(d[at:at + 65536])
        z.writestr("archive/version", "3\n")
    with zipfile.ZipFile("model.pt") as z:
        assert z.testzip() is None
        assert [z.read(f"archive/data/{i}") for i in range(8)] == data
    with zipfile.ZipFile("model.pt", "a") as z:
        z.writestr("extra", "x" * 1000)
    assert zipfile.ZipFile("model.pt").testzip() is None
PYTHON
}

run_dcp() { # as torch.distributed.checkpoint: shards by processes, fsync, then the metadata by rename
  $python - <<'PYTHON'
import hashlib, json, os, random
for step in range(5):
    d = f"step-{step % 2}"
    os.makedirs(d, exist_ok=True)
    children = []
    for rank in range(4):
        pid = os.fork()
        if pid == 0:
            data = random.Random(step * 10 + rank).randbytes(700000)
            with open(f"{d}/__{rank}_0.distcp", "wb") as f:
                for at in range(0, len(data), 100000):
                    f.write(data[at:at + 100000])
                f.flush()
                os.fsync(f.fileno())
            os._exit(0)
        children.append(pid)
    assert all(os.waitpid(p, 0)[1] == 0 for p in children)
    index = {str(r): hashlib.sha256(open(f"{d}/__{r}_0.distcp", "rb").read()).hexdigest() for r in range(4)}
    with open(f"{d}/.metadata.tmp", "w") as f:
        json.dump(index, f)
        f.flush()
        os.fsync(f.fileno())
    if os.path.exists(f"{d}/.metadata"):
        os.unlink(f"{d}/.metadata")
    os.rename(f"{d}/.metadata.tmp", f"{d}/.metadata")
    for r, digest in json.load(open(f"{d}/.metadata")).items():
        data = open(f"{d}/__{r}_0.distcp", "rb").read()
        assert data == random.Random(step * 10 + int(r)).randbytes(700000)
        assert hashlib.sha256(data).hexdigest() == digest
os.rename("step-0", "tmp-checkpoint")
os.rename("tmp-checkpoint", "checkpoint-4")
assert sorted(os.listdir("checkpoint-4")) == [".metadata"] + [f"__{r}_0.distcp" for r in range(4)]
PYTHON
}

run_safetensors() { # a temporary file and rename, also while a reader has the old one mapped
  $python - <<'PYTHON'
import json, mmap, os, struct, tempfile
def save(seed):
    head = json.dumps({"w": {"dtype": "U8", "shape": [900000], "data_offsets": [0, 900000]}}).encode()
    f = tempfile.NamedTemporaryFile(dir=".", delete=False)
    f.write(struct.pack("<Q", len(head)) + head)
    f.truncate(8 + len(head) + 900000)
    with mmap.mmap(f.fileno(), 0) as m:
        m[8 + len(head):] = bytes([seed]) * 900000
    f.close()
    os.replace(f.name, "model.safetensors")
    return 8 + len(head)
at = save(1)
for seed in range(2, 12):
    old = mmap.mmap(os.open("model.safetensors", os.O_RDONLY), 0, access=mmap.ACCESS_READ)
    assert save(seed) == at
    assert old[at:] == bytes([seed - 1]) * 900000, "the old file changed under its mapping"
    assert open("model.safetensors", "rb").read()[at:] == bytes([seed]) * 900000
assert os.listdir(".") == ["model.safetensors"]
PYTHON
}

run_tensorboard() { # appends with open and close for each event, read by a tail meanwhile
  $python - <<'PYTHON'
import os, struct, time, zlib
def event(i):
    body = struct.pack("<I", i) + bytes([i % 255 + 1]) * (i % 300)
    return struct.pack("<QI", len(body), zlib.crc32(body)) + body
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    seen, position, rest, end = 0, 0, b"", time.time() + 60
    while seen < 1500 and time.time() < end:
        try:
            with open("events", "rb") as f:
                f.seek(position)
                data = f.read()
        except FileNotFoundError:
            continue
        position += len(data)
        rest += data
        while len(rest) >= 12:
            size, crc = struct.unpack("<QI", rest[:12])
            if size > 5000:
                os._exit(3)  # zeros or rubbish
            if len(rest) < 12 + size:
                break
            if zlib.crc32(rest[12:12 + size]) != crc or struct.unpack("<I", rest[12:16])[0] != seen:
                os._exit(4)
            rest = rest[12 + size:]
            seen += 1
    os._exit(0 if seen == 1500 else 5)
for i in range(1500):
    with open("events", "ab") as f:
        f.write(event(i))
assert os.waitpid(child, 0)[1] == 0, "the reader did not see all events"
PYTHON
}

run_memmap() {
  $python -c 'import numpy' 2>/dev/null || return $missing
  $python - <<'PYTHON'
import numpy as np
a = np.memmap("a.dat", dtype="float32", mode="w+", shape=(1000, 1000))
a[:] = np.arange(1000000).reshape(1000, 1000)
a.flush()
del a
b = np.memmap("a.dat", dtype="float32", mode="r+", shape=(1000, 1000))
b[::7] *= 2
b[999, 999] = -1
c = np.memmap("a.dat", dtype="float32", mode="r", shape=(1000, 1000))
assert c[999, 999] == -1 and c[7, 0] == 14000
del b
d = np.fromfile("a.dat", dtype="float32").reshape(1000, 1000)
want = np.arange(1000000, dtype="float32").reshape(1000, 1000)
want[::7] *= 2
want[999, 999] = -1
assert (d == want).all()
np.save("x.npy", want)
m = np.lib.format.open_memmap("x.npy", mode="r+")
m[5] = 0
m.flush()
want[5] = 0
assert (np.load("x.npy") == want).all()
np.savez("x.npz", a=want, b=d)
assert (np.load("x.npz")["b"] == d).all()
PYTHON
}

run_h5py() {
  $python -c 'import h5py' 2>/dev/null || return $missing
  $python - <<'PYTHON'
import h5py, numpy as np, os
with h5py.File("a.h5", "w") as f:
    f["x"] = np.arange(100000)
    f.create_dataset("grows", (0, 10), maxshape=(None, 10), chunks=(100, 10), compression="gzip")
for i in range(20):
    with h5py.File("a.h5", "r+") as f:
        g = f["grows"]
        g.resize((g.shape[0] + 50, 10))
        g[-50:] = i
        f["x"][i] = -i
        try:
            h5py.File("a.h5", "a", locking=True)
        except (OSError, TypeError):
            pass
with h5py.File("a.h5", "r") as f:
    assert (f["grows"][:, 3] == np.repeat(np.arange(20), 50)).all()
    assert f["x"][19] == -19 and f["x"][99999] == 99999
with h5py.File("swmr.h5", "w", libver="latest") as f:
    d = f.create_dataset("d", (0,), maxshape=(None,), chunks=(64,))
    f.swmr_mode = True
    reader = h5py.File("swmr.h5", "r", libver="latest", swmr=True)
    for i in range(50):
        d.resize((i * 10 + 10,))
        d[-10:] = i
        d.flush()
        reader["d"].refresh()
        assert reader["d"].shape == (i * 10 + 10,) and reader["d"][-1] == i
    reader.close()
PYTHON
}

run_fio() {
  has fio || return $missing
  fio --minimal --name=verify --directory=. --size=24m --bsrange=512-256k --rw=randrw --ioengine=psync --numjobs=2 --verify=crc32c --verify_fatal=1 --end_fsync=1 >/dev/null &&
    fio --minimal --name=mapped --directory=. --size=16m --bs=4k --rw=randwrite --ioengine=mmap --verify=md5 --verify_fatal=1 >/dev/null &&
    fio --minimal --name=files --directory=. --nrfiles=200 --filesize=1k-64k --bs=4k --rw=write --ioengine=psync --verify=crc32c --verify_fatal=1 >/dev/null
}

stressors=(access chdir chmod chown copy-file dentry dir dirdeep dirmany dup eventfd fallocate fcntl fiemap file-ioctl filename flock fpunch
  fstat getdent hdd inotify io iomix lease link locka lockf lockofd mknod mmap msync open pkey rename revio seek sendfile splice symlink
  sync-file touch utime xattr)
run_stress-ng() {
  has stress-ng || return $missing
  local s failed=0 status
  mkdir here
  mkdir -p "$reference/$base/stress-ng"
  for s in "${stressors[@]}"; do
    stress "$s" here
    status=$?
    if [ $status -ne 0 ]; then
      if stress "$s" "$reference/$base/stress-ng"; then
        printf 'stressor %s failed here (%d) and not at the reference\n' "$s" $status
        failed=$((failed + 1))
      else
        printf 'stressor %s fails at the reference too\n' "$s"
      fi
    fi
  done
  printf '%d stressors, %d failed here only\n' ${#stressors[@]} $failed
  [ -n "$keep" ] || rm -rf here
  [ $failed -eq 0 ]
}
stress() {
  local extra=()
  [ -z "$keep" ] || extra=(--keep-files)
  case $1 in
    mmap) extra+=(--mmap-file --mmap-bytes 16m) ;;
    hdd) extra+=(--hdd-bytes 32m --hdd-opts "wr-rnd,rd-rnd") ;;
    copy-file) extra+=(--copy-file-bytes 128m) ;;
    fallocate) extra+=(--fallocate-bytes 64m) ;;
    iomix) extra+=(--iomix-bytes 16m) ;;
    revio) extra+=(--revio-bytes 32m) ;;
  esac
  (cd "$2" && timeout --kill-after=10 $((seconds + 60)) stress-ng --temp-path . --verify --timeout "${seconds}s" --seed 42 "--$1" 2 "${extra[@]}")
}

run_dbench() {
  has dbench || return $missing
  local loads
  loads=$(find /usr/share/dbench /usr/share/doc/dbench -name 'client.txt*' 2>/dev/null | head -1)
  dbench -t "$((seconds * 5))" ${loads:+-c "$loads"} -D . 4
}
run_bonnie() {
  has bonnie++ || return $missing
  bonnie++ -d . -u root -s 64 -r 32 -n 2:20000:10:4 -q
}
run_postmark() {
  has postmark || return $missing
  printf 'set location %s\nset number 1000\nset transactions 5000\nset size 100 40000\nset subdirectories 20\nset seed 42\nrun\nquit\n' "$PWD" | postmark
}

failed=0
for name in "${only[@]}"; do
  mkdir "$top/$name" || { failed=1; printf '%-18s failed: cannot make a directory\n' "$name"; continue; }
  start=$(date +%s)
  (cd "$top/$name" && "run_$name") >"$work/$name.log" 2>&1
  status=$?
  took=$(($(date +%s) - start))
  if [ $status -eq $missing ]; then
    printf '%-18s not installed\n' "$name"
    continue
  elif [ $status -ne 0 ]; then
    failed=1
    printf '%-18s failed (%d) after %d s; the end of %s:\n' "$name" $status $took "$work/$name.log"
    tail -n 8 "$work/$name.log" | sed 's/^/    /'
    continue
  fi
  if [ -n "$command$again" ]; then
    if ! { bash -c "${command:-true}" && same "$top/$name" "${again:-${top%/*}}/$base/$name"; } >"$work/$name.again.log" 2>&1; then
      failed=1
      printf '%-18s failed: it differs at %s; the end of %s:\n' "$name" "$again" "$work/$name.again.log"
      tail -n 8 "$work/$name.again.log" | sed 's/^/    /'
      continue
    fi
  fi
  printf '%-18s ok, %d s\n' "$name" $took
done
exit $failed
