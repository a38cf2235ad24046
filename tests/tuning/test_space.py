"""What a search may try."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.errors import InvalidInputError
from discreet.tuning.space import Choice, Range, candidates, parse_search, read_space


def test_texts_and_files_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(
        "[search]\nhops = [1, 2]\nrate = { low = 0.001, high = 0.1, log = true }\nwidth = { low = 4, high = 9 }\n"
    )
    texts = parse_search(["hops=1,2", "rate=0.001..0.1:log", "width=4..9"])
    assert read_space(path) == texts
    assert texts == {"hops": Choice((1, 2)), "rate": Range(0.001, 0.1, True), "width": Range(4, 9)}
    assert parse_search(["kind=mean,sum"]) == {"kind": Choice(("mean", "sum"))}


def test_small_spaces_are_tried_whole_and_large_ones_drawn() -> None:
    assert candidates(parse_search(["a=1,2", "b=x,y"]), 4, 0) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    space = parse_search(["rate=0.001..0.1:log", "width=4..6", "share=0.0..1.0"])
    drawn = candidates(space, 200, 0)
    assert drawn == candidates(space, 200, 0) != candidates(space, 200, 1)
    assert {point["width"] for point in drawn} == {4, 5, 6}
    assert all(0.001 <= point["rate"] <= 0.1 and 0 <= point["share"] <= 1 for point in drawn)
    below = sum(point["rate"] < 0.01 for point in drawn)
    assert 70 < below < 130  # uniform in the logarithm
    assert len(candidates(parse_search(["a=1,2,3", "b=1,2,3"]), 4, 0)) <= 4


@pytest.mark.parametrize("text", ["hops", "=3", "hops=", "rate=2..1", "rate=0..1:log"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_search([text])


def test_files_that_are_none(tmp_path: Path) -> None:
    for content in ("search = 3", "[search]\na = 3", "[search]\na = { low = 1 }", "[other]\na = [1]", "no toml"):
        path = tmp_path / "space.toml"
        path.write_text(content)
        with pytest.raises(InvalidInputError):
            read_space(path)
    with pytest.raises(InvalidInputError):
        read_space(tmp_path / "absent.toml")
    with pytest.raises(InvalidInputError):
        candidates({}, 5, 0)
