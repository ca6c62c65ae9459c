#!/usr/bin/env bash
# Start one process per rank of this host, keep one log per rank, and end the job when a rank fails.
#
#   rank_loop.sh                    run PROGRAM as set below
#   rank_loop.sh python train.py    run this instead
#
# The exit code is that of the first rank that failed, 130 after Ctrl-C, 143 after SIGTERM. On several machines
# start it on each, with that machine's RANKS and DEVICES. Nothing but bash (4.2 or later) and setsid is needed.
set -u

# >>> settings: change these, or set them in the environment
RANK_TABLE_FILE=${RANK_TABLE_FILE:-$PWD/hccl_8p_01234567_127.0.0.1.json}  # absolute: ranks may change directory
RANKS=${RANKS:-"0 1 2 3 4 5 6 7"}    # the ranks of this machine
DEVICES=${DEVICES:-"0 1 2 3 4 5 6 7"} # the device of each of them, in the same order
RANK_SIZE=${RANK_SIZE:-8}            # ranks of the whole job
# Devices of this machine in the job: RANK_ID = SERVER_ID * DEVICE_NUM + DEVICE_ID in regular tables. The guides'
# ascend4p.sh sets 8 here with RANK_SIZE=4, because its scripts mean the devices that the machine has.
DEVICE_NUM=${DEVICE_NUM:-8}
SERVER_ID=${SERVER_ID:-0}            # this machine's place in the table
LOG_DIR=${LOG_DIR:-log}
GRACE=${GRACE:-15}                   # seconds from SIGTERM to SIGKILL
PROGRAM=(python train.py)
# <<< settings

[ $# -gt 0 ] && PROGRAM=("$@")
read -r -a ranks <<< "$RANKS"
read -r -a devices <<< "$DEVICES"
if [ ${#ranks[@]} -ne ${#devices[@]} ]; then
    echo "RANKS names ${#ranks[@]} ranks, DEVICES ${#devices[@]} devices" >&2
    exit 2
fi
if [ ! -r "$RANK_TABLE_FILE" ]; then
    echo "RANK_TABLE_FILE=$RANK_TABLE_FILE cannot be read" >&2
    exit 2
fi
mkdir -p "$LOG_DIR" || exit 2
# What mpirun has left in the shell would overrule the numbers below as soon as MindSpore is imported.
unset "${!OMPI_@}" "${!PMIX_@}"
export RANK_TABLE_FILE RANK_SIZE DEVICE_NUM SERVER_ID
export PYTHONUNBUFFERED=${PYTHONUNBUFFERED-1}
pids=()

# Every rank leads a session of its own: the number of its process is that of the group.
end_ranks() {
    local pid
    for pid in "${pids[@]}"; do kill -TERM -- "-$pid" 2> /dev/null; done
    for ((tick = 0; tick < GRACE * 10; tick++)); do
        left=0
        for pid in "${pids[@]}"; do kill -0 -- "-$pid" 2> /dev/null && left=1; done
        [ "$left" -eq 0 ] && return
        sleep 0.1
    done
    for pid in "${pids[@]}"; do kill -KILL -- "-$pid" 2> /dev/null; done
}
trap 'trap "" INT TERM; end_ranks; exit 130' INT
trap 'trap "" INT TERM; end_ranks; exit 143' TERM

for index in "${!ranks[@]}"; do
    rank=${ranks[$index]}
    RANK_ID=$rank DEVICE_ID=${devices[$index]} \
        setsid "${PROGRAM[@]}" > "$LOG_DIR/rank_$rank.log" 2>&1 < /dev/null &
    pids[index]=$!
done
echo "started ${#pids[@]} ranks; logs: $LOG_DIR/rank_*.log" >&2

running=("${!pids[@]}")
while [ ${#running[@]} -gt 0 ]; do
    still=()
    for index in "${running[@]}"; do
        if kill -0 "${pids[$index]}" 2> /dev/null; then
            still+=("$index")
            continue
        fi
        wait "${pids[$index]}"
        code=$?
        if [ "$code" -ne 0 ]; then
            echo "rank ${ranks[$index]} (device ${devices[$index]}) failed: exit code $code;" \
                "see $LOG_DIR/rank_${ranks[$index]}.log" >&2
            end_ranks
            exit "$code"
        fi
    done
    running=(${still[@]+"${still[@]}"})
    [ ${#running[@]} -gt 0 ] && sleep 0.1
done
