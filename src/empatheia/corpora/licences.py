"""What each corpus may be used for: its licence, and whether weights trained on it may be given away.

The rule: released weights carry a non-commercial licence. Corpora under attribution, non-commercial or
public-domain terms fit; share-alike terms would dictate another licence, and texts without a stated licence
give no permission. Two entries are let through and flagged ``share_alike``: DailyDialog, and RECCON, whose
text it is; a model card must name them. Whoever holds a corpus lawfully may read, count and experiment.
"""

from __future__ import annotations

from dataclasses import dataclass

from empatheia.errors import ConfigError
from empatheia.registry import nearest


@dataclass(frozen=True, slots=True)
class Licence:
    """Terms of a corpus.

    Attributes:
        licence: As its publisher states it.
        may_train_released_weights: Whether weights trained on it may be published by this project.
        reason: Why, in one sentence.
        home: Who made it or where it is published.
        share_alike: The licence asks for the same licence on what is derived; the model card must say so.
    """

    licence: str
    may_train_released_weights: bool
    reason: str
    home: str
    share_alike: bool = False


LICENCES: dict[str, Licence] = {
    "empathetic_dialogues": Licence(
        "CC BY-NC 4.0",
        True,
        "Non-commercial like the weights; the author is named.",
        "Rashkin et al. 2019, Meta",
    ),
    "everyday": Licence("CC BY 4.0", True, "Written for this project; the project is named.", "bundled"),
    "curated": Licence(
        "of the films or chats it was made from",
        False,
        "Whoever made it knows what it may be used for; OpenSubtitles asks for a link and states no licence.",
        "empatheia curate",
    ),
    "own": Licence("yours", False, "You know whose words they are and what they may be used for.", "you"),
    "sample": Licence("MIT", True, "Written for this package.", "bundled"),
    "recec": Licence(
        "none stated; text CC BY-NC 4.0",
        False,
        "Labels without a licence; the package makes its own with a RECCON annotator.",
        "github.com/A-Rain/EmpDialogue_RecEC",
    ),
    "reccon": Licence(
        "none stated; DailyDialog text CC BY-NC-SA 4.0",
        True,
        "Non-commercial; the card must name the share-alike text and that the annotation states no licence.",
        "github.com/declare-lab/RECCON",
        share_alike=True,
    ),
    "empathetic_intents": Licence(
        "none stated; text CC BY-NC 4.0",
        False,
        "Labels without a licence; `empatheia train recipes/meed2/emotion_intent.yaml` makes the classifier anew.",
        "Welivita and Pu 2020, github.com/anuradha1992/EmpatheticIntents",
    ),
    "epitome": Licence(
        "academic, non-commercial; attribution",
        False,
        "For academic research, to be passed on under a like licence; `empatheia train recipes/epitome/shared.yaml`"
        " makes the model from one's own copy.",
        "Sharma et al. 2020, github.com/behavioral-data/Empathy-Mental-Health",
    ),
    "emocause": Licence(
        "MIT repository; text CC BY-NC 4.0",
        False,
        "An evaluation set: nothing is trained on it.",
        "Kim et al. 2021, github.com/skywalker023/focused-empathy",
    ),
    "edos": Licence("CC BY 4.0", True, "Attribution only.", "github.com/anuradha1992/EDOS"),
    "dailydialog": Licence(
        "CC BY-NC-SA 4.0",
        True,
        "Non-commercial; share-alike, which the card must say. Only the training part.",
        "Li et al. 2017, yanran.li/dailydialog",
        share_alike=True,
    ),
    "esconv_partial": Licence("CC BY-NC 4.0", True, "Non-commercial like the weights.", "Liu et al. 2021"),
    "commonsense_dialogues_valid_test": Licence(
        "CC BY-NC 4.0", True, "Non-commercial like the weights.", "Zhou et al. 2021, Amazon"
    ),
    "topical_chat_test_partial": Licence(
        "CDLA-Sharing 1.0",
        True,
        "Results of computation on the data are free of its terms.",
        "Gopalakrishnan et al. 2019",
    ),
    "public_domain_plays": Licence("public domain", True, "No rights reserved.", "Project Gutenberg"),
    "dream": Licence("non-commercial research", True, "Non-commercial like the weights.", "Sun et al. 2019"),
    "meld": Licence(
        "GPL-3.0 repository; text of a TV series",
        False,
        "The series' text is not the publisher's.",
        "Poria et al. 2019",
    ),
    "emorynlp": Licence(
        "GPL-3.0 repository; text of a TV series",
        False,
        "The series' text is not the publisher's.",
        "Zahiri and Choi 2018",
    ),
    "mutual": Licence("none stated", False, "No licence, so no permission.", "Cui et al. 2020"),
    "opensubtitles_cleaned_sample": Licence(
        "none stated; film subtitles",
        False,
        "No licence, so no permission.",
        "Lison and Tiedemann 2016, OPUS",
    ),
    "changelog_podcasts": Licence(
        "CC BY-SA 4.0",
        False,
        "Share-alike does not combine with non-commercial weights.",
        "Changelog Media",
        True,
    ),
    "schema_guided_dialogue_partial": Licence(
        "CC BY-SA 4.0",
        False,
        "Share-alike does not combine with non-commercial weights.",
        "Rastogi et al. 2020",
        True,
    ),
    "switchboard_swda": Licence(
        "CC BY-NC-SA 3.0",
        False,
        "Share-alike without a later version's compatibility.",
        "Stolcke et al. 2000",
        True,
    ),
}
"""By registered corpus name."""


def licence(name: str) -> Licence:
    """Terms of a corpus.

    Raises:
        ConfigError: No corpus of this name is listed.
    """
    if name not in LICENCES:
        raise ConfigError(
            f"no licence on record for corpus {name!r}.{nearest(name, list(LICENCES))} Known: {', '.join(LICENCES)}."
        )
    return LICENCES[name]
