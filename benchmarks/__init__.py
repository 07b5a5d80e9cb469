"""The evaluation lab: other memories are welcome in it."""
