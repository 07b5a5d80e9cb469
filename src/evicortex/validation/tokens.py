"""The checked token counter."""

from __future__ import annotations

from evicortex.errors import ProviderContractError
from evicortex.protocols import TokenCounter
from evicortex.validation.calls import checked_name, guarded


class CheckedTokenCounter:
    """Counts with ``counter`` and refuses counts that cannot be true.

    Raises:
        ProviderContractError: On construction, when the counter has no identity, does not say
            whether it is exact, or does not count 0 for the empty text.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._identity = checked_name("token counter", "identity", counter.identity)
        exact: object = counter.exact
        if type(exact) is not bool:
            raise ProviderContractError(f"{self._name}: exact must be a bool, not {exact!r}")
        self._exact = exact
        empty = self.count("")
        if empty != 0:
            raise ProviderContractError(f"{self._name}: the empty text must count 0, not {empty}")

    @property
    def identity(self) -> str:
        """The counter's identity, as it was when it was wrapped."""
        return self._identity

    @property
    def exact(self) -> bool:
        """False when counts are estimates."""
        return self._exact

    @property
    def _name(self) -> str:
        return f"token counter {self._identity}"

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``.

        Raises:
            ProviderContractError: The count is no integer of at least 0.
            ProviderUnavailableError: The counter raised.
        """
        value: object = guarded(self._name, lambda: self._counter.count(text))
        if type(value) is not int or value < 0:
            raise ProviderContractError(
                f"{self._name}: a count must be an integer of at least 0, not {value!r}"
            )
        return value
