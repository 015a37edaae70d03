// The tasks of a HIT, one page each: what is shown, what is asked, what is saved at once.

import { ask, askFirmly, Queue } from "./api.js";
import { bubbles, button, el, paragraphs, saved, show, trouble } from "./dom.js";
import { dragBoard } from "./drag.js";
import { choice, marking, pairOf, select } from "./questions.js";


export class Hit {
  constructor(study, page, onSent) {
    this.study = study;
    this.page = page;
    this.onSent = onSent;
    this.answers = new Map(page.answers.map((answer) => [this.place(answer), answer.value]));
    this.queue = new Queue(page.assignment, (error) => this.refused(error));
    page.answers.forEach((answer) => this.queue.known(answer));
    this.queue.waiting.forEach((answer) => this.answers.set(this.place(answer), answer.value));
    this.validated = new Set();
    const last = Number(sessionStorage.getItem(`empatheia-place-${page.assignment}`) || 0);
    this.at = Math.min(Math.max(0, last), page.tasks.length - 1);
    this.begun = Date.now();
    this.blurred = () => document.hidden && ask("notes", { assignment: page.assignment, events: [{ kind: "blur", task: this.at, seconds: 0 }] }).catch(() => {});
    document.addEventListener("visibilitychange", this.blurred);
    this.queue.flush();
    this.render();
  }

  place({ task, card, criterion }) {
    return `${task}/${card}/${criterion}`;
  }

  value(card, criterion) {
    return this.answers.get(`${this.at}/${card}/${criterion}`);
  }

  answer(card, criterion, value) {
    this.answers.set(`${this.at}/${card}/${criterion}`, value);
    this.queue.put({ assignment: this.page.assignment, task: this.at, card, criterion, value });
    this.update();
  }

  refused(error) {
    trouble(`This answer was not accepted: ${error.message}`);
    if (error.code === "submitted") this.onSent(null);
  }

  isFinished(number = this.at) {
    const task = this.page.tasks[number];
    const prefix = `${number}/`;
    if (Array.isArray(task.needed)) return task.needed.every(([card, criterion]) => this.answers.has(`${number}/${card}/${criterion}`));
    const isLong = task.kind !== "live" || this.mine(task) >= this.study.live.min_turns;
    return isLong && [...this.answers.keys()].filter((key) => key.startsWith(prefix)).length >= task.needed;
  }

  mine(task) {
    return (task.messages || []).filter((message) => message.who === "person").length;
  }

  get task() {
    return this.page.tasks[this.at];
  }

  render() {
    const { task, page } = this;
    sessionStorage.setItem(`empatheia-place-${page.assignment}`, String(this.at));
    this.begun = Date.now();
    const number = `Conversation ${this.at + 1}/${page.tasks.length}`;
    const draw = { drag: "drag", likert: "likert", ab: "pair", pairwise_dialogue: "pair", turn_annotation: "turns", live: "live", compare: "compare" }[task.kind];
    this.next = button(this.at + 1 < page.tasks.length ? "Next" : "Send", () => this.forward(), true);
    const back = button("Back", () => this.go(this.at - 1));
    back.disabled = this.at === 0;
    this.hint = el("p", { class: "note", id: "hint" });
    show(el("h1", {}, number),
      el("progress", { max: String(page.tasks.length), value: String(this.at), "aria-label": number }),
      ...this[draw](task),
      this.hint,
      el("div", { class: "row" }, back, this.next),
      el("p", { class: "note" }, "What you do is saved at once. Going back is fine."));
    this.update();
  }

  update() {
    const { task } = this;
    const mustValidate = task.bonus && this.study.bonus?.must_validate && !this.validated.has(this.at);
    this.next.disabled = !this.isFinished() || mustValidate;
    this.hint.textContent = !this.isFinished() ? "Next is possible when everything on this page is answered." : mustValidate ? "Please press Bonus Validate first." : "";
    if (this.validate) this.validate.disabled = !this.isFinished();
  }

  dwell() {
    const seconds = (Date.now() - this.begun) / 1000;
    ask("notes", { assignment: this.page.assignment, events: [{ kind: "dwell", task: this.at, seconds }] }).catch(() => {});
  }

  go(to) {
    this.dwell();
    trouble("");
    this.validate = null;
    this.at = to;
    this.render();
  }

  async forward() {
    if (!this.isFinished()) return;
    if (this.at + 1 < this.page.tasks.length) return this.go(this.at + 1);
    const missing = this.page.tasks.findIndex((_, number) => !this.isFinished(number));
    if (missing >= 0) return this.go(missing);
    this.dwell();
    this.next.disabled = true;
    await this.queue.flush();
    try {
      const sent = await askFirmly("submit", { assignment: this.page.assignment });
      document.removeEventListener("visibilitychange", this.blurred);
      this.onSent(sent);
    } catch (error) {
      trouble(error.message);
      this.update();
    }
  }

  // protocols

