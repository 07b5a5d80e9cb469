"""The ``evicortex`` command: parse, call the facade, render."""

from __future__ import annotations

from evicortex.interfaces.cli import models, reading, upkeep, writing
from evicortex.interfaces.cli.app import cli, main

COMMAND_MODULES = (writing, reading, upkeep, models)
"""Importing a module registers its commands."""

__all__ = ["COMMAND_MODULES", "cli", "main"]
