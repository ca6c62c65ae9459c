#!/usr/bin/env bash
# Let Open MPI (4.1 or 5) start the ranks; this script turns its numbers into RANK_ID, DEVICE_ID and so on.
#
#   mpirun.sh                       run PROGRAM as set below
#   mpirun.sh python train.py       run this instead
#
# Each rank has its own log. mpirun ends the others when a rank fails and passes on its exit code; after Ctrl-C it
# is 130, after SIGTERM 143. On several machines this file must lie at the same place on all of them.
set -u

# >>> settings: change these, or set them in the environment
RANK_TABLE_FILE=${RANK_TABLE_FILE-}   # empty: none, devices in order; else its absolute path
DEVICES=${DEVICES:-"0 1 2 3 4 5 6 7"} # the devices of each machine, in the order of its ranks
RANK_SIZE=${RANK_SIZE:-8}             # ranks of the whole job
# Devices of one machine in the job. The guides' ascend4p.sh sets 8 with RANK_SIZE=4, because its scripts mean the
# devices that the machine has.
DEVICE_NUM=${DEVICE_NUM:-8}
HOSTS=${HOSTS-}                       # for example 10.0.0.1:8,10.0.0.2:8; empty: this machine
LOG_DIR=${LOG_DIR:-log}
PROGRAM=(python train.py)
# <<< settings

if [ "${1-}" = --as-rank ]; then
    shift
    export RANK_ID=$OMPI_COMM_WORLD_RANK
    read -r -a devices <<< "$DEVICES"
    export DEVICE_ID=${devices[$OMPI_COMM_WORLD_LOCAL_RANK]}
    export SERVER_ID=$((RANK_ID / ${#devices[@]}))
    if [ -n "$RANK_TABLE_FILE" ]; then
        # MindSpore would copy mpirun's numbers over ours, and refuses a table beside MPI.
        unset "${!OMPI_@}" "${!PMIX_@}"
    else
        unset RANK_TABLE_FILE
        # Here MindSpore takes DEVICE_ID from mpirun: the place in this list, not the device.
        ASCEND_RT_VISIBLE_DEVICES=$(tr ' ' '\n' <<< "$DEVICES" | sort -n | paste -s -d ,)
        export ASCEND_RT_VISIBLE_DEVICES
        export DEVICE_ID=$OMPI_COMM_WORLD_LOCAL_RANK
    fi
    exec "$@" > "$LOG_DIR/rank_$RANK_ID.log" 2>&1 < /dev/null
fi

[ $# -gt 0 ] && PROGRAM=("$@")
mkdir -p "$LOG_DIR" || exit 2
export RANK_TABLE_FILE DEVICES RANK_SIZE DEVICE_NUM LOG_DIR
export PYTHONUNBUFFERED=${PYTHONUNBUFFERED-1}
options=(-n "$RANK_SIZE" --map-by :OVERSUBSCRIBE --bind-to none)
[ "$(id -u)" -eq 0 ] && options+=(--allow-run-as-root)
if [ -n "$HOSTS" ]; then
    options+=(--host "$HOSTS" --wdir "$PWD")
    for name in RANK_TABLE_FILE DEVICES RANK_SIZE DEVICE_NUM LOG_DIR PYTHONUNBUFFERED; do options+=(-x "$name"); done
fi
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
mpirun "${options[@]}" bash "$self" --as-rank "${PROGRAM[@]}" &
mpirun=$!
trap 'kill -TERM "$mpirun" 2> /dev/null; wait "$mpirun"; exit 130' INT
trap 'kill -TERM "$mpirun" 2> /dev/null; wait "$mpirun"; exit 143' TERM
wait "$mpirun"
code=$?
[ "$code" -ne 0 ] && echo "a rank failed: exit code $code; see $LOG_DIR/rank_*.log" >&2
exit "$code"
