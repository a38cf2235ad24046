"""A bank's payments as tables come: mixed ids, categories, missing values, amounts, dates, and 6 % fraud.

python examples/payments/make_tables.py payments

writes the folders ``payments/june`` (with the status of each account) and ``payments/july`` (without). Everything is
generated. Accounts of fraudsters look much like any other; they are paid by many honest accounts and pay few, so
that unlike links to unlike.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

COUNTRIES = ("NL", "BE", "DE", "FR", "PL")


def make_month(seed: int, accounts: int = 3000, month: int = 6) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The accounts of a month with their status, and its payments."""
    rng = np.random.default_rng(seed)
    fraud = rng.random(accounts) < 0.06
    nodes = pd.DataFrame(
        {
            "account": _ids(rng, accounts),
            "age": np.round(rng.normal(np.where(fraud, 35, 46), 13).clip(18, 95)),
            "balance": np.round(rng.lognormal(np.where(fraud, 6.4, 7.6), 1.4), 2),
            "country": rng.choice(COUNTRIES, accounts, p=(0.5, 0.2, 0.15, 0.1, 0.05)),
            "business": rng.choice(["yes", "no"], accounts, p=(0.2, 0.8)),
            "opened": (pd.Timestamp("2024-01-01") - pd.to_timedelta(rng.integers(0, 4000, accounts), "D")).astype(str),
            "note": [f"call {place} back" if place % 7 == 0 else f"file {place}" for place in range(accounts)],
            "status": np.where(fraud, "fraud", "legit"),
        }
    )
    abroad = fraud & (rng.random(accounts) < 0.3)
    nodes.loc[abroad, "country"] = "PL"
    nodes.loc[rng.random(accounts) < 0.08, "age"] = np.nan
    nodes.loc[rng.random(accounts) < 0.05, "country"] = ""
    return nodes, _payments(rng, nodes["account"].to_numpy(), fraud, month)


def _ids(rng: np.random.Generator, accounts: int) -> list[str]:
    """Old accounts have numbers, new ones have codes."""
    return [f"ACC-{place:05d}" if rng.random() < 0.5 else str(10_000 + place) for place in range(accounts)]


def _payments(rng: np.random.Generator, ids: np.ndarray, fraud: np.ndarray, month: int) -> pd.DataFrame:
    honest, crooks = np.flatnonzero(~fraud), np.flatnonzero(fraud)
    usual = rng.choice(honest, (3 * len(ids), 2))
    victims = np.stack([rng.choice(honest, 8 * len(crooks)), rng.choice(crooks, 8 * len(crooks))], axis=1)
    pairs = np.concatenate([usual, victims])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    days = pd.Timestamp(f"2024-{month:02d}-01") + pd.to_timedelta(rng.integers(0, 30, len(pairs)), "D")
    return pd.DataFrame(
        {
            "payer": ids[pairs[:, 0]],
            "payee": ids[pairs[:, 1]],
            "amount": np.round(rng.lognormal(4, 1.5, len(pairs)), 2),
            "date": days.astype(str),
        }
    )


def write_month(folder: Path, nodes: pd.DataFrame, edges: pd.DataFrame) -> None:
    """Two tables in a new folder."""
    folder.mkdir(parents=True)
    nodes.to_csv(folder / "nodes.csv", index=False)
    edges.to_csv(folder / "edges.csv", index=False)


def main() -> None:
    """June with its status, July without."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--accounts", type=int, default=3000)
    options = parser.parse_args()
    nodes, edges = make_month(0, options.accounts)
    write_month(options.folder / "june", nodes, edges)
    nodes, edges = make_month(1, options.accounts, month=7)
    write_month(options.folder / "july", nodes.drop(columns="status"), edges)
    print(f"wrote {options.folder / 'june'} and {options.folder / 'july'}")


if __name__ == "__main__":
    main()
