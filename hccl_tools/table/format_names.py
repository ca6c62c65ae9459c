"""The names of the formats of tables."""

from __future__ import annotations

from typing import Literal

Format = Literal["1.0", "1.2", "2.0", "group_list"]
#: The name of service tables, which have rank tables for instances (see ``service_table``): a key of theirs.
SERVICE: Literal["server_group_list"] = "server_group_list"
