from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.errors import (
    InputError,
    MissingExtraError,
    ProviderContractError,
    ProviderUnavailableError,
    TextTooLongError,
)
from evicortex.protocols import EmbeddingProfile
from evicortex.testing import (
    EMBEDDER_LIES,
    SPAN_LIES,
    DeterministicEmbedder,
    DeterministicSpanEmbedder,
    LyingEmbedder,
    LyingSpanEmbedder,
    RaisingEmbedder,
    SlowEmbedder,
    SymmetricEmbedder,
)
from evicortex.types import Diagnostic, Span
from evicortex.validation import (
    CheckedEmbedder,
    profile_digest,
    span_profile_digest,
    validate_profile,
)

TEXTS = ["one", "two", "three", "four"]


def test_good_rows_come_back_in_order_and_read_only():
    provider = DeterministicEmbedder()
    batch = CheckedEmbedder(provider).embed(TEXTS)
    assert batch.indices == (0, 1, 2, 3)
    assert batch.errors == ()
    assert np.array_equal(batch.vectors, DeterministicEmbedder().embed(TEXTS))
    assert not batch.vectors.flags.writeable


def test_empty_batch_asks_nobody():
    provider = DeterministicEmbedder()
    batch = CheckedEmbedder(provider).embed([])
    assert batch.vectors.shape == (0, 16)
    assert provider.calls == []


def test_roles_are_dispatched_separately():
    provider = DeterministicEmbedder()
    checked = CheckedEmbedder(provider)
    checked.embed(["a document"])
    checked.embed(["a batch of queries"], input_type="query")
    checked.embed_query("a query")
    assert [role for _, role in provider.calls] == ["document", "query", "query"]


def test_symmetric_provider_without_input_type_keeps_working():
    checked = CheckedEmbedder(SymmetricEmbedder())
    query = checked.embed_query("one")
    assert np.array_equal(query, checked.embed(["one"]).vectors[0])


def test_provider_with_keyword_arguments_gets_the_role():
    seen = []

    class Flexible(DeterministicEmbedder):
        def embed(self, texts, **options):
            seen.append(options)
            return super().embed(texts)

    CheckedEmbedder(Flexible()).embed_query("q")
    assert seen == [{"input_type": "query"}]


def test_provider_whose_signature_cannot_be_read_gets_the_role():
    class Opaque(DeterministicEmbedder):
        class _Call:
            __signature__ = "not a signature"

            def __init__(self, owner):
                self.owner = owner

            def __call__(self, texts, *, input_type):
                return DeterministicEmbedder.embed(self.owner, texts, input_type=input_type)

        @property
        def embed(self):
            return self._Call(self)

    provider = Opaque()
    CheckedEmbedder(provider).embed_query("q")
    assert provider.calls == [(("q",), "query")]


@pytest.mark.parametrize("lie", [lie for lie in EMBEDDER_LIES if lie not in ("nan row", "order")])
def test_every_lie_is_named_and_nothing_comes_back(lie):
    checked = CheckedEmbedder(LyingEmbedder(lie))
    with pytest.raises(ProviderContractError, match="testing/lying"):
        checked.embed(TEXTS)
    with pytest.raises(ProviderContractError, match="testing/lying"):
        CheckedEmbedder(LyingEmbedder(lie)).embed_query("one")


def test_reversed_rows_are_found_by_the_first_batch():
    with pytest.raises(ProviderContractError, match="order of the texts"):
        CheckedEmbedder(LyingEmbedder("order")).embed(TEXTS)


def test_order_probe_runs_once_and_never_for_equal_texts():
    provider = DeterministicEmbedder()
    checked = CheckedEmbedder(provider)
    checked.embed(["same", "same"])
    assert len(provider.calls) == 1
    checked.embed(TEXTS)
    checked.embed(TEXTS)
    assert [len(texts) for texts, _ in provider.calls] == [2, 4, 1, 1, 4]


def test_order_probe_can_be_turned_off():
    provider = DeterministicEmbedder()
    CheckedEmbedder(provider, order_probes=0).embed(TEXTS)
    assert len(provider.calls) == 1


def test_order_probe_sees_through_vectors_of_any_length():
    class Long(DeterministicEmbedder):
        def embed(self, texts, *, input_type="document"):
            rows = super().embed(texts)
            return rows * np.arange(1, 1 + len(rows), dtype=np.float32)[:, None]

    provider = Long()
    provider._profile = replace(provider.profile, normalized=False)
    assert CheckedEmbedder(provider).embed(TEXTS).errors == ()


