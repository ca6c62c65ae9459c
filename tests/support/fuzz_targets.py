"""What reads text or bytes that people, tools, hosts and other users write, for fuzzing.

Each target takes any bytes and raises nothing but errors of hccl-tools. ``benchmarks/fuzz.py`` searches for
inputs that break this; ``tests/test_fuzz_corpus.py`` gives the kept ones to the targets.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from hccl_tools import formats
from hccl_tools.diagnostics import FORMATS, render
from hccl_tools.document.document import Document
from hccl_tools.document.explanation import explained
from hccl_tools.errors import HcclToolsError
from hccl_tools.explain import plain_pickle
from hccl_tools.explain.scanner import Scanner
from hccl_tools.formats import endpoint_file, topology_file
from hccl_tools.formats.kubernetes import config_maps, names, tables, yaml_reading
from hccl_tools.host import dev_info, hccn_conf, hccn_tool, npu_smi
from hccl_tools.host.site_defaults import Site
from hccl_tools.notation import (
    assignments,
    device_range,
    durations,
    exclusion,
    host_list,
    look_alikes,
    masking,
    number_list,
    placeholders,
    printable,
    screen,
)
from hccl_tools.programs import hccl_test, slurm
from hccl_tools.table.format_names import Format
from hccl_tools.table.product_names import read_name
from hccl_tools.validation.checker import validate
from hccl_tools.validation.correction import correct
from tests.support import hostile_inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.hostile_inputs import Target

    #: Reads bytes; raises only errors of hccl-tools.
    Reader = Callable[[bytes], object]

_ROOT = Path(__file__).parents[2]
FORMAT_NAMES: tuple[Format, ...] = get_args(Format)
#: Inputs that were found once, and sound ones to begin with, in a folder for each target.
CORPUS = _ROOT / "tests" / "data" / "fuzz"


@cache
def _folder() -> Path:
    """Return a folder of this process for what is read from a file."""
    made = Path(tempfile.mkdtemp(prefix="hccl-fuzz-"))
    hostile_inputs.make_folder(made)
    return made


def _text(read: Callable[[str], object], data: bytes) -> object:
    return read(data.decode(errors="surrogateescape"))


def _document(data: bytes) -> None:
    document = Document.parse(data, "table.json", 20)
    if document.problem is not None:
        explained(document)
        document.position(document.problem.offset)


def _formats(data: bytes) -> None:
    value = Document.parse(data, "").value
    if isinstance(value, dict):
        for table_format in FORMAT_NAMES:
            with suppress(HcclToolsError):
                "".join(formats.write(formats.read(value, table_format)))


def _endpoints(data: bytes) -> None:
    value = Document.parse(data, "").value
    with suppress(HcclToolsError):
        endpoint_file.endpoints(value)
    _in_file(topology_file.load, data)


def _rules(data: bytes) -> None:
    report = validate(data)
    for name in FORMATS:
        "".join(render([report], name, show_all=False, color=False))


def _kubernetes(data: bytes) -> None:
    config_maps.extraction(data)
    outer = tables.open_file(Document.parse(data, "map.yaml"), "map.yaml")
    tables.tables_in(outer)


def _names(text: str) -> None:
    checks = (
        names.check_shared_memory,
        names.check_image,
        names.check_namespace,
        names.check_queue,
        partial(names.checked, key="hccl.json"),
        partial(names.check_job, most=45, of_service=False),
        read_name,
    )
    for check in checks:
        with suppress(HcclToolsError):
            check(text)


def _numbers(text: str) -> None:
    with suppress(HcclToolsError, ValueError):  # TooManyNumbersError
        number_list.fold(number_list.parse(text))


def _durations(text: str) -> None:
    with suppress(ValueError):  # What the option says of it.
        durations.parse(text)


def _in_file(read: Callable[[str], object], data: bytes) -> None:
    file = _folder() / "input.json"
    file.write_bytes(data)
    with suppress(HcclToolsError):
        read(str(file))


def _tools(text: str) -> None:
    """Read the answers of hccn_tool, npu-smi, all_reduce_test and Slurm."""
    readers: tuple[Callable[[str], object], ...] = (
        hccn_tool.addresses,
        dev_info.parse,
        npu_smi.parse_mapping,
        lambda answer: hccl_test.read_output(answer.split("\n")),
        lambda answer: slurm.allocated_nodes({"SLURM_JOB_NODELIST": answer}),
    )
    for read in readers:
        with suppress(HcclToolsError):
            read(text)


def _shown(text: str) -> None:
    masking.text(text)
    printable.escaped(text)
    screen.wrapped(text, 80)
    screen.page_fitted(text, 40)
    look_alikes.mistyped(text)
    placeholders.find(text)


def _log(data: bytes) -> None:
    file = _folder() / "rank_0.log"
    file.write_bytes(data)
    _scanner().scan(str(file), 0)


@cache
def _scanner() -> Scanner:
    return Scanner()


def _run(data: bytes) -> None:
    """Explain a log as a command does, with all that is concluded from it."""
    folder = _folder() / "logs"
    folder.mkdir(exist_ok=True)
    (folder / "rank_0.log").write_bytes(data)
    _sound(hostile_inputs.command("explain", str(folder), folder=_folder()))


def _dump(data: bytes) -> None:
    """Explain a dump of torch's flight recorder."""
    folder = _folder() / "dumps"
    folder.mkdir(exist_ok=True)
    (folder / "nccl_trace_rank_0").write_bytes(data)
    _sound(hostile_inputs.command("explain", str(folder), folder=_folder()))


