"""What a run was: commit, data, encoder, settings, seeds and libraries."""

from __future__ import annotations

import hashlib
import platform
import resource
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import evicortex
from benchmarks.config import RunConfig
from benchmarks.datasets.base import Stream, repairs_digest
from benchmarks.systems.catalog import Bench

CODE = frozenset({".py", ".json", ".npz"})
LIBRARIES = ("apsw", "numpy", "PyStemmer", "onnxruntime", "tokenizers", "torch", "transformers")


def git_commit(folder: Path) -> str:
    """Return the commit, marked when tracked files differ from it; ``unknown`` outside git."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit} with changes" if changed else commit


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.strip()


def code_digest() -> str:
    """Return one SHA-256 over what answers questions: the product, the systems, the data sets."""
    lab = Path(__file__).parent
    roots = (Path(evicortex.__file__).parent, lab / "systems", lab / "datasets")
    found = hashlib.sha256()
    for number, root in enumerate(roots):
        for path in sorted(root.rglob("*")):
            if path.suffix in CODE:
                name = f"{number} {path.relative_to(root).as_posix()}"
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found.update(f"{name} {digest}\n".encode())
    return found.hexdigest()


def versions() -> dict[str, str]:
    """Return the installed versions of what can change a figure."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def describe_stream(stream: Stream) -> dict[str, Any]:
    """Return what identifies the data of a suite."""
    return {
        "source": stream.source.name,
        "revision": stream.source.revision,
        "licence": stream.source.licence,
        "sha256": stream.digest,
        "label": stream.label,
        "condition": stream.condition,
        "repairs": len(stream.repairs),
        "repairs_sha256": repairs_digest(stream.repairs),
    }


def describe(
    config: RunConfig, bench: Bench, suites: dict[str, Any], prereg: str | None
) -> dict[str, Any]:
    """Return the manifest of a run that is about to start."""
    encoder = bench.encoder
    return {
        "name": config.name,
        "split": config.split,
        "git_commit": git_commit(Path(__file__).parent),
        "code_sha256": code_digest(),
        "config": config.frozen(),
        "config_sha256": config.digest,
        "prereg_sha256": prereg,
        "suites": suites,
        "encoder": None if encoder is None else encoder.identity,
        "encoder_is_semantic": encoder is not None and bool(encoder.profile.semantic),
        "token_counter": bench.counter.identity,
        "token_counter_is_exact": bool(bench.counter.exact),
        "libraries": versions(),
        "machine": platform.machine(),
        "started_at": datetime.now(UTC).isoformat(),
    }


def forget_peak_rss() -> None:
    """Begin to measure the peak anew, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_rss_mib() -> float:
    """Return the largest resident size of this process since the peak was forgotten, in MiB."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, LookupError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
