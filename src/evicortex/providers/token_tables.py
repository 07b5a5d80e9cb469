"""Tables of the token estimate: what sub-word vocabularies are known to hold.

Measured once against BERT's uncased WordPiece vocabulary and OpenAI's cl100k_base and
o200k_base: a word is listed when it is one token in all three, in lower case and capitalised, at
the start of a text and after a space; a character when it is one token in all three, alone and
inside a word. Letter pairs are the ones that make up nine tenths of English spelling; a pair
outside them usually starts a new token.
"""

from __future__ import annotations

_FREQUENT_WORDS = """
    a about action activities activity actually add added adding address adds after again
    against ahead air all allow along already also always am american amount an and another
    any anything app are area areas around art as ask at attention available avoid away
    awesome back bad balance bar based be beautiful because bed been before being best better
    between big bit blue board body book books boost both brand break bring build building
    built business busy but buy by call called can car care cat catch cause challenge change
    changed changes character chat check choice choices choose cities city class classes
    classic clean clear close cold color colors come comfort coming community company
    connections consider contact continue control cook cool correct cost could country course
    court create created creating creative culture currently customer daily data date day days
    deal decision design destination details develop development did difference different do
    does dog doing done down drive during each early easy eat education either else end energy
    ensure environment escape even event events ever every everyone everything example
    exercise experience express extra face family far fast favorite feel few field fight
    figure finally find finding fine finished fire first fit fitness flight focus following
    food for forget form forward found free fresh friend friendly friends from full fun future
    game games general get gets getting gift give go goal going good got great group groups
    guess had hand handle happy hard has have having he head health healthy heart hello help
    her here hey hi high his history hit hold home hope hopefully hours house how however i if
    impact important in including information ingredients instead interest interesting
    international into is issue issues it items its job join joy just keep keeping key kind
    know known language large last later lead learn learning least leave left less let level
    life light like line list little live living local location long look looking looks lost
    lot lots love low luck made main make makes making man manage many marketing match may
    maybe me meal mean means meet meeting met mind mine minutes miss mix modern moment money
    month months more most move movie movies much music must my name national natural nature
    near need needed needs network never new news next nice night no non not note nothing now
    number of off offer offers office often oh ok okay old on once one online only open option
    options or other others our out outside over overall own park part party past pay peace
    people per perfect person personal pet pets phone photo photos physical pick picture piece
    pieces place places plan plans play played players playing please plus point popular pose
    positive possible potential power practice preferences pretty price prices probably
    problem process product products progress project projects provide push put quality
    questions quite rather reach read reading ready real really recipe recipes recommend red
    regular related remember research resources rest restaurant results return right road rock
    role room routine run running safe same save say schedule school search season seat second
    see seeing seen self send sense series service set setting shape share shared sharing she
    short shot should show shows side sign similar simple since single skills sleep slow small
    smart so social some someone something sometimes soon sorry sound sounds space special
    specific sports spot stand start started starting stay step steps still stop store stories
    story strength strong students study stuff style success successful such summer super
    support sure sweet system table take taken taking talk team tell than thank thanks that
    the their them then there these they thing things think thinking this those though thought
    three through time times tips to today too tools top total touch track training travel
    trip true trust try trying turn two type types under unique until up updated us use used
    using usually value very video view views visit wait wake walk want warm was watch water
    way we week weight welcome well were what when where whether which while who whole why
    will win with without won words work working works world would wow writing yeah year years
    yes yet you young your
"""

ONE_TOKEN_WORDS: frozenset[str] = frozenset(_FREQUENT_WORDS.split())
"""Frequent English words that are one token each."""

_FOLLOWERS = """
    abcdgiklmnprstvy baeiloru caehiklortu daeiors eacdefglmnprstvx faefioru gaehior haeiot
    iacdeglmnorstv keis ladeilosuy maeimop nacdegiost ocdklmnoprstuvw paeiloprt radeimnorstuy
    sacehiopstu taehilorstuy ucegilmnrst vaei waeio
"""

COMMON_PAIRS: frozenset[str] = frozenset(
    row[0] + letter for row in _FOLLOWERS.split() for letter in row[1:]
)
"""Frequent pairs of neighbouring letters in English words."""

_RANGES = """
    a1-ac ae-b7 b9-c4 c7 c9 cd-ce d0-d1 d3 d6-d7 da dc df-f6 f8-fd 101 103 105 107 10d 110-111
    113 119 11b 11f 12b 130-131 142 144 14d 151 153 159 15b 15f 161 163 165 16b 16f 171 17a
    17c 17e 1a1 1b0 219 21b 259 275 300-301 3ac-3af 3b1-3b5 3b7-3bd 3bf-3c7 3c9 3cc 402
    410-415 417-418 41a-424 426-427 42d 42f-44f 451 456 5d0-5d1 5d3-5d5 5d7 5d9 5dc 5de 5e0
    5e2 5e8-5ea 60c 623 625 627-63a 641-64a 64e-652 67e 6a9 6af 6cc 902 915 924 928 92a 92e
    930 932 938-939 93e-941 947 94b 94d 9a8 9b0 9be-9bf 9c7 9cd bbf bc1 bcd d4d e01-e02 e04
    e07-e08 e0a e13-e17 e19-e1c e1e e21-e23 e25 e27 e2a-e2b e2d e30-e35 e37-e39 e40-e41
    e43-e44 e47-e49 e4c 17b6 1ea1 1ea3 1ea5 1ea7 1ea9 1ead 1eaf 1eb7 1ebf 1ec1 1ec3 1ec7 1ec9
    1ecb 1ecd 1ecf 1ed1 1ed3 1ed5 1ed7 1ed9 1edb 1edd 1edf 1ee3 1ee5 1ee7 1ee9 1eed 1eef 1ef1
    2010-2011 2013-2015 2018-201a 201c-201e 2020 2022 2026 2030 2032-2033 203a-203b 2082 20ac
    2122 2190-2193 2212 2500-2502 2550-2551 2557 255d 2588 2591 25a0 25ba 25cf 2605-2606 2634
    2640 2665 266a 2714 2800 3001-3002 300a-3011 301c 3042 3044 3046 3048 304a-304d 304f 3051
    3053-3059 305b 305d 305f-3061 3063-3064 3066-306b 306e-3070 307e-307f 3081-3082 3084
    3088-308d 308f 3092-3093 30a2-30a4 30a6-30a8 30aa-30ab 30ad 30af-30b0 30b3 30b5 30b7-30bb
    30bf-30c1 30c3 30c6-30cb 30d0-30d1 30d3-30d7 30da 30dd-30de 30e0-30e1 30e3 30e5 30e7
    30e9-30ed 30f3 30fb-30fc
"""


def _characters() -> str:
    bounds = (part.partition("-") for part in _RANGES.split())
    return "".join(
        chr(code)
        for first, _, last in bounds
        for code in range(int(first, 16), int(last or first, 16) + 1)
    )


ONE_TOKEN_CHARACTERS: str = _characters()
"""Characters outside ASCII that are one token each."""
