// A collection: a label, a situation, a partner, two conversations. The server shows the page anew after every act.

import { socketAddress, tokenNow } from "./api.js";
import { button, careShown, el, saved, show, trouble } from "./dom.js";

const BEAT = 10_000;

export class Collecting {
  constructor(study, onDone) {
    this.study = study;
    this.onDone = onDone;
    this.waiting = new Map(); // acts that are not acknowledged yet
    this.page = { state: "none" };
    this.drafts = { situation: "", text: "" };
    this.failures = 0;
    this.connect();
    this.beating = setInterval(() => this.act({ do: "beat" }, false), BEAT);
  }

  connect() {
    this.socket = new WebSocket(socketAddress());
    this.socket.addEventListener("open", () => {
      this.failures = 0;
      trouble("");
      this.socket.send(JSON.stringify({ token: tokenNow() }));
      for (const act of this.waiting.values()) this.socket.send(JSON.stringify(act));
    });
    this.socket.addEventListener("message", (event) => this.receive(JSON.parse(event.data)));
    this.socket.addEventListener("close", (event) => {
      if (event.code === 4001 || event.code === 4003 || this.isOver) return clearInterval(this.beating);
      this.failures += 1;
      trouble("The connection is lost. This page connects again by itself; what you wrote is kept.");
      setTimeout(() => this.connect(), Math.min(300 * 2 ** this.failures, 8000));
    });
  }

  receive(told) {
    if (told.ended) return this.stop(told.ended);
    if (told.error) trouble(told.error);
    if (told.ack && told.code !== "store") this.waiting.delete(told.ack);
    if (told.error && told.code !== "store" && !told.ack && this.page.state === "none") return show(el("h1", {}, "Not now"), el("p", {}, told.error));
    if (told.care) careShown(told.care);
    if (told.page) this.draw(told.page);
  }

  stop(reason) {
    this.isOver = true;
    clearInterval(this.beating);
    trouble(reason);
  }

  act(what, isKept = true) {
    const client = crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`;
    const act = { ...what, client };
    if (isKept) this.waiting.set(client, act);
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(act));
  }

  draw(page) {
    const before = JSON.stringify(this.page);
    if (before === JSON.stringify(page)) return;
    const isNew = this.page.state !== page.state || this.page.chat !== page.chat || this.page.round !== page.round;
    const grew = (page.messages?.length || 0) > (this.page.messages?.length || 0);
    this.page = page;
    saved(page.state === "chat" ? "Connected" : "");
    document.title = page.state === "chat" && page.my_turn ? "Your turn" : this.study.title;
    if (page.state === "chat" && !isNew) return this.fill(grew);
    trouble("");
    this[{ offered: "offer", waiting: "wait", chat: "chat", done: "done", left: "left" }[page.state] || "wait"]();
  }

  offer() {
    const [least, most] = this.study.collect.situation_words;
    const text = el("textarea", { rows: "5", id: "situation", on: { input: () => { this.drafts.situation = text.value; } } });
    text.value = this.drafts.situation;
    const labels = this.page.offered.map((label) => el("label", {}, el("input", { type: "radio", name: "label", value: label }), label));
    show(el("h1", {}, "Choose a feeling"),
      el("fieldset", { "data-question": "label" }, el("legend", {}, "Which of these have you felt?"), el("div", { class: "scale" }, ...labels)),
      el("label", { for: "situation" }, "Describe in one to three sentences a situation in which you felt so. Name nobody."), text,
      el("p", { class: "note" }, `${least} to ${most} words.`),
      el("div", { class: "row" }, button("Go on", () => {
        const label = document.querySelector("input[name=label]:checked")?.value;
        if (!label) return trouble("Please choose a feeling.");
        trouble("");
        this.act({ do: "write", label, situation: text.value });
      }, true)));
  }

  wait() {
    show(el("h1", {}, "Waiting for your partner"), el("p", { role: "status" }, "You will meet another person as soon as one is ready. Leave this page open."),
      el("div", { class: "row" }, button("Leave", () => this.leave())));
  }

  chat() {
    const { page } = this;
    const { collect } = this.study;
    const isSpeaker = page.role === "speaker";
    this.log = el("div", { role: "log", "aria-live": "polite" });
    this.turn = el("p", { class: "note", role: "status", "aria-live": "polite" });
    this.text = el("textarea", { rows: "3", maxlength: String(collect.characters), "aria-label": "Your message", on: { input: () => { this.drafts.text = this.text.value; } } });
    this.text.value = this.drafts.text;
    this.say = button("Say", () => this.send(), true);
    this.text.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); this.send(); } });
    this.end = button("Finish this conversation", () => this.act({ do: "finish" }));
    show(el("h1", {}, `Conversation ${page.chat} of ${page.chats}: you ${isSpeaker ? "tell" : "listen"}`),
      el("p", {}, isSpeaker ? "Tell your partner about your situation. They see neither the feeling nor what you wrote." : "Your partner tells about something. Answer to what they went through."),
      isSpeaker ? el("p", { class: "note" }, `Your feeling: ${page.label}. Your situation: ${page.situation}`) : null,
      page.is_machine ? el("p", { class: "note" }, "A machine answers you.") : null,
      this.log, this.turn, this.text, el("div", { class: "row" }, this.say, this.end, button("Leave", () => this.leave())));
    this.fill(true);
  }

  fill(grew) {
    const { page } = this;
    const items = page.messages.map((message) => el("li", { class: message.me ? "second" : "" }, el("span", { class: "who" }, message.me ? "You" : "Partner"), message.text));
    const list = el("ol", { class: "bubbles" }, ...items);
    this.log.replaceChildren(list);
    this.turn.textContent = page.is_partner_quiet ? "Your partner is reconnecting ..." : page.my_turn ? "It is your turn." : "Your partner writes ...";
    this.say.disabled = !page.my_turn;
    this.end.disabled = !page.can_finish;
    if (grew && page.my_turn) this.text.focus();
  }

  send() {
    const text = this.text.value.trim();
    if (!text || this.say.disabled) return;
    trouble("");
    this.say.disabled = true;
    this.act({ do: "say", text });
    this.text.value = this.drafts.text = "";
  }

  leave() {
    if (confirm("Leave this round? What you wrote in it is not used.")) this.act({ do: "leave" });
  }

  left() {
    this.isOver = true;
    this.socket.close();
    clearInterval(this.beating);
    this.onDone(this.page, this.page.code ? "Nobody came. Thank you for waiting; the code below pays for it." : "You have left this round.");
  }

  done() {
    this.isOver = true;
    this.socket.close();
    clearInterval(this.beating);
    this.onDone(this.page, "");
  }
}
