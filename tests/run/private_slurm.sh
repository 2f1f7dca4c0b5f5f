#!/usr/bin/env bash
# A Slurm of this machine alone, for tests: munged, slurmctld and slurmd as this user, all they write below DIR.
# usage: private_slurm.sh start DIR CONTROL_PORT NODE_PORT | private_slurm.sh stop DIR
# After `start` (exit 0) SLURM_CONF=DIR/slurm.conf is what srun needs. Exit 1: a daemon did not come up; its log is
# shown.
set -uo pipefail
what=$1 dir=$2
PATH=$PATH:/usr/sbin

stop() {
  for pid in "$dir"/*.pid; do
    [ -e "$pid" ] && kill -9 "$(cat "$pid")" 2>/dev/null
  done
  return 0
}
if [ "$what" = stop ]; then stop; exit; fi

host=$(hostname -s)
mkdir -p "$dir/state" "$dir/spool"
head -c 1024 /dev/urandom > "$dir/munge.key"
chmod 600 "$dir/munge.key"
cat > "$dir/slurm.conf" <<C
ClusterName=hexad_test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$3
SlurmdPort=$4
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/linear
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
C
export SLURM_CONF=$dir/slurm.conf
munged --force --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" \
  --log-file="$dir/munged.log" --seed-file="$dir/munge.seed" && slurmctld && slurmd
for _ in $(seq 150); do
  sinfo --noheader 2>/dev/null | grep -q idle && exit 0
  sleep 0.1
done
tail -n 3 "$dir"/*.log >&2
stop
exit 1
