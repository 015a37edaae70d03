"use strict";
// Sorts and filters the tables, shows replies side by side; the address after # holds what is shown.
const page = document, at = (id) => page.getElementById(id);
const tables = [...page.querySelectorAll("table.runs")];
const data = JSON.parse(at("replies").textContent);
const MOST = 200;
let state = new URLSearchParams();

const make = (tag, properties = {}, ...children) => {
  const node = Object.assign(page.createElement(tag), properties);
  node.append(...children);
  return node;
};

const remember = (changes) => {
  for (const [key, value] of Object.entries(changes)) {
    if (value === "" || value === null) state.delete(key);
    else state.set(key, value);
  }
  history.replaceState(null, "", "#" + state);
  if (at("here")) at("here").href = "#" + state;
};

// --- tables -------------------------------------------------------------------------------------------------------

const cellOf = (run, column) => run.querySelector("tr.ours").cells[column].dataset.value;

const compareValues = (a, b, isNumber) => (isNumber ? Number(a) - Number(b) : a.localeCompare(b, "en"));

function sortTable(table, column, direction) {
  const head = table.tHead.rows[0].cells[column];
  if (!head || !["asc", "desc"].includes(direction)) return;
  const isNumber = head.dataset.kind === "number", sign = direction === "asc" ? 1 : -1;
  const runs = [...table.querySelectorAll("tbody.run")];
  runs.sort((one, other) => {
    const a = cellOf(one, column), b = cellOf(other, column);
    if (a === "" || b === "") return (a === "") - (b === ""); // what was not measured stays below
    return sign * compareValues(a, b, isNumber) || one.dataset.order - other.dataset.order;
  });
  table.append(...runs);
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction === "asc" ? "ascending" : "descending");
}

function filterTables() {
  const words = at("query").value.toLowerCase().split(/\s+/).filter(Boolean);
  const size = at("size").value, printed = at("printed").checked;
  for (const table of tables) {
    let shown = 0;
    for (const run of table.querySelectorAll("tbody.run")) {
      const fits = words.every((word) => run.dataset.text.includes(word)) && (!size || run.dataset.size === size);
      run.hidden = !fits;
      shown += fits;
      for (const row of run.querySelectorAll("tr.printed")) row.hidden = !printed;
    }
    const total = table.querySelectorAll("tbody.run").length;
    at(table.dataset.table + "-count").textContent = `${shown} of ${total} rows`;
  }
}

for (const table of tables) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = make("button", { type: "button", textContent: cell.textContent });
    button.addEventListener("click", () => {
      const now = cell.getAttribute("aria-sort");
      const first = cell.dataset.first || "asc";
      const direction = now === null ? first : now === "ascending" ? "desc" : "asc";
      sortTable(table, column, direction);
      remember({ sort: `${table.dataset.table}.${column}.${direction}` });
    });
    cell.replaceChildren(button);
  });
}

at("filters").addEventListener("submit", (event) => event.preventDefault());
at("filters").addEventListener("input", () => {
  filterTables();
  remember({ q: at("query").value, size: at("size").value, printed: at("printed").checked ? "" : "no" });
});

// --- replies ------------------------------------------------------------------------------------------------------

const [ID, CONTEXT, REFERENCE, EMOTION, ANSWERS] = [0, 1, 2, 3, 4];
const texts = data.items.map((item) => [item[ID], item[EMOTION] || "", ...item[CONTEXT]].join("\n").toLowerCase());
let chosen = 0;

const boxes = data.systems.map((name) => make("input", { type: "checkbox", checked: true, value: name }));

function listItems() {
  const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (i) => words.every((word) => texts[i].includes(word));
  const all = [...texts.keys()].filter(fits), total = all.length, found = all.slice(0, MOST);
  if (total && !fits(chosen)) chosen = found[0];
  if (total && !found.includes(chosen)) found.push(chosen);
  at("item").replaceChildren(
    ...found.map((i) => {
      const item = data.items[i], last = item[CONTEXT].at(-1) || item[REFERENCE] || "";
      const label = `${item[EMOTION] ? item[EMOTION] + ": " : ""}${last.slice(0, 90)} (${item[ID]})`;
      return make("option", { value: String(i), textContent: label, selected: i === chosen });
    })
  );
  at("found").textContent =
    total > MOST ? `the first ${MOST} of ${total} contexts; type to find others` : `${total} context${total === 1 ? "" : "s"}`;
}

function marked(text, spans) {
  const characters = Array.from(text), nodes = [];
  let end = 0;
  for (const [start, stop] of spans) {
    if (start < end) continue;
    nodes.push(characters.slice(end, start).join(""));
    nodes.push(make("mark", { className: "cause", textContent: characters.slice(start, stop).join("") }));
    end = stop;
  }
  return [...nodes, characters.slice(end).join("")];
}

function card(name, lines, className = "card") {
  return make("article", { className }, make("h4", { textContent: name }), ...lines);
}

