// Elements by name, attributes and children. Text becomes text nodes, never markup.

/**
 * An element.
 * @param {string} kind Tag, with classes after dots: "p.note".
 * @param {Object} [has] Attributes; "on..." are listeners, "--..." CSS variables, true/false set or leave one out.
 * @param {...(Node|string|number|null|undefined|false)} inside Children.
 */
export function make(kind, has = {}, ...inside) {
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  give(element, has);
  add(element, ...inside);
  return element;
}

/** The same in SVG. */
export function draw(tag, has = {}, ...inside) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(has)) element.setAttribute(name, String(value));
  add(element, ...inside);
  return element;
}

/** Adds children; null, undefined and false are left out. */
export function add(element, ...inside) {
  for (const one of inside.flat()) {
    if (one === null || one === undefined || one === false) continue;
    element.append(one instanceof Node ? one : document.createTextNode(String(one)));
  }
  return element;
}

/** Children in place of those there are. */
export function fill(element, ...inside) {
  element.replaceChildren();
  return add(element, ...inside);
}

/** The element with an id. */
export const byId = (id) => document.getElementById(id);

/** Hands a text to the person as a file. */
export function download(name, text, kind = "text/plain") {
  const address = URL.createObjectURL(new Blob([text], { type: `${kind};charset=utf-8` }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A share as it is shown: 42 %, and what is neither nothing nor everything is not called so. */
export function percent(share) {
  if (share > 0 && share < 0.005) return "< 1 %";
  return `${Math.round(100 * share)} %`;
}

function give(element, has) {
  for (const [name, value] of Object.entries(has)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, String(value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}
