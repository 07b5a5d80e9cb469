"""The streaming reader of JSON records: borders anywhere, one bad record spoils no other."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.errors import ImportFormatError
from evicortex.interfaces.importers import json_records as module
from evicortex.interfaces.importers.json_records import json_records
from evicortex.interfaces.importers.records import BadRecord

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=5)


def read(text: str | bytes) -> list[tuple[int, object]]:
    return list(json_records(io.BytesIO(text.encode() if isinstance(text, str) else text)))


@given(
    records=RECORDS,
    chunk=st.integers(1, 7),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 2]),
)
def test_array_round_trips_whatever_the_chunk_size(
    records: list[dict[str, object]], chunk: int, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(records, ensure_ascii=ascii_only, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK_BYTES", chunk)
        found = read(text.encode("utf-8", "surrogatepass" if ascii_only else "strict"))
    assert found == list(enumerate(records, start=1))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1} {"a": 2}',
        '{"a": 1}\n{"a": 2}\n',
        '[{"a": 1}, {"a": 2}]',
        '\ufeff[{"a":1},{"a":2}]',
    ],
)
def test_every_way_to_write_two_records(text: str) -> None:
    assert read(text) == [(1, {"a": 1}), (2, {"a": 2})]


def test_single_object_is_one_record() -> None:
    assert read('{"a": {"b": "}{"}}') == [(1, {"a": {"b": "}{"}})]


def test_empty_array_has_no_records() -> None:
    assert read("[ ]") == []


def test_bad_record_is_reported_and_the_rest_is_read() -> None:
    found = read('[{"a": 1}, {"a": nope}, {"a": NaN}, {"a": 4}]')
    assert found[0] == (1, {"a": 1})
    assert found[3] == (4, {"a": 4})
    for number, record in found[1:3]:
        assert isinstance(record, BadRecord), number
        assert record.reason.startswith("not valid JSON")


def test_deep_nesting_is_a_bad_record() -> None:
    depth = 200_000
    ((_, record),) = read('{"a":' + "[" * depth + "]" * depth + "}")
    assert isinstance(record, BadRecord)


def test_file_cut_off_inside_a_record_says_so() -> None:
    assert read('[{"a": 1}, {"a": "tex') == [
        (1, {"a": 1}),
        (2, BadRecord("the file ends inside this record")),
    ]


@given(
    values=st.lists(JSON, min_size=1, max_size=6),
    chunk=st.integers(1, 7),
    indent=st.sampled_from([None, 2]),
)
def test_values_that_are_no_objects_are_reported_by_number(
    values: list[object], chunk: int, indent: int | None
) -> None:
    text = json.dumps(values, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK_BYTES", chunk)
        found = read(text)
    assert [number for number, _ in found] == list(range(1, len(values) + 1))
    for (_, record), value in zip(found, values, strict=True):
        if isinstance(value, dict):
            assert record == value
        else:
            assert isinstance(record, BadRecord)
            assert record.reason.startswith("expected an object, found ")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("null", "expected an object, found null"),
        ("17", "expected an object, found a number"),
        ("true", "expected an object, found a boolean"),
        ('"a, {\\" ]"', "expected an object, found a string"),
        ('[1, {"b": []}]', "expected an object, found a list"),
        ("nope", "not valid JSON"),
        ("NaN", "not valid JSON"),
    ],
)
def test_records_around_another_value_are_read(value: str, reason: str) -> None:
    for text in (f'[{{"a": 1}}, {value}, {{"a": 3}}]', f'{{"a": 1}}\n{value}\n{{"a": 3}}'):
        first, (number, record), last = read(text)
        assert (first, last) == ((1, {"a": 1}), (3, {"a": 3}))
        assert number == 2
        assert isinstance(record, BadRecord)
        assert record.reason.startswith(reason)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[{"a": 1}}, {"a": 2}]', "found '}, {\"a\": 2}]' at character 10"),
        ('[{"a": 1}] {"a": 2}', "found '{\"a\": 2}' at character 12"),
        ('[{"a": 1}: 2]', "found ': 2]' at character 10"),
        ('[{"a": 1},', "cut off"),
        ('[{"a": 1}', "cut off"),
        (b'[{"a": 1}, \xff', "not UTF-8 text (invalid start byte at byte 11)"),
        ('\ufeff[{"a": 1}] x', "found 'x' at character 12"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 3, 1 << 16])
def test_where_a_file_stops_being_json_what_was_read_stays(
    text: str | bytes, place: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK_BYTES", chunk)
    first, (number, record) = read(text)
    assert first == (1, {"a": 1})
    assert number == 2
    assert isinstance(record, BadRecord)
    assert record.reason.endswith("; nothing after it was read")
    assert place.split(" at character")[0].split("'")[0] in record.reason
    if chunk == 1 << 16:
        assert place in record.reason
    elif " at " in place:
        assert f" at {place.rsplit(' at ', 1)[1]}" in record.reason


def test_value_at_the_very_end_of_a_file_is_reported() -> None:
    assert read('{"a": 1} null') == [
        (1, {"a": 1}),
        (2, BadRecord("expected an object, found null")),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("[", "cut off"),
        ("hello", "expected a JSON array"),
        ("null", "expected a JSON array"),
        ('"text"', "expected a JSON array"),
        ("]", "expected a JSON array"),
        ("PK\x03\x04", "unpack it"),
        (b"PK\x03\x04\xff\xfe", "unpack it"),
        (b"\xff\xfe[]", "not UTF-8 text .* at byte 0"),
    ],
)
def test_other_files_are_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ImportFormatError, match=message):
        read(text)


def test_one_record_is_held_at_a_time() -> None:
    """A reader that slurped the file would ask for all of it before it yields the first record."""

    class Counting(io.BytesIO):
        asked = 0

        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            self.asked += len(data)
            return data

    record = json.dumps({"text": "x" * 1000}).encode()
    file = Counting(b"[" + b",".join([record] * 5000) + b"]")
    records = json_records(file)
    assert next(records)[0] == 1
    assert file.asked <= 1 << 16
