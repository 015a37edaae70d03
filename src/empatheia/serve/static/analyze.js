// The page to analyse texts: given in pieces, read by the server in the background, found again by the address.

import { ask, askJson, useKey } from "./api.js";
import { sideBar } from "./charts.js";
import { byId, download, draw, fill, make, percent } from "./elements.js";
import { readLabels, sideOf } from "./labels.js";
import { lines, pieces, readRows, Unreadable } from "./rows.js";
import { ofTurn, sentence } from "./sentence.js";
import { setTheme } from "./theme.js";

const SHOWN = 50; // rows at once
const N_BARS = 10;
const MOST_BYTES = 32 * 2 ** 20;
const ENDED = ["done", "cancelled", "failed"];
const state = { file: null, job: null, start: 0, matches: 0, shown: -1, timer: 0, asked: 0 };

// -- giving ------------------------------------------------------------------------------------------------------

async function take(file) {
  showFault("give-fault", "");
  try {
    if (file.size > MOST_BYTES) throw new Unreadable("The file is larger than 32 MB; split it.");
    const read = readRows(file.name, new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()));
    state.file = { name: file.name, ...read };
  } catch (error) {
    const isNoText = error instanceof TypeError;
    showFault("give-fault", `${file.name}: ${isNoText ? "it is not in UTF-8; save it so." : error.message}`);
    return;
  }
  byId("file-name").textContent = state.file.name;
  byId("file-size").textContent = `${state.file.rows.length.toLocaleString("en")} rows`;
  fill(byId("column"), ...state.file.columns.map((name) => make("option", { value: name }, name)));
  byId("column").value = state.file.column;
  preview();
  showGiving(true);
}

function preview() {
  const column = byId("column").value;
  fill(byId("preview"), ...state.file.rows.slice(0, 3).map((row) => make("li", {}, row[column] || "(empty)")));
}

function showGiving(isFile) {
  byId("chosen").hidden = !isFile;
  byId("drop").hidden = isFile;
  byId("texts").hidden = isFile;
  document.querySelector('label[for="texts"]').hidden = isFile;
}

async function give() {
  showFault("give-fault", "");
  const begin = byId("begin");
  begin.disabled = true;
  try {
    const given = state.file ?? { name: "", ...lines(byId("texts").value) };
    const column = state.file ? byId("column").value : "text";
    const columns = state.file ? given.columns.slice(0, 64) : [];
    const rows = given.rows.map((row) => ({
      input: row[column] ?? "",
      ...(columns.length ? { cells: Object.fromEntries(columns.map((name) => [name, row[name] ?? ""])) } : {}),
    }));
    await send(rows, given.name, columns);
  } catch (error) {
    if (error.status === 401) askForKey();
    else showFault("give-fault", error.message);
  } finally {
    begin.disabled = false;
  }
}

async function send(rows, name, columns) {
  const all = [...pieces(rows)];
  const first = { rows: all[0], last: all.length === 1, name: name.slice(0, 200), columns };
  let job = await askJson("v1/jobs", { body: first });
  for (let place = 1; place < all.length; place += 1) {
    byId("begin").textContent = `Sending ${percent(place / all.length)}`;
    job = await askJson(`v1/jobs/${job.id}`, { body: { rows: all[place], last: place === all.length - 1 } });
  }
  byId("begin").textContent = "Analyse";
  history.pushState(null, "", `#${job.id}`);
  open();
  byId("found-title").focus();
}

// -- following ---------------------------------------------------------------------------------------------------

function open() {
  clearTimeout(state.timer);
  const id = location.hash.slice(1);
  byId("giving").hidden = Boolean(id);
  byId("found").hidden = !id;
  state.job = null;
  state.start = 0;
  state.shown = -1;
  if (id) follow(id);
}

