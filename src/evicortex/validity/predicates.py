"""When two texts name the same thing, and which predicates hold one value at a time."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from evicortex.errors import InputError
from evicortex.types import Cardinality

_JOINTS = str.maketrans("", "", " _-\u2010")
"""What stands between the words of a predicate; NFKC makes other hyphens and low lines these."""


def match_key(text: str) -> str:
    """Return the form under which subjects and objects are the same.

    Unicode compatibility case folding (NFKC and full case folding, Unicode 15 section 3.13),
    with every run of white space as one space and none at the ends. Idempotent.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    folded = text
    for form in ("NFD", "NFKC"):
        folded = unicodedata.normalize("NFKC", unicodedata.normalize(form, folded).casefold())
    return " ".join(folded.split())


def predicate_key(text: str) -> str:
    """Return the form under which predicates are the same: their letters, however joined.

    :func:`match_key` without spaces, hyphens and underscores, so that ``lives_in``, ``lives in``,
    ``lives-in`` and ``livesIn`` agree. A predicate of nothing else keeps its match key.
    Idempotent; texts with one match key have one predicate key.
    """
    key = match_key(text)
    return match_key(key.translate(_JOINTS)) or key


_SINGLE = """
    name full_name first_name last_name preferred_name pronouns gender age birthday born_on born_in
    birthplace died_on nationality native_language preferred_language marital_status married_to
    spouse engaged_to dating partner lives_in lives_at resides_in located_in hometown address
    time_zone works_at works_as works_in works_for employer job job_title occupation profession
    manager retired_on studies_at studies major email phone phone_number height weight blood_type
    diet religion favorite_color favourite_colour favorite_food favourite_food favorite_movie
    favourite_film favorite_book favourite_book status deadline due_on scheduled_for starts_on
    ends_on takes_place_at price budget number_of_children number_of_siblings current_project
    bedtime wake_time
"""

_MULTI = """
    alias nickname likes loves enjoys dislikes hates prefers avoids wants needs fears believes
    interested_in owns has uses bought sold plays practices hobby speaks reads watches listens_to
    visited traveled_to moved_to attended plans plans_to allergic_to has_condition
    takes_medication has_symptom eats drinks cooks drives has_pet has_child child_of parent_of
    has_sibling sibling_of relative_of friend_of knows lives_with colleague_of member_of
    volunteers_at studied_at worked_at worked_as lived_in graduated_from has_degree has_skill
    learned created wrote built participated_in met said mentioned
"""


@dataclass(frozen=True, slots=True)
class PredicateRegistry:
    """Which predicates hold one value at a time.

    ``cardinalities`` maps predicates (matched by :func:`predicate_key`) to ``single`` or ``multi``;
    every other predicate gets ``default``. That default is ``multi``: two values side by side
    can still be told apart, a value wrongly closed is lost to the reader.
    """

    cardinalities: Mapping[str, Cardinality] = field(
        default_factory=lambda: {
            **dict.fromkeys(_SINGLE.split(), "single"),
            **dict.fromkeys(_MULTI.split(), "multi"),
        }
    )
    default: Cardinality = "multi"

    def __post_init__(self) -> None:
        for name, cardinality in (*self.cardinalities.items(), ("default", self.default)):
            if cardinality not in ("single", "multi"):
                raise InputError(f"{name}: a cardinality is single or multi, not {cardinality!r}")
        keyed = {predicate_key(name): value for name, value in self.cardinalities.items()}
        object.__setattr__(self, "cardinalities", MappingProxyType(keyed))

    def cardinality(self, predicate: str) -> Cardinality:
        """Return the cardinality of a predicate, in any spelling."""
        return self.cardinalities.get(predicate_key(predicate), self.default)

    def extended(self, cardinalities: Mapping[str, Cardinality]) -> PredicateRegistry:
        """Return a registry in which these predicates are (re)defined."""
        keyed = {predicate_key(name): value for name, value in cardinalities.items()}
        return PredicateRegistry({**self.cardinalities, **keyed}, self.default)
