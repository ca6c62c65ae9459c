"""``python -m hccl_tools.launch``: the ``launch`` command with this interpreter."""

from __future__ import annotations

import sys

from hccl_tools.__main__ import prepare


def main() -> int:
    """Run the command and return its exit code."""
    prepare()
    from hccl_tools.cli import launch, run  # noqa: PLC0415  (after prepare)

    return run(launch.command, sys.argv[1:], launch.MODULE_NAME)


if __name__ == "__main__":
    sys.exit(main())
