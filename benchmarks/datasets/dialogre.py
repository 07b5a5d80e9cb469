"""DialogRE: relation triples with triggers, over transcripts of dialogues.

A record's relations hold for the dialogue as a whole; the data gives no span of a value and no
turn. Relations map to predicates so:

===============================  ================================================================
relation                         predicates that say it
===============================  ================================================================
per:alternate_names              name, nickname
per:spouse                       spouse, former_partner
per:girl/boyfriend               dating, engaged_to, former_partner
per:dates                        dating
per:siblings                     has_sibling
per:children                     has_child
per:parents                      child_of
per:other_family                 relative_of
per:friends                      friend_of
per:roommate                     lives_with
per:neighbor                     neighbour_of
per:boss, per:subordinate        manager, manages
per:pet                          has_pet
per:title                        works_as, worked_as
per:age                          age
per:origin                       hometown, nationality
per:place_of_residence           lives_in, lived_in, plans_to_live_in, hometown (the annotators
                                 label where one says one is from as a residence)
per:visited_place                visited
per:employee_or_member_of        works_at, worked_at
per:place_of_work                works_at, worked_at
per:schools_attended             studies_at, studied_at, graduated_from
per:major                        major, studies
per:date_of_birth                birthday
per:place_of_birth               born_in
per:positive_impression          likes
per:negative_impression          likes, denied
===============================  ================================================================

``unanswerable`` is no relation. The inverse relations of places and organisations (``gpe:``,
``org:``) repeat ``per:`` ones and are left out. per:works, per:client, per:alumni and
per:acquaintance have no predicate: gold that cannot be found. Names that ``per:alternate_names``
joins are one person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import DatasetError, Source, Turn, read_bytes
from benchmarks.datasets.labelled import Dialogue, GoldClaim, Labelled

SOURCE = Source(
    name="dialogre",
    origin="nlpdata/DialogRE, data_v2/en",
    revision="b23e6cd",
    licence="non-commercial research only",
    known={
        "94b5799642107f9afecc5c46655d6d9612f41969893deff291b15a66298c08a0": "train",
        "3e0036a1853f33dd8fab1f008ff3c3b351f0b53e9084a6f6bce7b4c95d0f0472": "dev",
    },
)
_TABLE = {
    "per:alternate_names": "name nickname",
    "per:spouse": "spouse former_partner",
    "per:girl/boyfriend": "dating engaged_to former_partner",
    "per:dates": "dating",
    "per:siblings": "has_sibling",
    "per:children": "has_child",
    "per:parents": "child_of",
    "per:other_family": "relative_of",
    "per:friends": "friend_of",
    "per:roommate": "lives_with",
    "per:neighbor": "neighbour_of",
    "per:boss": "manager",
    "per:subordinate": "manages",
    "per:pet": "has_pet",
    "per:title": "works_as worked_as",
    "per:age": "age",
    "per:origin": "hometown nationality",
    "per:place_of_residence": "lives_in lived_in plans_to_live_in hometown",
    "per:visited_place": "visited",
    "per:employee_or_member_of": "works_at worked_at",
    "per:place_of_work": "works_at worked_at",
    "per:schools_attended": "studies_at studied_at graduated_from",
    "per:major": "major studies",
    "per:date_of_birth": "birthday",
    "per:place_of_birth": "born_in",
    "per:positive_impression": "likes",
    "per:negative_impression": "likes",
}
PREDICATES: Mapping[str, frozenset[str]] = {
    relation: frozenset(names.split()) for relation, names in _TABLE.items()
}
"""Relation to predicates; see the table above."""

UNMAPPED = frozenset({"per:works", "per:client", "per:alumni", "per:acquaintance"})
_LINE = re.compile(r"(?P<who>Speaker \d+(?:, Speaker \d+)*)\s*:\s?(?P<text>.*)", re.DOTALL)


def load(paths: Sequence[Path]) -> Labelled:
    """Map files of the release; dialogues keep their order.

    Raises:
        DatasetError: a file is no list of dialogues with relations.
    """
    files: dict[str, str] = {}
    dialogues: list[Dialogue] = []
    sizes: list[int] = []
    for path in paths:
        content, digest, label = read_bytes(path, SOURCE)
        files[digest] = label
        try:
            for number, (lines, relations) in enumerate(json.loads(content)):
                dialogues.append(_dialogue(f"{path.stem}/{number}", lines, relations))
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{path.name}: not in the format of DialogRE: {error!r}") from error
        sizes.append(len(dialogues) - sum(sizes))
    judged = frozenset().union(*PREDICATES.values())
    return Labelled(SOURCE, files, tuple(dialogues), judged, has_spans=False, sizes=tuple(sizes))


def _dialogue(
    dialogue_id: str, lines: Sequence[str], relations: Sequence[Mapping[str, Any]]
) -> Dialogue:
    turns = []
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        actor, text = (match["who"], match["text"]) if match else ("", line)
        turns.append(Turn(f"t{number}", dialogue_id, actor or "unknown", "user", text, None))
    gold: list[GoldClaim] = []
    marks: set[str] = set()
    for entry in relations:
        for relation, trigger in zip(entry["r"], entry["t"], strict=True):
            if relation not in PREDICATES and relation not in UNMAPPED:
                continue
            gold.append(
                GoldClaim(
                    label=relation,
                    subject=entry["x"],
                    object=entry["y"],
                    predicates=PREDICATES.get(relation, frozenset()),
                    negative=relation == "per:negative_impression",
                )
            )
            marks |= {text.casefold() for text in (entry["x"], entry["y"], trigger) if text}
    silent = frozenset(
        number
        for number, turn in enumerate(turns)
        if not any(mark in turn.text.casefold() for mark in marks)
    )
    return Dialogue(dialogue_id, tuple(turns), tuple(gold), silent, (), _names(relations))


def _names(relations: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the first-named form of every name that alternate_names joins."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for entry in relations:
        if "per:alternate_names" in entry["r"] and entry["y"][:1].isupper():
            one, other = find(entry["x"].casefold()), find(entry["y"].casefold())
            leader[max(one, other)] = min(one, other)
    return {name: find(name) for name in leader}
