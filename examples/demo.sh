#!/usr/bin/env bash
# What `make demo` runs: make a rank table, check it, train on four ranks from it. It needs no NPU.
set -euo pipefail
LC_ALL=C # a point in the decimals of EPOCHREALTIME
cd "$(dirname "$0")/.."

table=hccl_4p_4567_127.0.0.1.json
times=${DEMO_INSTALLED_IN:+install $DEMO_INSTALLED_IN s, }

# Show a command, run it, keep its time under a name.
stage() {
  local name=$1 started=$EPOCHREALTIME
  shift
  printf '\n$'
  for word; do
    if [[ $word == *[!A-Za-z0-9_./=-]* ]]; then printf ' "%s"' "$word"; else printf ' %s' "$word"; fi
  done
  echo
  "$@"
  times+=$(awk -v "name=$name" -v "from=$started" -v "to=$EPOCHREALTIME" \
    'BEGIN { printf "%s %.1f s, ", name, to - from }')
}

export GLOG_v=3 # MindSpore's own messages: errors only
stage gen hccl-tools gen --simulate 910a --device_num "[4,8)"
stage validate hccl-tools validate "$table"
stage launch hccl-tools launch --rank-table "$table" --cpu examples/train_digits.py

cat <<EOF

the table   $table
the logs    log/latest/rank_0.log to rank_3.log, report.json
the time    ${times%, }

What to type next:
  source .venv/bin/activate
  python examples/train_digits.py    # the same training in one process
  hccl-tools launch --rank-table $table --cpu --dry-run examples/train_digits.py    # each rank's variables
  hccl-tools gen --help              # a table of your own devices
EOF