def _pickle(data: bytes) -> None:
    with suppress(plain_pickle.NotPlainError):
        plain_pickle.load(data)


def _sound(written: hostile_inputs.Written) -> None:
    problem = hostile_inputs.problem(written)
    assert problem is None, problem


def _host_tools_file(data: bytes) -> None:
    _in_file(lambda path: hccn_conf.load(Site({}, hccn_conf=path)), data)


_OWN: dict[str, Reader] = {
    "document": _document,
    "formats": _formats,
    "endpoints": _endpoints,
    "validate": _rules,
    "fix": lambda data: correct(data, partial(validate, limit=None)),
    "kubernetes": _kubernetes,
    "yaml": lambda data: yaml_reading.read_yaml(data, "map.yaml"),
    "names": partial(_text, _names),
    "device_range": partial(
        _text, partial(device_range.parse, device_limit=16, product="a2", present=8)
    ),
    "host_list": partial(_text, host_list.parse),
    "exclusion": partial(_text, lambda text: exclusion.parse([text])),
    "numbers": partial(_text, _numbers),
    "durations": partial(_text, _durations),
    "assignments": partial(_text, lambda text: assignments.parse_assignments([text], where="--env")),
    "tools": partial(_text, _tools),
    "hccn_conf": _host_tools_file,
    "shown": partial(_text, _shown),
    "scanner": _log,
    "explain": _run,
    "recorder": _dump,
    "pickle": _pickle,
}  # fmt: skip


def _hostile(target: Target, data: bytes) -> None:
    _sound(target.read(data.decode(errors="surrogateescape"), 0, _folder()))


@cache
def _hostile_targets() -> dict[str, Target]:
    return {target.name.replace(" ", "_"): target for target in hostile_inputs.targets(_folder())}


def readers() -> dict[str, Reader]:
    """Return what reads an input of each target."""
    return _OWN | {name: partial(_hostile, target) for name, target in _hostile_targets().items()}


def give(read: Reader, data: bytes) -> None:
    """Give an input to a target; errors of hccl-tools are its answer."""
    with suppress(HcclToolsError):
        read(data)


def seeds(name: str) -> list[bytes]:
    """Return sound inputs of a target."""
    kept = [file.read_bytes() for file in sorted((CORPUS / name).glob("*"))]
    target = _hostile_targets().get(name)
    return kept + [json.dumps(one).encode() for one in (target.seeds if target else ())]
