"""Character classes, as the inside of regular-expression brackets.

Scripts that are written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) and Hangul have
rules of their own; every other letter, mark and digit makes plain words.
"""

from __future__ import annotations

CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
"""Han, hiragana, katakana, bopomofo."""

HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uffa0-\uffdc"

SOUTH_EAST_ASIAN = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf"
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
)
"""Thai, Lao, Myanmar and Khmer letters and marks, without their digits and punctuation."""

MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u07a6-\u07b0\u07eb-\u07f3\u07fd\u0816-\u082d\u0859-\u085b\u0898-\u089f\u08ca-\u08e1"
    "\u08e3-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7"
    "\u09e2\u09e3\u09fe\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a75\u0a81-\u0a83\u0abc-\u0acd"
    "\u0ae2\u0ae3\u0afa-\u0b03\u0b3c-\u0b57\u0b62\u0b63\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04"
    "\u0c3c-\u0c56\u0c62\u0c63\u0c81-\u0c83\u0cbc-\u0cd6\u0ce2\u0ce3\u0cf3\u0d00-\u0d03"
    "\u0d3b-\u0d4d\u0d57\u0d62\u0d63\u0d81-\u0d83\u0dca-\u0ddf\u0df2\u0df3\u0f18\u0f19\u0f35"
    "\u0f37\u0f39\u0f3e\u0f3f\u0f71-\u0f84\u0f86\u0f87\u0f8d-\u0fbc\u0fc6\u135d-\u135f"
    "\u1712-\u1715\u1732-\u1734\u1752\u1753\u1772\u1773\u180b-\u180f\u1885\u1886\u18a9"
    "\u1920-\u193b\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1ace\u1b00-\u1b04\u1b34-\u1b44\u1b6b-\u1b73"
    "\u1b80-\u1b82\u1ba1-\u1bad\u1be6-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2\u1cd4-\u1cf9\u1dc0-\u1dff"
    "\u20d0-\u20f0\u2cef-\u2cf1\u2d7f\u2de0-\u2dff\u302a-\u302f\ua66f-\ua672\ua674-\ua67d"
    "\ua69e\ua69f\ua6f0\ua6f1\ua802\ua806\ua80b\ua823-\ua827\ua82c\ua880\ua881\ua8b4-\ua8c5"
    "\ua8e0-\ua8f1\ua8ff\ua926-\ua92d\ua947-\ua953\ua980-\ua983\ua9b3-\ua9c0\uaa29-\uaa36"
    "\uaa43\uaa4c\uaa4d\uaab0-\uaac1\uaaeb-\uaaef\uaaf5\uaaf6\uabe3-\uabed\ufb1e\ufe00-\ufe0f"
    "\ufe20-\ufe2f\U000101fd\U000102e0\U00010376-\U0001037a\U00010a01-\U00010a0f"
    "\U00010a38-\U00010a3f\U00010d24-\U00010d27\U00011000-\U00011002\U00011038-\U00011046"
    "\U0001107f-\U00011082\U000110b0-\U000110ba\U00011100-\U00011102\U00011127-\U00011134"
    "\U00011180-\U00011182\U000111b3-\U000111c0\U0001122c-\U00011237\U000112df-\U000112ea"
    "\U00011300-\U00011303\U0001133b-\U0001134d\U00011435-\U00011446\U000114b0-\U000114c3"
    "\U000115af-\U000115c0\U00011630-\U00011640\U000116ab-\U000116b7\U0001e130-\U0001e136"
    "\U0001e2ec-\U0001e2ef\U0001e8d0-\U0001e8d6\U0001e944-\U0001e94a"
)
"""Combining marks that ``\\w`` leaves out although they are parts of words."""

EMOJI = "\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001faff"
"""Arrows, technical and mathematical symbols, dingbats and pictographs; no flags."""

FLAGS = "\U0001f1e6-\U0001f1ff"
SKIN_TONES = "\U0001f3fb-\U0001f3ff"
SYMBOLS = "\u00a2-\u00a7\u00a9\u00ae\u00b0\u00b1\u00d7\u00f7\u20a0-\u20cf\u2100-\u214f"
"""Currency and letter-like symbols that stand for something."""
