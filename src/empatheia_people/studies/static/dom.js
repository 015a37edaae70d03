// Elements without markup in strings: whatever people or systems wrote is only ever text.

export function el(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function paragraphs(text) {
  return String(text || "").split(/\n\s*\n/).filter((part) => part.trim()).map((part) => el("p", {}, part.replace(/\s*\n\s*/g, " ")));
}

export function bubbles(turns, names = ["Speaker 1", "Speaker 2"]) {
  return el("ol", { class: "bubbles" }, ...turns.map((turn, place) =>
    el("li", { class: place % 2 ? "second" : "" }, el("span", { class: "who" }, names[place % 2]), turn)));
}

export function show(...content) {
  const main = document.getElementById("main");
  main.replaceChildren(...content);
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

export function trouble(text) {
  const place = document.getElementById("trouble");
  place.textContent = text || "";
  place.hidden = !text;
}

// where help is: stays until it is put away
export function careShown(text) {
  const place = document.getElementById("care");
  const away = button("Put away", () => { place.hidden = true; });
  place.replaceChildren(el("p", {}, "What you wrote sounds as if somebody is in danger. People who can help:"), ...String(text).split("\n").map((line) => el("p", {}, line)), away);
  place.hidden = false;
}

export function saved(text) {
  document.getElementById("saved").textContent = text;
}

export const button = (text, act, main = false) =>
  el("button", { type: "button", class: main ? "main" : null, on: { click: act } }, text);