async function follow(id) {
  try {
    const job = await askJson(`v1/jobs/${encodeURIComponent(id)}`);
    if (location.hash.slice(1) !== id) return;
    state.job = job;
    showFault("found-fault", job.error ?? "");
    showJob(job);
    const isNew = job.done !== state.shown && (state.matches < state.start + SHOWN || state.shown < 0);
    state.shown = job.done;
    if (isNew) await showRows();
    if (!ENDED.includes(job.status)) state.timer = setTimeout(() => follow(id), 700);
  } catch (error) {
    if (error.status === 401) return askForKey();
    if (error.status === 404) return lost();
    showFault("found-fault", error.message);
    state.timer = setTimeout(() => follow(id), 3000);
  }
}

function lost() {
  history.replaceState(null, "", location.pathname);
  open();
  showFault("give-fault", "That analysis is not there any more. It was deleted, or the server was started anew.");
}

function showJob(job) {
  const isOver = ENDED.includes(job.status);
  const name = job.name || "your texts";
  const titles = { done: `Read ${name}`, cancelled: `Stopped reading ${name}`, failed: `Could not go on with ${name}` };
  byId("found-title").textContent = titles[job.status] ?? `Reading ${name} …`;
  const unread = job.failed ? `, ${job.failed.toLocaleString("en")} of them could not be read` : "";
  const until = job.expires ? ` Deleted at ${new Date(1000 * job.expires).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}.` : "";
  byId("how-far").textContent = `${job.done.toLocaleString("en")} of ${job.total.toLocaleString("en")} rows${unread}.${until}`;
  byId("progress").max = Math.max(1, job.total);
  byId("progress").value = job.done;
  byId("progress").hidden = isOver;
  byId("cancel").hidden = isOver;
  for (const id of ["csv", "jsonl"]) byId(id).disabled = !job.done;
  const n = job.done - job.failed;
  const sides = Object.fromEntries(Object.entries(job.sides).map(([side, rows]) => [side, rows / Math.max(1, n)]));
  fill(byId("sides"), ...(n ? sideBar(sides) : []));
  fill(byId("emotions"), chart(Object.entries(job.emotions), n, sideOf));
  fill(byId("causes"), chart(job.causes.map(({ text, rows }) => [text, rows]), n, () => ""));
  const pick = byId("by-emotion");
  for (const name of Object.keys(job.emotions)) {
    if (![...pick.options].some((option) => option.value === name)) pick.append(make("option", { value: name }, name));
  }
}

/** Bars in SVG, the longest first; what they say is in their text. */
function chart(counts, n, sideFor) {
  if (!counts.length) return make("p.note", {}, "Nothing yet.");
  const [width, step, left, right] = [460, 27, 178, 88];
  const shown = counts.slice(0, N_BARS);
  const scale = (width - left - right) / shown[0][1];
  const label = shown.map(([name, rows]) => `${name} ${rows}`).join(", ");
  const picture = draw("svg", { viewBox: `0 0 ${width} ${step * shown.length}`, role: "img", "aria-label": label });
  shown.forEach(([name, rows], place) => {
    const y = step * place;
    const short = Array.from(name).length > 23 ? `${Array.from(name).slice(0, 22).join("")}…` : name;
    picture.append(
      draw("text", { x: 0, y: y + 18 }, short),
      draw("rect", { class: "track", x: left, y: y + 8, width: width - left - right, height: 11, rx: 5.5 }),
      draw("rect", { class: sideFor(name), x: left, y: y + 8, width: Math.max(3, rows * scale), height: 11, rx: 5.5 }),
      draw("text", { class: "number", x: width, y: y + 18 }, `${rows.toLocaleString("en")} · ${percent(rows / Math.max(1, n))}`),
    );
  });
  return picture;
}

// -- rows --------------------------------------------------------------------------------------------------------

