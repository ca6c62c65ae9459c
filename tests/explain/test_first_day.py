"""Failures of a first day with NPUs: the line on the screen is known, and lines like it that are harmless are not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.explain import shell_settings
from hccl_tools.explain.scanner import Scanner

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

SCANNER = Scanner()


def message(line: str) -> str:
    found = SCANNER.event(line.encode())
    return found.message.id if found else ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "ImportError: libascend_hal.so: cannot open shared object file: No such file or directory",
            "HCM840",
        ),
        ("x: error while loading shared libraries: libhccl.so: cannot open shared object file: N", "HCM841"),
        (
            "ImportError: libascendcl.so.1: cannot open shared object file: No such file or directory",
            "HCM841",
        ),
        ("ImportError: libatb.so: cannot open shared object file: No such file or directory", "HCM841"),
        ("OSError: libgomp-d22c30c5.so.1.0.0: cannot open shared object file: No such file", "HCM842"),
        ("ModuleNotFoundError: No module named 'te'", "HCM843"),
        ("munmap_chunk(): invalid pointer", "HCM985"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "HCM962"),
        ("train.sh: line 12:  4711 Killed                  python train.py", "HCM961"),
        ("slurmstepd: error: execve(): /opt/env/bin/python: No such file or directory", "HCM963"),
        ("sbatch: error: Batch job submission failed: Invalid account", "HCM964"),
        ("Nov 20 09:02:05 n2 kernel: Kernel panic - not syncing: Fatal exception", "HCM965"),
        ("[launch.py:1:sigkill_handler] ['python', '-u', 't.py'] exits with return code = 1", "HCM960"),
        ("[launch.py:1:main] Process 4711 exits successfully.", ""),
        ("corrupted size vs. prev_size", "HCM989"),
        ("pdsh@n1: n2: Host key verification failed.", "HCM984"),
        ("srun: error: cn4: tasks 8-15: Out Of Memory", "HCM988"),
        ("srun: error: cn4: task 12: Exited with exit code 1", "HCM714"),
        ('2m Warning Failed pod/w-1 Error: Failed to pull image "r/x:1": not found', "HCM986"),
        (
            "0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other",
            "",
        ),
        ("there is a sdma error, sdma channel is 2, sdmaBlkFsmState=0x7", "HCM973"),
        ("[ERROR] TUNE(1,python): \"ModuleNotFoundError: No module named 'tbe.common'", "HCM843"),
        ("ModuleNotFoundError: No module named 'tensorboard'", "HCM844"),
        ("[Errno 13] Permission denied: '/dev/davinci_manager'", "HCM845"),
        ("open /dev/davinci3 failed: Operation not permitted", "HCM845"),
        ("PermissionError: [Errno 13] Permission denied: '/data/out'", "HCM810"),
        ("dcmi model initialization failed, because the device is used. ret is -8020", "HCM847"),
        ("dcmi module initialize failed. ret is -8005", "HCM848"),
        ("dcmi_init fail, ret=-8020", "HCM847"),
        ("RuntimeError: cannot get NPU count, dcmi_get_card_list returned -8020", "HCM847"),
        ("dcmi init failed, err code: -8005", "HCM848"),
        ("gpustack_runtime.detector.ascend - ERROR - Failed to initialize DCMI", "HCM868"),
        ("DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)", "HCM866"),
        (
            "[ERROR] RUNTIME(7,python3):2026-03-18-10:00:01.200.100 [npu_driver.cc:88] drvGetDevNum failed: ret=4",
            "HCM867",
        ),
        ("ls: cannot access '/dev/davinci*': No such file or directory", "HCM837"),
        (
            'docker: error gathering device information while adding custom device "/dev/davinci0": no such file or directory.',
            "HCM837",
        ),
        ("open /dev/davinci_manager failed: file not found", "HCM837"),
        ("cat: /usr/local/Ascend/driver/version.info: No such file or directory", "HCM838"),
        ("bash: npu-smi: command not found", "HCM839"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'npu-smi'", "HCM839"),
        ("/usr/bin/job: line 3:  4711 Segmentation fault      (core dumped) python3 a.py", ""),
        ("line 3:  4711 Segmentation fault (core dumped) python3 a.py", "HCM854"),
        ("no segmentation faults in 12 runs", ""),
        ("Fatal Python error: Aborted", "HCM853"),
        ("DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.", "HCM660"),
        ("8/8 clients joined the room", ""),
        ("x.cpp:1] [E1014]Got EOF of Socket{id=1 fd=2 addr=10.0.0.2:45019}", "HCM661"),
        ("Message: The node was low on resource: memory. Container main used 1Ki", "HCM750"),
        ("      Reason:       OOMKilled", "HCM752"),
        ("ValueError: Place(npu:0) is not supported.", "HCM851"),
        ("EOFError: EOF when reading a line", "HCM889"),
        ("train.py: error: the following arguments are required: --local_rank", "HCM934"),
        ("train.py: error: the following arguments are required: --data, --local-rank", "HCM934"),
        ("train.py: error: the following arguments are required: --local_batch", "HCM924"),
        ("EOFError: EOF when reading a line of the index", "HCM664"),
        ("EOFError: Compressed file ended before the end-of-stream marker was reached", "HCM664"),
        ("ValueError: Place(gpu:0) is not supported.", "HCM810"),
        ("set ASCEND_RT_VISIBLE_DEVICES:4 error, input data rang[0-2)", "HCM849"),
        ("export ASCEND_RT_VISIBLE_DEVICES=4 # no error", ""),
        ("RuntimeError: can't start new thread", "HCM808"),
        ("trainer-2   0/1     ImagePullBackOff   0   12m", "HCM753"),
        ("trainer-2   0/1     Init:ErrImagePull   0   12m", "HCM753"),
        ("trainer-2   1/1     Running   0   12m", ""),
        ("Warning  FailedScheduling  3m  volcano  0/12 nodes are available: 12 Insufficient cpu.", "HCM754"),
        ("ValueError: Caught ValueError in DataLoader worker process 5.", "HCM813"),
        ("[1.2] INFO: task python3:4711 blocked for more than 120 seconds.", "HCM814"),
        ("[1.2] nfs: server 10.8.0.200 not responding, still trying", "HCM815"),
        ("[1.2] nfs: server 10.8.0.200 OK", "HCM817"),
        ("[1.2] nfs: server 10.8.0.200 is back", ""),
        ("ERROR: Config use_npu cannot be set as true while your paddle is not compiled", "HCM859"),
        ("ERROR: Config use_gpu cannot be set as true while your paddle is not compiled", ""),
        ("RuntimeError: The Inner error is reported as above. Bye", "HCM898"),
        ("[88.551210] cgroup: fork rejected by pids controller in /kubepods.slice/a.scope", "HCM809"),
        ("RuntimeError: [enforce fail] . PytorchStreamWriter failed writing file data/1: file", "HCM812"),
        ("  traceback : Signal 11 (SIGSEGV) received by PID 4711", "HCM726"),
        ("  traceback : Signal 15 (SIGTERM) received by PID 4711", ""),
        (
            "ValueError: (2.00 GB KV cache isneeded, which is larger than the available KV Cache memory (0.7 GB)",
            "HCM860",
        ),
        ("INFO Available KV cache memory: 10.42 GiB, larger than the available KV cache of yesterday", ""),
        ("ValueError: No available memory for the cache blocks.", "HCM861"),
        ("RuntimeError: Engine core initialization failed. See root cause above.", "HCM862"),
        ("The containerIp in the server node is empty in ranktable file.", "HCM863"),
        ("Parameter rankId is invalid in ranktable file.", "HCM863"),
        ("Finished parsing ranktable file.", ""),
        (
            "F20260808 11:11:02.1 3 a.cpp:4] Check failed: !b rank_tablefile must not be a symlink: /t",
            "HCM864",
        ),
        ("F20260808 11:11:02.169548 304 worker.cpp:45] Check failed: n > 0 (0 vs. 0)", "HCM865"),
        ("I20260808 11:11:02.169548 304 worker.cpp:45] Check failed: 0 times", ""),
        ("Aicore kernel execute failed, device_id=2, fault kernel_name=Gather_1, x", "HCM593"),
    ],
)
def test_a_line_of_the_first_day_is_known(line: str, expected: str) -> None:
    assert message(line) == expected


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("[ERROR] open device 0 failed, runtime result = 107001.", "107001"),
        ("RuntimeError: npuSynchronizeDevice:x.cpp:1 NPU error, error code is 107020", "107020"),
        ("build op model failed, result = 500001[FUNC:ReportInnerError]", "500001"),
        ("c10_npu::SetDevice(device_id_), error code is 507033", "507033"),
        ("call aclnnMoeDistributeDispatch failed, error code is 561000", "561000"),
        ("register of memory failed, ret = 103900", "103900"),
        ("hccl interface return err ./common/src/hccl_test_common.cc:538, retcode: 7", "7"),
        ("acl interface return err ./common/src/hccl_test_common.cc:861, retcode: 507033.", "507033"),
        ("[PID: 1] Invalid_Argument(EE1001): The argument is invalid.", "EE1001"),
        ("EZ9999: Inner Error!", "EZ9999"),
    ],
)
def test_a_code_on_the_screen_is_known(line: str, code: str) -> None:
    found = SCANNER.event(line.encode())

    assert found is not None
    assert found.codes == (code,)
    assert code in {one.code for one in found.message.codes}


@pytest.mark.parametrize("number", range(507046, 507058))
def test_every_code_of_a_failed_task_is_known(command_line: CommandLine, number: int) -> None:
    assert command_line("explain", str(number)).out.startswith(f"# {number} ")


def test_words_find_messages_by_their_texts(command_line: CommandLine) -> None:
    done = command_line("explain", "shared", "/dev/shm too small")
    found = [line.split()[0] for line in done.out.splitlines() if line.startswith("HCM")]

    assert (done.code, found) == (0, ["HCM852", "HCM804"])
    assert done.err.startswith('note: "shared /dev/shm too small" is neither a file nor a run')


@pytest.mark.parametrize("words", ["zyx-nothing", "shared/memory"])
def test_a_path_that_does_not_exist_and_words_that_no_text_has_are_an_error(
    command_line: CommandLine, words: str
) -> None:
    assert command_line("explain", words).code == 2


def test_rules_lists_rules_and_messages_with_a_word(command_line: CommandLine) -> None:
    done = command_line("rules", "super", "pod")
    ids = {line[:3] for line in done.out.splitlines()}

    assert done.code == 0
    assert ids >= {"HCC", "HCM"}


def test_a_code_that_is_not_known_is_not_searched_in_texts(command_line: CommandLine) -> None:
    assert command_line("rules", "50704").code == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "set ASCEND_RT_VISIBLE_DEVICES:4 error, input data rang[0-2)",
            "ASCEND_RT_VISIBLE_DEVICES names a device that the process does not have: 4, input data rang[0-2)",
        ),
        ("ModuleNotFoundError: No module named 'te'", "source CANN's set_env.sh"),
        (
            "DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.",
            "7/8 clients joined",
        ),
        ("x] [E1014]Got EOF of Socket{id=1 fd=2 addr=10.0.0.2:45019}", "the other end is address 10.0.0.2"),
        ("ValueError: Place(npu:0) is not supported.", "PADDLE_XCCL_BACKEND=npu"),
        ("ImportError: libhccl.so: cannot open shared object file: No such file", "libhccl.so"),
    ],
)
def test_the_answer_says_what_and_what_to_do(command_line: CommandLine, line: str, says: str) -> None:
    command_line.write("screen.txt", f"{line}\n")

    assert says in command_line("explain", "screen.txt").out.splitlines()[0]


def test_slots_of_a_host_are_counted_without_a_list_of_them() -> None:
    start: Any = SimpleNamespace(event=SimpleNamespace(fields={"value": "a:1048576,b:0,c:8,d:8"}))

    assert shell_settings._started_on(start, [200_000]) == ["a"]
    assert shell_settings._started_on(start, [5, 1_048_577]) == ["a", "c"]
    assert shell_settings._started_on(start, [1 << 30]) == []
