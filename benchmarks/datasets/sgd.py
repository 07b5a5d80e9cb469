"""Schema-Guided Dialogue: exact spans of slot values, and the state after every user turn.

Every value that a user turn names in an accepted slot is a claim of the user on that span. Slots
map to predicates by name, whatever the service:

====================  ===========================================================================
predicate             slots
====================  ===========================================================================
``plans_in``          location, city, city_of_event, area, where_to, pickup_city, destination of
                      a hotel
``plans_venue``       restaurant_name, hotel_name, place_name, theater_name, event_location,
                      attraction_name, property_name, dentist_name, doctor_name, stylist_name,
                      therapist_name
``plans_kind``        subcategory, genre, cuisine, category
``plans_on``          date, check_in_date, visit_date, appointment_date, show_date, event_date,
                      pickup_date, start_date
``plans_at_time``     time, appointment_time, show_time, event_time, pickup_time, leaving_time,
                      journey_start_time, alarm_time, new_alarm_time, transfer_time
``travels_from``      origin, origin_city, from, from_city, from_location, from_station,
                      origin_airport, departure_city, pickup_location
``travels_to``        destination, destination_city, to, to_city, to_location, to_station,
                      destination_airport
``travels_on``        departure_date, leaving_date, date_of_journey
``returns_on``        return_date, dropoff_date, end_date, check_out_date
====================  ===========================================================================

Every other slot with a span (amounts, names of songs and films, recipients and so on) has no
predicate: it counts as gold that cannot be found. Categorical slots have no span in the release
and are no gold. The release's clock stands at 2019-03-01; turns are a minute apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import DatasetError, Source, Turn, read_bytes
from benchmarks.datasets.labelled import Dialogue, GoldClaim, Labelled

SOURCE = Source(
    name="sgd",
    origin="google-research-datasets/dstc8-schema-guided-dialogue",
    revision="e852981",
    licence="CC BY-SA 4.0",
    known={
        "fe3a8ed9e160c15e20e7cfd16d03734b4473df0d3864f2ad687ea9eeee5eea52": "dev 001",
        "d9af6ffcb69257ab3ce10e4637fc4d45d268094e55693b170a9b5b9d914dc611": "dev 007",
    },
)
TODAY = datetime(2019, 3, 1, 12, tzinfo=UTC)
USER = "user"

_TABLE = {
    "plans_in": "location city city_of_event area where_to pickup_city",
    "plans_venue": (
        "restaurant_name hotel_name place_name theater_name event_location attraction_name "
        "property_name dentist_name doctor_name stylist_name therapist_name"
    ),
    "plans_kind": "subcategory genre cuisine category",
    "plans_on": (
        "date check_in_date visit_date appointment_date show_date event_date pickup_date start_date"
    ),
    "plans_at_time": (
        "time appointment_time show_time event_time pickup_time leaving_time journey_start_time "
        "alarm_time new_alarm_time transfer_time"
    ),
    "travels_from": (
        "origin origin_city from from_city from_location from_station origin_airport "
        "departure_city pickup_location"
    ),
    "travels_to": (
        "destination destination_city to to_city to_location to_station destination_airport"
    ),
    "travels_on": "departure_date leaving_date date_of_journey",
    "returns_on": "return_date dropoff_date end_date check_out_date",
}
PREDICATES: Mapping[str, str] = {
    slot: predicate for predicate, slots in _TABLE.items() for slot in slots.split()
}
"""Slot to predicate; see the table above."""


def predicate_of(service: str, slot: str) -> str | None:
    """Return the predicate of a slot, or None when no predicate says it."""
    if service.startswith("Hotels") and slot == "destination":
        return "plans_in"
    return PREDICATES.get(slot)


def load(paths: Sequence[Path]) -> Labelled:
    """Map files of the release; dialogues keep their order.

    Raises:
        DatasetError: a file is no list of dialogues, or a span lies outside its utterance.
    """
    files: dict[str, str] = {}
    dialogues: list[Dialogue] = []
    sizes: list[int] = []
    for path in paths:
        content, digest, label = read_bytes(path, SOURCE)
        files[digest] = label
        try:
            records = json.loads(content)
            dialogues += [_dialogue(record) for record in records]
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{path.name}: not in the format of SGD: {error!r}") from error
        sizes.append(len(dialogues) - sum(sizes))
    return Labelled(
        SOURCE, files, tuple(dialogues), frozenset(_TABLE), has_spans=True, sizes=tuple(sizes)
    )


def _dialogue(record: Mapping[str, Any]) -> Dialogue:
    turns: list[Turn] = []
    gold: list[GoldClaim] = []
    silent: set[int] = set()
    states: list[Mapping[str, frozenset[str]]] = []
    for number, raw in enumerate(record["turns"]):
        speaker = {"USER": USER, "SYSTEM": "assistant"}[raw["speaker"]]
        at = TODAY + timedelta(minutes=number)
        text = raw["utterance"]
        turns.append(Turn(f"t{number}", record["dialogue_id"], speaker, speaker, text, at))
        found = list(_claims(number, text, raw["frames"])) if speaker == USER else []
        gold += found
        if not found:
            silent.add(number)
        states.append(_state(raw["frames"]) if speaker == USER else states[-1] if states else {})
    return Dialogue(
        record["dialogue_id"], tuple(turns), tuple(gold), frozenset(silent), tuple(states)
    )


def _claims(number: int, text: str, frames: Sequence[Mapping[str, Any]]) -> Iterator[GoldClaim]:
    for frame in frames:
        accepted = frame["state"]["slot_values"]
        days = _days(frame["actions"])
        for slot in frame["slots"]:
            start, end = slot["start"], slot["exclusive_end"]
            value = text[start:end]
            if not 0 <= start < end <= len(text):
                raise ValueError(f"span {start}:{end} in {len(text)} characters")
            if value not in accepted.get(slot["slot"], ()):
                continue
            predicate = predicate_of(frame["service"], slot["slot"])
            yield GoldClaim(
                label=f"{frame['service'].split('_')[0]}.{slot['slot']}",
                subject=USER,
                object=value,
                predicates=frozenset() if predicate is None else frozenset({predicate}),
                turn=number,
                span=(start, end),
                day=days.get((slot["slot"], value)),
            )


def _days(actions: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], date]:
    found: dict[tuple[str, str], date] = {}
    for action in actions:
        canonical = action.get("canonical_values", ())
        for value, plain in zip(action["values"], canonical, strict=False):
            try:
                found[action["slot"], value] = date.fromisoformat(plain)
            except ValueError:
                continue
    return found


def _state(frames: Sequence[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    state: dict[str, frozenset[str]] = {}
    for frame in frames:
        for slot, values in frame["state"]["slot_values"].items():
            predicate = predicate_of(frame["service"], slot)
            if predicate is not None:
                folded = frozenset(value.casefold() for value in values)
                state[predicate] = state.get(predicate, frozenset()) | folded
    return state
