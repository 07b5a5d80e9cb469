"""Namespaces never cross, however large, alike or strangely named they are."""

import pytest

from evicortex import ClaimDraft, EviCortex, EvidenceDraft, NotFoundError
from evicortex.testing import DeterministicEmbedder, FixedClock

WORDS = "river stone lantern harbour violet engine meadow copper signal winter".split()


def noise(count):
    return [
        EvidenceDraft(
            " ".join(WORDS[(n * k + k) % len(WORDS)] for k in range(1, 5)) + f" {n % 97}",
            actor=("Ann", "Bob")[n % 2],
            session=f"s{n % 50}",
        )
        for n in range(count)
    ]


def test_a_small_namespace_beside_a_huge_one_gets_its_three_documents(tmp_path):
    with EviCortex.open(tmp_path / "m.db", embedder=None) as cortex:
        for start in range(0, 20_000, 10_000):
            cortex.remember_many("huge", noise(10_000), on_progress=None)
            assert cortex.stats("huge").evidence == start + 10_000
        texts = {"A copper lantern.", "The lantern by the river.", "Violet lantern, winter."}
        cortex.remember_many("small", [EvidenceDraft(text) for text in sorted(texts)])
        hits = cortex.search("small", "lantern", limit=10).hits
        assert {hit.evidence.content for hit in hits} == texts
        assert {hit.evidence.namespace for hit in hits} == {"small"}
        pack = cortex.recall("small", "copper lantern river", budget_tokens=500)
        assert {item.text for item in pack.items} == texts
        alone = [(hit.evidence.content, hit.score) for hit in hits]
        with EviCortex.open(tmp_path / "alone.db", embedder=None) as other:
            other.remember_many("small", [EvidenceDraft(text) for text in sorted(texts)])
            again = other.search("small", "lantern", limit=10).hits
            assert [(hit.evidence.content, hit.score) for hit in again] == alone
        few = cortex.search("huge", "lantern", sessions=["s7"], actors=["Bob"], limit=10_000).hits
        assert len(few) > 0
        assert all((h.evidence.session, h.evidence.actor) == ("s7", "Bob") for h in few)


LOOKALIKES = ["a", "A", "a ", "á", "a\u0301", "n1", "1", "%", "_", "a%", "*", "a' OR '1'='1", "ns:*",
              "日本", "😀", "../a", "null", "a/b", "a\u200b"]  # fmt: skip


@pytest.mark.parametrize("embedder", [None, DeterministicEmbedder()], ids=["lexical", "vectors"])
def test_names_that_look_alike_are_different_namespaces(tmp_path, embedder):
    with EviCortex.open(tmp_path / "m.db", embedder=embedder, clock=FixedClock()) as cortex:
        receipts = {}
        for number, name in enumerate(LOOKALIKES):
            receipts[name] = cortex.remember(
                name,
                f"shared word, value{number}",
                external_id="same",
                actor="Ann",
                session="s",
                claims=[ClaimDraft("Ann", "lives_in", f"Town{number}")],
            )
        assert cortex.namespaces() == tuple(sorted(LOOKALIKES))
        assert len({r.evidence_id for r in receipts.values()}) == len(LOOKALIKES)
        for number, name in enumerate(LOOKALIKES):
            (hit,) = cortex.search(name, "shared word").hits
            assert hit.evidence.content == f"shared word, value{number}"
            (claim,) = cortex.claims(name)
            assert (claim.object, claim.namespace) == (f"Town{number}", name)
            pack = cortex.recall(name, "Where does Ann live? shared", budget_tokens=200)
            assert [i.evidence_id for i in pack.items] == [receipts[name].evidence_id]
            for other in LOOKALIKES:
                if other != name:
                    with pytest.raises(NotFoundError):
                        cortex.evidence(other, receipts[name].evidence_id)
        cortex.purge("a", session="s")
        assert [cortex.stats(name).evidence for name in LOOKALIKES] == [0] + [1] * (
            len(LOOKALIKES) - 1
        )


def test_actors_and_aliases_of_another_namespace_are_unknown(tmp_path):
    with EviCortex.open(tmp_path / "m.db", embedder=None) as cortex:
        cortex.remember("one", "Hey Katie! I saw the comet.", actor="Bartholomew")
        cortex.remember("one", "Hi Bart, where?", actor="Katherine")
        cortex.remember("two", "The comet was seen.", actor="Zoe")
        pack = cortex.recall("two", "What did Bartholomew say about the comet?", budget_tokens=99)
        assert pack.trace["actors"] == ()
        assert [item.actor for item in pack.items] == ["Zoe"]
        assert "Bart" not in repr(pack.items) + pack.text
