// Offsets that come from the server or go to it count Unicode code points, as Python does; those of a JavaScript text
// count UTF-16 units, of which an emoji has two. Every page takes its offsets from here.

/** How many code points a text has. */
function lengthOf(text) {
  let n = 0;
  for (const _ of text) n += 1;
  return n;
}

/** What stands between blanks, in reading order: [{text, start, end}]. */
export function wordsOf(text) {
  const words = [];
  let unit = 0;
  let end = 0;
  for (const { 0: word, index } of text.matchAll(/\S+/g)) {
    const start = end + lengthOf(text.slice(unit, index));
    end = start + lengthOf(word);
    unit = index + word.length;
    words.push({ text: word, start, end });
  }
  return words;
}

/**
 * A text cut at spans, in reading order: [{text, span}], span null between them.
 * @param {string} text
 * @param {Array<{start: number, end: number}>} spans Those that overlap an earlier one are left out.
 */
export function cut(text, spans) {
  const points = Array.from(text);
  const parts = [];
  let place = 0;
  for (const span of [...spans].sort((one, other) => one.start - other.start || other.end - one.end)) {
    if (span.start < place || span.end > points.length) continue;
    if (span.start > place) parts.push({ text: points.slice(place, span.start).join(""), span: null });
    parts.push({ text: points.slice(span.start, span.end).join(""), span });
    place = span.end;
  }
  if (place < points.length) parts.push({ text: points.slice(place).join(""), span: null });
  return parts;
}
