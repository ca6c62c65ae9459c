"""Options that other tools have, and what a command of ours has in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Answer(NamedTuple):
    """What to say for some options of other tools.

    Attributes:
        commands: The commands that say it.
        options: The options, as other tools have them.
        text: What to type instead, or that nothing is needed.
    """

    commands: frozenset[str]
    options: frozenset[str]
    text: str


def _answer(commands: str, options: str, text: str) -> Answer:
    return Answer(frozenset(commands.split()), frozenset(options.split()), text)


_OF_TABLES = "gen validate merge convert replace subset show diff distribute env"
_ALL = f"{_OF_TABLES} launch jobs stacks logs stop doctor explain rules schema"
#: Those of single commands first: the first that fits is said.
ANSWERS = (
    _answer(
        "stop",
        "-f --force -9 --kill --kill-now --immediately --signal -s",
        "the ranks have their grace time, and what is left is then killed: `hccl-tools stop "
        "--now` kills at once",
    ),
    _answer(
        "stop",
        "--grace --grace-period -t --time --timeout",
        "`--wait SECONDS` waits so long for the end; the grace time of the ranks is launch's --grace",
    ),
    _answer("stop", "-a", "`hccl-tools stop --all` stops all runs"),
    _answer(
        "stop logs stacks",
        "-r --run --run-id --job --job-id -j --jobid --name",
        "the run needs no option: type its name as `hccl-tools jobs` lists it",
    ),
    _answer("logs", "--tail --last --head", "`-n 50` prints the last 50 lines"),
    _answer(
        "logs",
        "-r --ranks --worker -c --container --node --pod --local-rank",
        "`--rank 3` selects a rank, `--rank 0,2-4` several, `--rank all` all",
    ),
    _answer(
        "logs",
        "-a --all --all-ranks --all-containers --prefix",
        "`--rank all` prints the logs of all ranks, each line with its rank",
    ),
    _answer("logs", "--failed --errors", "without a rank, it is the log of the one that failed first"),
    _answer("logs", "-p --previous", "`hccl-tools jobs` lists earlier runs: `hccl-tools logs RUN`"),
    _answer(
        "logs",
        "-t --timestamps --since --until",
        "a log has the lines as the rank wrote them, without times of ours",
    ),
    _answer("logs", "-w --watch --stream", "`-f` follows the log"),
    _answer("logs", "-q --grep", "use `hccl-tools logs --rank all | grep WORD`"),
    _answer("jobs", "-w --watch -i --iterate --follow", "use `watch hccl-tools jobs`"),
    _answer(
        "jobs", "-n --last -l --latest --limit", "all runs are listed, newest first: `hccl-tools jobs | head`"
    ),
    _answer(
        "jobs",
        "--state --status --filter -t --states --failed --ended --finished --active --current",
        "`--running` lists only those that are running",
    ),
    _answer(
        "jobs stop logs",
        "--delete --clean --prune --rm --remove --purge",
        "the files of a run are its folder in the log directory: remove that with `rm -r`",
    ),
    _answer("jobs", "-u --user --me", "the runs of a log directory are listed, of all users: see --log-dir"),
    _answer(
        "stacks",
        "-p --pid --rank --ranks -r",
        "all ranks are shown, those with equal stacks once; `-f json` has each rank",
    ),
    _answer(
        "show",
        "--svg --png --html --pdf --picture --image --plot --draw --graph --dot",
        "`-o FILE.svg` draws a picture, `-o FILE.html` a page",
    ),
    _answer("show", "--matrix --topo --topology -m", "`-f matrix` shows how the devices are connected"),
    _answer("show", "--tree -t --verbose -v --full", "the tree is the default; `--all` shows each device"),
    _answer("validate diff doctor explain stacks show jobs", "--json -j", "`-f json` is for programs"),
    _answer("jobs", "-o --output", "`-f json` prints all fields"),
    _answer("validate", "-s --silent --no-output", "`-q` prints nothing: the exit code tells"),
    _answer("validate", "--exit-zero", "add `|| true` to the command"),
    _answer(
        "validate",
        "--diff --check --dry-run --unsafe-fixes --in-place --inplace -i",
        "`--fix` shows the corrections as a diff; `--fix --write` writes them",
    ),
    _answer("validate", "-w --watch", "`--wait SECONDS` waits for a table that is still being written"),
    _answer("validate", "--output-format", "`-f json`; also github, junit, sarif"),
    _answer(
        "validate",
        "-o --output --output-file",
        "a report: `hccl-tools validate -f json FILE > REPORT`; a corrected table: copy FILE, then type "
        "`hccl-tools validate --fix --write COPY`",
    ),
    _answer("validate", "--statistics --stats", "the last line has the numbers; `-f json` has each finding"),
    _answer("validate", "--exclude --extend-ignore --disable", "`--ignore HCC404` leaves out a rule"),
    _answer("validate", "--extend-select --enable --only", "`--select HCC2` checks only these rules"),
    _answer(
        "validate", "--warn-error --werror --max-warnings --error", "`--strict` counts warnings as errors"
    ),
    _answer("validate", "--local-only --host", "`--local FILE` compares with this host"),
    _answer(
        "diff",
        "-u --unified --stat --brief -q --quiet --name-only",
        "diff prints only differences and exits with 1 if there are any; in a script append `>/dev/null`",
    ),
    _answer(
        "diff",
        "-y --side-by-side --word-diff",
        "the output has each changed server and rank once; `-f json` is for programs",
    ),
    _answer("merge", "--sort --sort-by", "`--order ip` or `--order server-id` sorts the servers"),
    _answer(
        "convert",
        "-t --type --output-format --as --target-format -f",
        "`--to 1.2` names the format; the table needs no option",
    ),
    _answer("replace", "--old --from --failed --remove --node", "`--server OLD` names the failed server"),
    _answer(
        "replace",
        "--new --by --spare --to --replacement",
        "`--with` names the spare's table, or its host: `--with spare.json`",
    ),
    _answer(
        "subset",
        "-n --nnodes --nodes --hosts --host --nodelist -w",
        "`--servers 10.0.0.1,10.0.0.2` keeps these servers",
    ),
    _answer("subset", "--device --gpus --npus --ranks --rank", "`--devices 0-3` keeps these on each server"),
    _answer(
        "distribute", "-n --dry-run --check", "without `--write` nothing is copied: hosts are only compared"
    ),
    _answer(
        "distribute", "-p --port --user -l -i --identity", "`--ssh 'ssh -p PORT -i KEY'` sets options of ssh"
    ),
    _answer(
        "distribute doctor",
        "--hosts --host -w --nodelist",
        "the hosts are the second argument: `distribute FILE 'node[1-4]'`",
    ),
    _answer(
        "env",
        "--shell --export --format -f",
        'the lines are for a POSIX shell: `eval "$(hccl-tools env FILE --target torch)"`',
    ),
    _answer("env", "--framework --for -t", "`--target torch` names the framework"),
    _answer(
        "gen", "-n --np --num --nproc-per-node --gpus --nproc -g --gres", "`--devices 0-7` names the devices"
    ),
    _answer(
        "gen",
        "-N --nnodes --nodes -w --nodelist --host",
        "`--hosts 'node[1-4]'` makes the table of a cluster",
    ),
    _answer(
        "gen",
        "--ip --host-address --addr --address --master-addr",
        "`--server_ip 10.0.0.1` is the server_id of this host",
    ),
    _answer("validate", "--explain --rule --show-source", "`hccl-tools rules HCC203` explains a rule"),
    _answer("gen", "--stdout --print", "`-o -` prints the table"),
    _answer("launch", "-q --quiet", "`--tail 0 >/dev/null` shows no output of the ranks; the logs have it"),
    _answer(
        "launch",
        "-f --file --filename --config --config-file -c",
        "a job is a table and a program: `hccl-tools launch --rank-table FILE train.py`",
    ),
    _answer(
        "launch",
        "-d --detach --background -b",
        "start it in the background with `nohup hccl-tools launch ... &`; `hccl-tools jobs` lists it",
    ),
    _answer(
        "launch",
        "-N --nodes --nodelist -w -H --host --machinefile --hostlist",
        "`--hosts 'node[1-4]'` or `--hostfile FILE` names the hosts",
    ),
    _answer(
        "launch",
        "-x -e --export-env --genv",
        "`--env NAME=VALUE` sets a variable; `--export NAME` passes one to the other hosts",
    ),
    _answer(
        "launch", "--volume --volumes --mount", "the ranks see the files of their hosts: nothing is mounted"
    ),
    _answer(
        "launch",
        "--torch --pytorch --mindspore --paddle --framework --fw",
        "the ranks' Python tells; `--start torch` sets torchrun's variables, `--start cluster` msrun's",
    ),
    _answer(
        "launch",
        "--conda --conda-env --venv --virtualenv --interpreter --python-path",
        "`--python PATH` names the ranks' Python, such as env/bin/python",
    ),
    _answer(
        "launch", "-i --interactive -it --tty --rm", "leave it out: `--stdin` passes the input to a rank"
    ),
    _answer(
        "launch",
        "--name --job-name -J --label --tag --run-id",
        "a run has the time as its name: see `hccl-tools jobs`",
    ),
    _answer("launch", "-t --time --time-limit --walltime", "`--timeout 2h` ends the job after that time"),
    _answer("launch", "-o --output --log-output -e --error", "`--log-dir DIR` is where the logs go"),
    _answer(
        "launch",
        "--gres --gpus-per-node --npus-per-node --ntasks-per-node --tasks-per-node --ppn -ppn "
        "-npernode --npernode",
        "`--nproc-per-node 8` starts 8 ranks on each host",
    ),
    _answer(
        "launch",
        "--restart --requeue --restart-policy",
        "`--max-restarts 3` starts the job again after a failure",
    ),
    _answer(
        "launch",
        "--bind-to --map-by --rank-by --report-bindings --bind-to-core --bind-to-none --cpu-bind",
        "without --bind no rank is bound; `--bind numa` or `--bind cores` binds ranks",
    ),
    _answer(
        "launch", "--mca --gmca", "`--env OMPI_MCA_NAME=VALUE` makes this setting of Open MPI for each rank"
    ),
    _answer(
        "launch",
        "--oversubscribe --allow-run-as-root --nooversubscribe --tag-output --prefix --tmpdir",
        "leave it out: this option of mpirun is not needed, `launch` starts the ranks",
    ),
    _answer(
        "launch",
        "-p --partition -A --account --qos --exclusive --mem -c --cpus-per-task",
        "resources belong to `sbatch` or `salloc`: run `hccl-tools launch` within the allocation",
    ),
    _answer("launch", "--tee --redirects", "`--tail all` shows the output of all ranks"),
    _answer(
        "launch",
        "--wait-timeout --rdzv-timeout --rendezvous-timeout",
        "`--join-timeout 10min` waits so long for other hosts",
    ),
    _answer(
        "doctor",
        "--fix --repair",
        "doctor changes nothing: `--emit-remedies DIR` writes the commands as scripts",
    ),
    _answer("doctor", "--quick --fast --short", "the usual checks are quick; `--full` adds all pings"),
    _answer("doctor", "--skip --exclude --disable", "`--ignore HCD6` leaves checks out"),
    _answer("doctor", "--checks --only --enable", "`--select HCD2` takes only these; `--list` lists them"),
    _answer("doctor", "-n --rank-table --table", "the table needs no option: `hccl-tools doctor FILE`"),
    _answer(
        "explain",
        "--latest --last --run --job -r --file --logs --log --log-file --path",
        "what to explain needs no option: `hccl-tools explain RUN`, or files and folders of logs",
    ),
    _answer("explain", "--code --error", "a code needs no option: `hccl-tools explain EI0006`"),
    _answer("explain", "--rank", "all ranks are explained; `hccl-tools logs RUN --rank 0` prints a log"),
    _answer(
        "explain rules",
        "--search --grep --find -k",
        'words need no option: `hccl-tools explain "shared memory"`',
    ),
    _answer("rules", "--list -l --all -a", "`hccl-tools rules` lists all rules"),
    _answer(
        "rules",
        "--json -f --format -o --output",
        "rules are printed as text only; `hccl-tools validate -f json` has the ids",
    ),
    _answer(
        "schema",
        "-o --output --json -f --format --list -l --version",
        "`hccl-tools schema` lists the formats; `hccl-tools schema 1.0 > FILE` writes one",
    ),
    _answer(
        "convert merge replace subset gen",
        "--in-place -i --inplace --dry-run --diff",
        "a new file is written, the old one stays; `-o -` only prints the table",
    ),
    _answer(
        "convert replace subset show validate diff merge",
        "--input --file --rank-table-file --filename -i -f",
        "the table needs no option: type its file",
    ),
    _answer("show validate", "-n --rank-id", "`hccl-tools show FILE --rank 5` shows one rank"),
    _answer(
        "show validate explain rules jobs stacks logs gen launch doctor stop",
        "-l --long --wide",
        "the output has all columns that fit; see `--help` for -f json",
    ),
    _answer(
        _ALL,
        "-v -vv --verbose --debug --log-level --loglevel --trace",
        "there is no other detail to switch on: leave it out",
    ),
    _answer(
        _ALL,
        "-q --quiet -s --silent",
        "redirect what is not wanted: `>/dev/null` the result, `2>/dev/null` the notes",
    ),
    _answer(
        _ALL,
        "--no-color --nocolor --no-colour --plain --color --colors",
        "set NO_COLOR=1 in the environment for text without colours",
    ),
    _answer(_ALL, "-y --yes --assume-yes --no-confirm --no-input", "leave it out: nothing asks back"),
    _answer(
        _ALL,
        "-n --namespace --context --kubeconfig",
        "the tool reads no cluster: get the file with `kubectl get configmap NAME -o json`",
    ),
    _answer(_ALL, "--version", "`hccl-tools --version` prints the version"),
    _answer(
        _ALL, "-C --directory --cwd --chdir --workdir -D --wdir --wd", "change the folder first: `cd DIR`"
    ),
    _answer(_ALL, "--config --config-file", "defaults are variables: `hccl-tools env --site` prints them"),
)


def answer(command: str, option: str) -> str | None:
    """Return what to type in place of an option of other tools; ``None`` for an option that is not known."""
    return next((one.text for one in ANSWERS if command in one.commands and option in one.options), None)


def any_answer(command: str, spellings: Iterable[str]) -> str | None:
    """Return the first answer to an option that other tools spell in several ways."""
    return next((found for one in spellings if (found := answer(command, one)) is not None), None)
