"""ConfigMaps, and YAML as ``kubectl`` prints it."""

from __future__ import annotations

from typing import Any

import yaml


def config_map(name: str = "rings-config-job", namespace: str = "train", **data: Any) -> dict[str, Any]:
    """A ConfigMap; ``__`` in the name of an argument stands for a dot."""
    return {
        "apiVersion": "v1",
        "data": {key.replace("__", "."): value for key, value in data.items()},
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"ring-controller.atlas": "ascend-910"}},
    }


def listed(*items: Any) -> dict[str, Any]:
    """A List, as of ``kubectl get configmap -o json`` without a name."""
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


class Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes texts of several lines as literal blocks, as kubectl does, and no aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def as_yaml(*values: Any) -> str:
    """The values as documents of one file."""
    return str(yaml.dump_all(values, Dumper=Dumper, sort_keys=False))
