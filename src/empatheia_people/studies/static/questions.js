// Questions with answers to choose, pairs, and turns with words to mark.

import { bubbles, el } from "./dom.js";
import { wordsOf } from "./points.js";

export function choice(id, criterion, value, onChoose) {
  const answers = criterion.answers.map((answer, number) => {
    const word = criterion.words[answer];
    const shown = word && word !== answer && /^\d+$/.test(answer) ? `${answer} (${word})` : word || answer;
    return el("label", {}, el("input", { type: "radio", name: id, value: answer, checked: answer === value,
      "data-key": number < 9 ? number + 1 : null, on: { change: () => onChoose(answer) } }), shown);
  });
  return el("fieldset", { "data-question": id }, el("legend", {}, criterion.question || criterion.name), el("div", { class: "scale" }, ...answers));
}

export function select(id, criterion, value, onChoose) {
  const options = ["", ...criterion.answers].map((answer) => el("option", { value: answer, selected: answer === (value ?? "") }, criterion.words[answer] || answer || "choose ..."));
  const made = el("select", { id, on: { change: () => made.value && onChoose(made.value) } }, ...options);
  return el("p", {}, el("label", { for: id }, criterion.question || criterion.name), made);
}

// words as buttons: selecting text marks what it covers, arrow keys move, space or a click marks one word
export function marking(label, text, spans, onMark) {
  const words = wordsOf(text);
  const isMarked = words.map((word) => spans.some(([start, end]) => start < word.end && word.start < end));
  const made = words.map((word, place) => el("button", { type: "button", tabindex: place ? "-1" : "0", "aria-pressed": String(isMarked[place]),
    on: { click: () => { if (!hasSelection()) toggle([place], !isMarked[place]); }, keydown: (event) => step(event, place) } }, word.text));

  const hasSelection = () => { const chosen = getSelection(); return chosen && !chosen.isCollapsed; };

  function step(event, place) {
    const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: made.length - 1 }[event.key];
    if (next === undefined || !made[next]) return;
    event.preventDefault();
    made[place].tabIndex = -1;
    made[next].tabIndex = 0;
    made[next].focus();
  }

  function toggle(places, on) {
    for (const place of places) {
      isMarked[place] = on;
      made[place].setAttribute("aria-pressed", String(on));
    }
    const found = [];
    words.forEach((word, place) => {
      if (!isMarked[place]) return;
      const last = found.at(-1);
      if (last && isMarked[place - 1]) last[1] = word.end;
      else found.push([word.start, word.end]);
    });
    onMark(found);
  }

  const line = el("p", { class: "words", role: "group", "aria-label": label });
  made.forEach((word, place) => line.append(...(place ? [" "] : []), word));
  line.addEventListener("pointerup", () => {
    const chosen = getSelection();
    if (!chosen || chosen.isCollapsed) return;
    const covered = made.map((word, place) => (chosen.containsNode(word, true) ? place : -1)).filter((place) => place >= 0);
    chosen.removeAllRanges();
    if (covered.length) toggle(covered, !covered.every((place) => isMarked[place]));
  });
  return el("div", {}, el("p", { class: "note" }, label), line);
}

export function pairOf(cards) {
  return el("div", { class: "pair" }, ...cards.map((card, place) => el("section", { "aria-label": place ? "The second" : "The first" },
    el("h2", {}, place ? "The second" : "The first"),
    card.turns?.length ? bubbles(card.turns) : el("p", { class: "reply" }, card.text || "(no reply)"))));
}
