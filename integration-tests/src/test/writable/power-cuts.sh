#!/usr/bin/env bash
# Cuts the power of a local disk below a writable mount of pmfs at random moments, with crash-rounds.py --power-cut.
#
#   power-cuts.sh [--pmfs LAUNCHER] [CUTS [OPTION...]]      20 cuts; OPTIONs are those of crash-rounds.py
#
# Tier and state are on an ext4 of their own, in an image. A cut kills the daemon and its supervisor and shuts the ext4
# down without writing its journal (EXT4_IOC_SHUTDOWN): what was not synced is lost. Then it is mounted again, which
# replays the journal, the machine has another boot id, and pmfs is mounted again. The source is a directory beside it,
# which keeps all it was given, as a file server does. What pmfs tells as lost was not synced, and is acknowledged. Needs
# root; all mounts are in a mount namespace of their own.
#
# Examples:
#   power-cuts.sh
#   power-cuts.sh 50 --seed 7 --writers 2
#
# Exit status: 0 nothing was lost or wrong; 1 something was; 2 wrong usage.
set -uo pipefail
here=$(cd "$(dirname "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd) || exit 1

usage() {
  printf 'power-cuts: %s; see --help\n' "$1" >&2
  exit 2
}
fail() {
  printf 'power-cuts: %s\n' "$1" >&2
  exit 1
}

mount_disk() {
  mount -o loop "$work/disk.img" "$work/disk" || fail "$work/disk: cannot be mounted"
}

mount_pmfs() {
  tr -d '\n' </proc/sys/kernel/random/uuid >"$work/boot"
  setsid "$pmfs" mount --foreground --writable "$work/source" "$work/mnt" --tier "ssd:$work/disk/tier" \
    --state-dir "$work/disk/state" >>"$work/pmfs.log" 2>&1 &
  echo $! >"$work/pid"
  disown
  for _ in {1..600}; do
    ! mountpoint -q "$work/mnt" || ! ls "$work/mnt" >/dev/null 2>&1 || return 0
    sleep 0.1
  done
  fail "no mount after a minute: $(tail -n 3 "$work/pmfs.log")"
}

end_pmfs() { # SIGNAL
  kill "-$1" -- "-$(cat "$work/pid")"
}

cut_power() {
  end_pmfs KILL
  python3 -c 'import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))' "$work/disk" || fail "$work/disk: cannot be shut down"
  umount -l "$work/mnt"
  for _ in {1..100}; do
    ! umount "$work/disk" 2>/dev/null || break
    sleep 0.1
  done
  mount_disk
  mount_pmfs
}

# crash-rounds.py calls this script again.
if [ "${1:-}" = --cut ]; then
  work=$2 pmfs=$3
  cut_power
  exit
fi

pmfs=$here/../../../../scripts/pmfs
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --pmfs)
      [ $# -ge 2 ] || usage "$1 needs a value"
      pmfs=$2
      shift 2
      ;;
    -*) usage "there is no option $1" ;;
    *) break ;;
  esac
done
[[ ${1:-20} =~ ^[1-9][0-9]*$ ]] || usage "'$1' is not a number of cuts"
[ "$(id -u)" = 0 ] || usage 'needs root'
if [ -z "${POWER_CUTS_WORK:-}" ]; then
  work=$(mktemp -d /var/tmp/power-cuts.XXXXXX) || exit 1
  POWER_CUTS_WORK=$work unshare --mount -- "$0" --pmfs "$pmfs" "$@"
  status=$?
  if [ $status = 0 ]; then rm -rf --one-file-system -- "$work"; else printf 'power-cuts: logs and records are in %s\n' "$work"; fi
  exit $status
fi
work=$POWER_CUTS_WORK
export PMFS_RUNTIME_DIR=$work/run
mkdir "$work"/{disk,source,mnt,run}
truncate -s 2G "$work/disk.img"
mkfs.ext4 -q -F "$work/disk.img" || exit 1
touch "$work/boot"
mount --bind "$work/boot" /proc/sys/kernel/random/boot_id || fail 'the boot id cannot be changed'
mount_disk
mount_pmfs
cuts=${1:-20}
[ $# = 0 ] || shift
"$here/crash-rounds.py" "$work/mnt" "$work/source" --rounds "$cuts" --power-cut "'$here/power-cuts.sh' --cut '$work' '$pmfs'" \
  --drain-command "'$pmfs' drain --acknowledge '$work/mnt' --timeout 120s" "$@"
status=$?
"$pmfs" umount "$work/mnt" >>"$work/pmfs.log" 2>&1 || end_pmfs TERM
umount "$work/disk" || umount -l "$work/disk"
exit $status
