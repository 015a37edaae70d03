// Light, dark, or as the system has it; both pages. Only a choice made here is remembered.

import { byId, draw, fill } from "./elements.js";

const PLACE = "empatheia.theme";
const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");

/** Sets up the switch. */
export function setTheme() {
  const button = byId("theme");
  const isDark = () => (document.documentElement.dataset.theme ?? (systemIsDark.matches ? "dark" : "light")) === "dark";
  const show = () => {
    fill(button, isDark() ? sun() : moon());
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  };
  const saved = remembered();
  if (saved) document.documentElement.dataset.theme = saved;
  show();
  systemIsDark.addEventListener("change", show);
  button.addEventListener("click", () => {
    const wanted = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = wanted;
    remember(wanted);
    show();
  });
}

function remembered() {
  try {
    const saved = localStorage.getItem(PLACE);
    return saved === "dark" || saved === "light" ? saved : null;
  } catch {
    return null; // the browser keeps nothing
  }
}

function remember(theme) {
  try {
    localStorage.setItem(PLACE, theme);
  } catch {
    // for this page only, then
  }
}

const LINE = {
  viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", "stroke-width": 1.8, "stroke-linecap": "round",
  "stroke-linejoin": "round", "aria-hidden": "true",
};

const moon = () => draw("svg", LINE, draw("path", { d: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z" }));

const sun = () =>
  draw(
    "svg",
    LINE,
    draw("circle", { cx: 12, cy: 12, r: 4 }),
    draw("path", { d: "M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4" }),
  );
