"""``python -m hccl_tools.launch``: the ``launch`` command with this interpreter."""

from __future__ import annotations

import sys

from hccl_tools.__main__ import prepare

if __name__ == "__main__":
    prepare()
    from hccl_tools.cli import run
    from hccl_tools.cli.launch import MODULE_NAME, command

    sys.exit(run(command, sys.argv[1:], MODULE_NAME))
