"""Why an answer about a text deserves little trust: emoji, control characters, another script or language.

The language guess needs no model: it weighs function words of nine languages against English ones. It is made to
leave short English alone ("ugh, traffic") rather than to catch every foreign word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

EMOJI = "emoji are not understood"
CONTROLS = "control characters were ignored"
SCRIPT = "mostly written in another script than Latin; only English is understood"
LANGUAGE = "probably another language than English"
FEW_KNOWN = "hardly any known word; perhaps another language than English"
NONE_KNOWN = "no known word"
MOST_NAMED = 3
"""Unknown words that are named."""

_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u231a\u231b\u23e9-\u23fa\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u20e3\ufe0f]"
)
# joiners (200c, 200d) are part of emoji and of some scripts
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile("[A-Za-zªºÀ-ÖØ-öø-ɏḀ-ỿ]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_ENGLISH_ENDING = re.compile(r"(?:n't|'(?:s|m|re|ve|ll|d))$")
_ELISION = re.compile(r"(?i:l|j|qu|n|c|m|t|s|d|un|dell|nell|all|dall|sull|quest)'[^\WA-Z]")  # not D'Angelo
_ACCENTED = re.compile("[À-ÖØ-öø-ɏḀ-ỿ]")

ENGLISH = frozenset(
    [
        "a",
        "about",
        "after",
        "again",
        "all",
        "almost",
        "also",
        "always",
        "am",
        "an",
        "and",
        "another",
        "any",
        "anything",
        "are",
        "around",
        "as",
        "at",
        "away",
        "back",
        "bad",
        "be",
        "because",
        "been",
        "before",
        "being",
        "best",
        "better",
        "big",
        "both",
        "but",
        "by",
        "call",
        "came",
        "can",
        "cannot",
        "come",
        "could",
        "cry",
        "dad",
        "day",
        "did",
        "do",
        "does",
        "doing",
        "done",
        "dont",
        "down",
        "even",
        "ever",
        "every",
        "everyone",
        "everything",
        "family",
        "father",
        "feel",
        "feeling",
        "feels",
        "felt",
        "few",
        "finally",
        "find",
        "first",
        "for",
        "found",
        "friend",
        "friends",
        "from",
        "fun",
        "get",
        "gets",
        "getting",
        "girl",
        "give",
        "go",
        "goes",
        "going",
        "gone",
        "gonna",
        "good",
        "got",
        "great",
        "guess",
        "guy",
        "had",
        "happened",
        "happy",
        "hard",
        "has",
        "hate",
        "have",
        "having",
        "he",
        "hello",
        "help",
        "her",
        "here",
        "hers",
        "hi",
        "him",
        "his",
        "home",
        "hope",
        "house",
        "how",
        "i",
        "if",
        "im",
        "in",
        "into",
        "is",
        "isnt",
        "it",
        "its",
        "job",
        "just",
        "keep",
        "kids",
        "kind",
        "knew",
        "know",
        "last",
        "left",
        "let",
        "life",
        "like",
        "little",
        "long",
        "look",
        "lost",
        "lot",
        "love",
        "mad",
        "made",
        "make",
        "makes",
        "man",
        "many",
        "me",
        "met",
        "mine",
        "mom",
        "money",
        "more",
        "most",
        "mother",
        "much",
        "must",
        "my",
        "need",
        "never",
        "new",
        "next",
        "nice",
        "night",
        "no",
        "not",
        "nothing",
        "now",
        "of",
        "off",
        "oh",
        "ok",
        "okay",
        "old",
        "on",
        "once",
        "one",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "own",
        "people",
        "please",
        "pretty",
        "proud",
        "put",
        "quite",
        "ready",
        "really",
        "right",
        "sad",
        "said",
        "same",
        "saw",
        "say",
        "school",
        "scared",
        "see",
        "seen",
        "she",
        "should",
        "since",
        "sleep",
        "so",
        "some",
        "someone",
        "something",
        "soon",
        "sorry",
        "started",
        "still",
        "such",
        "sure",
        "take",
        "thank",
        "thanks",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "thing",
        "things",
        "think",
        "this",
        "those",
        "though",
        "thought",
        "time",
        "to",
        "today",
        "together",
        "told",
        "tomorrow",
        "tonight",
        "too",
        "took",
        "tried",
        "try",
        "turned",
        "two",
        "ugh",
        "under",
        "until",
        "up",
        "us",
        "use",
        "very",
        "wait",
        "want",
        "wanted",
        "was",
        "watch",
        "way",
        "we",
        "week",
        "well",
        "went",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "why",
        "wife",
        "will",
        "wish",
        "with",
        "without",
        "won",
        "work",
        "worked",
        "worried",
        "would",
        "wow",
        "wrong",
        "yeah",
        "year",
        "years",
        "yes",
        "yesterday",
        "yet",
        "you",
        "your",
    ]
)
_ENGLISH_ELISIONS = frozenset({"c'mon", "d'you", "d'oh", "d'ya", "s'more", "s'mores", "s'ok", "s'okay", "t'was"})
_ENGLISH_ACCENTED = frozenset(
    [
        "café",
        "cafés",
        "cliché",
        "cliches",
        "clichés",
        "crème",
        "brûlée",
        "déjà",
        "entrée",
        "façade",
        "fiancé",
        "fiancée",
        "fiancés",
        "jalapeño",
        "jalapeños",
        "naïve",
        "pâté",
        "piñata",
        "piñatas",
        "pokémon",
        "protégé",
        "purée",
        "résumé",
        "résumés",
        "sauté",
        "sautéed",
        "soufflé",
        "über",
        "vis-à-vis",
        "à",
        "la",
    ]
)
# by language: words that hardly ever stand in an English text, then words that may (names, titles, loans)
_FOREIGN: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(sure.split()), frozenset(weak.split()))
    for sure, weak in (
        (  # Spanish
            """estoy está están estaba muy pero porque tengo tiene tienes tenía mis que ella ellos nos cuando también
            hoy ayer soy fue había lo le una del por para como más este esta eso esto todo todos nada siempre nunca
            mucho mucha qué cómo hace hacer puedo quiero quién dónde desde hasta algo alguien sus hemos trabajo
            perro hermana hermano madre hijo hija noche han
            donde sé sólo aquí ahora mañana""",
            "el la los las un de en y yo ya se mi su es al gracias hola señor te tu",
        ),
        (  # French
            """je suis avec mais pas très mes nous vous ils elle elles une dans qui que quand parce toujours jamais
            aussi sont était étaient cette leur leurs rien moi toi fait hier aujourd'hui c'est j'ai n'ai n'est qu'il
            être avoir peur ça où depuis chez sans beaucoup notre votre nos tous déjà avait alors
            soeur sœur frère mère père chien travail fille maison nuit""",
            "le la les des du au aux un de en et est il mon ma ce ne se sur tout deux",
        ),
        (  # German
            """ich nicht und ist mein meine meinen meiner meinem mir mich habe haben hatte wir sie auf für aber wie
            weil dass ein eine einen einem einer auch sehr schon noch nach bei sind wurde wird kann immer heute
            gestern über wenn oder mehr nichts alles jetzt wieder ohne seit sein seine ihr ihre uns unser unsere
            meines vom zum zur du doch morgen kein keine niemand""",
            "der das von es er zu mit des um",
        ),
        (  # Dutch
            """ik niet een het mijn maar ook heb hebben heeft zijn wij hij zij dat voor naar aan bij nog deze dit
            waarom omdat geen veel heel ze mij jij uit werd wordt als gisteren vandaag altijd nooit onze ons
            niemand iets niets alles weer morgen hebt kan weet""",
            "de en op wat zo te je er al om haar",
        ),
        (  # Italian
            """sono che mio gli di dei nel nella alla ai perché anche molto sei siamo hanno abbiamo quando questo
            questa oggi ieri sempre più stato stata ti ci lei lui noi voi tutto tutti niente cosa dopo dal mie miei
            una uno lo nostro nostra ho adesso nessuno senza così già mi è domani stanno sta
            sorella fratello madre cane lavoro giorno notte riesco dormire""",
            "il la i un di del della con e si ma non mia io al le",
        ),
        (  # Portuguese
            """não eu estou muito uma meu minha mas porque ele ela você foi são está isso também quando para por
            estava tenho fiquei hoje ontem sempre nunca mais nada tudo nos""",
            "o os as da dos das na em com que de e",
        ),
        (  # Swedish, Danish, Norwegian
            """jag inte och är det jeg ikke og mitt har som på med till för att av ett från också hvad mig
            mina mycket igår idag när""",
            "en den han var de min",
        ),
        (  # Polish
            "nie jest się jestem mnie moja mój bardzo że dla mam był była wczoraj dzisiaj już tylko przez moją",
            "jak ale na to do w z i po",
        ),
        (  # Turkish
            "bir çok için ve bugün dün değil ama gibi daha kadar benim beni oldu var",
            "ben bu da de ne",
        ),
        (  # Hindi and Urdu in Latin letters
            """hai hain hoon hu nahi nahin mujhe mujhko mera meri mere kya kyun kyu aur bhi toh raha rahi rahe gaya gayi
            karna kar karo kuch bahut bohot tum aap hum apni apne apna jeena marna chahta chahti chahiye zindagi tha thi
            wala yaar sab koi kabhi phir dunga dungi jaa""",
            "main ab se ko ka ki ke na ho aaj raat dil",
        ),
        (  # Indonesian and Malay
            """aku saya tidak nggak gak tak ingin mau yang dan ini itu sudah banget sangat kamu hidup mati saja lagi
            dengan untuk karena""",
            "di dari ke bisa sama",
        ),
        (  # Filipino
            "ako ang mga hindi gusto lang siya ayoko talaga kong akong mamatay wala buhay kasi naman",
            "ng na ko mo sa pa ba ko nang",
        ),
        (  # Swahili
            "nataka mimi sana kwa siwezi sitaki kufa kuishi maisha yangu leo kesho nina sina",
            "ya ni na wa",
        ),
        (  # Romanian
            "nu sunt vreau este pentru foarte mă îmi și asta acum viața mor mai sunt nimic",
            "sa si de la un o cu ma",
        ),
        (  # Czech and Slovak
            "jsem není chci už mám můj moje proto som nechcem život umřít umrit dnes",
            "se je to na a ale tak",
        ),
        (  # Hungarian
            "nem vagyok hogy egy akarok nagyon és csak már élni halni",
            "meg az a el",
        ),
        (  # Finnish
            "olen ei minä mä haluan että mutta mun minun enää kuolla elää tänään",
            "en ja on se",
        ),
    )
)


class KnowsWords(Protocol):
    """What a tokeniser must be able to say (see ``DialogueTokenizer``)."""

    def known_word_share(self, text: str) -> float:
        """Share of a text's words a model can have met in training."""
        ...


