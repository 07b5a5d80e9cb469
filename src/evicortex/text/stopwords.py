"""English stop words.

Source: the Snowball English stop list (snowballstem.org, algorithms/english/stop.txt, BSD
licence), completed with the auxiliaries, contraction remnants and fillers of the NLTK list
(Apache-2.0), and with contractions typed without their apostrophe. Left out on purpose because
they are also content words: "may" (a month), "won", "ma", "id", "don", "well".
"""

from __future__ import annotations

_LISTED = """
    i me my myself we us our ours ourselves you your yours yourself yourselves he him his himself
    she her hers herself it its itself they them their theirs themselves
    what which who whom whose this that these those
    am is are was were be been being have has had having do does did doing done
    will would shall should can cannot could might must ought need
    a an the and but if or because as until while of at by for with about against between into
    through during before after above below to from up down in out on off over under upon
    again further then once here there when where why how
    all any both each few more most other some such no nor not only own same so than too very
    just now also yet ever even still
    d ll m o re s t ve y
    ain aren couldn didn doesn hadn hasn haven isn mightn mustn needn shan shouldn wasn weren
    wouldn
    aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont
    wouldnt im ive youre youve theyre theyve weve hes shes thats whats wheres whos theres lets
"""

STOP_WORDS: frozenset[str] = frozenset(_LISTED.split())
"""Folded, unstemmed forms."""

KEPT_FORMS: frozenset[str] = frozenset({"US", "IT", "WHO", "Will"})
"""Exact spellings that name something although their folded form is a stop word."""
