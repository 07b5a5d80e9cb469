"""Preregistration: freeze configuration and data digests before a test run."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.config import ConfigError, RunConfig


def freeze(config: RunConfig, digests: dict[str, str], path: Path) -> str:
    """Write the preregistration and return its SHA-256; an existing file is never replaced.

    Args:
        config: The configuration to freeze.
        digests: Suite name to the SHA-256 of its data.
        path: The file to write.

    Raises:
        ConfigError: The file exists.
    """
    entry = {
        "config": config.frozen(),
        "config_sha256": config.digest,
        "data": digests,
        "frozen_at": datetime.now(UTC).isoformat(),
    }
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(json.dumps(entry, indent=2, sort_keys=True) + "\n")
    except FileExistsError as error:
        raise ConfigError(f"{path} exists: a preregistration is written once") from error
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check(config: RunConfig, digests: dict[str, str]) -> str | None:
    """Return the preregistration's SHA-256, or None for a development run.

    Raises:
        ConfigError: The configuration or the data are not those that were frozen.
    """
    if config.prereg is None:
        return None
    try:
        content = config.prereg.read_bytes()
    except OSError as error:
        raise ConfigError(f"no preregistration: {error}") from error
    frozen: dict[str, Any] = json.loads(content)
    if frozen["config_sha256"] != config.digest:
        changed = [
            key for key, value in config.frozen().items() if frozen["config"].get(key) != value
        ]
        raise ConfigError(
            f"this configuration is not the preregistered one: {', '.join(changed)} changed"
        )
    if frozen["data"] != digests:
        raise ConfigError("the data are not those that were preregistered")
    return hashlib.sha256(content).hexdigest()