def doubts(text: str, tokenizer: KnowsWords | None = None) -> tuple[str, ...]:
    """Reasons to distrust an answer about a text, each a few readable words.

    Args:
        text: One turn or several.
        tokenizer: Also judge whether its words are known.

    Returns:
        Reasons; empty when nothing is amiss.

    >>> doubts("I lost my job.")
    ()
    >>> doubts("Ich habe meine Arbeit verloren.")
    ('probably another language than English',)
    """
    reasons = []
    if _EMOJI.search(text):
        reasons.append(EMOJI)
    if _CONTROL.search(text):
        reasons.append(CONTROLS)
    words = [word.replace("’", "'") for word in _WORD.findall(text)]
    n_english = sum(word.lower() in ENGLISH or bool(_ENGLISH_ENDING.search(word)) for word in words)
    if len(_LETTER.findall(text)) > 2 * len(_LATIN.findall(text)):
        reasons.append(SCRIPT)
    elif is_foreign(words, n_english):
        reasons.append(LANGUAGE)
    if tokenizer is not None and (words or EMOJI in reasons):
        share = tokenizer.known_word_share(" ".join(words) or text)
        reasons += _of_unknown_words(words, share, n_english, tokenizer, {LANGUAGE, SCRIPT} & set(reasons))
    return tuple(reasons)


