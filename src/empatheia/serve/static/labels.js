// What the labels of answers mean, in plain words.

import { askJson } from "./api.js";

const SIDES = new Map();
let known = { emotions: [], intents: [], relations: {} };

/** Reads the server's labels. */
export async function readLabels() {
  known = await askJson("v1/labels");
  for (const { name, side } of known.emotions) SIDES.set(name, side);
  return known;
}

/** The labels that were read. */
export const labels = () => known;

/** pleasant, unpleasant, or mixed where no side is known. */
export const sideOf = (emotion) => SIDES.get(emotion) ?? "mixed";

/** A relation of an inference in a few words. */
export const relationTitle = (name) => known.relations[name] ?? name;

/** Terms of a candidate's score. */
export const TERMS = {
  likelihood: "sounds natural to the model",
  listener: "somebody who hears only the reply would know what happened",
  coverage: "takes up the words that matter",
  knowledge: "takes up what is plausibly true besides",
  intent: "does what was wanted",
  mechanism: "reacts, interprets, explores",
  side: "is on the side of the feeling",
  information: "fits this conversation and not every one",
  contradiction: "says nothing opposite to what was said",
  diversity: "does not repeat what was said",
  length: "is neither too short nor too long",
};