@pytest.mark.parametrize("row", range(4))
def test_a_nan_row_rejects_that_row_only(row):
    batch = CheckedEmbedder(LyingEmbedder("nan row", row=row), order_probes=0).embed(TEXTS)
    assert batch.indices == tuple(index for index in range(4) if index != row)
    assert [(error.index, error.code) for error in batch.errors] == [(row, "not_finite")]
    honest = DeterministicEmbedder().embed(TEXTS)
    assert np.array_equal(batch.vectors, np.delete(honest, row, axis=0))


def test_a_nan_row_does_not_upset_the_order_probe():
    batch = CheckedEmbedder(LyingEmbedder("nan row", row=2)).embed(TEXTS)
    assert batch.indices == (0, 1, 3)


def test_a_batch_of_nothing_but_nan_rejects_every_row():
    class Broken(DeterministicEmbedder):
        def embed(self, texts, *, input_type="document"):
            return np.full((len(texts), 16), np.nan, dtype=np.float32)

    batch = CheckedEmbedder(Broken()).embed(TEXTS)
    assert batch.indices == ()
    assert len(batch.errors) == 4


def test_a_query_without_a_vector_is_an_error():
    with pytest.raises(ProviderContractError, match="NaN"):
        CheckedEmbedder(LyingEmbedder("nan row")).embed_query("one")


def test_zero_row_of_a_provider_that_promises_no_length_is_rejected_alone():
    class Raw(DeterministicEmbedder):
        def embed(self, texts, *, input_type="document"):
            rows = super().embed(texts) * np.float32(3.0)
            rows[1] = 0.0
            return rows

    provider = Raw()
    provider._profile = replace(provider.profile, normalized=False)
    batch = CheckedEmbedder(provider, order_probes=0).embed(TEXTS)
    assert batch.indices == (0, 2, 3)
    assert [(error.index, error.code) for error in batch.errors] == [(1, "zero_norm")]


class Scaled(DeterministicSpanEmbedder):
    """Promises no length and gives every vector another one."""

    def __init__(self, *lengths):
        super().__init__()
        self._profile = replace(self._profile, normalized=False)
        self._lengths = lengths

    def embed(self, texts, *, input_type="document"):
        return self._stretched(super().embed(texts, input_type=input_type))

    def embed_spans(self, texts, spans):
        rows, found = super().embed_spans(texts, spans)
        return self._stretched(rows), [self._stretched(each) for each in found]

    def _stretched(self, rows):
        lengths = np.resize(np.asarray(self._lengths, dtype=np.float32), len(rows))
        return rows * lengths[:, np.newaxis]


@pytest.mark.parametrize("lengths", [(10.0, 0.1), (1e30, 1e-30), (1e38, 1e-37), (3e38,)])
def test_what_has_no_promised_length_comes_back_at_length_one(lengths):
    checked, honest = CheckedEmbedder(Scaled(*lengths)), DeterministicEmbedder()
    answer = checked.embed_spans(["one two", "three"], HALVES)
    found = [checked.embed(TEXTS).vectors, answer.texts.vectors, answer.spans[0].vectors]
    asked = [TEXTS, ["one two", "three"], ["one", "two"]]
    for vectors, texts in zip(found, asked, strict=True):
        assert vectors.dtype == np.float32
        assert np.allclose(vectors, honest.embed(texts), atol=1e-6)
        assert not vectors.flags.writeable
    assert np.allclose(checked.embed_query("one"), honest.embed(["one"])[0], atol=1e-6)


def test_order_is_checked_at_any_length():
    class Reversed(Scaled):
        def embed(self, texts, *, input_type="document"):
            return super().embed(texts)[::-1]

    for length in (1e38, 1e-30):
        with pytest.raises(ProviderContractError, match="keep the order"):
            CheckedEmbedder(Reversed(length)).embed(TEXTS)


@given(st.floats(0.5, 1.5, width=32))
def test_norm_is_held_to_a_thousandth(length):
    class Scaled(DeterministicEmbedder):
        def embed(self, texts, *, input_type="document"):
            rows = np.zeros((len(texts), 16), dtype=np.float32)
            rows[:, 0] = length
            return rows

    checked = CheckedEmbedder(Scaled())
    if abs(float(np.float32(length)) - 1.0) <= 1e-3:
        assert checked.embed(["a"]).indices == (0,)
    else:
        with pytest.raises(ProviderContractError, match="length"):
            checked.embed(["a"])


