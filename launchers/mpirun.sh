#!/usr/bin/env bash
# The ranks of a rank table as processes of Open MPI (4.1 or 5): mpirun brings them to the servers, this script turns
# its numbers into RANK_ID, DEVICE_ID and so on. Every rank has its own log; when one fails the others are ended, and
# its exit code is that of this script.
#
#   ./mpirun.sh                                 run COMMAND
#   ./mpirun.sh python train.py --epochs 3      run something else
#
# With several SERVERS, table, program and LOG_DIR are at the same place on all of them, ssh needs no password, and a
# server_id is an address or the name of its server: that is how a rank knows on which line it is.

# The rank table. Ranks see it as RANK_TABLE_FILE; leave it empty for ranks that use MPI itself: MindSpore refuses a
# table beside MPI, so that with a table (or SCHED_PORT) mpirun's own variables are taken from the ranks.
RANK_TABLE_FILE=${RANK_TABLE_FILE-hccl_8p_01234567_127.0.0.1.json}
# The table's servers, one per line: its server_id, its ranks, and the device of each.
SERVERS=(
  "127.0.0.1 0,1,2,3,4,5,6,7 0,1,2,3,4,5,6,7"
)
# Devices of a server in the job; empty: as many as its line has. The guide sets 8 even for four ranks, since
# MindSpore's formula is RANK_ID = SERVER_ID * DEVICE_NUM + DEVICE_ID: set 8 if your script computes with it so.
DEVICE_NUM=${DEVICE_NUM:-}
# MindSpore 2.4 and later: a port of this machine, which then runs the scheduler where the ranks meet. Else empty.
SCHED_PORT=${SCHED_PORT:-}
# The address at which the ranks reach it; empty: the first one of this machine.
SCHED_HOST=${SCHED_HOST:-}
# Where the logs go: rank_0.log, rank_1.log, ...
LOG_DIR=${LOG_DIR:-log}
# Further options for mpirun.
MPIRUN_OPTIONS=()
# Further variables of every rank: NAME=VALUE, as many as you like.
ENVIRONMENT=()
# What every rank runs; arguments of this script are run instead.
COMMAND=(python train.py)

set -u
say() { echo "mpirun.sh: $*" >&2; }
refuse() { say "$*"; exit 125; }