function answerCard(item, [system, reply, predicted, causes]) {
  const lines = [make("p", { className: "reply", textContent: reply || "(empty)" })];
  if (predicted.length) {
    const verdict = item[EMOTION] ? (predicted[0] === item[EMOTION] ? ", as labelled" : ", not as labelled") : "";
    lines.push(make("p", { className: "note", textContent: `heard ${predicted.join(", ")}${verdict}` }));
  }
  if (causes.length) {
    const quotes = causes.map(([turn, start, end]) => Array.from(item[CONTEXT][turn]).slice(start, end).join(""));
    lines.push(make("p", { className: "note", textContent: `because of “${quotes.join("”, “")}”` }));
  }
  return card(data.systems[system], lines);
}

function showItem() {
  const item = data.items[chosen];
  if (!item) return;
  const on = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  const answers = item[ANSWERS].filter(([system]) => on.has(data.systems[system]));
  const withCauses = answers.filter((answer) => answer[3].length);
  const wanted = at("causes").value;
  const marker = withCauses.find(([system]) => data.systems[system] === wanted) || withCauses[0];
  at("causes").replaceChildren(
    ...withCauses.map(([system]) =>
      make("option", { textContent: data.systems[system], selected: system === (marker || [])[0] })
    )
  );
  at("causes-of").hidden = !withCauses.length;
  const turns = item[CONTEXT].map((text, turn) => {
    const spans = marker ? marker[3].filter((span) => span[0] === turn).map((span) => span.slice(1)) : [];
    const who = turn % 2 ? "listener" : "speaker";
    return make("li", { className: who }, make("span", { className: "who", textContent: who }), " ", ...marked(text, spans));
  });
  const gold = item[REFERENCE] === null ? [] : [card("the person's reply", [make("p", { className: "reply", textContent: item[REFERENCE] })], "card gold")];
  at("shown").replaceChildren(
    make("h3", { textContent: item[EMOTION] ? `${item[ID]}: labelled ${item[EMOTION]}` : item[ID] }),
    turns.length ? make("ol", { className: "context" }, ...turns) : make("p", { className: "note", textContent: "The context is not known." }),
    make("div", { className: "cards" }, ...answers.map((answer) => answerCard(item, answer)), ...gold)
  );
}

function choose(index, keep = true) {
  chosen = index;
  for (const option of at("item").options) option.selected = Number(option.value) === chosen;
  showItem();
  if (keep) remember({ item: data.items[chosen][ID] });
}

function step(by) {
  const options = [...at("item").options].map((option) => Number(option.value));
  if (!options.length) return;
  const place = options.indexOf(chosen);
  choose(options[place < 0 ? 0 : (place + by + options.length) % options.length]);
}

if (data.items.length) {
  at("chooser").hidden = false;
  at("systems").append(...boxes.map((box, i) => make("label", {}, box, ` ${data.systems[i]}`)));
  at("find").addEventListener("input", () => {
    listItems();
    showItem();
    remember({ find: at("find").value });
  });
  at("item").addEventListener("change", () => choose(Number(at("item").value)));
  at("previous").addEventListener("click", () => step(-1));
  at("next").addEventListener("click", () => step(1));
  at("causes").addEventListener("change", showItem);
  at("systems").addEventListener("change", () => {
    const off = boxes.filter((box) => !box.checked).map((box) => box.value);
    showItem();
    remember({ without: off.length ? JSON.stringify(off) : "" });
  });
}

// --- the address --------------------------------------------------------------------------------------------------

function follow() {
  const address = location.hash.slice(1);
  if (!address.includes("=")) return; // a plain link into the page
  state = new URLSearchParams(address);
  at("query").value = state.get("q") || "";
  at("size").value = state.get("size") || "";
  if (at("size").selectedIndex < 0) at("size").value = "";
  at("printed").checked = state.get("printed") !== "no";
  const [name, column, direction] = (state.get("sort") || "").split(".");
  const table = tables.find((each) => each.dataset.table === name);
  if (table) sortTable(table, Number(column), direction);
  filterTables();
  if (data.items.length) {
    at("find").value = state.get("find") || "";
    let off = [];
    try { off = JSON.parse(state.get("without") || "[]"); } catch { /* not ours */ }
    boxes.forEach((box) => (box.checked = !(Array.isArray(off) && off.includes(box.value))));
    const index = data.items.findIndex((item) => item[ID] === state.get("item"));
    chosen = index < 0 ? 0 : index;
    listItems();
    showItem();
    at("here").href = "#" + state;
    if (index >= 0 && !state.has("run")) at("compare").scrollIntoView({ behavior: "instant" });
  }
  const run = state.get("run") && at("run:" + state.get("run"));
  if (run) {
    run.open = true;
    run.scrollIntoView({ behavior: "instant" });
  }
}

page.documentElement.classList.add("scripted");
filterTables();
if (data.items.length) {
  listItems();
  showItem();
}
follow();
addEventListener("hashchange", follow);