def test_a_provider_may_reuse_its_buffer():
    class Reusing(DeterministicEmbedder):
        buffer = np.zeros((1, 16), dtype=np.float32)

        def embed(self, texts, *, input_type="document"):
            self.buffer[:] = super().embed(texts)
            return self.buffer

    checked = CheckedEmbedder(Reusing())
    first = checked.embed(["one"]).vectors
    checked.embed(["two"])
    assert np.array_equal(first, DeterministicEmbedder().embed(["one"]))


class Capped(DeterministicEmbedder):
    def embed(self, texts, *, input_type="document"):
        if any(len(text) > 5 for text in texts):
            raise TextTooLongError("more than 5 characters")
        rows = super().embed(texts)
        if "bad" in texts:
            rows[list(texts).index("bad")] = np.inf
        return rows

    def windows(self, text):
        return [Span(start, min(start + 5, len(text))) for start in range(0, len(text), 5)]


@pytest.mark.parametrize("count", [127, 128, 129, 300])
def test_no_call_has_more_texts_than_its_time_is_meant_for(count):
    provider = DeterministicSpanEmbedder()
    checked = CheckedEmbedder(provider, order_probes=0)
    texts = [f"text {number}" for number in range(count)]
    spans = [[Span(0, 4)] * (number % 3) for number in range(count)]
    expected = DeterministicEmbedder().embed(texts)
    assert np.array_equal(checked.embed(texts).vectors, expected)
    answer = checked.embed_spans(texts, spans)
    assert np.array_equal(answer.texts.vectors, expected)
    assert [len(batch.indices) for batch in answer.spans] == [len(wanted) for wanted in spans]
    for calls in (provider.calls, provider.span_calls):
        assert [len(sent) for sent, _ in calls] == [128] * (count // 128) + [count % 128] * (
            count % 128 > 0
        )


def test_one_text_too_long_rejects_its_row_only():
    batch = CheckedEmbedder(Capped()).embed(["short", "far too long", "bad", "ok"])
    assert batch.indices == (0, 3)
    assert [(error.index, error.code) for error in batch.errors] == [
        (1, "text_too_long"),
        (2, "not_finite"),
    ]
    assert np.array_equal(batch.vectors, DeterministicEmbedder().embed(["short", "ok"]))
    assert not batch.vectors.flags.writeable


def test_windows_cover_the_text_or_are_refused():
    checked = CheckedEmbedder(Capped())
    assert checked.windows("abcdefg") == (Span(0, 5), Span(5, 7))
    assert checked.windows(" \n") == ()
    assert CheckedEmbedder(DeterministicEmbedder()).windows("abc") == (Span(0, 3),)
    assert CheckedEmbedder(DeterministicEmbedder()).windows("") == ()


@pytest.mark.parametrize(
    ("windows", "problem"),
    [
        ([(0, 3)], "leave out characters 3 to 7"),
        ([(1, 7)], "leave out characters 0 to 1"),
        ([(0, 3), (4, 7)], "leave out characters 3 to 4"),
        ([(0, 8)], "no span"),
        ([(3, 3)], "no span"),
        ([(-1, 7)], "no span"),
        ([[0, 7]], "no span"),
        ([(0, 3, 7)], "no span"),
        ([(0.0, 7)], "no span"),
        ([(3, 7), (0, 3)], "leave out characters 0 to 3"),
        ([(0, 5), (0, 7)], "out of order"),
        ([(0, 7), (2, 5)], "out of order"),
    ],
)
def test_windows_that_lie(windows, problem):
    class Cutting(Capped):
        def windows(self, text):
            return windows

    with pytest.raises(ProviderContractError, match=problem):
        CheckedEmbedder(Cutting()).windows("abcdefg")


def endless():
    while True:
        yield (0, 7)


def broken():
    yield (0, 3)
    raise RuntimeError("torn off")


@pytest.mark.parametrize(
    ("answer", "error", "problem"),
    [
        (lambda: None, ProviderContractError, "must be a sequence, not NoneType"),
        (lambda: 7, ProviderContractError, "must be a sequence, not int"),
        (endless, ProviderContractError, "out of order"),
        (broken, ProviderUnavailableError, "RuntimeError: torn off"),
    ],
)
def test_windows_that_are_none_are_named(answer, error, problem):
    class Cutting(Capped):
        def windows(self, text):
            return answer()

    with pytest.raises(error, match=problem) as caught:
        CheckedEmbedder(Cutting()).windows("abcdefg")
    assert "testing/deterministic@1" in str(caught.value)


