// Files and pasted texts as rows: CSV, TSV, JSON lines, one text a line. Read in the browser; what is wrong is said.

const USUAL = ["text", "utterance", "sentence", "message", "body", "content", "post", "comment", "review"];

/** What is wrong with a file. */
export class Unreadable extends Error {}

/**
 * Rows of a file.
 * @returns {{columns: string[], rows: Array<Object<string, string>>, column: string}} column: which holds the texts,
 *   as it seems.
 */
export function readRows(name, text) {
  const content = text.replace(/^\uFEFF/, "");
  if (content.includes("\0")) throw new Unreadable("This is no text file. Accepted: CSV, TSV, JSON lines, text.");
  const kind = name.split(".").pop().toLowerCase();
  if (kind === "csv" || kind === "tsv") return table(content, kind === "tsv" ? "\t" : delimiterOf(content));
  if (kind === "jsonl" || kind === "ndjson") return jsonLines(content);
  return lines(content);
}

/** A text a line. */
export function lines(text) {
  const rows = text.split(/\r?\n/).filter((line) => line.trim()).map((line) => ({ text: line.trim() }));
  if (!rows.length) throw new Unreadable("There is no text in it.");
  return { columns: ["text"], rows, column: "text" };
}

function table(text, delimiter) {
  const records = [...cells(text, delimiter)].filter((record) => record.some((cell) => cell.trim()));
  if (records.length < 2) throw new Unreadable("There is no row below the names of the columns.");
  const columns = unique(records[0].map((name, place) => name.trim() || `column ${place + 1}`));
  const rows = records.slice(1).map((record) => Object.fromEntries(columns.map((name, place) => [name, record[place] ?? ""])));
  return { columns, rows, column: likely(columns, rows) };
}

/** Records of RFC 4180: quoted cells hold delimiters, line ends and doubled quotes. */
function* cells(text, delimiter) {
  let record = [];
  let place = 0;
  while (place < text.length) {
    let cell = "";
    if (text[place] === '"') {
      place += 1;
      for (;;) {
        const end = text.indexOf('"', place);
        if (end < 0) throw new Unreadable("A quotation mark is opened and never closed.");
        cell += text.slice(place, end);
        place = end + 1;
        if (text[place] !== '"') break;
        cell += '"';
        place += 1;
      }
    }
    const rest = place;
    while (place < text.length && text[place] !== delimiter && text[place] !== "\n" && text[place] !== "\r") place += 1;
    record.push(cell + text.slice(rest, place));
    if (text[place] === delimiter && place + 1 < text.length) {
      place += 1;
      continue;
    }
    if (text[place] === delimiter) record.push("");
    if (text[place] === "\r" && text[place + 1] === "\n") place += 1;
    place += 1;
    yield record;
    record = [];
  }
}

function delimiterOf(text) {
  const head = text.slice(0, text.search(/[\r\n]|$/));
  return [",", ";", "\t"].sort((one, other) => head.split(other).length - head.split(one).length)[0];
}

function jsonLines(text) {
  const rows = [];
  const columns = new Set();
  text.split(/\r?\n/).forEach((line, place) => {
    if (!line.trim()) return;
    let value;
    try {
      value = JSON.parse(line);
    } catch {
      throw new Unreadable(`Line ${place + 1} is no JSON.`);
    }
    const record = typeof value === "string" ? { text: value } : value;
    if (record === null || typeof record !== "object" || Array.isArray(record)) {
      throw new Unreadable(`Line ${place + 1} holds neither an object nor a text.`);
    }
    const row = {};
    for (const [name, cell] of Object.entries(record)) {
      row[name] = typeof cell === "string" ? cell : JSON.stringify(cell);
      columns.add(name);
    }
    rows.push(row);
  });
  if (!rows.length) throw new Unreadable("There is no row in it.");
  const names = [...columns];
  return { columns: names, rows, column: likely(names, rows) };
}

/** The column that holds the texts: of a usual name, else the one with the longest cells. */
function likely(columns, rows) {
  const usual = USUAL.map((name) => columns.find((column) => column.toLowerCase() === name)).find(Boolean);
  if (usual) return usual;
  const some = rows.slice(0, 50);
  const length = (name) => some.reduce((sum, row) => sum + (row[name] ?? "").length, 0);
  return [...columns].sort((one, other) => length(other) - length(one))[0];
}

function unique(names) {
  const seen = new Map();
  return names.map((name) => {
    const n = (seen.get(name) ?? 0) + 1;
    seen.set(name, n);
    return n > 1 ? `${name} ${n}` : name;
  });
}

/** Pieces of rows, each small enough for one request. */
export function* pieces(rows, most = 400_000) {
  let piece = [];
  let size = 0;
  for (const row of rows) {
    const own = new TextEncoder().encode(JSON.stringify(row)).length + 1;
    if (piece.length && (size + own > most || piece.length >= 2000)) {
      yield piece;
      piece = [];
      size = 0;
    }
    piece.push(row);
    size += own;
  }
  if (piece.length) yield piece;
}
