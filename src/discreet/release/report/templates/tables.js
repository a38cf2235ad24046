"use strict";
for (const section of document.querySelectorAll("section.results")) {
  const body = section.querySelector("tbody");
  const heads = [...section.querySelectorAll("th")];
  const names = heads.map((head) => head.textContent);
  const rows = [...body.rows];
  const search = section.querySelector("input");
  const choices = [...section.querySelectorAll("select")];
  const text = (row, column) => row.cells[column].textContent;

  // Numbers by size, "inf" above them, texts by letters; what is empty comes last.
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const x = a === "inf" ? Infinity : Number(a), y = b === "inf" ? Infinity : Number(b);
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x === y ? 0 : x - y;
    return a.localeCompare(b);
  };

  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((a, b) => (down ? -1 : 1) * compare(text(a, column), text(b, column)));
    body.append(...rows);
  }));

  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const kept = choices.every((choice) => !choice.value || text(row, names.indexOf(choice.dataset.column)) === choice.value)
        && (!wanted || row.textContent.toLowerCase().includes(wanted));
      row.hidden = !kept;
      count += kept;
    }
    section.querySelector(".shown").textContent = `${count} of ${rows.length} rows`;
  };
  search.addEventListener("input", filter);
  choices.forEach((choice) => choice.addEventListener("change", filter));
}
