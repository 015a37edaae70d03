// The page to talk: what was said, what was understood of it, and why this reply.

import { askJson, converse, useKey } from "./api.js";
import { Conversation } from "./conversation.js";
import { byId, download, fill, make } from "./elements.js";
import { readLabels } from "./labels.js";
import { Panel } from "./panel.js";
import { setTheme } from "./theme.js";
import { needsCare, Turns } from "./turns.js";

const EXAMPLES = [
  "My dog ran away in the park because of the fireworks, and I am so worried.",
  "I finally passed my driving test after three tries!",
  "My best friend forgot my birthday. I do not know what to say to her.",
];

const state = {
  conversation: Conversation.kept() ?? new Conversation(),
  chosen: null,
  models: [],
  running: null,
  isPair: false,
  isKept: false,
};

const titleOf = (id) => {
  const model = state.models.find((one) => one.id === id);
  const isOnly = state.models.filter((one) => one.empathy?.title === model?.empathy?.title).length === 1;
  if (!model?.empathy || !isOnly) return id;
  return model.empathy.system === "five_steps" ? id : model.empathy.title;
};

const turns = new Turns(byId("turns"), {
  choose: (turn, index) => {
    turn.chosen = index;
    look(turn);
    setView("insight");
  },
  step: (turn, by) => {
    turn.chosen += by;
    look(turn);
  },
  reword,
  retry: (turn, answer) => run(turn, [answer]),
  vote: (turn, vote) => {
    turn.vote = vote;
    if (vote === "left" || vote === "right") turn.chosen = vote === "left" ? 0 : 1;
    look(turn);
    announce("Your vote is noted.");
  },
});

const panel = new Panel(byId("insight"), {
  choose: (index) => {
    look(state.conversation.turns[index]);
    turns.items.get(state.chosen)?.scrollIntoView({ block: "nearest", behavior: "smooth" });
    byId("insight").querySelector('.course [aria-pressed="true"]')?.focus();
  },
  again,
  reword,
  explain: (turn) => again(turn, { empathy: { explain: true } }),
});

// -- showing -----------------------------------------------------------------------------------------------------

function look(turn) {
  const before = state.chosen;
  state.chosen = turn;
  if (before && before !== turn && turns.items.has(before)) turns.show(before, turn, titleOf);
  if (turn) turns.show(turn, turn, titleOf);
  panel.show(state.conversation, turn);
  byId("empty").hidden = state.conversation.turns.length > 0;
  byId("pinned").hidden = !state.conversation.turns.some((one) => one.answers.some(needsCare));
  keep();
}

function keep() {
  if (state.isKept && !state.running) state.isKept = state.conversation.keep(true);
}

function announce(text) {
  byId("said").textContent = text;
}

function setView(view) {
  const room = byId("room");
  room.dataset.view = view;
  for (const button of document.querySelectorAll(".views button")) {
    button.setAttribute("aria-pressed", String(button.dataset.view === view));
  }
}

function toEnd() {
  const log = byId("log");
  log.scrollTop = log.scrollHeight;
}

/** The same wishes, another seed. */
function reword(turn) {
  const seed = 1 + Math.max(0, ...turn.answers.map((answer) => answer.asked.seed ?? 0));
  again(turn, { ...turn.answers[turn.chosen].asked, seed });
}

// -- asking ------------------------------------------------------------------------------------------------------

function send(text) {
  if (state.running || !text.trim()) return;
  const turn = state.conversation.say(text.trim());
  const models = [byId("system").value];
  if (state.isPair) models.push(byId("other").value);
  turn.isPair = state.isPair;
  turn.wasBlind = state.isPair && byId("blind").checked;
  if (turn.wasBlind && Math.random() < 0.5) models.reverse();
  turn.answers = models.map((model) => ({ model, asked: {}, text: "" }));
  byId("message").value = "";
  fit();
  setView("talk");
  run(turn, turn.answers);
}

function again(turn, wish) {
  if (state.running) return;
  const model = turn.answers[turn.chosen].model;
  const answer = { model, asked: wish, text: "" };
  if (turn.isPair) {
    turn.answers = [turn.answers[turn.chosen]];
    turn.isPair = false;
  }
  turn.answers.push(answer);
  turn.chosen = turn.answers.length - 1;
  run(turn, [answer]);
}

async function run(turn, answers) {
  const stop = new AbortController();
  state.running = stop;
  byId("send").hidden = true;
  byId("stop").hidden = false;
  for (const answer of answers) Object.assign(answer, { isWaiting: true, fault: null, text: "" });
  look(turn);
  if (turn === state.conversation.turns.at(-1)) toEnd();
  const messages = state.conversation.messagesFor(turn);
  try {
    for (const answer of answers) await write(turn, answer, messages, stop.signal);
  } finally {
    state.running = null;
    byId("send").hidden = false;
    byId("stop").hidden = true;
    look(turn);
    if (turn === state.conversation.turns.at(-1)) toEnd();
    announce(answers.map((one) => one.fault ?? `Reply: ${one.text}`).join(" "));
  }
}

