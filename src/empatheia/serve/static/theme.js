// Light, dark, or as the system has it; both pages. Only a choice made here is remembered.

import { byId } from "./elements.js";

const PLACE = "empatheia.theme";
const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");

/** Sets up the switch. */
export function setTheme() {
  const button = byId("theme");
  const isDark = () => (document.documentElement.dataset.theme ?? (systemIsDark.matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
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
