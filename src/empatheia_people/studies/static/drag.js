// Replies dragged into boxes: pointer events for mouse, touch and pen; keys 1, 2, 3 on a reply; buttons for all others.

import { el } from "./dom.js";

const FAR = 5; // pixels before a press is a drag

export function dragBoard(cards, answers, words, placed, onPlace, numbered = "reply") {
  const said = el("p", { class: "note", role: "status", "aria-live": "polite" });
  const boxes = answers.map((answer, number) => el("section", { class: "box", "data-box": answer, "aria-label": words[answer] || answer },
    el("h3", {}, `${title(words[answer] || answer)} `, el("span", { class: "note" }, `(${number + 1})`))));
  const pool = el("section", { class: "pool", "aria-label": "Replies to place" }, el("h3", {}, "Replies to place: drag and drop, or press 1, 2, 3"));
  const made = cards.map((card, place) => makeCard(card, place));
  const home = (answer) => boxes[answers.indexOf(answer)] || pool;

  function put(place, answer, byHand = true) {
    const card = made[place];
    home(answer).append(card);
    for (const each of card.querySelectorAll("[data-answer]")) each.setAttribute("aria-pressed", String(each.dataset.answer === answer));
    if (!byHand) return;
    said.textContent = `${numbered} ${place + 1} is in ${words[answer] || answer}`;
    onPlace(place, answer);
  }

  function makeCard(card, place) {
    const choices = answers.map((answer) => el("button", { type: "button", "data-answer": answer, "aria-pressed": "false",
      on: { click: () => { put(place, answer); made[place].querySelector(`[data-answer="${CSS.escape(answer)}"]`).focus(); } } }, title(words[answer] || answer)));
    const element = el("div", { class: "card", tabindex: "0", role: "group", "data-card": String(place), "aria-label": `${numbered} ${place + 1}` },
      el("span", { class: "handle", "aria-hidden": "true" }, "\u2630"),
      el("span", { class: "text" }, card.text || "(no reply)"),
      el("span", { class: "verdict" }),
      el("div", { class: "move" }, ...choices));
    element.addEventListener("keydown", (event) => {
      const number = Number(event.key);
      if (event.ctrlKey || event.altKey || event.metaKey || !(number >= 1 && number <= answers.length)) return;
      event.preventDefault();
      put(place, answers[number - 1]);
      element.focus();
    });
    element.addEventListener("pointerdown", (event) => startDrag(event, element, place));
    return element;
  }

  function startDrag(event, element, place) {
    if (event.button !== 0 || event.target.closest("button")) return;
    if (event.pointerType === "touch" && !event.target.closest(".handle")) return; // elsewhere a finger scrolls
    const { clientX: x, clientY: y, pointerId } = event;
    let isDragged = false;
    const over = (at) => document.elementFromPoint(at.clientX, at.clientY)?.closest("[data-box]");
    const mark = (box) => boxes.forEach((each) => each.classList.toggle("over", each === box));
    const move = (at) => {
      if (at.pointerId !== pointerId) return;
      if (!isDragged && Math.hypot(at.clientX - x, at.clientY - y) < FAR) return;
      isDragged = true;
      at.preventDefault();
      element.classList.add("dragged");
      element.style.transform = `translate(${at.clientX - x}px, ${at.clientY - y}px)`;
      mark(over(at));
    };
    const end = (at) => {
      if (at.pointerId !== pointerId) return;
      document.removeEventListener("pointermove", move);
      document.removeEventListener("pointerup", end);
      document.removeEventListener("pointercancel", end);
      const box = isDragged && at.type === "pointerup" ? over(at) : null;
      element.classList.remove("dragged");
      element.style.transform = "";
      mark(null);
      if (box && boxes.includes(box)) put(place, box.dataset.box);
      element.focus({ preventScroll: true });
    };
    document.addEventListener("pointermove", move, { passive: false });
    document.addEventListener("pointerup", end);
    document.addEventListener("pointercancel", end);
    if (event.pointerType === "mouse") event.preventDefault();
  }

  pool.append(...made);
  for (const [place, answer] of placed) put(place, answer, false);
  return { element: el("div", {}, el("div", { class: "boxes" }, ...boxes), pool, said), cards: made };
}

const title = (word) => word.charAt(0).toUpperCase() + word.slice(1);
