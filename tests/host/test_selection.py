"""Which devices a table is for: positions against physical ids, and what is said where both would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import DiscoveryError, HcclToolsError, UsageError
from hccl_tools.host.selection import Selection, Wanted, select, visible_devices
from hccl_tools.host.site_defaults import Site
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from pathlib import Path

RT = "ASCEND_RT_VISIBLE_DEVICES"
VISIBLE = "ASCEND_VISIBLE_DEVICES"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "dev").mkdir()
    return tmp_path


def nodes(root: Path, *device_ids: int) -> None:
    for device_id in device_ids:
        (root / "dev" / f"davinci{device_id}").touch()


def chosen(
    root: Path, product: str = "910a", environ: dict[str, str] | None = None, **options: str
) -> Selection:
    site = Site(environ={"HCCL_TOOLS_ROOT": str(root), **(environ or {})})
    wanted = Wanted(**options)
    return select(wanted, visible_devices(wanted, site, PRODUCTS[product]), site, PRODUCTS[product])


def refused(
    root: Path, product: str = "910a", environ: dict[str, str] | None = None, **options: str
) -> HcclToolsError:
    with pytest.raises((UsageError, DiscoveryError)) as caught:
        chosen(root, product, environ, **options)
    assert caught.value.hint
    return caught.value


def test_without_anything_known_ids_are_physical(root: Path) -> None:
    assert chosen(root, device_num="[4,8)").ids == (4, 5, 6, 7)
    assert chosen(root, devices="7,6,5,4").ids == (7, 6, 5, 4)


def test_on_a_whole_host_both_options_are_the_same(root: Path) -> None:
    nodes(root, *range(8))

    assert chosen(root, device_num="[4,8)") == Selection((4, 5, 6, 7))
    assert chosen(root, devices="4-7") == Selection((4, 5, 6, 7))
    assert chosen(root).ids == tuple(range(8))


def test_sixteen_devices_come_by_number(root: Path) -> None:
    nodes(root, *range(16))

    assert chosen(root, "a3").ids == tuple(range(16))


def test_visible_devices_are_counted(root: Path) -> None:
    selection = chosen(root, device_num="[0,4)", visible_devices="4,5,6,7")

    assert selection.ids == (4, 5, 6, 7)
    assert "physical devices 4,5,6,7" in selection.notes[0]
    assert chosen(root, visible_devices="4,5,6,7").ids == (4, 5, 6, 7)
    assert chosen(root, visible_devices="7,6,5,4", device_num="[0,2)").ids == (7, 6)


def test_a_container_with_four_devices(root: Path) -> None:
    nodes(root, 4, 5, 6, 7)

    assert chosen(root).ids == (4, 5, 6, 7)
    assert chosen(root, device_num="[0,4)").ids == (4, 5, 6, 7)
    assert chosen(root, devices="4-5").ids == (4, 5)
    assert chosen(root, devices="0-1", ids="logical").ids == (4, 5)


def test_the_runtime_s_variable_names_physical_devices(root: Path) -> None:
    environ = {VISIBLE: "4-7"}

    assert chosen(root, environ=environ).ids == (4, 5, 6, 7)
    assert chosen(root, environ=environ, device_num="[0,2)").ids == (4, 5)


def test_an_id_that_fits_only_the_other_reading_shows_both(root: Path) -> None:
    nodes(root, 4, 5, 6, 7)

    error = refused(root, device_num="[4,8)")
    assert "exceeds the 4 visible devices 4,5,6,7 (/dev/davinciN)" in error.message
    assert "--devices 4-7" in (error.hint or "")

    error = refused(root, devices="0-3")
    assert "devices 0,1,2,3 are not among the visible devices 4,5,6,7" in error.message
    assert "physical devices 4,5,6,7" in (error.hint or "")
    assert "--ids logical" in (error.hint or "")

    error = refused(root, devices="4-7", ids="logical")
    assert "exceeds" in error.message
    assert "--devices 4-7" in (error.hint or "")


def test_where_both_readings_fit_nothing_is_guessed(root: Path) -> None:
    nodes(root, *range(2, 10))

    error = refused(root, "a2", device_num="[2,6)")

    assert "physical devices 2,3,4,5" in error.message
    assert "4,5,6,7" in error.message
    assert error.hint == "use --devices 2-5 or --devices 4-7"


def test_more_than_there_are_is_an_error(root: Path) -> None:
    nodes(root, 0, 1, 2, 3)

    error = refused(root, device_num="[0,8)")

    assert 'at most "[0,4)"' in (error.hint or "")


def test_a_bare_number_after_device_num_has_two_readings(root: Path) -> None:
    error = refused(root, device_num="4")

    assert "is ambiguous: device 4 alone, or 4 devices?" in error.message
    assert error.hint == 'use "[4,5)" or "[0,4)"'
    assert chosen(root, devices="4").ids == (4,)
    assert chosen(root, device_num="0").ids == (0,)


def test_stated_devices_must_have_nodes(root: Path) -> None:
    nodes(root, 0, 1)

    assert "/dev/davinci2 does not exist" in refused(root, environ={VISIBLE: "0-3"}).message
    assert "/dev/davinci4 does not exist" in refused(root, visible_devices="4,5").message


def test_without_devices_and_options(root: Path) -> None:
    error = refused(root)

    assert "no Ascend device found" in error.message
    assert "--simulate 910a" in (error.hint or "")


def test_both_options_exclude_each_other(root: Path) -> None:
    assert "exclude each other" in refused(root, devices="0", device_num="[0,1)").message


def test_logical_ids_need_a_container_that_says(root: Path) -> None:
    assert "are unknown" in refused(root, devices="0", ids="logical").message


def test_cann_s_variable_counts_among_the_visible_and_keeps_its_order(root: Path) -> None:
    nodes(root, 4, 5, 6, 7)

    assert chosen(root, environ={RT: "3,2"}).ids == (7, 6)
    assert "lists device 4" in refused(root, environ={RT: "4"}).message


def test_devices_that_cann_s_variable_hides_are_said(root: Path) -> None:
    nodes(root, *range(8))

    selection = chosen(root, environ={RT: "0,1"}, devices="0-3")

    assert selection.ids == (0, 1, 2, 3)
    assert "hides devices 2,3" in selection.warnings[0]


@pytest.mark.parametrize(("typed", "option"), [("[0,8]", "device_num"), ("[4,8]", "devices")])
def test_a_closed_bracket_has_one_reading_without_the_last_device(
    root: Path, typed: str, option: str
) -> None:
    """An a2 may have 16 devices, but this host has 8."""
    nodes(root, *range(8))

    found = chosen(root, "a2", None, **{option: typed})

    assert found.ids == tuple(range(int(typed[1]), 8))
    assert "this host has no device 8" in found.warnings[0]


def test_a_closed_bracket_stays_ambiguous_if_the_last_device_is_there(root: Path) -> None:
    nodes(root, *range(16))

    assert '"[0,8]" is ambiguous' in refused(root, "a2", device_num="[0,8]").message


@pytest.mark.parametrize(
    ("options", "hint"),
    [({"device_num": "[0,9)"}, 'at most "[0,8)"'), ({"devices": "0-8"}, "choose from 0,1,2,3,4,5,6,7")],
)
def test_beyond_the_product_of_this_host_its_devices_are_the_remedy(
    root: Path, options: dict[str, str], hint: str
) -> None:
    nodes(root, *range(8))

    error = refused(root, "910a", None, **options)

    assert hint in (error.hint or "")
    assert "--product" not in (error.hint or "")