[[ $# -eq 0 ]] || COMMAND=("$@")
command -v mpirun >/dev/null || { say "mpirun is not there"; exit 127; }
command -v "${COMMAND[0]}" >/dev/null || { say "${COMMAND[0]} is not there"; exit 127; }
program=("${COMMAND[@]}")
[[ ${#ENVIRONMENT[@]} -eq 0 ]] || program=(env "${ENVIRONMENT[@]}" "${COMMAND[@]}")
if [[ -n $RANK_TABLE_FILE ]]; then
  [[ -r $RANK_TABLE_FILE ]] || refuse "no rank table $RANK_TABLE_FILE here; set RANK_TABLE_FILE"
  RANK_TABLE_FILE=$(realpath "$RANK_TABLE_FILE")
fi
LOG_DIR=$(realpath -m "$LOG_DIR")
mkdir -p "$LOG_DIR" || refuse "the log directory $LOG_DIR cannot be made"

count=0 hosts=''
for line in "${SERVERS[@]}"; do
  read -r id list _ <<<"$line"
  IFS=, read -r -a found <<<"$list"
  count=$((count + ${#found[@]}))
  hosts=$hosts${hosts:+,}$id:${#found[@]}
done
# Small machines have fewer cores than ranks, and a rank bound to one core crawls.
options=(-n "$count" --map-by slot:OVERSUBSCRIBE --bind-to none)
[[ ${#SERVERS[@]} -eq 1 ]] || options+=(--host "$hosts" --wdir "$PWD")
[[ $(id -u) -ne 0 ]] || options+=(--allow-run-as-root)
scheduler=''
if [[ -n $SCHED_PORT ]]; then
  [[ -n $SCHED_HOST ]] || SCHED_HOST=$(hostname -I | awk '{ print $1 }')
  export MS_SCHED_HOST=${SCHED_HOST:-127.0.0.1} MS_SCHED_PORT=$SCHED_PORT MS_WORKER_NUM=$count
  MS_ROLE=MS_SCHED MS_NODE_ID=sched RANK_ID=0 RANK_SIZE=$count DEVICE_ID=0 "${COMMAND[0]}" -c \
    "import mindspore as ms; ms.set_device('CPU'); from mindspore.communication import init; init()" \
    </dev/null >"$LOG_DIR/scheduler.log" 2>&1 &
  scheduler=$!
fi
[[ -z $SCHED_PORT ]] || options+=(-x MS_SCHED_HOST -x MS_SCHED_PORT -x MS_WORKER_NUM)
servers=$(printf '%s\n' "${SERVERS[@]}")
first_failure=$LOG_DIR/first_failure
rm -f "$first_failure"

# What runs on the servers: one rank. Its server is found by address, as mpirun 4.1 begins with its own host, whatever
# the order. The settings come as arguments: another server does not inherit them.
# shellcheck disable=SC2317  # called by the shell that mpirun starts
as_rank() {
  local table=$1 log_dir=$2 device_num=$3 servers=$4 first_failure=$5 own id rank_list device_list index=-1 known=''
  local ranks devices name place=$OMPI_COMM_WORLD_LOCAL_RANK asked='' code left
  shift 5
  own=" $(hostname) $(hostname -s) $(hostname -I) "
  while read -r id rank_list device_list; do
    index=$((index + 1))
    [[ $servers != *$'\n'* || $own == *" $id "* ]] && { known=yes; break; }
  done <<<"$servers"
  [[ -n $known ]] || { echo "mpirun.sh: none of the SERVERS is this host, which is$own" >&2; exit 125; }
  IFS=, read -r -a ranks <<<"$rank_list"
  IFS=, read -r -a devices <<<"$device_list"
  export RANK_ID=${ranks[place]} DEVICE_ID=${devices[place]} RANK_SIZE=$OMPI_COMM_WORLD_SIZE
  export SERVER_ID=$index DEVICE_NUM=${device_num:-${#ranks[@]}} PYTHONUNBUFFERED=${PYTHONUNBUFFERED-1}
  if [[ -n $table ]]; then export RANK_TABLE_FILE=$table; else unset RANK_TABLE_FILE; fi
  if [[ -n $table || -n ${MS_SCHED_PORT:-} ]]; then
    for name in "${!OMPI_@}" "${!PMIX_@}"; do unset "$name"; done
  else
    # MindSpore takes its DEVICE_ID from here.
    export OMPI_COMM_WORLD_LOCAL_RANK=$DEVICE_ID
  fi
  [[ -z ${MS_SCHED_PORT:-} ]] || export MS_ROLE=MS_WORKER MS_NODE_ID=$RANK_ID
  mkdir -p "$log_dir"
  # The program dies of these; this shell goes on and tells how it ended.
  trap 'asked=yes' INT TERM HUP
  { "$@" </dev/null >"$log_dir/rank_$RANK_ID.log" 2>&1; code=$?; } 2>/dev/null
  if [[ $code -ne 0 && -z $asked ]]; then
    (set -o noclobber; echo "$RANK_ID $code $id" >"$first_failure") 2>/dev/null
  fi
  # mpirun gives each rank a process group, and forgets those of ranks that have ended.
  mapfile -t left < <(ps -eo pid=,pgid= | awk -v me=$$ '$2 == me && $1 != me { print $1 }')
  [[ ${#left[@]} -eq 0 ]] || kill -KILL "${left[@]}" 2>/dev/null
  exit "$code"
}

say "$count ranks; logs: $LOG_DIR"
mpirun "${options[@]}" "${MPIRUN_OPTIONS[@]+"${MPIRUN_OPTIONS[@]}"}" \
  bash -c "$(declare -f as_rank); as_rank \"\$@\"" as_rank \
  "$RANK_TABLE_FILE" "$LOG_DIR" "$DEVICE_NUM" "$servers" "$first_failure" "${program[@]}" &
pid=$! code=''
trap 'code=130; kill -TERM $pid' INT
trap 'code=143; kill -TERM $pid' TERM
trap 'code=129; kill -TERM $pid' HUP
# A signal ends `wait` before mpirun has ended.
wait "$pid"; job_code=$?
while kill -0 "$pid" 2>/dev/null; do wait "$pid"; job_code=$?; done
[[ -z $scheduler ]] || kill "$scheduler" 2>/dev/null
if [[ -z $code ]]; then
  code=$job_code
  if [[ $code -ne 0 && -r $first_failure ]]; then
    read -r rank code id <"$first_failure"
    say "rank $rank ($id) failed first, exit code $code; $LOG_DIR/rank_$rank.log ends:"
    tail -n 20 "$LOG_DIR/rank_$rank.log" >&2
  fi
fi
[[ $code -eq 0 ]] || say "exit code $code"
exit "$code"
