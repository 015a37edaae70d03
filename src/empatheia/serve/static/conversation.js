// What was said: turns, each with one answer or more; kept on this device only if the person asks.

const PLACE = "empatheia.conversation";
const FORM = "empatheia conversation";

/**
 * @typedef {Object} Answer
 * @property {string} model Who was asked.
 * @property {Object} asked `seed` and `empathy` of the request.
 * @property {string} text
 * @property {string|null} finish stop, length, or stopped by the person.
 * @property {Object|null} empathy Our side of the answer.
 */

/** A conversation. */
export class Conversation {
  /** @param {Array} turns `{text, answers, chosen, reading, vote, shuffled}` */
  constructor(turns = []) {
    this.turns = turns;
  }

  /** A further message of the person's. */
  say(text) {
    const turn = { text, answers: [], chosen: 0, reading: null, vote: null, isPair: false };
    this.turns.push(turn);
    return turn;
  }

  /** The messages of a request that answers a turn. */
  messagesFor(turn) {
    const messages = [];
    for (const one of this.turns) {
      messages.push({ role: "user", content: one.text });
      if (one === turn) break;
      const reply = one.answers[one.chosen]?.text;
      if (reply) messages.push({ role: "assistant", content: reply });
    }
    return messages;
  }

  /** Votes, one record for each. */
  votes() {
    return this.turns.flatMap((turn, index) =>
      turn.vote === null
        ? []
        : [
            {
              turn: index,
              messages: this.messagesFor(turn),
              left: of(turn.answers[0]),
              right: of(turn.answers[1]),
              vote: turn.vote,
              blind: turn.wasBlind,
            },
          ],
    );
  }

  /** As a record. */
  toRecord() {
    return { format: FORM, version: 1, saved: new Date().toISOString(), turns: this.turns.map(bare) };
  }

  /** As a text that a person reads. */
  toText() {
    const lines = ["A conversation with empatheia, a program.", ""];
    for (const turn of this.turns) {
      lines.push(`You: ${turn.text}`);
      const feeling = turn.reading?.emotion;
      if (feeling) {
        const causes = turn.reading.causes.map((cause) => cause.text).join("; ");
        lines.push(`   (understood: ${feeling}${causes ? `, because of: ${causes}` : ""})`);
      }
      const answers = turn.isPair ? turn.answers : turn.answers.slice(turn.chosen, turn.chosen + 1);
      for (const answer of answers) lines.push(`${turn.isPair ? answer.model : "empatheia"}: ${answer.text}`);
      lines.push("");
    }
    return lines.join("\n");
  }

  /** What this device kept, or null. */
  static kept() {
    try {
      const record = JSON.parse(localStorage.getItem(PLACE) ?? "null");
      if (record?.format !== FORM || record.version !== 1 || !Array.isArray(record.turns)) return null;
      return new Conversation(record.turns.filter((turn) => typeof turn?.text === "string").map(bare));
    } catch {
      return null; // the browser keeps nothing, or it was changed by hand
    }
  }

  /** Keeps it on this device, or lets go of what was kept; false where the browser refuses. */
  keep(isWanted) {
    try {
      if (isWanted) localStorage.setItem(PLACE, JSON.stringify(this.toRecord()));
      else localStorage.removeItem(PLACE);
      return true;
    } catch {
      return false;
    }
  }
}

function bare({ text, answers, chosen, reading, vote, isPair, wasBlind }) {
  const whole = (answers ?? []).filter((one) => typeof one?.text === "string" && !one.isWaiting);
  return {
    text,
    answers: whole.map(({ model, asked, text: reply, finish, empathy, care }) => ({
      model, asked, text: reply, finish, empathy, care,
    })),
    chosen: Math.max(0, Math.min(chosen ?? 0, whole.length - 1)),
    reading: reading ?? null,
    vote: vote ?? null,
    isPair: Boolean(isPair) && whole.length === 2,
    wasBlind: Boolean(wasBlind),
  };
}

const of = ({ model, asked, text }) => ({ model, asked, text });
