"""Every Python example in the documents runs, and prints what the document says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in _FENCE.finditer(page.read_text("utf-8"))]


WITH_PYTHON = [page for page in PAGES if any(kind == "python" for kind, _ in blocks(page))]


def test_there_are_examples_to_run() -> None:
    names = {page.name for page in WITH_PYTHON}
    assert {"README.md", "quickstart.md", "api.md", "security.md", "operations.md"} <= names


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_examples_of_a_page_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shared: dict[str, object] = {"__name__": "example"}
    found = blocks(page)
    for (kind, source), (next_kind, expected) in zip(found, [*found[1:], ("", "")], strict=True):
        if kind != "python":
            continue
        exec(compile(source, str(page), "exec"), shared)
        printed = capsys.readouterr().out
        if next_kind == "text":
            assert printed == expected
