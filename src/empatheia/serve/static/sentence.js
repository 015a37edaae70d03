// A text whose words are shaded by their cause probability.

import { make, percent } from "./elements.js";
import { cut } from "./points.js";

/** Spans of one turn. */
export const ofTurn = (spans, turn) => (spans ?? []).filter((span) => span.turn === turn);

/** Whether a word lies in one of the spans. */
const isWithin = (word, spans) => spans.some((span) => word.start >= span.start && word.end <= span.end);

/** What is told of a word. */
function told(word) {
  return word.score === null ? "you chose this word" : `cause: ${percent(word.score)}`;
}

/**
 * A turn's text with its words shaded; words can be chosen where `onChoose` is given.
 * @param {Object} reading `turns`, `words`, `causes` of an answer.
 * @param {number} turn
 * @param {Object} [choosing] chosen: Set of "start-end", onChoose(word).
 */
export function sentence(reading, turn, choosing = null) {
  const causes = ofTurn(reading.causes, turn);
  const words = ofTurn(reading.words, turn);
  const box = make("p.sentence", choosing ? { role: "group", "aria-label": "Words of the message" } : {});
  const buttons = [];
  for (const { text, span } of cut(reading.turns[turn].text, words.length ? words : causes)) {
    if (span === null) {
      box.append(text);
      continue;
    }
    const has = {
      "--heat": span.score ?? 0.6,
      "data-start": span.start,
      "data-end": span.end,
      "data-score": span.score,
      "data-tip": told(span),
      class: isWithin(span, causes) ? "word cause" : "word",
    };
    if (choosing && /[\p{L}\p{N}]/u.test(text)) {
      const button = make("button", { ...has, type: "button", tabindex: buttons.length ? -1 : 0 }, text);
      button.setAttribute("aria-pressed", String(choosing.chosen.has(keyOf(span))));
      button.setAttribute("aria-label", `${text}, ${told(span)}`);
      button.addEventListener("click", () => {
        button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
        choosing.onChoose(span);
      });
      buttons.push(button);
      box.append(button);
    } else {
      box.append(make("mark", has, text));
    }
  }
  box.addEventListener("keydown", (event) => walk(event, buttons));
  return box;
}

/** The name under which a word is held as chosen. */
export const keyOf = (span) => `${span.start}-${span.end}`;

/** Arrows go from word to word: a sentence is one stop of the Tab key. */
function walk(event, buttons) {
  const here = buttons.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (here < 0 || !(step || event.key === "Home" || event.key === "End")) return;
  const last = buttons.length - 1;
  const next = event.key === "Home" ? 0 : event.key === "End" ? last : Math.min(last, Math.max(0, here + step));
  event.preventDefault();
  buttons[here].tabIndex = -1;
  buttons[next].tabIndex = 0;
  buttons[next].focus();
}

/** A message as it stands in the conversation: what caused the feeling is underlined. */
export function marked(text, causes) {
  return cut(text, causes).map(({ text: part, span }) =>
    span === null ? part : make("mark", { "--heat": Math.max(0.35, span.score ?? 0.6) }, part),
  );
}