  drag(task) {
    const criterion = this.study.criteria[0];
    const placed = task.cards.map((_, card) => [card, this.value(card, criterion.name)]).filter(([, answer]) => answer);
    const board = dragBoard(task.cards, criterion.answers, criterion.words, placed, (card, answer) => this.answer(card, criterion.name, answer));
    const parts = [bubbles(task.context), el("h2", {}, criterion.question), board.element];
    if (task.bonus) {
      const verdict = el("span", { role: "status", "aria-live": "polite" });
      this.validate = button("Bonus Validate", async () => {
        await this.queue.flush();
        try {
          const { won } = await askFirmly("validate", { assignment: this.page.assignment, task: this.at });
          this.validated.add(this.at);
          verdict.textContent = won ? "You won the point." : "Not this time. You may move replies and try again.";
          this.update();
        } catch (error) { verdict.textContent = error.message; }
      });
      parts.push(el("p", { class: "note" }, "With a bonus task: one of these replies is from a person."), el("div", { class: "row" }, this.validate, verdict));
    }
    return parts;
  }

  likert(task) {
    const several = task.cards.length > 1;
    return [bubbles(task.context), ...task.cards.map((card, place) => el("section", {},
      el("h2", {}, several ? `Reply ${place + 1}` : "The reply"),
      el("p", { class: "reply" }, card.text || "(no reply)"),
      ...this.study.criteria.map((criterion) => choice(`${place}-${criterion.name}`, criterion, this.value(place, criterion.name), (answer) => this.answer(place, criterion.name, answer)))))];
  }

  pair(task) {
    return [bubbles(task.context), pairOf(task.cards),
      ...this.study.criteria.map((criterion) => choice(`pair-${criterion.name}`, this.sides(criterion), this.value(-1, criterion.name), (answer) => this.answer(-1, criterion.name, answer)))];
  }

  sides(criterion) {
    const words = { first: "the first", second: "the second", both: "both equally", neither: "neither", ...criterion.words };
    return { ...criterion, words };
  }

  turns(task) {
    return task.context.map((turn, place) => {
      const who = place % 2 ? "listener" : "speaker";
      const asked = this.study.criteria.filter((criterion) => criterion.turns === "all" || criterion.turns === who);
      return el("section", {}, el("h2", {}, `Turn ${place + 1}, ${who}`), el("p", { class: "reply" }, turn), ...asked.flatMap((criterion) => {
        const name = criterion.name;
        if (criterion.kind === "spans") return [marking(criterion.question, turn, this.value(place, name) || [], (spans) => this.answer(place, name, spans))];
        const pick = criterion.answers.length > 8 ? select : choice;
        const parts = [pick(`${place}-${name}`, criterion, this.value(place, name), (answer) => this.answer(place, name, answer))];
        if (criterion.rationale) parts.push(marking("Which words show it?", turn, this.value(place, `${name}.rationale`) || [], (spans) => this.answer(place, `${name}.rationale`, spans)));
        return parts;
      }));
    });
  }

  live(task) {
    const { live } = this.study;
    const log = el("div", { role: "log", "aria-live": "polite" });
    const draw = () => log.replaceChildren(bubbles(task.messages.map((message) => message.text), ["You", "The listener"]));
    const text = el("textarea", { rows: "3", maxlength: String(live.characters), "aria-label": "Your message" });
    const send = button("Say", async () => {
      if (!text.value.trim()) return;
      send.disabled = true;
      const client = crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`;
      saved("The listener is answering ...");
      try {
        task.messages = (await askFirmly("say", { assignment: this.page.assignment, task: this.at, text: text.value, client })).messages;
        text.value = "";
        draw();
        saved("All answers are saved");
      } catch (error) { trouble(error.message); }
      send.disabled = this.mine(task) >= live.max_turns;
      questions.hidden = this.mine(task) < live.min_turns;
      this.update();
      text.focus();
    });
    draw();
    send.disabled = this.mine(task) >= live.max_turns;
    const questions = el("section", {}, ...this.study.criteria.map((criterion) => choice(`live-${criterion.name}`, criterion, this.value(0, criterion.name), (answer) => this.answer(0, criterion.name, answer))));
    questions.hidden = this.mine(task) < live.min_turns;
    return [...task.context.flatMap(paragraphs), el("p", { class: "note" }, `A machine answers. Say at least ${live.min_turns} things, at most ${live.max_turns}; then the questions follow.`), log, text, el("div", { class: "row" }, send), questions];
  }

  compare() {
    const criterion = { name: "compare", question: this.study.live.compare, answers: ["first", "second", "both", "neither"], words: { first: "the first", second: "the second", both: "both equally", neither: "neither" } };
    return [choice("compare", criterion, this.value(-1, "compare"), (answer) => this.answer(-1, "compare", answer))];
  }
}

// keys 1 to 9 choose in the first question that is open
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || !/^[1-9]$/.test(event.key)) return;
  if (event.target.closest("textarea, input[type=text], select, .card")) return;
  const inside = event.target.closest("fieldset");
  const open = inside || [...document.querySelectorAll("fieldset[data-question]")].find((each) => !each.querySelector("input:checked"));
  const input = open?.querySelector(`input[data-key="${event.key}"]`);
  if (!input) return;
  event.preventDefault();
  input.checked = true;
  input.focus();
  input.dispatchEvent(new Event("change"));
});

