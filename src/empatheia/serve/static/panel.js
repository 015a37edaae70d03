// The right side: of the chosen turn, what was understood and why this reply.

import { bars, course, heightOf, largest, sideBar } from "./charts.js";
import { fill, make, percent } from "./elements.js";
import { labels, relationTitle, TERMS } from "./labels.js";
import { keyOf, ofTurn, sentence } from "./sentence.js";

const SHOWN = 6;

/** What was understood; `wishes` are told through `on`. */
export class Panel {
  /**
   * @param {HTMLElement} place
   * @param {Object} on choose(index), again(turn, wish), reword(turn), explain(turn).
   */
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.turn = null;
    this.chosenWords = new Map();
    this.feeling = "";
    this.intent = "";
    this.showsAll = false;
  }

  /** Shows a turn; what was chosen for another one is let go. */
  show(conversation, turn) {
    if (turn !== this.turn) {
      this.turn = turn;
      this.chosenWords.clear();
      this.feeling = this.intent = "";
    }
    const reading = (turn?.isPair && turn.answers[turn.chosen]?.empathy) || turn?.reading;
    if (!turn || !reading) {
      fill(this.place, make("h2.away", {}, "What was understood"), make("p.quiet-start", {}, this.#waiting(turn)));
      return;
    }
    const answer = turn.answers[turn.chosen];
    const isHidden = turn.isPair && turn.vote === null && turn.wasBlind;
    fill(
      this.place,
      this.#course(conversation, turn),
      this.#message(turn, reading),
      this.#feeling(reading),
      answer?.empathy && !answer.isWaiting && this.#why(turn, answer, isHidden),
      answer && !answer.isWaiting && !isHidden && this.#another(turn),
      this.#besides(answer?.empathy ?? reading),
      this.#doubts(answer?.empathy ?? reading),
    );
  }

  #waiting(turn) {
    if (turn?.answers.some((answer) => answer.isWaiting)) return "Listening …";
    return turn ? "Nothing was understood of this message." : "What is felt, and which words say so, appears here.";
  }

  #course(conversation, turn) {
    const points = conversation.turns.flatMap((one, index) =>
      one.reading?.emotion
        ? [
            {
              index,
              emotion: one.reading.emotion,
              share: one.reading.emotions[one.reading.emotion],
              height: heightOf(one.reading),
            },
          ]
        : [],
    );
    if (points.length < 2) return null;
    const picture = course(points, conversation.turns.indexOf(turn), this.on.choose);
    return section("Over the conversation", picture, make("p.note", {}, "Up is pleasant, down is unpleasant."));
  }

  #message(turn, reading) {
    const last = reading.turns.length - 1;
    const box = section("What you wrote");
    for (let index = 0; index < last; index += 1) {
      if (reading.turns[index].role === "speaker" && ofTurn(reading.causes, index).length) {
        const earlier = sentence(reading, index);
        earlier.classList.add("earlier");
        box.append(earlier);
      }
    }
    const about = make("div.row", { hidden: true });
    const words = sentence(reading, last, {
      chosen: this.chosenWords,
      onChoose: (word) => {
        const key = keyOf(word);
        if (this.chosenWords.has(key)) this.chosenWords.delete(key);
        else this.chosenWords.set(key, word.text);
        this.#showAbout(turn, about);
      },
    });
    this.#showAbout(turn, about);
    const hint = ofTurn(reading.words, last).length
      ? "The stronger its shade, the likelier a word caused the feeling. Choose words to get a reply about them."
      : "No word of it was named as a cause.";
    box.append(words, make("p.note", {}, hint), about);
    return box;
  }

  #showAbout(turn, about) {
    about.hidden = this.chosenWords.size === 0;
    fill(
      about,
      make("button.button.main", { type: "button", id: "about", onclick: () => this.#ask(turn) },
        `Reply about ${[...this.chosenWords.values()].map((word) => `“${word}”`).join(", ")}`),
    );
  }

  #feeling(reading) {
    const { emotion, emotions, sides } = reading;
    const box = section("The feeling");
    if (emotion === null) {
      box.append(make("p", {}, "No feeling was named."));
      return box;
    }
    box.append(
      make("p.feeling", {}, emotion, " ", make("span.share", {}, percent(emotions[emotion]))),
      ...(Object.keys(sides).length ? sideBar(sides) : []),
    );
    const list = make("div", { id: "emotions" });
    const all = make("button.button.quiet", { type: "button", "aria-expanded": "false", "aria-controls": "emotions" });
    const showBars = () => {
      const shares = largest(emotions, this.showsAll ? undefined : SHOWN);
      fill(list, bars(shares, { scale: Math.max(0.25, shares[0][1]) }));
      all.textContent = this.showsAll ? `Only the first ${SHOWN}` : `All ${Object.keys(emotions).length}`;
      all.setAttribute("aria-expanded", String(this.showsAll));
    };
    all.addEventListener("click", () => {
      this.showsAll = !this.showsAll;
      showBars();
    });
    showBars();
    box.append(list, all);
    return box;
  }

  #why(turn, answer, isHidden) {
    const { empathy } = answer;
    const box = section("Why this reply");
    if (isHidden) {
      box.append(make("p.note", {}, "Shown after you have voted."));
      return box;
    }
    const facts = make("p.facts");
    const { spoke } = empathy;
    if (spoke) {
      facts.append(make("span", {}, make("strong", {}, spoke.responder), ` wrote it: ${spoke.why}.`));
      if (spoke.fallback) facts.append(make("span", {}, "It stands in for a language model that did not answer."));
    }
    if (empathy.intent) {
      const by = empathy.intent_from === "given" ? "you asked for it" : `found by ${empathy.intent_from}`;
      facts.append(make("span", {}, "Intent: ", make("strong", {}, empathy.intent), ` (${by})`));
    }
    const given = answer.asked?.empathy ?? {};
    if (given.emotion) facts.append(make("span", {}, "You said that the feeling is ", make("strong", {}, given.emotion)));
    if (Array.isArray(given.focus)) {
      facts.append(make("span", {}, "You asked for a reply about ", make("strong", {}, given.focus.join(", "))));
    } else if (empathy.targets.length) {
      facts.append(
        make("span", {}, "Words to be about: ", make("strong", {}, empathy.targets.map((one) => one.text).join(", "))),
      );
    }
    if (empathy.care && empathy.care.level !== "none") facts.append(make("span", {}, careFact(empathy.care)));
    box.append(facts);
    if (empathy.candidates.length > 0) box.append(candidates(empathy));
    else if (spoke && spoke.responder !== "care") {
      box.append(
        make("p.note", {}, "This system spoke for itself; nothing was compared."),
        make("button.button", { type: "button", onclick: () => this.on.explain(turn) }, "Compare candidates"),
      );
    }
    return box;
  }

  #another(turn) {
    const box = section("Another reply");
    const { emotions, intents } = labels();
    const pick = (id, title, first, groups, kept, onpick) => {
      const list = make("select.field", { id, onchange: (event) => onpick(event.target.value) });
      list.append(make("option", { value: "" }, first));
      for (const [group, names] of groups) {
        const inner = names.map((name) => make("option", { value: name, selected: name === kept }, name));
        list.append(group ? make("optgroup", { label: group }, ...inner) : inner);
      }
      return make("div", {}, make("label.label", { for: id }, title), list);
    };
    const bySide = ["pleasant", "unpleasant"].map((side) => [
      side,
      emotions.filter((one) => one.side === side).map((one) => one.name),
    ]);
    const byKind = [
      ["do", intents.filter((one) => one.kind === "act").map((one) => one.name)],
      ["express", intents.filter((one) => one.kind === "emotion").map((one) => one.name)],
    ];
    box.append(
      make(
        "div.steer",
        {},
        pick("wish-emotion", "The feeling is", "as understood", bySide, this.feeling, (name) => (this.feeling = name)),
        pick("wish-intent", "The reply should", "as it sees fit", byKind, this.intent, (name) => (this.intent = name)),
      ),
      make(
        "div.row",
        {},
        make("button.button.main", { type: "button", id: "again", onclick: () => this.#ask(turn) }, "Reply again"),
        make(
          "button.button",
          { type: "button", id: "reword", onclick: () => this.on.reword(turn) },
          "Other words",
        ),
      ),
    );
    return box;
  }

  #ask(turn) {
    const empathy = {};
    if (this.feeling) empathy.emotion = this.feeling;
    if (this.intent) empathy.intent = this.intent;
    if (this.chosenWords.size) empathy.focus = [...this.chosenWords.values()];
    if (Object.keys(empathy).length) this.on.again(turn, { empathy });
    else this.on.reword(turn);
  }

  #besides(empathy) {
    const inferred = empathy.inferences.filter((one) => one.tails.length);
    if (!inferred.length) return null;
    return section(
      "What is plausible besides",
      make(
        "ul.facts",
        {},
        ...inferred.map((one) =>
          make("li", {}, `${relationTitle(one.relation)}: `, make("strong", {}, one.tails.slice(0, 3).join("; "))),
        ),
      ),
    );
  }

  #doubts({ uncertain, notes, ignored, missing }) {
    const doubts = [...uncertain, ...notes, ...ignored.map((name) => `ignored: ${name}`)];
    const absent = Object.entries(missing);
    if (!doubts.length && !absent.length) return null;
    const box = section("How far to trust this");
    if (doubts.length) box.append(make("ul.doubts", {}, ...doubts.map((one) => make("li", {}, one))));
    if (absent.length) {
      box.append(
        make(
          "details",
          {},
          make("summary", {}, `What took no part (${absent.length})`),
          make("ul.doubts", {}, ...absent.map(([name, why]) => make("li", {}, make("strong", {}, name), `: ${why}`))),
        ),
      );
    }
    return box;
  }
}

