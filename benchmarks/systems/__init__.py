"""Systems under comparison, all given the same turns, budget and token counter."""
