// The server: JSON, streamed events, keys. Addresses are relative, because a proxy may put all of it below a path.

let key = "";

/** What the server refused, or that it did not answer. */
export class Refused extends Error {
  constructor(status, message, wait = 0) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

/** Sends the key that a person gave with every further request. */
export function useKey(text) {
  key = text.trim();
}

/** An answer, once its status is good. */
export async function ask(path, { body, method, signal } = {}) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer. Is it still running?");
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** An answer's JSON. */
export async function askJson(path, options) {
  return (await ask(path, options)).json();
}

/**
 * A reply on its way.
 * @param {Object} body Of /v1/chat/completions.
 * @param {Object} told onReading(empathy), onText(text so far).
 * @returns {Promise<{text: string, finish: string|null, empathy: Object|null}>}
 */
export async function converse(body, { onReading, onText, signal }) {
  const answer = await ask("v1/chat/completions", { body: { ...body, stream: true }, signal });
  const made = { text: "", finish: null, empathy: null };
  for await (const data of events(answer.body)) {
    if (data === "[DONE]") break;
    const part = JSON.parse(data);
    if (part.error) throw new Refused(502, part.error.message);
    const choice = part.choices?.[0];
    if (part.empathy) {
      made.empathy = part.empathy;
      onReading(part.empathy);
    }
    if (choice?.delta?.content) {
      made.text += choice.delta.content;
      onText(made.text);
    }
    if (choice?.finish_reason) made.finish = choice.finish_reason;
  }
  if (made.finish === null) throw new Refused(0, "The answer ended too soon.");
  return made;
}

async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      waiting += value;
      const parts = waiting.split(/\r?\n\r?\n/);
      waiting = parts.pop();
      for (const part of parts) {
        const lines = part.split(/\r?\n/).filter((line) => line.startsWith("data:"));
        if (lines.length) yield lines.map((line) => line.slice(5).trimStart()).join("\n");
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function refusal(answer) {
  let message = `The server answered with status ${answer.status}.`;
  try {
    message = (await answer.json()).error.message;
  } catch {
    // not in our form: a proxy on the way answered
  }
  return new Refused(answer.status, message, Number(answer.headers.get("retry-after")) || 0);
}
