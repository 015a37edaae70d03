// The left side: messages and answers.

import { fill, make } from "./elements.js";
import { marked, ofTurn } from "./sentence.js";

/** Shows the turns of a conversation; what a person does is told through `on`. */
export class Turns {
  /**
   * @param {HTMLElement} place
   * @param {Object} on choose(turn, index), step(turn, by), reword(turn), retry(turn, answer), vote(turn, vote).
   */
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.items = new Map();
  }

  /** Shows all, anew. */
  showAll(conversation, chosen, titleOf) {
    this.items.clear();
    fill(this.place);
    for (const turn of conversation.turns) this.show(turn, chosen, titleOf);
  }

  /** Shows a turn, or shows it again after a change; focus stays on the control that had it. */
  show(turn, chosen, titleOf) {
    let item = this.items.get(turn);
    if (!item) {
      item = make("li.turn");
      this.items.set(turn, item);
      this.place.append(item);
    }
    const had = item.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    item.setAttribute("aria-current", String(turn === chosen));
    const last = (turn.reading?.turns.length ?? 0) - 1;
    const causes = turn.reading ? ofTurn(turn.reading.causes, last) : [];
    fill(
      item,
      make("p.said", {}, make("span.away", {}, "You: "), ...marked(turn.text, causes)),
      make(turn.isPair ? "div.answers.two" : "div.answers", {}, ...this.#answers(turn, chosen, titleOf)),
      turn.isPair && !turn.answers.some((one) => one.isWaiting || one.fault) && this.#vote(turn, titleOf),
    );
    if (had) item.querySelector(`[data-act="${had}"]`)?.focus();
  }

  /** The text of a reply on its way: only that changes. */
  write(turn, answer) {
    const reply = this.items.get(turn)?.querySelector(`[data-answer="${turn.answers.indexOf(answer)}"] .reply`);
    if (reply) reply.textContent = answer.text;
  }

  #answers(turn, chosen, titleOf) {
    if (turn.isPair) return turn.answers.map((answer, index) => this.#answer(turn, answer, index, chosen, titleOf));
    const answer = turn.answers[turn.chosen];
    return answer ? [this.#answer(turn, answer, turn.chosen, chosen, titleOf)] : [];
  }

  #answer(turn, answer, index, chosen, titleOf) {
    const isCrisis = needsCare(answer);
    const box = make("article.answer", { "data-answer": index });
    if (index === turn.chosen) box.classList.add("chosen");
    if (isCrisis) box.classList.add("care");
    const isNamed = !turn.wasBlind || turn.vote !== null;
    const name = turn.isPair ? (isNamed ? titleOf(answer.model) : `Reply ${"AB"[index]}`) : "empatheia";
    box.append(make(turn.isPair ? "p.name" : "p.name.away", {}, name));
    if (isCrisis) box.append(make("h3", {}, "Please read this first"));
    const reply = make("div.reply", {}, ...(isCrisis ? listed(answer.text) : [answer.text]));
    if (answer.isWaiting) reply.classList.add("waiting");
    if (answer.text || answer.isWaiting) box.append(reply);
    if (answer.fault) {
      box.append(
        make("div.fault", { role: "alert" }, make("p", {}, answer.fault),
          make("button.button.quiet", { type: "button", "data-act": "retry", onclick: () => this.on.retry(turn, answer) }, "Try again")),
      );
    }
    if (!answer.isWaiting && !answer.fault) box.append(this.#doing(turn, answer, index, chosen));
    return box;
  }

  #doing(turn, answer, index, chosen) {
    const row = make("div.doing");
    const isLooked = turn === chosen && index === turn.chosen;
    const act = (name, text, onclick, more = {}) =>
      make("button.button.quiet", { type: "button", "data-act": `${name}-${index}`, onclick, ...more }, text);
    row.append(
      act("why", turn.isPair ? "Look at this one" : "Why this reply?", () => this.on.choose(turn, index), {
        "aria-pressed": String(isLooked),
      }),
    );
    if (!turn.isPair) {
      row.append(act("again", "Other words", () => this.on.reword(turn)));
      if (turn.answers.length > 1) {
        row.append(
          act("back", "‹", () => this.on.step(turn, -1), { "aria-label": "Earlier reply", disabled: turn.chosen === 0 }),
          make("span.note", {}, `${turn.chosen + 1} of ${turn.answers.length}`),
          act("on", "›", () => this.on.step(turn, 1), {
            "aria-label": "Later reply",
            disabled: turn.chosen === turn.answers.length - 1,
          }),
        );
      }
    }
    for (const tag of wishesOf(answer)) row.append(make("span.tag", {}, tag));
    if (answer.finish === "stopped") row.append(make("span.tag", {}, "stopped"));
    if (answer.empathy?.care?.level === "concern") row.append(make("span.tag", {}, "checked for safety"));
    return row;
  }

  #vote(turn, titleOf) {
    const box = make("fieldset.vote", {}, make("legend", {}, "Which of the two listens better?"));
    const row = make("div.row");
    for (const [vote, text] of [["left", "A"], ["right", "B"], ["both", "Both"], ["neither", "Neither"]]) {
      row.append(
        make("button.button", {
          type: "button",
          "data-act": `vote-${vote}`,
          "aria-pressed": String(turn.vote === vote),
          onclick: () => this.on.vote(turn, vote),
        }, text),
      );
    }
    box.append(row);
    if (turn.vote !== null && turn.wasBlind) {
      box.append(make("p.note", {}, `A was ${titleOf(turn.answers[0].model)}, B was ${titleOf(turn.answers[1].model)}.`));
    }
    return box;
  }
}

/** Whether a safe reply stands there, with those who can help. */
export function needsCare(answer) {
  return answer?.empathy?.care?.level === "crisis" || answer?.empathy?.spoke?.responder === "care";
}

/** What was asked of an answer, in a word each. */
function wishesOf({ asked }) {
  const { emotion, intent, focus } = asked?.empathy ?? {};
  return [emotion, intent, ...(Array.isArray(focus) ? focus.map((word) => `“${word}”`) : [])].filter(Boolean);
}

/** A text whose lines that begin with a dash are a list; addresses and numbers can be followed. */
function listed(text) {
  const parts = [];
  let list = null;
  for (const line of text.split("\n")) {
    if (line.startsWith("- ")) {
      if (!list) {
        list = make("ul");
        parts.push(list);
      }
      list.append(make("li", {}, ...linked(line.slice(2))));
    } else {
      list = null;
      parts.push(make("p", {}, ...linked(line)));
    }
  }
  return parts;
}

const FOLLOWED = /(https?:\/\/[^\s)<>"]*[^\s)<>".,;:]|\+?\d[\d \u2011-]{1,}\d)/u;

function linked(text) {
  return text.split(FOLLOWED).map((part, place) => {
    if (place % 2 === 0) return part;
    const isPage = part.startsWith("http");
    const href = isPage ? part : `tel:${part.replace(/[^\d+]/g, "")}`;
    return make("a", isPage ? { href, rel: "noreferrer noopener", target: "_blank" } : { href }, part);
  });
}
