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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("[", "cut off"),
        ('[{"a": 1},', "cut off"),
        ("hello", "expected a JSON array"),
        ("[1, 2]", "expected a JSON array"),
        ("[[1]]", "expected a JSON array"),
        ('[{"a": 1}] {"a": 2}', "expected a JSON array"),
        ("]", "expected a JSON array"),
        ("PK\x03\x04", "unpack it"),
        (b"PK\x03\x04\xff\xfe", "not UTF-8"),
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