function section(title, ...inside) {
  return make("section.card", { "aria-label": title }, make("h2", {}, title), ...inside);
}

function careFact({ level, about, done, failed }) {
  if (failed) return "The safety check could not be done; no model was asked.";
  const found = `Safety check: ${level}${about ? ` (${about})` : ""}.`;
  return done.length ? `${found} Done: ${done.join(", ")}.` : found;
}

function candidates({ candidates: all, weights }) {
  const list = make("ol.candidates");
  all.forEach((one, place) => {
    list.append(
      make(
        "li",
        { class: place ? "candidate" : "candidate best" },
        make("p", {}, one.text),
        make("div.by", {}, make("span", {}, place ? one.responder : `${one.responder}, chosen`),
          make("span", {}, `score ${one.score.toFixed(2)}`)),
        make("details", {}, make("summary", {}, "How it was weighed"), termTable(one.terms, weights ?? {})),
      ),
    );
  });
  return list;
}

function termTable(terms, weights) {
  const rows = Object.entries(terms).filter(([, value]) => value !== null);
  if (!rows.length) return make("p.note", {}, "No term could be computed.");
  const head = ["", "value", "weight", "counts"].map((name, place) =>
    name ? make(`th${place ? ".number" : ""}`, { scope: "col" }, name) : make("td"),
  );
  return make(
    "table.terms",
    {},
    make("thead", {}, make("tr", {}, ...head)),
    make(
      "tbody",
      {},
      ...rows.map(([name, value]) => {
        const weight = weights[name] ?? 0;
        return make(
          "tr",
          {},
          make("th", { scope: "row" }, make("strong", {}, name), TERMS[name] ? `: ${TERMS[name]}` : ""),
          ...[value, weight, value * weight].map((number) => make("td.number", {}, number.toFixed(2))),
        );
      }),
    ),
  );
}