async function write(turn, answer, messages, signal) {
  const isSteered = Boolean(answer.asked.empathy?.emotion || answer.asked.empathy?.focus);
  try {
    const made = await converse(
      { model: answer.model, messages, ...answer.asked },
      {
        signal,
        onReading: (empathy) => {
          answer.empathy = empathy;
          if (!turn.reading || (!isSteered && !turn.isPair)) turn.reading = empathy;
          look(turn);
        },
        onText: (text) => {
          answer.text = text;
          turns.write(turn, answer);
        },
      },
    );
    Object.assign(answer, made);
  } catch (error) {
    if (error.name === "AbortError") answer.finish = "stopped";
    else answer.fault = error.message;
    if (error.status === 401) askForKey();
  } finally {
    answer.isWaiting = false;
  }
}

// -- controls ----------------------------------------------------------------------------------------------------

function fit() {
  const field = byId("message");
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

function askForKey() {
  if (!byId("key-dialog").open) byId("key-dialog").showModal();
}

function setPair(isPair) {
  state.isPair = isPair;
  byId("compare").setAttribute("aria-pressed", String(isPair));
  for (const id of ["other", "other-label"]) byId(id).hidden = !isPair;
}

async function start() {
  try {
    const [models, care] = await Promise.all([askJson("v1/models"), askJson("v1/care"), readLabels()]);
    state.models = models.data;
    if (care.notice) byId("notice").textContent = care.notice;
  } catch (error) {
    if (error.status === 401) askForKey();
    else fill(byId("empty"), make("p.fault", { role: "alert" }, error.message));
    return;
  }
  for (const id of ["system", "other"]) {
    fill(byId(id), ...state.models.map((one) => make("option", { value: one.id }, titleOf(one.id))));
  }
  byId("other").value = (state.models[1] ?? state.models[0]).id;
  byId("compare").hidden = state.models.length < 2;
  turns.showAll(state.conversation, null, titleOf);
  look(state.conversation.turns.at(-1) ?? null);
  if (state.chosen) toEnd();
  document.body.dataset.ready = "true";
}

function listen() {
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send(byId("message").value);
  });
  byId("message").addEventListener("input", fit);
  byId("message").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send(event.target.value);
    }
  });
  byId("stop").addEventListener("click", () => state.running?.abort());
  byId("compare").addEventListener("click", () => setPair(!state.isPair));
  byId("to-help").addEventListener("click", () => {
    setView("talk");
    const all = document.querySelectorAll(".answer.care");
    all[all.length - 1]?.scrollIntoView({ block: "start" });
  });
  for (const button of document.querySelectorAll(".views button")) {
    button.addEventListener("click", () => setView(button.dataset.view));
  }
  byId("key-form").addEventListener("submit", () => {
    useKey(byId("key").value);
    byId("key").value = "";
    start();
  });
  fill(
    byId("examples"),
    ...EXAMPLES.map((text) => make("li", {}, make("button", { type: "button", onclick: () => send(text) }, text))),
  );
}

function setSettings() {
  const settings = byId("settings");
  state.isKept = state.conversation.turns.length > 0;
  byId("keep").checked = state.isKept;
  byId("more").addEventListener("click", () => {
    const n = state.conversation.votes().length;
    byId("votes").textContent = n ? `${n} ${n === 1 ? "vote" : "votes"} so far.` : "";
    byId("save-votes").disabled = !n;
    settings.showModal();
  });
  byId("keep").addEventListener("change", (event) => {
    state.isKept = state.conversation.keep(event.target.checked) && event.target.checked;
    event.target.checked = state.isKept;
  });
  byId("save-text").addEventListener("click", () => download("conversation.txt", state.conversation.toText()));
  byId("save-json").addEventListener("click", () =>
    download("conversation.json", JSON.stringify(state.conversation.toRecord(), null, 2), "application/json"),
  );
  byId("save-votes").addEventListener("click", () =>
    download("votes.jsonl", state.conversation.votes().map((one) => `${JSON.stringify(one)}\n`).join(""), "application/jsonl"),
  );
  byId("clear").addEventListener("click", () => {
    state.running?.abort();
    state.conversation = new Conversation();
    state.conversation.keep(false);
    if (state.isKept) state.conversation.keep(true);
    turns.showAll(state.conversation, null, titleOf);
    look(null);
    settings.close();
    byId("message").focus();
  });
}

setTheme();
listen();
setSettings();
start();
