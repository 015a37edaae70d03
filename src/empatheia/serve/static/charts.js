// Shares as bars, feelings over time: made of elements and SVG by script.

import { draw, make, percent } from "./elements.js";
import { sideOf } from "./labels.js";

/**
 * Bars, largest first.
 * @param {Array<[string, number]>} shares Name and share of the largest possible bar, 0 to 1.
 * @param {Object} [as] sideFor(name) -> a side, say(name, share) -> what stands at the end of the bar.
 */
export function bars(shares, { sideFor = sideOf, say = (name, share) => percent(share), scale = 1 } = {}) {
  return make(
    "ol.bars",
    {},
    ...shares.map(([name, share]) => {
      const inner = make("span.fill");
      inner.style.width = `${Math.max(0.6, Math.min(100, (100 * share) / scale))}%`;
      return make(
        "li",
        { class: `bar ${sideFor(name)}` },
        make("span.what", {}, name),
        make("span.track", { "aria-hidden": "true" }, inner),
        make("span.share", {}, say(name, share)),
      );
    }),
  );
}

/** The largest shares: [[name, share]]. */
export function largest(shares, n) {
  return Object.entries(shares)
    .sort((one, other) => other[1] - one[1])
    .slice(0, n);
}

/** One bar of the three sides, and its key. */
export function sideBar(sides) {
  const names = ["pleasant", "mixed", "unpleasant"].filter((name) => name in sides);
  const strip = make("div.sides", { "aria-hidden": "true" });
  const key = make("p.key");
  for (const name of names) {
    const part = make("span", { class: name });
    part.style.flexGrow = String(sides[name]);
    strip.append(part);
    key.append(make("span", { class: name }, `${name} ${percent(sides[name])}`));
  }
  return [strip, key];
}

/**
 * What was felt over the conversation: up is pleasant, down unpleasant.
 * @param {Array<{emotion: string, share: number, height: number, index: number}>} points height -1 to 1.
 * @param {number} chosen Index of the turn that is looked at.
 * @param {function(number)} onChoose
 */
export function course(points, chosen, onChoose) {
  const x = (place) => (points.length === 1 ? 50 : (100 * place) / (points.length - 1));
  const y = (height) => 50 - 34 * height;
  const picture = draw(
    "svg",
    { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("line", { class: "zero", x1: 0, x2: 100, y1: 50, y2: 50, "vector-effect": "non-scaling-stroke" }),
    draw("polyline", { class: "path", points: points.map((one, place) => `${x(place)},${y(one.height)}`).join(" ") }),
  );
  const box = make("div", { class: points.length > 5 ? "course crowded" : "course" }, picture);
  points.forEach((one, place) => {
    const classes = [sideOf(one.emotion), one.height > 0 ? "up" : "down"];
    if (place === 0) classes.push("first");
    if (place === points.length - 1) classes.push("last");
    const button = make(
      "button",
      {
        type: "button",
        class: classes.join(" "),
        "aria-pressed": String(one.index === chosen),
        "aria-label": `Message ${one.index + 1}: ${one.emotion}, ${percent(one.share)}`,
        onclick: () => onChoose(one.index),
      },
      make("span.feels", { "aria-hidden": "true" }, one.emotion),
    );
    button.style.left = `${x(place)}%`;
    button.style.top = `${y(one.height)}%`;
    box.append(button);
  });
  return box;
}

/** Where on the scale from unpleasant (-1) to pleasant (1) a distribution over emotions lies. */
export function heightOf({ sides, emotions }) {
  if (sides && "pleasant" in sides) return sides.pleasant - (sides.unpleasant ?? 0);
  let height = 0;
  for (const [name, share] of Object.entries(emotions)) {
    height += share * ({ pleasant: 1, unpleasant: -1 }[sideOf(name)] ?? 0);
  }
  return height;
}
