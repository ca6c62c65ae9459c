"""Failures of a first day: libraries, modules, devices and variables that the process does not have."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Code, Message

_LATER = ("HCM006", "HCM009", "HCM015", "HCM221", "HCM222", "HCM240")
_SET_ENV = (
    "source CANN's set_env.sh (`source /usr/local/Ascend/ascend-toolkit/set_env.sh`, or cann/set_env.sh) in the"
    " shell that starts the ranks, on every host"
)
_DEVICES = (
    "on the host `npu-smi info` shows who uses the device; a container needs /dev/davinciN, /dev/davinci_manager,"
    " /dev/devmm_svm, /dev/hisi_hdc and the driver's directory, and a user of the group HwHiAiUser"
)
_LIBRARY = "the dynamic linker, and published logs (vllm-ascend#152, #262, FlagCX#451, gpustack#1101)"
_DCMI = "published logs (vllm-ascend#2698, ascend-device-plugin#23, cann-container-image#46), and dcmi_interface_api.h"

MESSAGES = (
    Message(
        "HCM956", "no-compiler", "cause",
        "a compiler or a tool for building is missing",
        "install it in the image of the ranks (`apt install build-essential`, `pip install ninja`), or install the wheel that has the extension",
        anchor=b"not found", pattern=rb"\b(?:ba|da)?sh:(?: line)? ?\d{1,5}: (?P<reason>c\+\+|g\+\+|gcc|cc|ninja|cmake|make|ld|bisheng|ccec): (?:command )?not found",
        explains=("HCM810",), source="the shell", example="/bin/sh: 1: c++: not found",
    ),
    Message(
        "HCM840", "driver-library-missing", "cause",
        "the process does not find a library of the Ascend driver",
        "in a container mount /usr/local/Ascend/driver from the host; on a host without devices there is no driver; elsewhere"
        " source CANN's set_env.sh, or add /usr/local/Ascend/driver/lib64/driver to LD_LIBRARY_PATH",
        anchor=b"cannot open shared object file",
        pattern=rb"(?P<file>lib(?:ascend_hal|dcmi|drvdsmi_host|dsmi|drv\w{1,20})\.so[\w.]{0,20}): cannot open",
        explains=_LATER, source=_LIBRARY,
        example="ImportError: libascend_hal.so: cannot open shared object file: No such file or directory",
    ),
    Message(
        "HCM841", "cann-library-missing", "cause",
        "the process does not find a library of CANN",
        f"{_SET_ENV}; if it is still missing, CANN or its part (kernels, nnal) is not installed",
        anchor=b"cannot open shared object file",
        pattern=rb"(?P<file>lib(?:hccl\w{0,20}|hcomm|acl\w{0,20}|ascend\w{0,20}|atb\w{0,20}|runtime|ge_\w{1,20}|graph\w{0,20}|nnopbase|opapi\w{0,20}|msprof\w{0,20}|error_manager|te_fusion|tbe\w{0,20}|hixl\w{0,20}|llm_datadist\w{0,20})\.so[\w.]{0,20}): cannot open",
        explains=_LATER, source=_LIBRARY,
        example="ImportError: libhccl.so: cannot open shared object file: No such file or directory",
    ),
    Message(
        "HCM842", "library-missing", "error",
        "the process does not find a library",
        "install it, or add its directory to LD_LIBRARY_PATH in the shell that starts the ranks",
        anchor=b"cannot open shared object file", pattern=rb"(?<![\w.+-])(?P<file>[\w.+-]{1,100}\.so[\w.]{0,20}): cannot open",
        explains=_LATER, source="the dynamic linker",
        example="ImportError: libexample.so.1: cannot open shared object file: No such file or directory",
    ),
    Message(
        "HCM843", "cann-module-missing", "cause",
        "Python does not find a module of CANN",
        f"{_SET_ENV}; it adds CANN's Python packages to PYTHONPATH",
        anchor=b"No module named ", pattern=rb"(?P<reason>No module named '(?:te|tbe|hccl|acl|topi)(?:\.[\w.]{1,60})?')",
        explains=_LATER, source="published logs (Ascend/pytorch#29)",
        example="ModuleNotFoundError: No module named 'te'",
    ),
    Message(
        "HCM844", "python-module-missing", "error",
        "Python does not find a module",
        "install it for the Python that starts the ranks, on every host, or select another one (`launch --python`)",
        anchor=b"No module named ", pattern=rb"^ModuleNotFoundError: (?P<reason>No module named '[\w.]{1,100}')",
        explains=_LATER, source="Python",
        example="ModuleNotFoundError: No module named 'example'",
    ),
    Message(
        "HCM845", "device-file-permission", "cause",
        "the process may not open a device file of the driver",
        "add the user to the group of the file (`ls -l /dev/davinci*`, usually HwHiAiUser); in a container, give it the same"
        " group id or run it as root",
        anchor=b"/dev/",
        pattern=rb"^(?=.{0,800}?(?:Permission denied|Operation not permitted)).{0,800}?(?P<file>/dev/(?:davinci\w{0,20}|devmm_svm|hisi_hdc))",
        explains=_LATER, source="the C library, and published logs (vllm-ascend#9490)",
        example="PermissionError: [Errno 13] Permission denied: '/dev/davinci_manager'",
    ),
    Message(
        "HCM846", "no-device-count", "error",
        "the driver tells the process no number of devices",
        _DEVICES,
        anchor=b"get ascend_hal device count", source="published logs (ascend-device-plugin#139)",
        causes=("a device file is not passed to the container, or belongs to another group", "another container holds the devices"),
        example="UserWarning: Can't get ascend_hal device count",
    ),
    Message(
        "HCM837", "device-file-missing", "cause",
        "a device file of the driver is not there",
        "in a container pass every device (docker: --device /dev/davinciN, /dev/davinci_manager, /dev/devmm_svm, /dev/hisi_hdc; Kubernetes:"
        " the device plugin and a request of huawei.com/Ascend...); on a host load the driver (`npu-smi info`)",
        anchor=b"/dev/",
        pattern=rb"^(?=.{0,800}?(?:[Nn]o such file|[Nn]ot (?:exist|found)|ENOENT|is missing))(?:.{0,800}?(?P<file>/dev/(?:davinci[\w*]{0,20}|devmm_svm|hisi_hdc)))",
        explains=(*_LATER, "HCM847", "HCM848", "HCM838", "HCM839", "HCM846", "HCM866", "HCM867"), source="the C library, docker and published logs",
        example="ls: cannot access '/dev/davinci_manager': No such file or directory",
    ),
    Message(
        "HCM838", "driver-directory-missing", "cause",
        "the directory of the Ascend driver is not there",
        "in a container mount it from the host (docker: -v /usr/local/Ascend/driver:/usr/local/Ascend/driver, -v /usr/local/dcmi:/usr/local/dcmi,"
        " or Ascend Docker Runtime); on a host install the driver",
        anchor=b"/usr/local/",
        pattern=rb"^(?=.{0,800}?(?:[Nn]o such file|[Nn]ot (?:exist|found)|ENOENT|[Cc]annot find|is missing))(?:.{0,800}?(?P<file>/usr/local/(?:Ascend/driver|dcmi)[\w./-]{0,160}))",
        explains=(*_LATER, "HCM847", "HCM848", "HCM839", "HCM846", "HCM866", "HCM867"), source="the C library",
        example="cat: /usr/local/Ascend/driver/version.info: No such file or directory",
    ),
    Message(
        "HCM839", "npu-smi-missing", "error",
        "npu-smi is not there",
        "in a container mount it with the driver (docker: -v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi"
        " -v /usr/local/Ascend/driver:/usr/local/Ascend/driver); without the driver no program sees the devices",
        anchor=b"npu-smi", pattern=rb"npu-smi['\"]?:? (?:command )?not found|['/]npu-smi'?: [Nn]o such file|[Nn]o such file or directory: '(?:[\w/]{0,60}/)?npu-smi'",
        source="the shell", example="bash: npu-smi: command not found",
    ),
    Message(
        "HCM866", "driver-interface-failed", "error",
        "the interface of the driver does not answer the process",
        _DEVICES,
        anchor=b"DrvMngGetConsoleLogLevel failed",
        causes=("the container lacks device files or the driver's directory", "another container has the same devices"),
        source=_DCMI, example="DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)",
    ),
    Message(
        "HCM867", "driver-device-number", "error",
        "the driver tells the process no number of devices",
        _DEVICES,
        anchor=b"drvGetDevNum", pattern=rb"drvGetDevNum.{0,60}?(?:fail|rror).{0,80}?(?P<reason>(?:drvRet\w{0,8}|ret\w{0,6}) ?[=:\[] ?\d{1,6})?",
        causes=("a device file is not passed to the container, or belongs to another group", "the driver is not loaded"),
        source="CANN's sources (runtime)", example="[ERROR] RUNTIME(77,python3): drvGetDevNum failed, drvRet=87",
    ),
    Message(
        "HCM847", "dcmi-occupied", "error",
        "the management interface of the driver (DCMI) refuses the process (-8020): the devices are in use, or the container lacks device files",
        f"{_DEVICES}; `ls -l /dev/davinci*` in the container shows which it has",
        anchor=b"-8020", pattern=rb"(?:dcmi|DCMI|npu[-_]?smi|NPU).{0,200}?(?P<status>-8020)\b|ret(?:urn)?(?: is|:|=| ?=)? ?-8020\b",
        causes=("another container has the same devices", "the container lacks device files or the driver's directory"),
        source=_DCMI,
        example="dcmi model initialized failed, because the device is used. ret is -8020",
    ),
    Message(
        "HCM848", "dcmi-failed", "error",
        "the management interface of the driver (DCMI) could not be initialised",
        _DEVICES,
        anchor=b"dcmi", pattern=rb"dcmi.{0,160}?(?:(?:ret|code|err\w{0,6}|rc|status|returned)(?: is|:|=| ?= ?)? ?(?P<status>-8\d{3})\b|\binit\w{0,8} (?:fail|rror)\w{0,4}|\bfailed to init)",
        causes=("the container lacks device files or the driver's directory", "the user may not open the device files", "another container has the same devices"),
        source=_DCMI,
        example="dcmi module initialize failed. ret is -8005",
    ),
    Message(
        "HCM868", "dcmi-not-initialised", "error",
        "the management interface of the driver (DCMI) could not be initialised",
        _DEVICES,
        anchor=b"DCMI", pattern=rb"[Ff]ailed to init\w{0,8} (?:the )?DCMI|DCMI.{0,100}?(?:init\w{0,8} (?:has )?fail|(?P<status>-8\d{3})\b)|DCMIError\w{0,40}",
        causes=("the container lacks device files or the driver's directory", "the user may not open the device files"),
        source=_DCMI, example="gpustack_runtime.detector.ascend - ERROR - Failed to initialize DCMI",
    ),
    Message(
        "HCM849", "visible-device-unknown", "cause",
        "ASCEND_RT_VISIBLE_DEVICES names a device that the process does not have",
        "count the devices that the process sees, from 0: in a container with two devices 0 and 1, whatever their numbers on the host",
        anchor=b"ASCEND_RT_VISIBLE_DEVICES",
        pattern=rb"(?P<variable>ASCEND_RT_VISIBLE_DEVICES) ?:? ?(?P<value>[0-9,-]{1,100}) ?error, ?(?P<reason>input data rang\w{0,3} ?\[\d{1,4}-\d{1,4}\))",
        codes=(Code("EE1001"),), explains=_LATER, source="published logs (gpustack#3352)",
        example="EE1001 The argument is invalid.Reason: set ASCEND_RT_VISIBLE_DEVICES:4 error, input data rang[0-2)",
    ),
    Message(
        "HCM850", "visible-device-range", "cause",
        "the program wants devices beyond those in ASCEND_RT_VISIBLE_DEVICES",
        "give each host as many ranks as it has visible devices; ranks count over all hosts, visible devices on one",
        anchor=b"ASCEND_RT_VISIBLE_DEVICES",
        pattern=rb"rror setting (?P<variable>ASCEND_RT_VISIBLE_DEVICES): (?P<reason>local range: \[[0-9, ]{1,40}\)) ?base value: \"?(?P<value>[0-9,]{1,100})",
        explains=_LATER, source="vLLM's sources, and published logs (vllm-ascend#2879)",
        example='Exception: Error setting ASCEND_RT_VISIBLE_DEVICES: local range: [8, 12) base value: "0,1,2,3,4,5,6,7"',
    ),
    Message(
        "HCM851", "paddle-place", "cause",
        "Paddle does not know the NPU of the process",
        "set PADDLE_XCCL_BACKEND=npu for `paddle.distributed.launch`, which then sets FLAGS_selected_npus for each rank, and check that"
        " paddle-custom-npu is installed",
        anchor=b"is not supported", pattern=rb"(?P<reason>Place\((?:npu|ascend)\w{0,10}:\d{1,3}\)) is not supported",
        explains=_LATER, source="Paddle's sources (launch), and published logs (PaddleDetection#5581, Paddle#72234)",
        example="ValueError: (InvalidArgument) Place(npu:0) is not supported. Please check that your paddle compiles with custom devices.",
    ),
    Message(
        "HCM859", "paddle-without-npu", "cause",
        "the Paddle of the ranks does not support NPUs",
        "install paddle-custom-npu for the Python that starts the ranks, beside the paddlepaddle of the same version",
        anchor=b"cannot be set as true while your paddle", pattern=rb"Config (?P<variable>use_npu) cannot be set as true while your paddle",
        explains=_LATER, source="the sources of PaddleDetection, PaddleOCR and PaddleClas (check_device)",
        example="ERROR: Config use_npu cannot be set as true while your paddle is not compiled with npu !",
    ),
    Message(
        "HCM852", "shared-memory-full", "cause",
        "the shared memory (/dev/shm) is full or too small",
        "start the container with a larger one (docker: --shm-size, Kubernetes: an emptyDir with medium Memory at /dev/shm), or use"
        " fewer data-loading workers",
        anchor=b"shared memory", pattern=rb"unable to (?:allocate|open) shared memory ?(?:\(shm\)|object).{0,200}?(?:No space left on device|Resource temporarily unavailable|Cannot allocate memory)",
        explains=_LATER, source="torch's sources, and published logs",
        example="RuntimeError: unable to allocate shared memory(shm) for file </torch_4711_1>: Resource temporarily unavailable (11)",
    ),
    Message(
        "HCM853", "python-crash", "error",
        "the Python process crashed in a library",
        "the lines below it show the Python stack; look for the library at its top, and at versions of CANN, torch_npu or"
        " MindSpore that do not fit",
        anchor=b"Fatal Python error: ", pattern=rb"Fatal Python error: (?P<reason>[^\n]{1,100})",
        explains=_LATER, source="Python (faulthandler)",
        example="Fatal Python error: Segmentation fault",
    ),
    Message(
        "HCM854", "segmentation-fault", "error",
        "a process crashed (SIGSEGV)",
        "start it with `python -X faulthandler` to see where; look for libraries of CANN or torch_npu that do not fit",
        anchor=b"egmentation fault", pattern=rb"[Ss]egmentation fault(?: ?\(core dumped\)|:? \d{1,3}|\s*$)",
        explains=_LATER, source="shells and the C library",
        example="train.sh: line 12:  4711 Segmentation fault (core dumped) python train.py",
    ),
    Message(
        "HCM855", "tsd-no-answer", "error",
        "the driver could not start the processes that HCCL needs on the device",
        "stop other processes on the device (`npu-smi info`) and wait 10 seconds; if it repeats, look at the device's log and at `dmesg`",
        anchor=b"tsd client wait response fail", pattern=rb"response fail(?:.{0,80}?device response code ?\[(?P<status>\d{1,5})\])?",
        codes=(Code("EJ0001"),),
        causes=("a process of an earlier job still runs on the device", "the operator packages do not fit the driver"),
        explains=_LATER, source="ascend-faultdiag, public rules, and published logs (LlamaFactory#3839, vllm-ascend#4284)",
        example="[ERROR] TDT(17528,python):2026-03-18-10:33:52.113.403 [process_mode_manager.cpp:241][WaitRsp][tid:17528] tsd client wait response fail, device response code[1]. unknown device error.",
    ),
    Message(
        "HCM856", "tsd-open-failed", "error",
        "the driver could not start the processes that HCCL needs on the device",
        "stop other processes on the device (`npu-smi info`) and wait 10 seconds; if it repeats, look at the device's log and at `dmesg`",
        anchor=b"TsdOpen failed", pattern=rb"TsdOpen failed\. ?devId=(?P<logical>\d{1,4}), ?tdt error=(?P<status>\d{1,5})",
        explains=_LATER, source="published logs (PTOAS#1037)",
        example="TsdOpen failed. devId=1, tdt error=34[FUNC:PrintfTsdError][FILE:runtime.cc][LINE:2638]",
    ),
    Message(
        "HCM857", "table-without-device-ip", "cause",
        "the rank table in use has no address (device_ip) for a device, which several hosts need",
        "if you gave no table, the program made one from /etc/hccn.conf: mount that file into the container; else make the table"
        " with `hccl-tools gen`; on one host, HCCL_INTRA_ROCE_ENABLE must be unset",
        anchor=b"is not set correctly", pattern=rb"'device[ _]ip' is not set correctly",
        codes=(Code("EI0004", "8"), Code("EI0014", "9")), explains=_LATER, source="published logs (vllm-ascend#4866)",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [x.cc:1] [17528][Get][SingleDeviceIp]'device_ip' is not set correctly,must be set when multi Server or HCCL_INTRA_ROCE_ENABLE enabled",
    ),
    Message(
        "HCM858", "transfer-engine", "code",
        "the Ascend transfer engine (memfabric) could not be initialised",
        "check ASCEND_MF_STORE_URL first: tcp://ADDRESS:PORT of the store, not the placeholder of a guide",
        anchor=b"Ascend Transfer Engine initialization failed", source="published logs (sglang#22840)",
        example="RuntimeError: Ascend Transfer Engine initialization failed.",
    ),
)  # fmt: skip
