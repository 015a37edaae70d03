// Asking the server, and a queue of answers that outlives a reload and a server that is away.

import { saved, trouble } from "./dom.js";

const HERE = new URL("./api/", import.meta.url);
let token = null;

export class Refused extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function useToken(word) {
  token = word;
}

export const tokenNow = () => token;

export function socketAddress() {
  const place = new URL("room", HERE);
  place.protocol = place.protocol.replace("http", "ws");
  return place;
}

export async function ask(path, body, method = body === undefined ? "GET" : "POST") {
  let answer;
  try {
    answer = await fetch(new URL(path, HERE), {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...(token ? { authorization: `Bearer ${token}` } : {}) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "the server cannot be reached.", "away");
  }
  let found = {};
  try { found = await answer.json(); } catch { /* a proxy's page */ }
  if (!answer.ok) throw new Refused(answer.status, found.error?.message || `the server answered ${answer.status}.`, found.error?.code);
  return found;
}

// asks until the server is there; what it refuses is the caller's
export async function askFirmly(path, body, method) {
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      const found = await ask(path, body, method);
      trouble("");
      return found;
    } catch (error) {
      if (!isAway(error)) throw error;
      trouble("The server cannot be reached. This page tries again by itself; leave it open.");
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

const isAway = (error) => error.status === 0 || error.status === 408 || error.status >= 500;

export class Queue {
  constructor(assignment, refused) {
    this.key = `empatheia-study-${assignment}`;
    this.refused = refused;
    this.versions = new Map();
    this.running = null;
    this.failures = 0;
    try { this.waiting = JSON.parse(localStorage.getItem(this.key) || "[]"); } catch { this.waiting = []; }
  }

  put(answer) {
    const client = crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`;
    this.waiting.push({ ...answer, client });
    this.keep();
    return this.flush();
  }

  keep() {
    try {
      if (this.waiting.length) localStorage.setItem(this.key, JSON.stringify(this.waiting));
      else localStorage.removeItem(this.key);
    } catch { /* private windows may have no storage; the queue then lives as long as the page */ }
  }

  known(answer) {
    this.versions.set(`${answer.task}/${answer.card}/${answer.criterion}`, answer.version);
  }

  flush() {
    this.running ??= this.send().finally(() => { this.running = null; });
    return this.running;
  }

  async send() {
    while (this.waiting.length) {
      const answer = this.waiting[0];
      const place = `${answer.task}/${answer.card}/${answer.criterion}`;
      saved("Saving ...");
      try {
        const kept = await ask("rating", { ...answer, seen: this.versions.get(place) ?? null }, "PUT");
        this.versions.set(place, kept.version);
        if (kept.other) trouble("This task is open in another tab, too; the newest answer counts.");
        else if (this.failures) trouble("");
        this.failures = 0;
      } catch (error) {
        if (isAway(error)) {
          this.failures += 1;
          const n = this.waiting.length;
          saved(`${n} not saved yet`);
          trouble(`The server cannot be reached: ${n} answer${n > 1 ? "s are" : " is"} kept on this page and will be sent when it is back. Go on, or wait.`);
          await new Promise((done) => setTimeout(done, Math.min(500 * 2 ** this.failures, 8000)));
          continue;
        }
        this.waiting.shift();
        this.keep();
        this.refused(error);
        continue;
      }
      this.waiting.shift();
      this.keep();
    }
    saved("All answers are saved");
  }
}
