"""Checking what callers hand in, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evicortex.errors import InputError, InvalidTextError
from evicortex.ledger.evidence import CheckedDraft
from evicortex.policy.echo import is_recalled
from evicortex.types import Authority, ClaimDraft, Diagnostic, EvidenceDraft, Span
from evicortex.validity import match_key, to_micros, to_utc

ROLE_AUTHORITY: Mapping[str, Authority] = {
    "system": Authority.SYSTEM,
    "developer": Authority.SYSTEM,
    "user": Authority.USER,
    "human": Authority.USER,
    "assistant": Authority.ASSISTANT,
    "ai": Authority.ASSISTANT,
    "model": Authority.ASSISTANT,
    "tool": Authority.TOOL,
    "function": Authority.TOOL,
    "document": Authority.DOCUMENT,
    "untrusted": Authority.UNTRUSTED,
}
"""The authority that a role has when the caller names none; any other role is untrusted."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft that may be written: its checked form, its claims, and what was left out."""

    draft: CheckedDraft
    claims: tuple[ClaimDraft, ...]
    authority: Authority
    occurred_at: datetime | None
    diagnostics: tuple[Diagnostic, ...]


def check_text(value: object, name: str) -> str:
    """Return ``value`` when it is text; raises InvalidTextError or InputError."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, not {type(value).__name__}")
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidTextError(
            f"UTF-8 cannot encode {name}: {error.reason} at character {error.start}; "
            "replace lone surrogates before storing"
        ) from error
    return value


def check_flag(value: object, name: str) -> bool:
    """Return ``value`` when it is a bool; ``"no"`` must not count as yes."""
    if type(value) is not bool:
        raise InputError(f"{name} is True or False, not {value!r}")
    return value


def authority_of(draft: EvidenceDraft) -> Authority:
    """Return the draft's authority, or that of its role.

    Raises:
        InputError: a name that is no authority.
    """
    if draft.authority is not None:
        try:
            return Authority(draft.authority)
        except ValueError as error:
            names = ", ".join(Authority)
            raise InputError(f"authority is one of {names}, not {draft.authority!r}") from error
    if draft.role is None:
        return Authority.USER
    return _of_role(draft.role) or Authority.UNTRUSTED


def _of_role(role: str) -> Authority | None:
    return ROLE_AUTHORITY.get(role) or ROLE_AUTHORITY.get(match_key(role))


def prepare(draft: EvidenceDraft) -> Prepared:
    """Check one draft's own fields; its claims are checked against it later.

    Claims that would rest on recalled context are left out with a diagnostic: a memory that
    comes back in a prompt is not news.

    Raises:
        InputError: a field that cannot be stored (a subclass says which and why).
    """
    if not isinstance(draft, EvidenceDraft):
        raise InputError(f"a draft is an EvidenceDraft, not {type(draft).__name__}")
    content = check_text(draft.content, "content")
    for name, value in (
        ("actor", draft.actor),
        ("role", draft.role),
        ("session", draft.session),
        ("source", draft.source),
        ("external_id", draft.external_id),
    ):
        if value is not None and not check_text(value, name).strip():
            raise InputError(f"{name} is blank; leave it out instead")
    if not isinstance(draft.metadata, Mapping):
        raise InputError(f"metadata is a mapping, not {type(draft.metadata).__name__}")
    if draft.metadata:
        _check_keys(draft.metadata)
    if isinstance(draft.claims, str | bytes) or not isinstance(draft.claims, Iterable):
        raise InputError(f"claims is a sequence of ClaimDraft, not {type(draft.claims).__name__}")
    occurred_at = to_utc(draft.occurred_at, "occurred_at")
    authority = authority_of(draft)
    kept, diagnostics = _without_echoes(content, draft.claims) if draft.claims else ((), ())
    if draft.role is not None and draft.authority is None and _of_role(draft.role) is None:
        diagnostics = (*diagnostics, _unknown_role(draft.role))
    checked = CheckedDraft(
        content,
        draft.actor,
        draft.role,
        draft.session,
        draft.source,
        draft.external_id,
        None if occurred_at is None else to_micros(occurred_at),
        authority.value,
        draft.metadata,
    )
    return Prepared(checked, kept, authority, occurred_at, diagnostics)


def _unknown_role(role: str) -> Diagnostic:
    return Diagnostic(
        "role_unknown",
        f"the role {role!r} has no authority of its own, so it speaks as untrusted; "
        "say authority=... to give it one",
        {"role": role, "known": tuple(ROLE_AUTHORITY)},
    )


def _check_keys(metadata: Mapping[Any, Any]) -> None:
    """Refuse keys that JSON would turn into other keys."""
    seen: set[int] = set()
    waiting: list[Any] = [metadata]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, Mapping | list | tuple) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Mapping):
            for key in value:
                check_text(key, "a key of metadata")
            waiting.extend(value.values())
        else:
            waiting.extend(value)


def _without_echoes(
    content: str, claims: Iterable[ClaimDraft]
) -> tuple[tuple[ClaimDraft, ...], tuple[Diagnostic, ...]]:
    kept: list[ClaimDraft] = []
    left_out: list[int] = []
    for number, claim in enumerate(claims, start=1):
        if not isinstance(claim, ClaimDraft):
            raise InputError(f"claim {number} is not a ClaimDraft")
        span = _span(claim.span)
        if is_recalled(content, span):
            left_out.append(number)
        else:
            kept.append(claim)
    if not left_out:
        return tuple(kept), ()
    found = Diagnostic(
        "recalled_context",
        "the text quotes recalled context; claims that would rest on it were not recorded",
        {"claims": left_out},
    )
    return tuple(kept), (found,)


def _span(span: object) -> Span | None:
    """Return a plausible span; whether it lies in the text is checked with the claim."""
    if isinstance(span, tuple) and len(span) == 2 and all(type(end) is int for end in span):
        return Span(*span)
    return None
