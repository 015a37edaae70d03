// The way through a study: consent, welcome, instructions, questions, tasks, thanks. A reload goes on where one was.

import { askFirmly, Refused, useToken } from "./api.js";
import { Collecting } from "./collect.js";
import { bubbles, button, el, paragraphs, show, trouble } from "./dom.js";
import { dragBoard } from "./drag.js";
import { Hit } from "./tasks.js";

const query = Object.fromEntries(new URLSearchParams(location.search));
let study;
let isPreview = false;

async function begin() {
  study = await askFirmly("study");
  document.documentElement.lang = study.language;
  document.title = study.title;
  document.getElementById("title").textContent = study.title;
  document.getElementById("contact").textContent = study.texts.contact;
  if (study.entry === "open" && !query.visitor) query.visitor = visitor();
  const entered = await askFirmly("enter", { query });
  isPreview = entered.preview;
  if (isPreview) return welcome({ consented: true, passed: true });
  useToken(entered.token);
  const withdraw = document.getElementById("withdraw");
  withdraw.hidden = false;
  withdraw.addEventListener("click", leave);
  const me = await askFirmly("me");
  if (!me.consented) return consent(me);
  if (sessionStorage.getItem("empatheia-begun")) return me.passed ? work() : questions(me);
  return welcome(me);
}

function visitor() {
  try {
    let name = localStorage.getItem("empatheia-visitor");
    if (!name) localStorage.setItem("empatheia-visitor", name = `visitor-${crypto.randomUUID ? crypto.randomUUID() : Math.random()}`);
    return name;
  } catch { return `visitor-${Math.random()}`; }
}

async function leave() {
  if (!confirm("Delete everything you did in this study? This cannot be undone.")) return;
  await askFirmly("withdraw", {});
  document.getElementById("withdraw").hidden = true;
  show(el("h1", {}, "Your data are deleted"), el("p", {}, "You may close this page."));
}

function consent(me) {
  show(el("h1", {}, "Before you begin"), ...paragraphs(study.texts.consent),
    el("div", { class: "row" }, button("I agree", async () => { await askFirmly("consent", {}); welcome(me); }, true),
      button("I do not agree", () => show(el("h1", {}, "Thank you"), el("p", {}, "Nothing was kept. You may close this page.")))));
}

function welcome(me) {
  const { payment } = study;
  const pay = payment.base ? el("p", {}, `You get ${payment.base.toFixed(2)} ${payment.currency} for about ${study.minutes} minutes (${payment.hour.toFixed(2)} an hour)${payment.bonus ? `, and a bonus of ${payment.bonus.toFixed(2)} ${payment.currency} if you win all ${study.bonus?.tasks ?? ""} points` : ""}.`) : null;
  show(el("h1", {}, study.title), isPreview ? el("p", { class: "note" }, "This is a preview; accept the task to begin.") : null,
    ...paragraphs(study.texts.welcome), pay, study.requirements ? el("p", { class: "note" }, study.requirements) : null,
    el("div", { class: "row" }, button("Next", () => instructions(me), true)));
}

function instructions(me) {
  if (!study.texts.instructions && !study.warm_up) return onward(me);
  const parts = [el("h1", {}, "How does each task work?"), ...paragraphs(study.texts.instructions)];
  if (study.warm_up) parts.push(...warmUp());
  show(...parts, el("div", { class: "row" }, button("Back", () => welcome(me)), isPreview ? null : button("Next", () => onward(me), true)));
}

function warmUp() {
  const criterion = study.criteria[0];
  const placed = new Map();
  const board = dragBoard(study.warm_up.cards, criterion.answers, criterion.words, [], (card, answer) => { placed.set(card, answer); check.disabled = placed.size < study.warm_up.cards.length; });
  const check = button("Validate", async () => {
    const { right } = await askFirmly("warm-up", { answers: study.warm_up.cards.map((_, place) => placed.get(place) || "") });
    board.cards.forEach((card, place) => {
      const verdict = card.querySelector(".verdict");
      verdict.textContent = right[place] ? " (Good job!)" : " (Maybe another try?)";
      verdict.className = `verdict ${right[place] ? "right" : "wrong"}`;
    });
  });
  check.disabled = true;
  return [el("h2", {}, "To warm up"), bubbles(study.warm_up.context), board.element, el("div", { class: "row" }, check)];
}

function onward(me) {
  if (isPreview) return;
  sessionStorage.setItem("empatheia-begun", "yes");
  if (!me.passed && study.questions.length) return questions(me);
  return work();
}

function questions(me) {
  if (me.left <= 0) return over(`The questions were not answered rightly, so this study cannot go on for you.${me.code ? "" : " Please return the task on the platform."}`, me);
  const asked = study.questions.map((question, number) => el("fieldset", {}, el("legend", {}, question.question), el("div", { class: "scale" },
    ...question.answers.map((answer, place) => el("label", {}, el("input", { type: "radio", name: `q${number}`, value: String(place) }), answer)))));
  show(el("h1", {}, "Did we explain it well?"), el("p", { class: "note" }, `You have ${me.left} attempt${me.left > 1 ? "s" : ""}.`), ...asked,
    el("div", { class: "row" }, button("Check", async () => {
      const answers = study.questions.map((_, number) => Number(document.querySelector(`input[name=q${number}]:checked`)?.value ?? -1));
      if (answers.includes(-1)) return trouble("Please answer every question.");
      trouble("");
      const found = await askFirmly("questions", { answers });
      if (found.passed) return work();
      trouble("Not all answers were right.");
      questions({ ...me, ...found });
    }, true)));
}

async function work() {
  if (study.protocol === "collect") return new Collecting(study, (page, said) => thanks({ ...page, points: null }, said));
  const page = await askFirmly("take", {});
  return new Hit(study, page, (sent) => (sent ? thanks(sent, "") : work().catch(told)));
}

function thanks(sent, said) {
  const parts = [el("h1", {}, said ? "The end of this round" : "Thank you")];
  if (said) parts.push(el("p", {}, said));
  else parts.push(...paragraphs(study.texts.thanks));
  parts.push(...wayOut(sent));
  if (study.bonus && sent.points !== null) parts.push(el("p", {}, `You won ${sent.points} of ${study.bonus.tasks} points${sent.paid_bonus ? ", and with them the bonus" : ""}.`));
  if (sent.is_extra) parts.push(el("p", { class: "note" }, "Your seat had been given to somebody else meanwhile; your answers are kept all the same, and the code is valid."));
  parts.push(el("div", { class: "row" }, button("Do another one", () => work().catch(told))));
  show(...parts.filter(Boolean));
}

// the code for the platform, and the link that takes it there
function wayOut({ code, url }) {
  return [code ? el("p", {}, "Your code: ", el("code", { class: "code" }, code)) : null,
    url ? el("p", {}, el("a", { href: url, rel: "noreferrer" }, "Back to the platform")) : null];
}

function over(text, way = {}) {
  show(...[el("h1", {}, "This study does not go on here"), el("p", {}, text), ...wayOut(way)].filter(Boolean));
}

function told(error) {
  if (error instanceof Refused) return over(error.message);
  trouble("This page made a mistake. Reload it; what was saved is kept.");
  throw error;
}

window.addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Refused) {
    event.preventDefault();
    over(event.reason.message);
  }
});

begin().catch(told);