def _of_unknown_words(
    words: Sequence[str], share: float, n_english: int, tokenizer: KnowsWords, language: set[str]
) -> list[str]:
    """What is told of words that are not known; less where the ``language`` is told to be another already."""
    if share == 0.0:
        return [NONE_KNOWN]
    if share < 0.5 and len(words) >= 3 and not n_english and LANGUAGE not in language:
        return [FEW_KNOWN]
    return _unknown(words, tokenizer) if share < 1.0 and not language else []


def _unknown(words: Sequence[str], tokenizer: KnowsWords) -> list[str]:
    """How many words are not known and which, if they are several or much of the text: perhaps they are misspelt."""
    unknown = [word for word in words if tokenizer.known_word_share(word) < 1.0]
    if not unknown or (len(unknown) < 2 and 5 * len(unknown) < len(words)):
        return []
    named = ", ".join(list(dict.fromkeys(unknown))[:MOST_NAMED]) + (" ..." if len(set(unknown)) > MOST_NAMED else "")
    number = f"{len(unknown)} of {len(words)} words {'is' if len(unknown) == 1 else 'are'} not known"
    return [f"{number} ({named}); perhaps misspelt"]


def is_foreign(words: Sequence[str], n_english: int) -> bool:
    """Whether function words of one other language outweigh the English ones.

    Args:
        words: As written; a capital may mark a name.
        n_english: How many of them are English.
    """
    lowered = [word.lower() for word in words]
    n_elided = sum(bool(_ELISION.match(w)) and w.lower() not in _ENGLISH_ELISIONS for w in words)
    n_accented = sum(bool(_ACCENTED.search(word)) and word not in _ENGLISH_ACCENTED for word in lowered)
    others = [word for word in lowered if word not in ENGLISH]
    uncapitalised = {word for word in words if word.islower()} - ENGLISH
    marked = n_elided + n_accented > 0
    best = max(_weight(others, uncapitalised, marked, sure, weak) for sure, weak in _FOREIGN)
    return best + n_elided > 0 and max(2, n_english + 1) <= best + 2 * n_elided + n_accented


def _weight(
    others: Sequence[str], uncapitalised: set[str], marked: bool, sure: frozenset[str], weak: frozenset[str]
) -> int:
    """How much the words that are not English speak for one language, by its sure and its weak function words.

    Args:
        others: In small letters.
        uncapitalised: Those that were written small.
        marked: Whether another word has an accent or an elision that English has not.
        sure: Words of this language alone.
        weak: Words that may be names or English; two of them count: "Los Angeles, Las Vegas" does not.
    """
    n_sure = sum(word in sure for word in others)
    if not (n_sure or marked or len(uncapitalised & weak) >= 2):
        return 0
    return 2 * n_sure + sum(word in weak for word in others)