async function showRows() {
  const wanted = new URLSearchParams({ start: state.start, count: SHOWN });
  for (const [name, id] of [["emotion", "by-emotion"], ["side", "by-side"], ["search", "by-text"]]) {
    if (byId(id).value.trim()) wanted.set(name, byId(id).value.trim());
  }
  if (byId("by-error").checked) wanted.set("error", "true");
  state.asked += 1;
  const number = state.asked;
  const { data, matches } = await askJson(`v1/jobs/${state.job.id}/rows?${wanted}`);
  if (number !== state.asked) return; // a later question was answered sooner
  state.matches = matches;
  const rows = data.map((record) => ("error" in record ? unread(record) : row(record)));
  if (!rows.length) rows.push(make("tr", {}, make("td.none", { colspan: 4 }, state.job.done ? "No row is like that." : "Waiting for the first rows …")));
  fill(byId("rows"), ...rows);
  const last = Math.min(state.start + SHOWN, matches);
  byId("where").textContent = matches ? `${(state.start + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${matches.toLocaleString("en")}` : "";
  byId("earlier").disabled = state.start === 0;
  byId("later").disabled = last >= matches;
}

function row(record) {
  const { emotion, emotions, turns } = record;
  const texts = turns.flatMap((turn, index) =>
    index === turns.length - 1 || ofTurn(record.causes, index).length ? [sentence(record, index)] : [],
  );
  return make(
    "tr",
    {},
    make("td.number", {}, record.id || record.row),
    make("td", {}, ...texts),
    emotion === null
      ? make("td", {}, "none named")
      : make("td", {}, make("span", { class: `feels ${sideOf(emotion)}` }, emotion)),
    make("td.number", {}, emotion === null ? "" : percent(emotions[emotion])),
  );
}

function unread(record) {
  return make(
    "tr",
    {},
    make("td.number", {}, record.id || record.row),
    make("td", { colspan: 3 }, make("span.unread", {}, `Not read: ${record.error}`)),
  );
}

// -- controls ----------------------------------------------------------------------------------------------------

function showFault(id, text) {
  byId(id).textContent = text;
  byId(id).hidden = !text;
}

function askForKey() {
  if (!byId("key-dialog").open) byId("key-dialog").showModal();
}

const guarded = (act) => async () => {
  try {
    await act();
  } catch (error) {
    if (error.status === 401) askForKey();
    else showFault("found-fault", error.message);
  }
};

async function save(form, kind) {
  const answer = await ask(`v1/jobs/${state.job.id}/result.${form}`);
  download(`emotions.${form}`, await answer.text(), kind);
}

function listen() {
  byId("give").addEventListener("submit", (event) => {
    event.preventDefault();
    give();
  });
  byId("file").addEventListener("change", (event) => {
    if (event.target.files.length) take(event.target.files[0]);
    event.target.value = "";
  });
  byId("column").addEventListener("change", preview);
  byId("other-file").addEventListener("click", () => {
    state.file = null;
    showGiving(false);
    byId("texts").focus();
  });
  const drop = byId("drop");
  for (const kind of ["dragover", "dragleave", "drop"]) {
    byId("give").addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
    });
  }
  byId("cancel").addEventListener("click", guarded(() => askJson(`v1/jobs/${state.job.id}/cancel`, { method: "POST" })));
  byId("csv").addEventListener("click", guarded(() => save("csv", "text/csv")));
  byId("jsonl").addEventListener("click", guarded(() => save("jsonl", "application/jsonl")));
  byId("delete").addEventListener("click", guarded(async () => {
    await ask(`v1/jobs/${state.job.id}`, { method: "DELETE" });
    history.pushState(null, "", location.pathname);
    open();
    byId("texts").focus();
  }));
  const again = guarded(() => {
    state.start = 0;
    return showRows();
  });
  let pause = 0;
  byId("filters").addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(again, 200);
  });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("earlier").addEventListener("click", guarded(() => move(-SHOWN)));
  byId("later").addEventListener("click", guarded(() => move(SHOWN)));
  byId("key-form").addEventListener("submit", () => {
    useKey(byId("key").value);
    byId("key").value = "";
    start();
  });
  window.addEventListener("popstate", open);
  window.addEventListener("hashchange", open);
}

function move(by) {
  state.start = Math.max(0, state.start + by);
  return showRows();
}

async function start() {
  try {
    await readLabels();
  } catch (error) {
    if (error.status === 401) askForKey();
    else showFault("give-fault", error.message);
    return;
  }
  open();
  document.body.dataset.ready = "true";
}

setTheme();
listen();
start();
