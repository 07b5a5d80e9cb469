"""Word lists of the rules: kin, animals, occupations, peoples, conditions, things one owns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evicortex.text import STOP_WORDS
from evicortex.text.times.words import MONTHS, WEEKDAYS


def listed(words: str) -> frozenset[str]:
    """Return the words of a list that is written as one string; ``_`` stands for a space."""
    return frozenset(word.replace("_", " ") for word in words.split())


def either(words: Iterable[str]) -> str:
    """Return a pattern for any of the words, the longest first."""
    return "(?:" + "|".join(sorted(words, key=lambda word: (-len(word), word))) + ")"


KIN: Mapping[str, str] = {
    **dict.fromkeys(
        listed("mother father mom mum mommy mummy dad daddy stepmother stepfather stepmom stepdad"),
        "child_of",
    ),
    **dict.fromkeys(
        listed("son daughter baby_daughter baby_son stepson stepdaughter baby_girl baby_boy"),
        "has_child",
    ),
    **dict.fromkeys(
        listed(
            "brother sister twin_brother twin_sister half-brother half-sister stepbrother "
            "stepsister baby_brother baby_sister"
        ),
        "has_sibling",
    ),
    **dict.fromkeys(listed("wife husband spouse"), "spouse"),
    **dict.fromkeys(listed("girlfriend boyfriend"), "dating"),
    **dict.fromkeys(listed("fiance fiancee fiancé fiancée"), "engaged_to"),
    **dict.fromkeys(
        listed(
            "uncle aunt cousin niece nephew grandmother grandfather grandma grandpa grandson "
            "granddaughter brother-in-law sister-in-law mother-in-law father-in-law son-in-law "
            "daughter-in-law great_aunt great_uncle"
        ),
        "relative_of",
    ),
    **dict.fromkeys(listed("friend best_friend buddy pal girlfriends"), "friend_of"),
    **dict.fromkeys(listed("roommate flatmate roomie roomy housemate"), "lives_with"),
    **dict.fromkeys(listed("boss manager supervisor"), "manager"),
    **dict.fromkeys(listed("assistant secretary intern"), "manages"),
    **dict.fromkeys(listed("colleague coworker co-worker"), "colleague_of"),
    **dict.fromkeys(listed("neighbor neighbour"), "neighbour_of"),
    **dict.fromkeys(
        listed("ex-wife ex-husband ex-boyfriend ex-girlfriend ex-fiance ex-fiancee"),
        "former_partner",
    ),
}
"""A word for a person, and the predicate between its possessor and that person."""

ANIMALS = listed(
    "dog dogs cat cats pup pups kitty kitties puppy puppies kitten kittens hamster parrot rabbit bunny turtle tortoise "
    "goldfish snake lizard gecko horse pony bird guinea_pig guinea_pigs ferret chinchilla beagle "
    "poodle corgi labrador lab retriever golden_retriever german_shepherd bulldog terrier husky "
    "dachshund chihuahua monkey duck chick chicken chickens fish budgie cockatiel axolotl iguana"
)

OCCUPATIONS = listed(
    "accountant actor actress architect artist assistant astronaut athlete attorney author baker "
    "banker barber barista bartender biologist bookkeeper botanist builder busboy butcher buyer "
    "carpenter cashier caterer chauffeur chef chemist chiropractor cleaner clerk coach "
    "comedian composer conductor consultant contractor cook copywriter counselor counsellor "
    "curator dancer dealer dentist designer detective developer dietitian director doctor driver "
    "economist editor electrician engineer entrepreneur farmer filmmaker firefighter fisherman "
    "florist freelancer gardener geologist guide hairdresser handyman historian "
    "housewife illustrator inspector instructor interpreter intern janitor jeweler jeweller "
    "journalist judge lawyer lecturer librarian lifeguard linguist locksmith machinist magician "
    "mailman manager marketer mason masseuse masseur mathematician mechanic model mover "
    "musician nanny neurologist neuroscientist notary novelist nurse nutritionist optician "
    "painter paleontologist paralegal paramedic pediatrician pharmacist photographer physicist "
    "physiotherapist pianist pilot plumber poet police_officer politician porter postman "
    "principal producer professor programmer prosecutor psychiatrist psychologist publicist "
    "publisher radiologist realtor receptionist recruiter reporter researcher sailor salesman "
    "saleswoman salesperson scientist sculptor secretary server singer social_worker soldier "
    "songwriter statistician stockbroker student stylist superintendent surgeon surveyor tailor "
    "taxi_driver teacher technician therapist trader trainer translator tutor veterinarian vet "
    "violinist waiter waitress watchmaker welder writer zoologist"
)

PEOPLES = listed(
    "American Argentinian Argentine Armenian Australian Austrian Bangladeshi Belgian Bolivian "
    "Brazilian British Bulgarian Canadian Chilean Chinese Colombian Croatian Cuban Czech Danish "
    "Dominican Dutch Ecuadorian Egyptian English Estonian Ethiopian Filipino Finnish French "
    "German Ghanaian Greek Guatemalan Haitian Honduran Hungarian Icelandic Indian Indonesian "
    "Iranian Iraqi Irish Israeli Italian Jamaican Japanese Jewish Jordanian Kenyan Korean "
    "Latvian Lebanese Lithuanian Malaysian Mexican Moroccan Nepalese Nepali Nicaraguan Nigerian "
    "Norwegian Pakistani Palestinian Panamanian Peruvian Polish Portuguese Romanian Russian "
    "Salvadoran Scottish Serbian Singaporean Slovak Slovenian Somali Spanish Sudanese Swedish "
    "Swiss Syrian Taiwanese Thai Tunisian Turkish Ukrainian Uruguayan Venezuelan Vietnamese Welsh"
)

LANGUAGES = PEOPLES | listed(
    "Arabic Hebrew Hindi Urdu Tamil Telugu Bengali Mandarin Cantonese Swahili Latin Persian Farsi "
    "Catalan Basque Gaelic Esperanto Punjabi Tagalog Yoruba Zulu Amharic"
)

CONDITIONS = listed(
    "ADHD alzheimer's anemia anxiety arthritis asthma autism bronchitis cancer covid depression "
    "diabetes eczema endometriosis epilepsy fibromyalgia gastritis glaucoma hypertension "
    "hypothyroidism insomnia ibs leukemia lupus migraine migraines ms osteoporosis parkinson's "
    "pneumonia psoriasis ptsd scoliosis tinnitus tuberculosis vertigo high_blood_pressure "
    "celiac_disease crohn's_disease heart_disease sleep_apnea type_1_diabetes type_2_diabetes "
    "hay_fever lactose_intolerance the_flu a_cold strep_throat"
)

DIETS = listed("vegan vegetarian pescatarian gluten-free lactose_intolerant keto halal kosher")

MARITAL = listed("married divorced engaged single widowed separated widow widower")

THINGS = listed(
    "car bike bicycle motorcycle motorbike scooter truck van boat house apartment condo flat "
    "cabin farm guitar piano violin keyboard ukulele drums drum_kit saxophone flute cello camera "
    "laptop computer macbook tablet ipad phone iphone console playstation xbox telescope kayak "
    "canoe surfboard skateboard snowboard treadmill tent rv camper sewing_machine printer "
    "3d_printer bakery shop store restaurant cafe studio garden greenhouse record_player "
    "collection business"
)

STATES = listed(
    "Alabama Alaska Arizona Arkansas California Colorado Connecticut Delaware Florida Georgia "
    "Hawaii Idaho Illinois Indiana Iowa Kansas Kentucky Louisiana Maine Maryland Massachusetts "
    "Michigan Minnesota Mississippi Missouri Montana Nebraska Nevada New_Hampshire New_Jersey "
    "New_Mexico New_York North_Carolina North_Dakota Ohio Oklahoma Oregon Pennsylvania "
    "Rhode_Island South_Carolina South_Dakota Tennessee Texas Utah Vermont Virginia Washington "
    "West_Virginia Wisconsin Wyoming Ontario Quebec Alberta Canada Mexico Brazil Argentina Chile "
    "Peru Colombia England Scotland Wales Ireland France Spain Portugal Italy Germany Austria "
    "Switzerland Belgium Netherlands Denmark Norway Sweden Finland Iceland Poland Greece Turkey "
    "Russia Ukraine Egypt Morocco Kenya Nigeria South_Africa India China Japan Korea South_Korea "
    "Thailand Vietnam Indonesia Malaysia Singapore Philippines Australia New_Zealand Israel UK USA "
    "U.S. U.K. DC D.C."
)

NO_NAMES = (
    frozenset(word.capitalize() for word in STOP_WORDS)
    | frozenset(word.capitalize() for word in (*MONTHS, *WEEKDAYS))
    | PEOPLES
    | listed(
        "I I'm I'll I've I'd OK Ok Okay Yes Yeah No Nope Hi Hello Hey Thanks Thank Please Sure Well "
        "Oh Wow Great Good God Christmas Easter Thanksgiving Halloween Mr Mrs Ms Dr Sir Madam Mr. "
        "Mrs. Ms. Dr. Economy Premium Business First AM PM TV CEO Internet Uh Um Umm Uhm Hmm Ah "
        "Everyone Everybody Nobody Someone Somebody Anyone People Guys Honey Sweetie Let Let's "
        "Maybe Actually Today Tomorrow Tonight Yesterday Now Then Look Listen Wait Sorry Right "
        "Speaker Unless Apparently Supposedly Suppose Assuming Imagine Although Hopefully Luckily Sadly Unfortunately Fortunately Thankfully Meanwhile Recently Currently Finally Not New Santa Yup Yep Nah Naa Nope Cool Perfect Awesome Nice Fine Alright Huh Geez Dude See Nothing Hmmm Ha Haha Hm Aw Ow Goodbye Bye Whoa Ooh Oooh Man Gosh Music Sports Sport Match Game Games Event Events Concert Concerts American_Airlines Jesus Lord English Book Find Search Make Try Can Could Will"
    )
)
"""Capitalised words that name nobody and no place by themselves."""
