#!/bin/bash
# slurm.sh COMMAND [ARGUMENTS...]: runs the command beside a Slurm of one node, this machine, set up for it in a folder of its
# own (munge, slurmctld and slurmd as root, their own ports and key) and taken down behind it, however it ends. Nothing of a
# Slurm that the machine may have is touched. As root; Debian's slurm-wlm and munge, which are installed where they are missing.
#
#   evidence/lab/slurm.sh sinfo
#   evidence/lab/slurm.sh snakemake -s evidence/lab/Snakefile --executor slurm --jobs 8 --config preset=quick
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "slurm.sh: slurmd must run as root" >&2; exit 77; }
"$(dirname "$0")/../../cmake/need.sh" "for a Slurm of one node" slurmctld:slurm-wlm slurmd:slurm-wlm munged:munge

# Slurm's own place for its configuration, in a view of the file system that only the command and the daemons have: jobs may lose
# SLURM_CONF on their way (Snakemake's step does).
if [ -z "${POSENC_SLURM:-}" ]; then
  POSENC_SLURM=1 exec unshare --mount "$0" "$@"
fi
unset POSENC_SLURM
here=$(mktemp -d /tmp/posenc-slurm.XXXXXX) # a path of a socket has at most 107 characters
started=()
clean() {
  local pid
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$here"
}
trap clean EXIT
trap 'exit 130' INT TERM

# Ports that nobody listens on.
free_ports=$(python3 -c 'import socket
sockets = [socket.socket() for _ in range(2)]
for s in sockets: s.bind(("", 0))
print(*(s.getsockname()[1] for s in sockets))')
read -r controller_port node_port <<<"$free_ports"
node=$(hostname -s)
memory=$(awk '/MemTotal/ { print int($2 / 1024 * 0.9) }' /proc/meminfo)

chmod 755 "$here"
mkdir -m 700 "$here/munge"
mkdir "$here/state" "$here/spool" "$here/etc"
head -c 1024 /dev/urandom >"$here/munge/key"
chmod 400 "$here/munge/key"
cat >"$here/etc/slurm.conf" <<CONF
ClusterName=posenc
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$controller_port
SlurmdPort=$node_port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$here/munge.socket
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd.pid
SlurmctldLogFile=$here/slurmctld.log
SlurmdLogFile=$here/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmctldTimeout=30
InactiveLimit=0
MinJobAge=3600
SchedulerParameters=batch_sched_delay=0,sched_interval=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
# Control groups are not asked for; slurmd of 22.05, as in Debian 12, wants their plugin all the same.
version=$(slurmd -V | sed 's/^slurm[^0-9]*//')
case $version in 2[0-2].*) printf 'CgroupAutomount=no\nIgnoreSystemd=yes\n' ;; *) echo CgroupPlugin=disabled ;; esac >"$here/etc/cgroup.conf"
mount --bind "$here/etc" /etc/slurm

fail() {
  echo "slurm.sh: $1; the last of its logs:" >&2
  tail -n 8 "$here"/*.log >&2 || true
  exit 1
}
begin() { "$@" >"$here/$(basename "$1").out.log" 2>&1 & started+=($!); }
begin munged --foreground --force --key-file "$here/munge/key" --socket "$here/munge.socket" --pid-file "$here/munged.pid" \
  --log-file "$here/munged.log" --seed-file "$here/munge/seed"
for _ in {1..50}; do [ -S "$here/munge.socket" ] && break; sleep 0.1; done
begin slurmctld -D
begin slurmd -D -N "$node"
for _ in {1..300}; do
  sinfo -h -o %t 2>/dev/null | grep -qx idle && break
  for pid in "${started[@]}"; do kill -0 "$pid" 2>/dev/null || fail "a daemon ended"; done
  sleep 0.1
done
sinfo -h -o %t | grep -qx idle || fail "the node is not there"

"$@"
