"""Short tables in HTML, for notebooks: what a person reads of a plan or of a model without printing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


def html_table(
    title: str, facts: Mapping[str, str], head: Sequence[str] = (), rows: Sequence[Sequence[str]] = ()
) -> str:
    """A title, facts with their names, and a table; every text is escaped, so none can be markup."""
    lines = [f"<p><b>{escape(title)}</b></p>", "<table>"]
    lines += [f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts.items()]
    lines.append("</table>")
    if rows:
        lines += ["<table>", _row("th", head), *(_row("td", row) for row in rows), "</table>"]
    return "\n".join(["<div>", *lines, "</div>"])


def _row(kind: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"