def test_windows_may_overlap_and_skip_white_space():
    class Cutting(Capped):
        def windows(self, text):
            return [(1, 4), (3, 6), (7, 9)]

    assert CheckedEmbedder(Cutting()).windows(" abcde fg ") == (Span(1, 4), Span(3, 6), Span(7, 9))


class Spanning(DeterministicEmbedder):
    answer = None

    def embed_spans(self, texts, spans):
        if self.answer is not None:
            return self.answer
        pieces = [
            self.embed([text[start:end] for start, end in wanted])
            for text, wanted in zip(texts, spans, strict=True)
        ]
        return self.embed(texts), pieces


def test_spans_come_back_for_each_text():
    checked = CheckedEmbedder(Spanning())
    assert checked.supports_spans
    answer = checked.embed_spans(["one two", "three"], [[Span(0, 3), Span(4, 7)], []])
    honest = DeterministicEmbedder()
    assert np.array_equal(answer.texts.vectors, honest.embed(["one two", "three"]))
    assert np.array_equal(answer.spans[0].vectors, honest.embed(["one", "two"]))
    assert answer.spans[1].vectors.shape == (0, 16)
    assert checked.embed_spans([], []).spans == ()


def test_a_span_without_tokens_is_rejected_alone():
    class Partly(Spanning):
        def embed_spans(self, texts, spans):
            vectors, pieces = super().embed_spans(texts, spans)
            pieces[0][1] = np.nan
            return vectors, pieces

    answer = CheckedEmbedder(Partly()).embed_spans(["one two"], [[Span(0, 3), Span(3, 4)]])
    assert answer.spans[0].indices == (0,)
    assert [error.index for error in answer.spans[0].errors] == [1]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([1, 2], "pair"),
        ((1, 2, 3), "pair"),
        ((np.zeros((1, 16), np.float32), ()), "a matrix a text"),
        ((np.zeros((1, 16), np.float32), []), "a matrix a text"),
        ((DeterministicEmbedder().embed(["a"]), [np.zeros((2, 16), np.float32)]), "shape"),
        ((np.zeros((2, 16), np.float32), [DeterministicEmbedder().embed(["a"])]), "shape"),
    ],
)
def test_spans_that_lie(answer, problem):
    provider = Spanning()
    provider.answer = answer
    with pytest.raises(ProviderContractError, match=problem):
        CheckedEmbedder(provider).embed_spans(["one"], [[Span(0, 3)]])


def test_spans_need_the_capability_and_one_list_a_text():
    assert not CheckedEmbedder(DeterministicEmbedder()).supports_spans
    with pytest.raises(InputError, match="no span vectors"):
        CheckedEmbedder(DeterministicEmbedder()).embed_spans(["a"], [[]])
    with pytest.raises(InputError, match="1 texts but 2 lists"):
        CheckedEmbedder(Spanning()).embed_spans(["a"], [[], []])


HALVES = [[Span(0, 3), Span(4, 7)], []]


def test_texts_and_spans_are_probed_once_apart_from_embed():
    provider = DeterministicSpanEmbedder()
    checked = CheckedEmbedder(provider)
    checked.embed(TEXTS)
    provider.calls.clear()
    for _ in range(2):
        checked.embed_spans(["one two", "three"], HALVES)
    assert [texts for texts, _ in provider.calls] == [("one two",), ("three",)]
    asked = [(texts, spans) for texts, spans in provider.span_calls]
    whole = (("one two", "three"), ((Span(0, 3), Span(4, 7)), ()))
    assert asked == [whole, (("one two",), ((Span(4, 7),),)), whole]


def test_span_probes_can_be_turned_off():
    provider = DeterministicSpanEmbedder()
    CheckedEmbedder(provider, order_probes=0).embed_spans(["one two", "three"], HALVES)
    assert (len(provider.calls), len(provider.span_calls)) == (0, 1)


@pytest.mark.parametrize("lie", SPAN_LIES)
def test_every_lie_about_spans_is_named(lie):
    with pytest.raises(ProviderContractError, match="testing/lying-spans"):
        CheckedEmbedder(LyingSpanEmbedder(lie)).embed_spans(["one two", "three"], HALVES)


