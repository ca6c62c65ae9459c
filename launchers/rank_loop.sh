#!/usr/bin/env bash
# The guide's loop over RANK_ID and DEVICE_ID, with an end: one process per rank on this machine, rank 0 included,
# a log for each; when one fails the others are ended, and its exit code is that of this script.
#
#   ./rank_loop.sh                                 run COMMAND
#   ./rank_loop.sh python train.py --epochs 3      run something else
#   SERVER=1 ./rank_loop.sh                        on the second machine of SERVERS
#
# Needs bash 4.1 and coreutils. `hccl-tools launch` does the same and more: it also ends what a rank has started in a
# session of its own, and everything after a kill -9 of the launcher.

# The rank table. Ranks see it as RANK_TABLE_FILE; leave it empty for programs that need none.
RANK_TABLE_FILE=${RANK_TABLE_FILE-hccl_8p_01234567_127.0.0.1.json}
# The table's servers, one per line: its server_id, its ranks, and the device of each.
SERVERS=(
  "127.0.0.1 0,1,2,3,4,5,6,7 0,1,2,3,4,5,6,7"
)
# Which of them this machine is: 0 for the first line. Ranks see it as SERVER_ID.
SERVER=${SERVER:-0}
# Devices of this machine in the job; empty: as many as the line has. The guide sets 8 even for four ranks, since
# MindSpore's formula is RANK_ID = SERVER_ID * DEVICE_NUM + DEVICE_ID: set 8 if your script computes with it so.
DEVICE_NUM=${DEVICE_NUM:-}
# MindSpore 2.4 and later: a free port on the first server, where ranks meet (a scheduler is started there). Else empty.
SCHED_PORT=${SCHED_PORT:-}
# Where the logs go: rank_0.log, rank_1.log, ...
LOG_DIR=${LOG_DIR:-log}
# Seconds from SIGTERM to SIGKILL when the job is ended.
GRACE=${GRACE:-15}
# Further variables of every rank: NAME=VALUE, as many as you like.
ENVIRONMENT=()
# What every rank runs; arguments of this script are run instead.
COMMAND=(python train.py)

set -u
# Each background job gets a process group of its own, which can be signalled as a whole.
set -m

say() { echo "rank_loop: $*" >&2; }
refuse() { say "$*"; exit 125; }

