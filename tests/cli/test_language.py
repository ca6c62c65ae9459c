"""``--lang``: a line in Chinese in the text output, and nothing else; which language counts, any encoding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools.doctor.report import render
from hccl_tools.zh.lines import line_of
from tests.doctor.report.test_formats import RESULT, rendered
from tests.support.commands import run_here
from tests.support.screens import on_terminal
from tests.support.tables import table

LINE = f"= 中文: {line_of('HCC203')}"
RULE = ("rules", "HCC203")
PLOG = (
    "[ERROR] HCCL(1,python):2026-01-01-10:00:00.000.000 [x.cc:1] EI0006 Getting socket times out. Reason: x\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    document = table("1.0", 1, 4)
    for device in document["server_list"][0]["device"][1:3]:
        device["rank_id"] = "0"
    Path("t.json").write_text(json.dumps(document, indent=4), encoding="utf-8")
    Path("plog.log").write_text(PLOG, encoding="utf-8")
    return tmp_path


def in_a_child(*args: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    environ = {name: value for name, value in os.environ.items() if name not in {"LC_ALL", "LANG"}}
    command = [sys.executable, "-m", "hccl_tools", *args]
    return subprocess.run(command, capture_output=True, env={**environ, **variables}, check=False)


def without_chinese(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if "= 中文: " not in line)


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (RULE, 1),
        (("rules", "HCM207"), 1),
        (("rules", "EI0006"), 1),
        (("rules", "HCD202"), 1),
        (("rules", "HCC2"), 5),
        (("explain", "HCC203"), 1),
        (("explain", "plog.log"), 1),
        (("validate", "t.json"), 1),
        (("doctor", "--list"), 84),
    ],
)
def test_the_text_has_a_line_for_each_and_is_the_same_otherwise(args: tuple[str, ...], lines: int) -> None:
    plain, chinese = run_here(*args), run_here(*args, "--lang", "zh")

    assert "中文" not in plain.stdout
    assert chinese.stdout.count("= 中文: ") >= lines
    assert without_chinese(chinese.stdout) == plain.stdout
    assert (chinese.returncode, chinese.stderr) == (plain.returncode, plain.stderr)


def test_the_line_stands_below_the_title_of_a_page() -> None:
    assert run_here(*RULE, "--lang", "zh").stdout.splitlines()[:5] == [
        "# HCC203 duplicate-rank-id", "", "Two devices share one rank id.", LINE, "",
    ]  # fmt: skip


def test_the_line_stands_last_in_the_block_of_a_finding() -> None:
    blocks = run_here("validate", "t.json", "--lang", "zh").stdout.split("\n\n")
    (block,) = [block for block in blocks if block.startswith("error[HCC203]")]

    *_, help_line, last = block.splitlines()
    assert help_line.strip().startswith("= help: ")
    assert last.strip() == LINE
    assert last.index("=") == help_line.index("=")


def test_the_line_stands_below_the_remedies_of_doctor() -> None:
    lines = rendered("text", chinese=line_of).splitlines()

    assert without_chinese("\n".join(lines)) == rendered("text").rstrip("\n")
    assert (
        lines[lines.index("  = help: `hccn_tool -i 1 -tls -s enable 0`") + 1]
        == f"  = 中文: {line_of('HCD204')}"
    )
    assert sum(line.startswith("  = 中文: ") for line in lines) == len({one.check for one in RESULT.findings})


def test_the_line_stands_below_a_cause() -> None:
    _cause, line, place, *_ = run_here("explain", "plog.log", "--lang", "zh").stdout.splitlines()

    assert line.startswith("  = 中文: 等待对端 rank 建链")
    assert place.startswith("  in plog.log:1")


@pytest.mark.parametrize("output_format", ["concise", "json", "junit", "github", "sarif"])
def test_other_formats_do_not_change(output_format: str) -> None:
    validate = ("validate", "-f", output_format, "t.json")

    assert run_here(*validate, "--lang", "zh").stdout == run_here(*validate).stdout
    assert "".join(render(RESULT, {}, output_format, chinese=line_of)) == rendered(output_format)


def test_the_json_of_explain_does_not_change() -> None:
    explain = ("explain", "-f", "json", "plog.log")

    assert run_here(*explain, "--lang", "zh").stdout == run_here(*explain).stdout


@pytest.mark.parametrize(
    ("option", "variables", "is_chinese"),
    [
        ("", {}, False),
        ("zh", {}, True),
        ("zh", {"HCCL_TOOLS_LANG": "en", "LC_ALL": "C"}, True),
        ("en", {"HCCL_TOOLS_LANG": "zh", "LC_ALL": "zh_CN.UTF-8"}, False),
        ("zh", {"HCCL_TOOLS_LANG": "fr"}, True),
        ("", {"HCCL_TOOLS_LANG": "zh", "LC_ALL": "C"}, True),
        ("", {"HCCL_TOOLS_LANG": "en", "LANG": "zh_CN.UTF-8"}, False),
        ("", {"HCCL_TOOLS_LANG": "", "LANG": "zh_CN.UTF-8"}, True),
        ("", {"LANG": "zh"}, True),
        ("", {"LANG": "zh_TW.UTF-8"}, True),
        ("", {"LC_ALL": "C.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8", "LANG": "zh_CN.UTF-8"}, False),
        ("", {"LC_ALL": "", "LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, True),
        ("", {"LC_MESSAGES": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, False),
        ("", {"LC_ALL": "zh_CN", "LC_MESSAGES": "C", "LANG": "C"}, True),
        ("", {"LANG": "xx_YY"}, False),
        ("", {"LANGUAGE": "zh"}, False),
    ],
)
def test_option_variable_and_locale_in_this_order(
    option: str, variables: dict[str, str], is_chinese: bool
) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "LC_ALL"}
    done = run_here(*RULE, *(["--lang", option] if option else []), environ={**environ, **variables})

    assert (LINE in done.stdout) == is_chinese
    assert done.returncode == 0


@pytest.mark.parametrize("command", ["validate", "doctor", "explain", "rules"])
def test_an_unknown_language_is_refused(command: str) -> None:
    typed = run_here(command, "--lang", "fr")
    stated = run_here(command, environ={**os.environ, "HCCL_TOOLS_LANG": "fr"})

    assert typed.stderr.splitlines()[0] == 'error: --lang "fr" is not one of zh, en'
    assert stated.stderr.splitlines()[0] == 'error: HCCL_TOOLS_LANG "fr" is not one of zh, en'
    assert (typed.returncode, stated.returncode) == (2, 2)
    assert "--lang [zh|en]" in run_here(command, "--help").stdout


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "gb18030", "big5hkscs"])
def test_encodings_with_the_characters_show_them(encoding: str) -> None:
    done = in_a_child(*RULE, "--lang", "zh", PYTHONIOENCODING=encoding)

    shows = encoding != "big5hkscs"  # It has no simplified characters.
    assert (LINE in done.stdout.decode(encoding)) == shows
    assert (b"PYTHONIOENCODING" in done.stderr) != shows
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "variables"),
    [
        (("validate", "t.json"), {"PYTHONIOENCODING": "ascii"}),
        (("rules", "HCC2"), {"PYTHONIOENCODING": "latin-1"}),
        (("explain", "plog.log"), {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}),
    ],
)
def test_encodings_without_the_characters_leave_them_out_and_say_so_once(
    args: tuple[str, ...], variables: dict[str, str]
) -> None:
    plain, done = in_a_child(*args, **variables), in_a_child(*args, HCCL_TOOLS_LANG="zh", **variables)

    assert done.stdout == plain.stdout
    assert done.returncode == plain.returncode
    (note,) = done.stderr.decode("ascii").removeprefix(plain.stderr.decode("ascii")).splitlines()
    assert note.startswith("note: the Chinese lines are left out: the encoding of the output (")
    assert "set PYTHONIOENCODING=utf-8" in note


@pytest.mark.slow
def test_a_locale_of_gbk_that_is_not_installed_does_not_garble_the_terminal() -> None:
    """Python then writes UTF-8, and the terminal shows GBK. No host has a locale of this name."""
    alone = in_a_child(*RULE, LC_ALL="zh_XX.GBK")
    told = in_a_child(*RULE, LC_ALL="zh_XX.GBK", PYTHONIOENCODING="gbk")

    assert alone.stdout.isascii()
    assert alone.stderr.decode() == (
        "note: the Chinese lines are left out: the output is utf-8, because this host does not have the "
        "locale of LC_ALL; set PYTHONIOENCODING=gbk if the terminal shows that, or utf-8\n"
    )
    assert LINE in told.stdout.decode("gbk")
    assert told.stderr == b""


def test_the_locale_c_is_utf_8_to_python() -> None:
    assert LINE in in_a_child(*RULE, "--lang", "zh", LC_ALL="C").stdout.decode()


def test_rules_and_messages_are_found_by_chinese_words() -> None:
    done = run_here("rules", "建链超时", "--lang", "zh")

    assert "HCM220" in done.stdout
    assert "= 中文: 两个设备建链超时。" in done.stdout
    assert run_here("rules", "建链超时").returncode == 2


@pytest.mark.slow
def test_the_line_fits_the_screen() -> None:
    shown = on_terminal("validate", "t.json", "--lang", "zh", columns=60)

    assert shown.wider_than(60) == []
    assert LINE.replace(" ", "") in shown.joined.replace(" ", "")
    assert any(line.strip().startswith("= 中文: 两个设备的 rank_id 相同") for line in shown.lines)


def loaded(*args: str) -> set[str]:
    code = (
        "import sys\nfrom hccl_tools.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print('loaded', *(name for name in sys.modules if name.startswith('hccl_tools')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("loaded ")[2].split())


def test_only_chinese_loads_the_chinese_texts() -> None:
    english, chinese = loaded("validate", "t.json"), loaded("validate", "--lang", "zh", "t.json")

    assert chinese - english == {"hccl_tools.zh", "hccl_tools.zh.lines"}
    assert "hccl_tools.cli.language" not in loaded("show", "t.json")
