"""Times that a text names, as exact spans with intervals and granularity. Pure, English forms.

:mod:`~evicortex.text.times.mentions` finds them; the other modules hold the calendar, the words
and the forms.
"""