def test_a_span_alone_must_have_its_vector_too():
    class Forgetful(DeterministicSpanEmbedder):
        def embed_spans(self, texts, spans):
            rows, found = super().embed_spans(texts, spans)
            if len(spans[0]) == 1:
                found[0][:] = np.nan
            return rows, found

    with pytest.raises(ProviderContractError, match="must not depend on the other spans"):
        CheckedEmbedder(Forgetful()).embed_spans(["one two"], HALVES[:1])


def test_one_text_too_long_costs_its_own_row_and_spans_only():
    class Short(DeterministicSpanEmbedder):
        def embed_spans(self, texts, spans):
            if any(len(text) > 5 for text in texts):
                raise TextTooLongError("more than 5 characters")
            rows, found = super().embed_spans(texts, spans)
            if texts == ["bad"]:
                rows[:] = np.nan
            return rows, found

    answer = CheckedEmbedder(Short()).embed_spans(
        ["a b", "far too long", "bad", "ok"], [[Span(0, 1), Span(2, 3)], [Span(0, 3)], [], []]
    )
    honest = DeterministicEmbedder()
    assert np.array_equal(answer.texts.vectors, honest.embed(["a b", "ok"]))
    assert answer.texts.indices == (0, 3)
    assert [(error.index, error.code) for error in answer.texts.errors] == [
        (1, "text_too_long"),
        (2, "not_finite"),
    ]
    assert np.array_equal(answer.spans[0].vectors, honest.embed(["a", "b"]))
    assert [batch.indices for batch in answer.spans] == [(0, 1), (), (), ()]
    assert answer.spans[1].vectors.shape == (0, 16)


def test_exceptions_become_unavailable_and_keep_their_cause():
    cause = OSError("connection reset")
    with pytest.raises(ProviderUnavailableError, match=r"raising@1.*OSError: connection") as caught:
        CheckedEmbedder(RaisingEmbedder(cause)).embed(["a"])
    assert caught.value.__cause__ is cause


class Moody(DeterministicSpanEmbedder):
    """Has a profile until it is told to have none."""

    fails = False

    @property
    def profile(self):
        if self.fails:
            raise RuntimeError("no profile today")
        return super().profile

    def windows(self, text):
        return [(0, len(text))]


@pytest.mark.parametrize(
    "call",
    [
        lambda checked: checked.embed(["a"]),
        lambda checked: checked.embed_query("a"),
        lambda checked: checked.embed_spans(["a"], [[]]),
        lambda checked: checked.windows("a"),
    ],
)
def test_a_profile_that_raises_is_a_failure_of_the_embedder(call):
    provider = Moody()
    checked = CheckedEmbedder(provider)
    provider.fails = True
    with pytest.raises(ProviderUnavailableError, match=r"deterministic-spans@1.*no profile today"):
        call(checked)
    assert checked.supports_spans
    with pytest.raises(ProviderUnavailableError, match=r"embedder Moody.*no profile today"):
        CheckedEmbedder(provider)


def test_an_error_that_cannot_be_shown_is_named_by_its_type():
    class MuteError(Exception):
        def __str__(self):
            raise ValueError("no words")

    with pytest.raises(ProviderUnavailableError, match=r"gave no answer \(MuteError\)"):
        CheckedEmbedder(RaisingEmbedder(MuteError())).embed(["a"])


def test_long_messages_of_providers_are_cut():
    with pytest.raises(ProviderUnavailableError) as caught:
        CheckedEmbedder(RaisingEmbedder(ValueError("x" * 5000))).embed(["a"])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "error", [TextTooLongError("n"), MissingExtraError("f", "e"), ProviderContractError("n")]
)
def test_typed_errors_of_providers_pass_unchanged(error):
    with pytest.raises(type(error)) as caught:
        CheckedEmbedder(RaisingEmbedder(error)).embed_query("a")
    assert caught.value is error


def test_keyboard_interrupt_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        CheckedEmbedder(RaisingEmbedder(KeyboardInterrupt())).embed(["a"])


def test_a_slow_provider_is_given_up_after_the_limit():
    slow = SlowEmbedder()
    checked = CheckedEmbedder(slow, timeout_seconds=0.02)
    with pytest.raises(ProviderUnavailableError, match=r"no answer within 0\.02 s") as caught:
        checked.embed(["a"])
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert slow.started.wait(60)
    slow.release.set()


def test_with_a_limit_answers_and_errors_come_through():
    checked = CheckedEmbedder(DeterministicEmbedder(), timeout_seconds=60)
    assert checked.embed(["a"]).indices == (0,)
    failing = CheckedEmbedder(RaisingEmbedder(TextTooLongError("long")), timeout_seconds=60)
    with pytest.raises(TextTooLongError):
        failing.embed_query("a")


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf")])
def test_limits_must_be_above_zero(limit):
    with pytest.raises(InputError, match="timeout_seconds"):
        CheckedEmbedder(DeterministicEmbedder(), timeout_seconds=limit)