[[ $# -eq 0 ]] || COMMAND=("$@")
[[ $SERVER =~ ^[0-9]+$ && $SERVER -lt ${#SERVERS[@]} ]] ||
  refuse "SERVER=$SERVER: SERVERS has 0 to $((${#SERVERS[@]} - 1))"
read -r _ rank_list device_list <<<"${SERVERS[SERVER]}"
IFS=, read -r -a ranks <<<"$rank_list"
IFS=, read -r -a devices <<<"$device_list"
[[ ${#ranks[@]} -eq ${#devices[@]} ]] || refuse "SERVERS: ${#ranks[@]} ranks, but ${#devices[@]} devices"
command -v "${COMMAND[0]}" >/dev/null || { say "${COMMAND[0]} is not there"; exit 127; }
program=("${COMMAND[@]}")
[[ ${#ENVIRONMENT[@]} -eq 0 ]] || program=(env "${ENVIRONMENT[@]}" "${COMMAND[@]}")
if [[ -n $RANK_TABLE_FILE ]]; then
  [[ -r $RANK_TABLE_FILE ]] || refuse "no rank table $RANK_TABLE_FILE here; set RANK_TABLE_FILE"
  RANK_TABLE_FILE=$(realpath "$RANK_TABLE_FILE")
  export RANK_TABLE_FILE
else
  unset RANK_TABLE_FILE
fi
mkdir -p "$LOG_DIR" || refuse "the log directory $LOG_DIR cannot be made"

# MindSpore would take RANK_ID and DEVICE_ID from what an mpirun has left in the shell.
for name in "${!OMPI_@}" "${!PMIX_@}" "${!MS_@}"; do unset "$name"; done
export PYTHONUNBUFFERED=${PYTHONUNBUFFERED-1} SERVER_ID=$SERVER
export DEVICE_NUM=${DEVICE_NUM:-${#ranks[@]}}
RANK_SIZE=0
for line in "${SERVERS[@]}"; do
  read -r _ list _ <<<"$line"
  IFS=, read -r -a found <<<"$list"
  RANK_SIZE=$((RANK_SIZE + ${#found[@]}))
done
export RANK_SIZE
if [[ -n $SCHED_PORT ]]; then
  export MS_SCHED_HOST=${SERVERS[0]%% *} MS_SCHED_PORT=$SCHED_PORT MS_WORKER_NUM=$RANK_SIZE
fi

# Ranks tell through a pipe how they have ended, so that the first in time is known. Nothing is written to the other
# pipe: a read with a timeout loses what arrives at that instant, so this script only pauses with it.
ends=${TMPDIR:-/tmp}/rank_loop.$$.$RANDOM
mkfifo -m 600 "$ends" "$ends.pause" || refuse "no pipe can be made in ${TMPDIR:-/tmp}"
exec 3<>"$ends" 4<>"$ends.pause"
rm -f "$ends" "$ends.pause"

declare -A groups=()  # name -> process group, of what has not ended
declare -A started=() # the same, of everything
first='' code=0 deadline=''

start() { # name, log, program...
  local name=$1 log=$2
  shift 2
  (
    # The program dies of these; this shell goes on and tells how it ended, silently.
    trap : INT TERM HUP
    exec 2>/dev/null
    "$@" </dev/null >"$log" 2>&1 3>&- 4>&-
    echo "$name $?" >&3
  ) &
  groups[$name]=$! started[$name]=$!
  disown "$!" # This shell need not tell how it ended, also if it is killed before its trap.
}

end_all() { # signal
  local group
  for group in "${started[@]}"; do kill "-$1" -- "-$group" 2>/dev/null; done
}

begin_end() { # why, exit code
  [[ -z $deadline ]] || return 0
  code=$2 deadline=$((SECONDS + GRACE))
  say "$1"
  end_all TERM
}

hear() { # name, exit code: it has ended
  unset "groups[$1]"
  if [[ $2 -ne 0 && $1 != scheduler && -z $first && -z $deadline ]]; then
    first=$1
    begin_end "rank $1 failed first, exit code $2; ending the others" "$2"
  fi
}

lost() { # Ranks whose shell was killed cannot tell.
  local name
  for name in "${!groups[@]}"; do
    kill -0 "${groups[$name]}" 2>/dev/null || read -r -t 0 -u 3 || hear "$name" 137
  done
}

trap 'begin_end "interrupted; ending the job" 130' INT
trap 'begin_end "terminated; ending the job" 143' TERM
trap 'begin_end "hung up; ending the job" 129' HUP

if [[ -n $SCHED_PORT && $SERVER -eq 0 ]]; then
  MS_ROLE=MS_SCHED MS_NODE_ID=sched RANK_ID=0 DEVICE_ID=0 \
    start scheduler "$LOG_DIR/scheduler.log" "${COMMAND[0]}" -c \
    "import mindspore as ms; ms.set_device('CPU'); from mindspore.communication import init; init()"
fi
for index in "${!ranks[@]}"; do
  rank=${ranks[index]}
  export RANK_ID=$rank DEVICE_ID=${devices[index]}
  [[ -z $SCHED_PORT ]] || export MS_ROLE=MS_WORKER MS_NODE_ID=$rank
  start "$rank" "$LOG_DIR/rank_$rank.log" "${program[@]}"
done
say "${#ranks[@]} of $RANK_SIZE ranks, devices $device_list; logs: $LOG_DIR"

while [[ ${#groups[@]} -gt 0 && "${!groups[*]}" != scheduler ]]; do
  if read -r -t 0 -u 3; then
    read -r -u 3 name name_code
    hear "$name" "$name_code"
  else
    lost
    read -r -t 0.1 -u 4
  fi
  [[ -z $deadline || $SECONDS -lt $deadline ]] || break
done
# What is still there: ranks that did not end after SIGTERM, and what ranks have left behind.
end_all KILL

if [[ -n $first ]]; then
  say "the last lines of $LOG_DIR/rank_$first.log:"
  tail -n 20 "$LOG_DIR/rank_$first.log" >&2
fi
[[ $code -eq 0 ]] || say "exit code $code${first:+, from rank $first}"
exit "$code"
