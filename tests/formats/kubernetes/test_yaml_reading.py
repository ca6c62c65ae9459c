"""YAML that Kubernetes prints, and YAML that must not cost much."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from shlex import quote
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.errors import InputError
from hccl_tools.formats.kubernetes import yaml_reading
from hccl_tools.formats.kubernetes.yaml_reading import Place, read_yaml
from tests.support.config_maps import Dumper

if TYPE_CHECKING:
    from pathlib import Path

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@pytest.fixture(params=["libyaml", "pure"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)


def texts_only(value: Any) -> Any:
    """The value with a stand-in for each scalar that is not a string."""
    if isinstance(value, dict):
        return {key: texts_only(one) for key, one in value.items()}
    if isinstance(value, list):
        return [texts_only(one) for one in value]
    if isinstance(value, str):
        return value
    return value if value is None else False if isinstance(value, bool) else 0


@given(VALUES, st.sampled_from([None, "|", '"', "'"]))
@settings(deadline=None)
def test_values_are_those_of_the_safe_loader(value: Any, style: str | None) -> None:
    data = yaml.dump(value, Dumper=Dumper, default_style=style, allow_unicode=True)

    loaded = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    assert read_yaml(data.encode(), "x.yaml").value == texts_only(loaded)


@pytest.mark.usefixtures("_parser")
def test_places() -> None:
    text = 'data:\n  a: |\n    x\n    y\n  b: "x\\ny"\n  c:\n  - d\nitems:\n- binaryData: {e: f}\n'

    assert read_yaml(text.encode(), "x.yaml").places == {
        ("data", "a"): Place(2, is_literal=True),
        ("data", "b"): Place(5, is_literal=False),
        ("data", "c"): Place(7, is_literal=False),
        ("items", 0, "binaryData", "e"): Place(9, is_literal=False),
    }


@pytest.mark.usefixtures("_parser")
def test_several_documents_are_a_list() -> None:
    found = read_yaml(b"a: 1\n---\ndata:\n  b: c\n", "x.yaml")

    assert found.value == {"apiVersion": "v1", "kind": "List", "items": [{"a": 0}, {"data": {"b": "c"}}]}
    assert list(found.places) == [("items", 1, "data", "b")]


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(60))


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, "x.yaml:2:10: the YAML alias *a0 is not read"),
        ("a: &a\n  b: *a\n", "x.yaml:2:6: the YAML alias *a is not read"),
        ("a: " + "{b: " * 100_000, "x.yaml:1:253: the YAML is nested too deeply for a ConfigMap"),
        ("a: b\na: c\n", 'x.yaml:2:1: the key "a" appears twice'),
        ("? [a]\n: b\n", "x.yaml:1:3: a key of the YAML is not a string"),
        ("a: b: c\n", "x.yaml:1:5: not valid YAML: mapping values are not allowed"),
        ("a: \x01\n", "x.yaml: not valid YAML: "),
        ("%" * 1_000_000, "x.yaml:1:"),
        pytest.param("- a\n" * 200_000, "x.yaml:100000:3: the YAML has too many ", marks=pytest.mark.slow),
        pytest.param("# " * (4 << 20), "", marks=pytest.mark.slow),
        ("a: " + "b" * (9 << 20), "x.yaml is YAML of more than 8 MiB"),
    ],
    ids=lambda part: repr(part[:20]),
)
def test_bad_yaml_is_refused_soon(text: str, message: str) -> None:
    began = time.process_time()

    if message:
        with pytest.raises(InputError) as caught:
            read_yaml(text.encode(), "x.yaml")
        assert caught.value.message.startswith(message)
        assert caught.value.hint
    else:
        assert read_yaml(text.encode(), "x.yaml").value["items"] == []

    assert time.process_time() - began < 60


@pytest.mark.usefixtures("_parser")
def test_lists_in_lists_are_refused_by_this_limit_or_by_libyaml_s() -> None:
    message = r"^x\.yaml:1:(65|1001): the YAML is nested too deeply for a ConfigMap$"
    with pytest.raises(InputError, match=message):
        read_yaml(b"[" * 1_000_000, "x.yaml")


def test_a_text_that_is_not_utf_8_has_its_line() -> None:
    with pytest.raises(InputError, match=r"x\.yaml:2: not UTF-8"):
        read_yaml(b"a: b\nc: \xff\n", "x.yaml")


def test_tags_construct_nothing(tmp_path: Path) -> None:
    text = f"data:\n  a: !!python/object/apply:os.mkdir [{tmp_path / 'made'}]\n  b: !!binary eA==\n"

    assert read_yaml(text.encode(), "x.yaml").value == {"data": {"a": [str(tmp_path / "made")], "b": "eA=="}}
    assert not (tmp_path / "made").exists()


def test_the_limits_leave_room_for_a_namespace() -> None:
    assert yaml_reading.SIZE_LIMIT >= 5 * 1_572_864  # etcd's limit of one object


WITHOUT_YAML = """
import sys
sys.modules["yaml"] = None  # as if the [yaml] extra were not installed
from hccl_tools.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("command", [["validate"], ["show"], ["convert", "--to", "1.0"]])
def test_without_the_extra(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "cm.yaml").write_text("apiVersion: v1\nkind: ConfigMap\ndata:\n  hccl.json: |\n    {}\n")

    words = [sys.executable, "-c", WITHOUT_YAML, *command, "cm.yaml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: cm.yaml is YAML, which needs PyYAML (the extra [yaml])",
        (
            f"  help: `{quote(sys.executable)} -I -m pip install pyyaml`; or use JSON instead: "
            "kubectl get configmap NAME -o json"
        ),
    ]


@pytest.mark.parametrize("indent", [0, 1, 2, 3])
def test_without_the_extra_a_line_outside_its_text_is_named(tmp_path: Path, indent: int) -> None:
    lines = json.dumps({"version": "1.0", "server_list": []}, indent=2).splitlines()
    body = [f"    {line}" for line in lines]
    body[2] = " " * indent + lines[2].strip()
    text = "\n".join(["apiVersion: v1", "kind: ConfigMap", "data:", "  hccl.json: |", *body, ""])
    (tmp_path / "cm.yaml").write_text(text)

    words = [sys.executable, "-c", WITHOUT_YAML, "validate", "cm.yaml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr.startswith(
        'error: cm.yaml:7: not valid YAML: this line of the text of "hccl.json" is indented by'
    )
    assert "indent the line by 4 blanks or more" in done.stderr


@pytest.mark.parametrize("style", ["|", ">", '"', "'", None])
@pytest.mark.parametrize("indent", [None, 1, 4])
def test_valid_yaml_has_no_line_outside_its_text(style: str | None, indent: int | None) -> None:
    texts = {
        "a.json": json.dumps({"a": [{"b": ""}, "c"]}, indent=indent),
        "b": "x\n\n  y\n",
        "c": "[1,\n2]\n",
    }
    value = {"apiVersion": "v1", "kind": "ConfigMap", "data": texts, "metadata": {"labels": {"a": "b"}}}
    text = yaml.safe_dump(value, default_style=style)
    found = yaml_reading.wrong_line(text)

    assert yaml.safe_load(text) == value
    assert found is None or not found.is_of_text
