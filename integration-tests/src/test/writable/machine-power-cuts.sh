#!/usr/bin/env bash
# Cuts the power of a whole machine at random moments while programs write to a writable mount of pmfs, and checks after
# each cut, on the machine that was started again, that what was fsynced is on the mount, and that after the drain the
# source shows the same.
#
#   machine-power-cuts.sh [--tier SPEC] [--fs ext4|xfs] [--device nvdimm|virtio-pmem] [--seed NUMBER] [CUTS]
#                                          default: pm:/pmem/tier, ext4, nvdimm, a random seed, 20
#
# The machine is the virtual one of scripts/dax-vm, with the tier and the state on its persistent memory, which keeps all
# writes: so it shows whether things were written in their order, not whether they were flushed. power-cuts.sh shows that
# for a disk. The source is a directory of this machine, as of a file server. What pmfs tells as lost was not synced, and
# is acknowledged. A cut takes one to three minutes. Needs root and scripts/install-requirements vm.
#
# Examples:
#   machine-power-cuts.sh
#   machine-power-cuts.sh --tier ssd:/pmem/tier --fs xfs --seed 5 10
#
# Exit status: 0 nothing was lost or wrong; 1 something was; 2 wrong usage; 77 cannot run here, for the reason printed.
set -uo pipefail
here=$(cd "$(dirname "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd) || exit 1
scripts=$here/../../../../scripts

usage() {
  printf 'machine-power-cuts: %s; see --help\n' "$1" >&2
  exit 2
}

# One life of the machine: checks what the one before left, then writes until the power is cut; --last only checks.
live() { # OUT TIER NUMBER SEED LAST
  local out=$1 tier=$2 number=$3 seed=$4 last=$5 mount=/run/mnt before=$(($3 - 1))
  export PMFS_RUNTIME_DIR=/run/pmfs-test
  mkdir -p $mount "$out/source"
  # An emulated machine needs minutes where a machine needs seconds.
  "$scripts/pmfs" mount --writable "$out/source" $mount --tier "$tier" --state-dir /pmem/state --ready-timeout 300s || return 1
  if [ "$number" -gt 1 ]; then
    "$here/crash-check.py" "$out/records-$before" --mount "$mount/w$before" --after power || return 1
    "$scripts/pmfs" drain --acknowledge --timeout 300s $mount
    "$here/crash-check.py" "$out/records-$before" --mount "$mount/w$before" --after power || return 1
    diff -r --no-dereference "$mount/w$before" "$out/source/w$before" || return 1
    printf 'checked %d records\n' "$(wc -l <"$out/records-$before")"
  fi
  if [ "$last" = yes ]; then
    "$scripts/pmfs" umount $mount
    return
  fi
  "$here/crash-writer.py" "$mount/w$number" "$out/records-$number" --seconds 100000 --seed "$((seed + number))" &
  until [ -s "$out/records-$number" ] && [ "$(wc -l <"$out/records-$number")" -gt 20 ]; do
    kill -0 $! 2>/dev/null || return 1
    sleep 0.2
  done
  echo 'ready for the power cut'
  wait
  return 1 # The writer has ended by itself.
}

if [ "${1:-}" = --live ]; then
  shift
  live "$@"
  exit
fi

tier=pm:/pmem/tier fs=ext4 device=nvdimm seed=$RANDOM
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --tier | --fs | --device | --seed)
      [ $# -ge 2 ] || usage "$1 needs a value"
      case $1 in
        --tier) tier=$2 ;;
        --fs) fs=$2 ;;
        --device) device=$2 ;;
        --seed) seed=$2 ;;
      esac
      shift 2
      ;;
    -*) usage "there is no option $1" ;;
    *) break ;;
  esac
done
cuts=${1:-20}
[[ $cuts =~ ^[1-9][0-9]*$ ]] || usage "'$cuts' is not a number of cuts"
[[ $seed =~ ^[0-9]+$ ]] || usage "'$seed' is not a seed"
work=$(mktemp -d /var/tmp/machine-power-cuts.XXXXXX) || exit 1
mkdir "$work/out"
printf 'seed %d; records, source and memory are in %s\n' "$seed" "$work"
for ((number = 1; number <= cuts + 1; number++)); do
  last=no cut=(--power-cut 20) expected=137
  [ "$number" -le "$cuts" ] || { last=yes cut=() expected=0; }
  "$scripts/dax-vm" --fs "$fs" --device "$device" --image "$work/memory" --size 1024 --out "$work/out" --timeout 3600 "${cut[@]}" \
    --env JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1 -- bash "$here/machine-power-cuts.sh" --live "$work/out" "$tier" "$number" "$seed" $last \
    2>&1 | sed -u "s/^/life $number: /"
  status=${PIPESTATUS[0]}
  [ "$status" != 77 ] || exit 77
  if [ "$status" != $expected ]; then
    printf 'machine-power-cuts: life %d ended with %d; what is left is in %s\n' "$number" "$status" "$work"
    exit 1
  fi
done
rm -rf --one-file-system -- "$work"
printf '%d power cuts, nothing was lost or wrong\n' "$cuts"
