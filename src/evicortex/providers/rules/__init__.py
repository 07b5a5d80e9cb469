"""Claims from plain statements by rules, without a model."""

from evicortex.providers.rules.extractor import TOPICS, RuleExtractor, RuleOptions

__all__ = ["TOPICS", "RuleExtractor", "RuleOptions"]
