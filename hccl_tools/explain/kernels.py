"""The kernel in which a device failed, by the line of its process that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_tools.explain.cause import Case, Cause

#: A kernel used an address outside its data; a kernel failed, with its name.
_ADDRESS, _NAMED = "HCM927", "HCM593"


def with_kernel(case: Case, first: Cause) -> Cause:
    """Return the cause with the kernel that used a wrong address, if a line of the same process names it."""
    seen = first.seen
    if first.message.id != _ADDRESS or seen is None or first.beside is not None:
        return first
    own = (one for one in case.cluster.seen if one.event.message.id == _NAMED and one.actor == seen.actor)
    named = next((one for one in own if one.event.fields.get("reason")), None)
    if named is None:
        return first
    kernel = named.event.fields["reason"].partition("=")[2].strip()
    return first._replace(reason=f"the kernel is {kernel}", beside=named)
