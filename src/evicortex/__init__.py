"""EviCortex: evidence-first long-term memory for LLM agents."""