def test_the_profile_is_kept_as_it_was():
    details = {"graph": "a"}
    provider = DeterministicEmbedder()
    provider._profile = replace(provider.profile, details=details)
    checked = CheckedEmbedder(provider)
    assert checked.digest == profile_digest(provider.profile)
    details["graph"] = "b"
    assert checked.profile.details == {"graph": "a"}
    with pytest.raises(ProviderContractError, match="profile changed"):
        checked.embed(["a"])


PROFILE = EmbeddingProfile("model", "r1", 4, "class/1", details={"b": "ü", "a": "1"})


def test_digest_is_canonical():
    same = replace(PROFILE, details={"a": "1", "b": "ü"})
    assert profile_digest(same) == profile_digest(PROFILE)
    assert profile_digest(validate_profile(PROFILE)) == profile_digest(PROFILE)


def test_digest_never_changes_between_releases():
    assert profile_digest(PROFILE) == (
        "533b38fbff9a763c1cce3726b499e5a43cb176b42025dc503434058caf4a52fb"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"model_id": "other"},
        {"revision": "r2"},
        {"dimensions": 5},
        {"implementation": "class/2"},
        {"precision": "int8"},
        {"pooling": "cls"},
        {"query_prefix": "query: "},
        {"document_prefix": "passage: "},
        {"max_tokens": 512},
        {"truncation": "window"},
        {"normalized": False},
        {"semantic": False},
        {"details": {}},
    ],
)
def test_every_field_is_part_of_the_identity(changes):
    assert profile_digest(replace(PROFILE, **changes)) != profile_digest(PROFILE)


def test_span_vectors_have_an_identity_of_their_own():
    provider = Spanning()
    checked = CheckedEmbedder(provider)
    assert checked.spans_digest == span_profile_digest(provider.profile)
    assert checked.spans_digest != checked.digest


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model_id": " "}, "model_id must not be empty"),
        ({"revision": 3}, "revision must be a string"),
        ({"revision": "\ud800"}, "revision must be a string that UTF-8 can encode"),
        ({"implementation": ""}, "implementation must not be empty"),
        ({"query_prefix": None}, "query_prefix must be a string"),
        ({"truncation": "cut"}, "truncation must be one of"),
        ({"dimensions": 0}, "dimensions must be an integer"),
        ({"dimensions": 4.0}, "dimensions must be an integer"),
        ({"max_tokens": 0}, "max_tokens must be None"),
        ({"max_tokens": True}, "max_tokens must be None"),
        ({"normalized": 1}, "normalized must be a bool"),
        ({"semantic": "yes"}, "semantic must be a bool"),
        ({"details": ["a"]}, "details must be a mapping"),
        ({"details": {"a": 1}}, "details must map strings"),
        ({"details": {1: "a"}}, "details must map strings"),
    ],
)
def test_impossible_profiles_are_refused(changes, problem):
    with pytest.raises(ProviderContractError, match=problem):
        validate_profile(replace(PROFILE, **changes))


def test_something_else_than_a_profile_is_refused():
    with pytest.raises(ProviderContractError, match="must be an EmbeddingProfile, not dict"):
        validate_profile({"model_id": "m"})
    assert validate_profile(replace(PROFILE, max_tokens=1)).max_tokens == 1


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ((Diagnostic("encoder_graph_refused", "slow", {}), "else"), ["encoder_graph_refused"]),
        ("something of its own", []),
        ((), []),
    ],
)
def test_what_an_embedder_says_of_itself_is_passed_on(said, shown):
    embedder = DeterministicEmbedder(4)
    embedder.diagnostics = said
    assert [item.code for item in CheckedEmbedder(embedder).diagnostics] == shown


def test_an_embedder_need_not_say_anything_of_itself():
    assert CheckedEmbedder(DeterministicEmbedder(4)).diagnostics == ()


def test_what_an_embedder_cannot_say_of_itself_is_said():
    class Mute(DeterministicEmbedder):
        @property
        def diagnostics(self):
            raise RuntimeError("no words")

    (said,) = CheckedEmbedder(Mute(4)).diagnostics
    assert said.code == "embedder_diagnostics_failed"
    assert "no words" in said.message
