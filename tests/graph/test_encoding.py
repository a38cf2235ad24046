"""From columns to numbers: by the schema, by name, row by row; and what is read off tables that are public."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from discreet.errors import GraphError
from discreet.graph.encoding import encode
from discreet.graph.measuring import measure
from discreet.graph.schema import Column

TABLE = pd.DataFrame(
    {
        "age": [18.0, 59.0, 200.0, np.nan],
        "income": [0, 10, 1000, 1e9],
        "country": ["NL", "BE", "FR", None],
        "member": ["yes", "No", "TRUE", "0"],
        "x0": [5.0, 6.0, 7.0, 8.0],
    }
)


def test_every_kind() -> None:
    columns = [
        Column("age", "numeric", range=(18, 100), missing="indicator"),
        Column("income", "numeric", range=(0, 1000), scale="log"),
        Column("country", "category", categories=("NL", "BE"), other=True, missing="BE"),
        Column("member", "boolean"),
        Column("x0", "as-is"),
    ]
    matrix, names = encode(TABLE, columns)
    expected = (
        *("age", "age (missing)", "income"),
        *("country=NL", "country=BE", "country (other)", "member", "x0"),
    )
    assert names == expected
    np.testing.assert_allclose(matrix[:, 0], [-1, 0, 1, 0], atol=1e-6)  # clipped above, the middle where missing
    np.testing.assert_array_equal(matrix[:, 1], [0, 0, 0, 1])
    np.testing.assert_allclose(matrix[:, 2], [-1, -1 + 2 * np.log(11) / np.log(1001), 1, 1], rtol=1e-5)
    np.testing.assert_array_equal(matrix[:, 3:6], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(matrix[:, 6], [1, 0, 1, 0])
    np.testing.assert_array_equal(matrix[:, 7], [5, 6, 7, 8])


def test_a_row_is_encoded_by_itself() -> None:
    """What the schema declares is all that is used: a row alone gives what it gives among others."""
    columns = [
        Column("age", "numeric", range=(18, 100), missing=40.0),
        Column("country", "category", categories=("NL", "BE", "FR"), missing="indicator"),
    ]
    whole, _ = encode(TABLE, columns)
    alone = np.concatenate([encode(TABLE.iloc[[row]], columns)[0] for row in range(len(TABLE))])
    np.testing.assert_array_equal(whole, alone)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (Column("age", "numeric", range=(0, 1)), "1 missing values"),
        (Column("country", "numeric", range=(0, 1)), "'NL' in row 0, which is not a number"),
        (Column("country", "category", categories=("NL", "BE"), missing="NL"), "'FR'.*not among its categories"),
        (Column("country", "category", categories=("NL", "BE", "FR")), "1 missing values"),
        (Column("age", "boolean"), "boolean is written"),
    ],
)
def test_cells_that_do_not_fit(column: Column, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        encode(TABLE, [column])


def test_two_features_of_one_name_are_refused() -> None:
    table = pd.DataFrame({"a": ["x"], "a=x": [1.0]})
    with pytest.raises(GraphError, match="a feature called 'a=x'"):
        encode(table, [Column("a", "category", categories=("x",)), Column("a=x", "as-is")])


def test_many_categories_stay_sparse() -> None:
    names = tuple(f"c{place}" for place in range(500))
    matrix, _ = encode(pd.DataFrame({"c": names, "z": range(500)}), [Column("c", "category", categories=names)])
    assert sp.issparse(matrix)
    assert matrix.nnz == 500


def test_what_is_measured_of_public_columns() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "amount": rng.lognormal(3, 2, 1000),
            "age": rng.normal(40, 10, 1000),
            "flag": rng.integers(0, 2, 1000),
            "town": rng.choice(["a", "b"], 1000),
            "sure": rng.choice(["yes", "no"], 1000),
        }
    )
    table.loc[0, "age"], table.loc[1, "age"] = 1e9, np.nan
    found = {column.name: column for column in measure(table, list(table.columns), {})}
    assert {name: column.kind for name, column in found.items()} == {
        **{"amount": "numeric", "age": "numeric"},
        **{"flag": "boolean", "town": "category", "sure": "boolean"},
    }
    assert found["amount"].scale == "log"
    assert found["age"].scale == "linear"
    assert found["age"].range is not None
    assert found["age"].range[1] < 100  # one wild value does not stretch the range
    assert found["age"].missing == "indicator"
    assert all(column.measured for column in found.values())
    matrix, _ = encode(table, list(found.values()))
    assert np.abs(matrix).max() <= 1


@pytest.mark.parametrize(
    "names",
    [["x0", "x1"], [f"word{place}" for place in range(16)], [f"{place}th word" for place in range(101)]],
)
def test_features_that_are_features_already_pass_untouched(names: list[str]) -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(0, 50, (20, len(names))), columns=names)
    matrix, kept = encode(table, measure(table, names, {}))
    np.testing.assert_array_equal(matrix, table.to_numpy(dtype=np.float32))
    assert list(kept) == names


def test_text_without_end_is_refused_with_the_way_out() -> None:
    table = pd.DataFrame({"name": [f"person {place}" for place in range(200)]})
    with pytest.raises(GraphError, match=r"200 different values.*--column ignore=name"):
        measure(table, ["name"], {})


@pytest.mark.parametrize("word", ["n/a", "NA.", "?", "-", "unknown"])
def test_words_for_unknown_among_numbers_are_missing_values(word: str) -> None:
    if word == "NA.":
        word = "n.a."
    table = pd.DataFrame(
        {"risk": ["1.5", word, "3.5", "2"], "member": ["1", "0", word, "1"], "code": ["a", word, "2", "3"]}
    )
    risk, member, code = measure(table, list(table), {})
    assert (risk.kind, risk.missing, member.kind, member.missing) == ("numeric", "indicator", "boolean", "indicator")
    assert code.kind == "category"
    assert word in (code.categories or ())
    matrix, names = encode(table, [risk, member])
    assert names == ("risk", "risk (missing)", "member", "member (missing)")
    np.testing.assert_array_equal(matrix[:, 1], [0, 1, 0, 0])
    np.testing.assert_array_equal(matrix[:, 3], [0, 0, 1, 0])


@pytest.mark.parametrize(
    "cells", [["1.5", "2.5", "3,500.25", "0.1"], ["1.5 EUR", "2.5", "3.25"], ["1.5", "2.5", "high"]]
)
def test_broken_numbers_are_no_categories(cells: list[str]) -> None:
    with pytest.raises(GraphError, match=r"looks like numbers, but .* in row \d is none"):
        measure(pd.DataFrame({"balance": cells}), ["balance"], {})
    many = [*(str(number) for number in range(150)), "1,000"]
    with pytest.raises(GraphError, match=r"looks like numbers, but '1,000' in row 150 is none"):
        measure(pd.DataFrame({"balance": many}), ["balance"], {})
    (codes,) = measure(pd.DataFrame({"code": ["1", "2", "3A"]}), ["code"], {})
    assert codes.categories == ("1", "2", "3A")


def test_fractions_that_are_text_are_numbers_and_whole_ones_may_be_codes() -> None:
    value, code = measure(pd.DataFrame({"value": ["1.5", "2", "3.5"], "code": ["01", "2", "3"]}), ["value", "code"], {})
    assert (value.kind, code.kind) == ("numeric", "category")
