"""Where the boxes of a picture are: inside the page, inside each other, and never on each other."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.show.picture.boxes import Fold, Selection, ServerBox
from hccl_tools.show.picture.layout import arranged
from hccl_tools.show.picture.places import Rect
from hccl_tools.show.picture.scene import MOST_DEVICES, MOST_UNFOLDED, scene
from tests.support.pictures import subject
from tests.support.tables import table


def overlap(one: Rect, other: Rect) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def inside(inner: Rect, outer: Rect) -> bool:
    return (
        inner.x >= outer.x - 4
        and inner.y >= outer.y
        and inner.x + inner.width <= outer.x + outer.width + 4
        and inner.y + inner.height <= outer.y + outer.height
    )


@pytest.mark.slow
@settings(max_examples=50)
@given(
    st.sampled_from(["1.0", "1.2", "2.0", "group_list"]),
    st.tuples(st.integers(1, 18), st.integers(1, 16), st.integers(1, 3)),
    st.sampled_from(["910a", "a2", None]),
    st.booleans(),
)
def test_boxes_lie_in_each_other_and_not_on_each_other(
    table_format: str, sizes: tuple[int, int, int], product: str | None, unfold: bool
) -> None:
    servers, devices, pods = sizes
    value = table(table_format, servers * pods, devices, pods)
    one = subject(value, product=None if table_format == "2.0" else product)
    layout = arranged(scene(one.table, one.product, Selection(one.servers, unfold=unfold)), 1083, 600)

    page = Rect(0, 0, layout.width, layout.height)
    for pod in layout.pods:
        assert inside(pod.rect, page)
        own = Rect(0, 0, pod.rect.width, pod.rect.height)
        boxes = [*(server.rect for server in pod.servers), *(fold.rect for fold in pod.folds)]
        assert all(inside(box, own) for box in boxes)
        assert not any(overlap(*pair) for pair in combinations(boxes, 2))
        for server in pod.servers:
            frame = Rect(0, 0, server.rect.width, server.rect.height)
            assert all(inside(npu.rect, frame) for npu in server.npus)
            assert not any(overlap(a.rect, b.rect) for a, b in combinations(server.npus, 2))
    assert not any(overlap(a.rect, b.rect) for a, b in combinations(layout.pods, 2))


def items(servers: int, *, important: list[int] | None = None) -> list[ServerBox | Fold]:
    one = subject(table("1.0", servers, 8))
    (pod,) = scene(one.table, one.product, Selection(one.servers, important or [], important or [])).pods
    return pod.items


def test_up_to_sixteen_servers_are_all_drawn() -> None:
    assert all(isinstance(item, ServerBox) for item in items(MOST_UNFOLDED))


def test_of_128_equal_servers_126_are_folded() -> None:
    first, fold, last = items(128)

    assert isinstance(first, ServerBox)
    assert isinstance(last, ServerBox)
    assert fold == Fold(list(range(1, 127)), 0, alike=True)


def test_a_server_with_a_mark_is_not_folded() -> None:
    found = items(128, important=[50])

    assert [item.number if isinstance(item, ServerBox) else len(item.indices) for item in found] == [
        0, 48, 49, 50, 51, 75, 127,
    ]  # fmt: skip


def test_a_server_with_another_number_of_devices_is_not_folded() -> None:
    value = table("1.0", 32, 8)
    del value["server_list"][20]["device"][7]
    one = subject(value)
    (pod,) = scene(one.table, one.product, Selection(one.servers)).pods

    assert 20 in [item.number for item in pod.items if isinstance(item, ServerBox)]


def test_a_table_of_different_servers_has_a_bound_of_boxes() -> None:
    value = table("1.0", 600, 8)
    for number, server in enumerate(value["server_list"]):
        del server["device"][number % 7 + 1 :]
    one = subject(value)
    (pod,) = scene(one.table, one.product, Selection(one.servers)).pods

    assert len(pod.items) < 40
    drawn = sum(len(item.indices) if isinstance(item, Fold) else 1 for item in pod.items)
    assert drawn == 600


def test_many_super_pods_show_the_first_the_last_and_those_with_a_mark() -> None:
    one = subject(table("1.2", 40, 2, 20))
    found = scene(one.table, one.product, Selection(one.servers, [21], [21]))

    assert [pod.name for pod in found.pods] == ["0", "1", "10", "19"]
    assert found.unseen == 16
    assert found.link == "RoCE"
    assert [type(item).__name__ for item in found.pods[2].items] == ["ServerBox", "ServerBox"]
    assert [type(item).__name__ for item in found.pods[3].items] == ["ServerBox", "Fold"]


def test_a_server_with_too_many_devices_hides_some() -> None:
    value = table("1.0", 1, 2)
    value["server_list"][0]["device"] *= 200
    one = subject(value)
    (pod,) = scene(one.table, one.product, Selection(one.servers)).pods
    (server,) = pod.items

    assert isinstance(server, ServerBox)
    assert (len(server.npus), server.hidden) == (MOST_DEVICES, 400 - MOST_DEVICES)


@pytest.mark.parametrize(
    ("product", "table_format", "kinds"),
    [
        ("910a", "1.0", {"HCCS": [[0, 1, 2, 3], [4, 5, 6, 7]]}),
        ("a2", "1.0", {"HCCS": [[0, 1, 2, 3, 4, 5, 6, 7]]}),
        ("a3", "1.2", {"SIO": [[0, 1], [2, 3], [4, 5], [6, 7]], "HCCS": [[0, 1, 2, 3, 4, 5, 6, 7]]}),
        ("300i", "1.0", {"HCCS": [[0, 1], [2, 3], [4, 5], [6, 7]]}),
    ],
)
def test_links_join_what_the_product_joins(
    product: str, table_format: str, kinds: dict[str, list[list[int]]]
) -> None:
    one = subject(table(table_format, 1, 8), product=product)
    (pod,) = scene(one.table, one.product, Selection(one.servers)).pods
    (server,) = pod.items

    assert isinstance(server, ServerBox)
    found: dict[str, list[list[int]]] = {}
    for bus in server.buses:
        found.setdefault(bus.kind, []).append(bus.places)
    assert found == kinds
