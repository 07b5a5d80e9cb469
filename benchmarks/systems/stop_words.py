"""English function words that the reference BM25 leaves out, contractions included."""

from __future__ import annotations

_BASE = """
a about above after again against all am an and any are as at be because been before being below
between both but by can could did do does doing down during each either else ever every few for
from further get got had has have having he her here hers herself him himself his how however i
if in into is it its itself just let like may me might more most much must my myself neither no
nor not now of off on once only or other others our ours ourselves out over own per quite rather
really same shall she should since so some still such than that the their theirs them themselves
then there these they this those though through thus to too toward under until up upon us very
was we were what whatever when where whether which while who whom whose why will with within
without would yet you your yours yourself yourselves
"""

_CONTRACTIONS = """
aren't can't couldn't didn't doesn't don't hadn't hasn't haven't he'd he'll he's here's how's i'd
i'll i'm i've isn't it'd it'll it's let's mustn't she'd she'll she's shouldn't that's there's
they'd they'll they're they've wasn't we'd we'll we're we've weren't what's when's where's who's
why's won't wouldn't you'd you'll you're you've
"""

ENGLISH = frozenset(_BASE.split()) | frozenset(_CONTRACTIONS.split())
