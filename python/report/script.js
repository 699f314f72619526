// SPDX-License-Identifier: Apache-2.0
// What the page does beyond being read: sorting, filtering, opening entries, the keyboard.
// Runs in <head>, so that the class "js" is there before anything is laid out.
"use strict";
const root = document.documentElement;
root.classList.add("js");

// ---- Light and dark -----------------------------------------------------------------------------

function toggleTheme() {
  const now = root.style.colorScheme ||
      (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.style.colorScheme = now === "dark" ? "light" : "dark";
}

// ---- Tables -------------------------------------------------------------------------------------

// A number where the cell shows one, else its text; undefined where there is nothing.
function sortKey(row, column) {
  const cell = row.cells[column];
  if (!cell || cell.classList.contains("none")) return undefined;
  const text = cell.dataset.v ?? cell.textContent.trim();
  if (text === "–" || text === "") return undefined;
  const number = Number(text.replace(/[\u202f×]/g, ""));
  return Number.isNaN(number) ? text : number;
}

const collator = new Intl.Collator("en", { numeric: true });
function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b);
}

function sortBy(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const isFigure = heads[column].matches(".num, .figure");
  const first = isFigure ? "descending" : "ascending";
  const second = isFigure ? "ascending" : "descending";
  const order = heads[column].ariaSort === first ? second : first;
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const keyed = [...table.tBodies[0].rows].map((row) => [sortKey(row, column), row]);
  keyed.sort(([a], [b]) => {  // Rows without a value come last, in either order.
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
    return sign * compare(a, b);
  });
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(table, column));
    head.append(button);
  });
}

// ---- Filters ------------------------------------------------------------------------------------

const textOf = new WeakMap();
function searchText(row) {
  if (!textOf.has(row)) {
    textOf.set(row, `${row.textContent} ${row.dataset.families ?? ""}`.toLowerCase());
  }
  return textOf.get(row);
}

// An answer has several findings, all else one value.
function fits(has, name, value) {
  return name === "findings" ? has.split(" ").includes(value) : has === value;
}

function filter() {
  const { search, ...selects } = Object.fromEntries(new FormData(document.forms.filters));
  const words = search.toLowerCase().split(/\s+/);
  const chosen = Object.entries(selects).filter(([, value]) => value !== "");
  for (const row of document.querySelectorAll("table.filtered tbody tr")) {
    row.hidden = !words.every((word) => searchText(row).includes(word)) ||
        chosen.some(([name, value]) => name in row.dataset && !fits(row.dataset[name], name, value));
  }
  const rows = [...document.querySelectorAll("#samples tbody tr")];
  const shown = rows.filter((row) => !row.hidden).length;
  document.getElementById("shown").textContent = `${shown} of ${rows.length} samples`;
}

// ---- Entries ------------------------------------------------------------------------------------

const unpacked = new Map();
// What the blobs hold of one entry: the verdict, whole and in words, reasoning and marks.
async function contentsOf(entry) {
  const blobs = document.querySelectorAll("script.blob");
  const size = Number(blobs[0].dataset.size);
  const index = Math.floor(entry / size);
  if (!unpacked.has(index)) {
    const bytes = Uint8Array.from(atob(blobs[index].textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(index, new Response(stream).json());
  }
  const columns = Object.entries(await unpacked.get(index));
  return Object.fromEntries(columns.map(([name, values]) => [name, values[entry % size]]));
}

// The lines of a source with their numbers, in spans by the marks of report/highlight.py.
function highlight(pre, marks) {
  const text = pre.textContent;
  const parts = [];
  let position = 0;
  for (const [, length, letter] of marks.matchAll(/([0-9a-z]+)([A-Z.])/g)) {
    const piece = text.slice(position, position += parseInt(length, 36));
    if (letter === ".") { parts.push(piece); continue; }
    const span = document.createElement("span");
    span.className = letter;
    span.textContent = piece;
    parts.push(span);
  }
  pre.replaceChildren(...parts, text.slice(position));
}

function folded(title, text) {
  const details = document.createElement("details");
  details.innerHTML = "<summary></summary><pre></pre>";
  details.firstChild.textContent = title;
  details.lastChild.textContent = text;
  return details;
}

const byId = (id) => document.getElementById(id);
let opener = null;

async function open(id) {
  const source = byId(id)?.closest("#sources details");
  if (!source) return;
  const [summary, ...parts] = source.cloneNode(true).childNodes;
  const body = byId("viewer-body");
  byId("viewer-title").textContent = summary.textContent;
  body.replaceChildren(...parts);
  body.querySelectorAll("[id]").forEach((element) => element.removeAttribute("id"));
  if (!byId("viewer").open) byId("viewer").showModal();
  body.scrollTop = 0;
  body.focus();
  const { parts: words, verdict, reasoning, marks } = await contentsOf(Number(id.slice(1)));
  if (location.hash !== `#${id}`) return;  // Another one was opened in the meantime.
  body.querySelector(".parts")?.insertAdjacentHTML("beforeend", words);  // Escaped by the renderer.
  highlight(body.querySelector("pre.code"), marks);
  if (reasoning) body.append(folded("Reasoning", reasoning));
  if (verdict) body.append(folded("Whole verdict", JSON.stringify(verdict, null, 2)));
}

function openFromAddress() {
  if (/^#e\d+$/.test(location.hash)) open(location.hash.slice(1));
  else if (byId("viewer").open) byId("viewer").close();
}

function closed() {
  history.replaceState(null, "", location.pathname + location.search);
  opener?.focus();
}

// ---- Keyboard -----------------------------------------------------------------------------------

// The link of the row that is so many visible rows further than the one with the opener.
function move(by) {
  const table = opener?.closest("table.filtered") ?? document.querySelector("#samples table");
  if (!table) return;
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const now = rows.indexOf(opener?.closest("tr"));
  const row = rows[now < 0 ? 0 : Math.min(Math.max(now + by, 0), rows.length - 1)];
  if (!row) return;
  opener = row.querySelector("a");
  if (byId("viewer").open) location.replace(opener.hash);
  else { opener.focus({ preventScroll: true }); row.scrollIntoView({ block: "nearest" }); }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const inViewer = byId("viewer").open;
  const arrows = !inViewer && event.target.closest("table.filtered");
  if (event.key === "/" && !inViewer) document.forms.filters.search.focus();
  else if (event.key === "j" || (arrows && event.key === "ArrowDown")) move(1);
  else if (event.key === "k" || (arrows && event.key === "ArrowUp")) move(-1);
  else return;
  event.preventDefault();
}

// ---- Start --------------------------------------------------------------------------------------

function addNavigation() {
  for (const section of document.querySelectorAll("section[id]:not(#sources)")) {
    const link = document.createElement("a");
    link.href = `#${section.id}`;
    link.textContent = section.querySelector("h2").textContent;
    document.querySelector("nav").append(link, " ");
  }
}

document.addEventListener("DOMContentLoaded", () => {
  addNavigation();
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  const form = document.forms.filters;
  form.addEventListener("submit", (event) => event.preventDefault());
  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 100);
  });
  byId("theme").addEventListener("click", toggleTheme);
  byId("viewer").addEventListener("close", closed);
  byId("close").addEventListener("click", () => byId("viewer").close());
  byId("next").addEventListener("click", () => move(1));
  byId("previous").addEventListener("click", () => move(-1));
  document.addEventListener("focusin", ({ target }) => {
    if (target.matches("table.filtered a")) opener = target;
  });
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", openFromAddress);
  filter();
  openFromAddress();
});
