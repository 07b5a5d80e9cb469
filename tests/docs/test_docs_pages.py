"""The documents hold together: links, sizes, names, commands and the tests they point at."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

import evicortex
from evicortex import EviCortex
from evicortex.errors import InputError
from evicortex.interfaces.cli import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_cli", DOCS / "generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cli_page_is_what_the_commands_say() -> None:
    expected = generator().page()
    assert (DOCS / "cli.md").read_text("utf-8") == expected, "run: python docs/generate_cli.py"


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text("utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_every_public_name_is_documented() -> None:
    text = (DOCS / "api.md").read_text("utf-8")
    methods = [name for name in vars(EviCortex) if not name.startswith("_")]
    names = [*methods, *(name for name in evicortex.__all__ if not name.startswith("_"))]
    missing = [name for name in names if not re.search(rf"\b{name}\b", text)]
    assert missing == []


def test_every_variable_of_the_environment_is_documented() -> None:
    text = (DOCS / "operations.md").read_text("utf-8")
    with pytest.raises(InputError) as caught:
        evicortex.Settings.from_environment({"EVICORTEX_NO_SUCH_THING": "1"})
    known = set(re.findall(r"EVICORTEX_[A-Z_]+", str(caught.value))) - {"EVICORTEX_NO_SUCH_THING"}
    assert known == set(re.findall(r"EVICORTEX_[A-Z_]+", text))


def _every_command(
    group: click.Group, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*above, name), command
        if isinstance(command, click.Group):
            yield from _every_command(command, (*above, name))


def _commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for line in re.findall(r"^\$ (evicortex .*)$", page.read_text("utf-8"), re.MULTILINE):
            found.append((page.name, line))
    for path, command in _every_command(cli, ()):
        lines = [line for line in getattr(command, "examples", ()) if "|" not in line]
        assert lines, f"{' '.join(path)} has no example"
        found += [(" ".join(path), line) for line in lines]
    return [(where, line.removeprefix("evicortex ")) for where, line in found]


@pytest.mark.parametrize(("where", "line"), _commands())
def test_documented_commands_parse(where: str, line: str, tmp_path: Path) -> None:
    """The words of every documented command are a command and its options."""
    name, *words = shlex.split(line, comments=True)
    command = cli.commands[name]
    context = click.Context(cli)
    while isinstance(command, click.Group):
        context = click.Context(command, parent=context)
        command = command.commands[words[0]]
        name = words.pop(0)
    present = tmp_path / "present"
    present.touch()
    files = re.compile(r".+\.(db|json|jsonl)")
    arguments = [str(present) if files.fullmatch(word) else word for word in words]
    assert command.make_context(name, arguments, parent=context) is not None


@pytest.mark.parametrize("record", DECISIONS, ids=lambda record: record.stem)
def test_decision_records_are_complete_and_their_tests_exist(record: Path) -> None:
    text = record.read_text("utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["Context", "Choice", "Alternatives", "Consequences", "Guarded by"]
    guards = text.split("## Guarded by")[1]
    tests = re.findall(r"tests/[\w/]+\.py", guards)
    assert [test for test in tests if not (ROOT / test).is_file()] == []
    assert tests or "pyproject.toml" in guards
    assert record.stem[:4].isdigit()
    assert int(record.stem[:4]) == DECISIONS.index(record) + 1
