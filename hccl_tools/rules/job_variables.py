"""The environment variables that change HCCL's verdict on a table. This module declares no rules.

How HCCL reads each variable is in ``hccl_tools.variables``. Ascend 950 has a different reader; the four
variables below do not change the verdict on its tables. The table of variables takes 4 ms to import, and few
calls name variables.

Source: hcomm externalinput.cc, ParseIntraLinkType, ParseOpExpansion, ParseRetryEnable.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from hccl_tools.variables.rows import (
    EXPANSION,
    RETRY,
    RETRY_LEVELS,
    ROCE,
    SWITCH,
    contradictions,
    refused_values,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.table.products import Product
    from hccl_tools.variables.rows import Problem

#: The only mode without AI CPU expansion on an A3, where it is on by default.
_WITHOUT_AI_CPU = "HOST"


def uses_roce(env: Mapping[str, str]) -> bool:
    """Return whether the devices of one server communicate over RoCE, so that all devices need addresses."""
    return SWITCH.value(env.get(ROCE, "0")) == 1


def reads_backup_addresses(env: Mapping[str, str]) -> bool:
    """Return whether HCCL reads backup addresses: with AI CPU expansion and retries between super pods."""
    levels = RETRY_LEVELS.values(env.get(RETRY, "")) or {}
    return env.get(EXPANSION) != _WITHOUT_AI_CPU and levels.get("L2") == "1"


def problems(env: Mapping[str, str], product: Product) -> Iterator[Problem]:
    """Return the settings with which HCCL refuses every job on a product, before it reads a table."""
    device = product.device_type
    return chain(refused_values(env, device), contradictions(env, device))
