"use strict";
const root = document.documentElement, theme = document.getElementById("theme");
function paint(dark) {
  root.dataset.theme = dark ? "dark" : "light";
  theme.textContent = dark ? "Light" : "Dark";
}
const system = matchMedia("(prefers-color-scheme: dark)");
paint(system.matches);
system.addEventListener("change", (event) => paint(event.matches));
theme.addEventListener("click", () => paint(root.dataset.theme !== "dark"));

const table = document.getElementById("paths"), all = document.getElementById("all");
const filter = document.getElementById("filter"), first = Number(table.dataset.first);
let everything = all === null;
function show() {
  const wanted = filter === null ? "" : filter.value.toLowerCase();
  let shown = 0;
  for (const body of table.tBodies) {
    const matches = body.rows[0].cells[0].dataset.sort.toLowerCase().includes(wanted);
    body.hidden = !matches || (!everything && wanted === "" && shown >= first);
    shown += matches;
  }
}
if (filter !== null) filter.addEventListener("input", show);
if (all !== null) all.addEventListener("click", () => { everything = true; all.hidden = true; show(); });

for (const button of table.querySelectorAll(".open")) {
  button.addEventListener("click", () => {
    const details = button.closest("tr").nextElementSibling;
    details.hidden = !details.hidden;
    button.setAttribute("aria-expanded", String(!details.hidden));
  });
}

const heads = [...table.tHead.rows[0].cells];
heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
  const numeric = head.classList.contains("number");
  // Numbers are wanted from the largest on, words from the first.
  const before = head.getAttribute("aria-sort"), natural = numeric ? "descending" : "ascending";
  const order = before === natural ? (numeric ? "ascending" : "descending") : natural;
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const key = (body) => body.rows[0].cells[column].dataset.sort;
  const number = (text) => text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text);
  const compare = (one, other) => {
    if (!numeric) return sign * key(one).localeCompare(key(other), undefined, { numeric: true });
    const [a, b] = [number(key(one)), number(key(other))];
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);  // what has none comes last
    return a === b ? 0 : sign * (a < b ? -1 : 1);
  };
  table.append(...[...table.tBodies].sort(compare));
  show();
}));
show();
