"""Tell which variables have values that HCCL refuses, so that it refuses every job."""

from __future__ import annotations

from hccl_tools.records import NamedTuple
from hccl_tools.variables.numbers import leading_number
from hccl_tools.variables.rows import DEVICES, NEWER, NOT_SET, PCIE, ROCE, ROWS, SWITCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.variables.rows import Row

#: The most characters of a value in a message, and of what HCCL accepts in a hint.
_SHOWN = 80


class Problem(NamedTuple):
    """A setting that makes HCCL refuse every job: the message, and what to do."""

    message: str
    hint: str


def refused_values(env: Mapping[str, str], device: str | None) -> Iterator[Problem]:
    """Yield a problem for each variable whose value HCCL refuses.

    Args:
        env: The variables; only those of HCCL are read.
        device: The device type (``Product.device_type``). If it is not known (``None``), only what HCCL
            refuses on every type is reported.
    """
    devices = DEVICES if device is None else (device,)
    refusing: dict[str, dict[str, Row]] = {}
    for row in ROWS:
        for one in devices:
            if one in row.devices and _refuses(row, env, one):
                refusing.setdefault(row.name, {})[one] = row
    for name, rows in refusing.items():
        if len(rows) == len(devices):
            accepts = rows[devices[0]].reading.accepts
            message = f'{name}="{_shortened(env[name])}": HCCL accepts {accepts}'
            value = accepts if len(accepts) <= _SHOWN else "such a value"
            yield Problem(message, f"set it to {value}, or unset it")


def contradictions(env: Mapping[str, str], device: str | None) -> Iterator[Problem]:
    """Yield a problem for each pair of variables that HCCL refuses together.

    Ascend 950 does not read these variables; a ``device`` that is not known is taken as one of 910 to A3.
    """
    if device in NEWER:
        return
    texts = {name: env[name] for name in (PCIE, ROCE) if env.get(name, NOT_SET) != NOT_SET}
    numbers = {name: SWITCH.value(text) for name, text in texts.items()}
    if list(numbers.values()) == [0]:
        name, other = (ROCE, PCIE) if ROCE in numbers else (PCIE, ROCE)
        yield Problem(f"{name} is 0 and {other} is not set", f"set {other}=1, or unset {name}")
    elif list(numbers.values()) == [1, 1]:
        yield Problem(f"{ROCE} and {PCIE} are both 1", f"unset one of them, or set {PCIE}=0")


def _refuses(row: Row, env: Mapping[str, str], device: str) -> bool:
    text = env.get(row.name)
    if text is None or text == row.not_set or (device in NEWER and not text):
        return False
    if row.only_with is not None:
        switch, wanted = row.only_with
        if leading_number(env.get(switch, "")) != wanted:
            return False
    return row.reading.refuses(text)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
