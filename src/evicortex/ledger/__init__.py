"""The only truth: evidence, claims, extractions, purge and the audit chain, in one file."""

from evicortex.ledger.connection import Ledger, LedgerOptions, NamespaceRow, Transaction

__all__ = ["Ledger", "LedgerOptions", "NamespaceRow", "Transaction"]
