"""``python -m hccl_tools``: the command line, and the original script's own command line.

``python -m hccl_tools --device_num "[0,8)"`` is what users of ``hccl_tools.py`` type; options without a
command mean ``gen``.
"""

from __future__ import annotations

import sys

from hccl_tools.cli import main

_GROUP_OPTIONS = {"-h", "--help", "--version"}


def _arguments(args: list[str]) -> list[str]:
    if args and args[0].startswith("-") and args[0] not in _GROUP_OPTIONS:
        return ["gen", *args]
    return args


if __name__ == "__main__":
    main(_arguments(sys.argv[1:]))
