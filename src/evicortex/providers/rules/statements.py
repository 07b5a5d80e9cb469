"""The forms of statements: what people say of themselves and of others they name."""

from __future__ import annotations

from evicortex.providers.rules.lexicon import (
    ANIMALS,
    CONDITIONS,
    DIETS,
    MARITAL,
    OCCUPATIONS,
    PEOPLES,
    THINGS,
    either,
)
from evicortex.providers.rules.table import (
    ADVERB,
    BE_NOT,
    FIRST,
    NOT_I,
    OTHER,
    Rule,
    be,
    rule,
    verb,
)
from evicortex.providers.rules.values import (
    NAME,
    activity,
    bare_occupation,
    employer,
    language,
    liked,
    liked_to,
    name,
    occupation,
    phrase,
    place,
)

_AGE = (
    r"(?P<v>[1-9][0-9]?|1[01][0-9]|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
    r"(?:-\w+)?|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen)"
)
_END = r"\s*(?:[.,!?;:…)]|--|$|\n|\s(?:and|from|but|by the way)\b|-)"
_DEGREE = r"(?:degree|bachelor's|master's|masters|phd|doctorate|bachelors|minor)"
_SCHOOL = r"(?=[^.,;!?]{0,60}?(?:University|College|School|High|Academy|Institute|Harvard|Yale|MIT|Stanford|Oxford|Cambridge|UCLA|NYU|State)\b)"

IDENTITY: tuple[Rule, ...] = (
    rule("identity", "name name's", r"\b[Mm]y\s+(?:full\s+|real\s+|first\s+)?name(?:'s|\s+is)\s+", "name", name, confidence=0.95),
    rule("identity", "i'm am", r"(?<![\w'])(?P<i>I)(?:'m|\s+am)\s+", "name", name, confidence=0.85, follows=_END),
    rule("identity", "call calls", r"\bcalls?\s+me\s+", "nickname", name, confidence=0.85, follows=_END),
    rule("identity", "old", be(rf"{_AGE}\s+years?\s+old\b"), "age", when="never"),
    rule("identity", "i'm am is", be(r"(?P<v>[1-9][0-9])(?=\s*(?:[.,!;]|$)|\s+(?:and|now|but)\b)"), "age", when="never", confidence=0.8),
    rule("identity", "i'm am", r"(?<![\w'])(?P<i>I)(?:'m|\s+am)\s+(?P<v>five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen)(?=\s*(?:[.!]|$))", "age", when="never", confidence=0.8),
    rule("identity", "it's this", r"\b(?:[Hh]i|[Hh]ello)\b[,.!\s]{1,3}(?:[Ii]t's|[Tt]his\s+is)\s+(?:me,?\s+)?", "name", name, confidence=0.8, follows=_END),
    rule("identity", "turned", verb("turned", "turned") + r"(?P<v>[1-9][0-9]?)(?=\s*(?:[.,!;]|$|(?:today|yesterday|last|this|on|in)\b))", "age", when="change"),
    rule("identity", "i'm am is are we're", be(rf"(?:an?\s+|half[- ]|part\s+)?(?P<v>{either(PEOPLES)})(?=\s*(?:[.,!;]|$|\s(?:and|but|so|too)\b))"), "nationality", when="never"),
    rule("identity", "from", be(r"from\s+"), "hometown", place, when="never"),
    rule("identity", "from", verb("come|came", "comes|came") + r"from\s+", "hometown", place, when="never", confidence=0.7),
    rule("identity", "grew", verb("grew", "grew") + r"up\s+in\s+", "hometown", place, when="never"),
    rule("identity", "hometown", r"\b[Mm]y\s+hometown(?:'s|\s+is|,)\s+(?:in\s+)?", "hometown", place, when="never"),
    rule("identity", "born", verb("was\\s+born", "was\\s+born") + r"(?:and\s+raised\s+)?in\s+", "born_in", place, when="never"),
    rule("identity", "speak speaks", verb("can\\s+speak|speak", "speaks") , "speaks", language, when="never"),
)  # fmt: skip

RESIDENCE: tuple[Rule, ...] = (
    rule("residence", "live lives lived living", verb("live|(?:'ve|have)\\s+lived|(?:'ve|have)\\s+been\\s+living", "lives|has\\s+lived|has\\s+been\\s+living") + r"(?:here\s+|over\s+|right\s+|alone\s+|together\s+|near\s+)?in\s+", "lives_in", place),
    rule("residence", "living based", be(r"(?:living|based)\s+in\s+"), "lives_in", place),
    rule("residence", "live lived", verb("used\\s+to\\s+live|lived", "used\\s+to\\s+live|lived") + r"in\s+", "lived_in", place, when="event", affirms=True),
    rule("residence", "spent", verb("spent", "spent") + r"(?:\w+\s+){1,2}years?\s+in\s+", "lived_in", place, when="event", confidence=0.8),
    rule("residence", "moved relocated", verb("moved|(?:'ve|have)\\s+moved|relocated", "moved|has\\s+moved|relocated") + rf"(?:back\s+|away\s+|here\s+|out\s+|over\s+|down\s+|up\s+)?(?:from\s+(?:the\s+)?{NAME}\s+)?to\s+", "lives_in", place, when="change"),
    rule("residence", "moved relocated", verb("moved|(?:'ve|have)\\s+moved|relocated", "moved|has\\s+moved|relocated") + r"(?:[\w,' ]{0,40}?\s)?from\s+", "lived_in", place, when="never", confidence=0.85),
    rule("residence", "moving", be(r"moving\s+(?:back\s+|away\s+|out\s+)?to\s+"), "plans_to_live_in", place, when="event", confidence=0.8),
)  # fmt: skip

_EMPLOYED = r"(?:here\s+|over\s+|part-time\s+|full-time\s+|part time\s+|full time\s+)?(?:at|for)\s+"
_JOB = r"(?:an?|my|the|this)\s+(?:new\s+|dream\s+|first\s+|great\s+|part-time\s+|summer\s+)*(?:\w+\s+)?(?:job|position|internship)\s+"

WORK: tuple[Rule, ...] = (
    rule("work", "work works worked working", verb("work|(?:'ve|have)\\s+worked|(?:'ve|have)\\s+been\\s+working", "works|has\\s+worked|has\\s+been\\s+working") + _EMPLOYED, "works_at", employer, confidence=0.85),
    rule("work", "work works working", verb("work|(?:'ve|have)\\s+been\\s+working", "works") + r"(?:at|in)\s+(?:a|an|the)\s+(?P<v>(?:[a-z][\w-]*\s+){0,2}(?:bank|hospital|school|restaurant|museum|university|library|cafe|coffee\s?house|bakery|store|shop|studio|factory|firm|company|clinic|hotel|farm|lab|laboratory|startup|bookstore|theater|theatre|agency|nursing\s+home|daycare|garage|office))\b", "works_at", confidence=0.85),
    rule("work", "working", be("working\\s+" + _EMPLOYED), "works_at", employer, confidence=0.85),
    rule("work", "used worked", verb("used\\s+to\\s+work|worked", "used\\s+to\\s+work|worked") + _EMPLOYED, "worked_at", employer, when="event", confidence=0.85, affirms=True),
    rule("work", "job position internship", verb("got|landed|started|accepted|took|found|(?:'ve|have)\\s+got", "got|landed|started|accepted|took|found") + _JOB + r"(?:at|with|for)\s+", "works_at", employer, when="change"),
    rule("work", "job position internship", verb("got|landed|started|accepted|took|found|have", "got|landed|started|accepted|took|found|has") + _JOB + r"as\s+", "works_as", bare_occupation, when="change"),
    rule("work", "started start joined", verb("joined|started\\s+working\\s+(?:at|for)|started\\s+(?:at|with)", "joined|started\\s+working\\s+(?:at|for)"), "works_at", employer, when="change", confidence=0.75),
    rule("work", "i'm am is", be(""), "works_as", occupation, confidence=0.9),
    rule("work", "am is i'm", be(r"(?:his|her|their|your)\s+"), "works_as", bare_occupation, follows=r"(?!\s+\w)", confidence=0.8),
    rule("work", "been", verb("(?:'ve|have)\\s+been", "has\\s+been"), "works_as", occupation, confidence=0.85),
    rule("work", "work works worked working", verb("work|(?:'ve|have)\\s+been\\s+working", "works") + r"as\s+", "works_as", bare_occupation),
    rule("work", "working", be(r"working\s+as\s+"), "works_as", bare_occupation),
    rule("work", "used was worked", verb("used\\s+to\\s+be|used\\s+to\\s+work\\s+as|worked\\s+as", "used\\s+to\\s+be|used\\s+to\\s+work\\s+as|worked\\s+as"), "worked_as", occupation, when="event", confidence=0.85),
    rule("work", "was", rf"(?:{FIRST}|{OTHER})(?P<neg>\s+(?:never))?\s+was{ADVERB}{{0,2}}\s+", "worked_as", occupation, when="event", confidence=0.8),
    rule("work", "was", rf"(?:{FIRST}|{OTHER})(?P<neg>\s+(?:never))?\s+was\s+(?:his|her|their|your)\s+", "worked_as", bare_occupation, when="event", confidence=0.8),
    rule("work", "became", verb("became|(?:'ve|have)\\s+become", "became|has\\s+become"), "works_as", occupation, when="change"),
    rule("work", "at for", be(rf"(?:an?|the)\s+(?:[\w-]+\s+){{0,3}}?(?i:{either(OCCUPATIONS)})\s+(?:at|for|with)\s+(?:the\s+)?"), "works_at", employer, confidence=0.85),
    rule("work", "quit left lost", verb("quit|left|lost|(?:'ve|have)\\s+quit|(?:'ve|have)\\s+left", "quit|left|lost") + r"(?:my|his|her|the|their)\s+job\s+(?:at|with)\s+", "works_at", employer, when="change", denies=True),
    rule("work", "quit fired laid retired unemployed retire lost", r"(?<![\w'])(?P<i>I)(?:'ve|\s+have|'m|\s+am)?(?:\s+(?:just|finally|recently|actually|now))?\s+(?P<v>quit\s+my\s+job|lost\s+my\s+job|(?:got|was|been)\s+(?:fired|laid\s+off)|retired|unemployed)\b", "employment_status", when="change", confidence=0.85),
)  # fmt: skip

STUDY: tuple[Rule, ...] = (
    rule("study", "study studies studied studying", verb("study|(?:'ve|have)\\s+been\\s+studying", "studies") + r"(?:at|in)\s+", "studies_at", name, confidence=0.85),
    rule("study", "study studies", verb("study", "studies") + r"(?!hard\b|abroad\b|late\b|alone\b|together\b|online\b|better\b|best\b|all\b)", "studies", phrase, confidence=0.8),
    rule("study", "studying", be(r"studying\s+(?!for\b|abroad\b|hard\b|at\b|in\b|to\b)"), "studies", phrase, confidence=0.8),
    rule("study", "studying", be(r"studying\s+at\s+"), "studies_at", name),
    rule("study", "majoring", be(r"majoring\s+in\s+"), "major", phrase),
    rule("study", "major majored", verb("major|majored", "majors|majored") + r"in\s+", "major", phrase),
    rule("study", "student sophomore freshman junior senior", be(r"(?:an?|the)\s+(?:[\w-]+\s+){0,2}(?:student|sophomore|freshman|junior|senior)\s+(?:at|in)\s+(?:the\s+)?"), "studies_at", name),
    rule("study", "student", be(r"an?\s+(?P<v>(?:[a-z][\w-]*\s+){1,2}student)\b"), "works_as", when="state", confidence=0.8),
    rule("study", "go attend goes attends", verb("go\\s+to|attend", "goes\\s+to|attends") + r"(?:the\s+)?" + _SCHOOL, "studies_at", name),
    rule("study", "went attended", verb("went\\s+to|attended", "went\\s+to|attended") + r"(?:the\s+)?" + _SCHOOL, "studied_at", name, when="event", follows=r"(?!\s+(?:to|with)\b)"),
    rule("study", "graduated", verb("graduated|(?:'ve|have)\\s+graduated", "graduated") + r"(?:\w+\s+)?from\s+(?:the\s+)?", "graduated_from", name, when="event"),
    rule("study", "degree bachelor's master's masters phd doctorate", verb("have|got|earned|finished|completed|hold", "has|got|earned|holds") + rf"(?:an?|my|his|her)\s+(?:\w+\s+)?(?i:{_DEGREE})\s+(?:degree\s+)?in\s+", "has_degree", phrase, when="event"),
)  # fmt: skip

_GOT = r"(?:just\s+|recently\s+|finally\s+|are\s+|'re\s+|got\s+|have\s+)*"
FAMILY: tuple[Rule, ...] = (
    rule("family", "married divorced engaged single widowed separated widow widower", be(rf"(?:happily\s+|newly\s+|an?\s+)?(?P<v>{either(MARITAL)})(?!\s+(?:to|from|with|in|\w+ing)\b)(?![\w-])"), "marital_status", confidence=0.85),
    rule("family", "married divorced engaged", r"(?<![\w'])(?P<i>I|[Ww]e)\s+(?:just\s+|recently\s+|finally\s+)?got\s+(?P<v>married|divorced|engaged)\b", "marital_status", when="change"),
    rule("family", "married", be(r"married\s+to\s+"), "spouse", name),
    rule("family", "married", verb("married|got\\s+married\\s+to", "married|got\\s+married\\s+to"), "spouse", name, when="change"),
    rule("family", "engaged", be(r"engaged\s+to\s+"), "engaged_to", name),
    rule("family", "dating seeing going", be(r"(?:dating|seeing|going\s+out\s+with)\s+"), "dating", name, follows=r"(?!\s+(?:again|tonight|tomorrow|today|later|this|next|on|at|for|about|off)\b)"),
    rule("family", "children kids child kid son daughter sons daughters", verb("have|'ve\\s+got|have\\s+got", "has") + r"(?P<v>(?:an?|one|two|three|four|five|six|[2-9])\s+(?:\w+\s+)?(?:kids?|child(?:ren)?|sons?|daughters?))\b(?!,?\s+(?:named|called|[A-Z]))", "has_child", when="never"),
    rule("family", "brother sister brothers sisters siblings", verb("have|'ve\\s+got|have\\s+got", "has") + r"(?P<v>(?:an?|one|two|three|four|five|six|[2-9])\s+(?:older\s+|younger\s+|little\s+|big\s+|twin\s+)?(?:brothers?|sisters?|siblings?))\b(?!,?\s+(?:named|called|[A-Z]))", "has_sibling", when="never"),
)  # fmt: skip

PETS: tuple[Rule, ...] = (
    rule("pets", " ".join(ANIMALS), verb("have|own|adopted|'ve\\s+got|have\\s+got|got|bought|rescued|(?:'ve|have)\\s+adopted", "has|owns|adopted|got|bought|rescued") + rf"(?P<v>(?:an?|one|two|three|four|five|some|[2-9])\s+(?:[\w-]+\s+){{0,2}}?{either(ANIMALS)})\b(?!\s+(?:named|called|food|toy|person|shelter|sitter|walker|groomer|trainer|owner|lover|allergy|bed|park|show|door|collar|leash|hair|problem|\w+ing)|-|'s)", "has_pet", when="never", confidence=0.8),
)  # fmt: skip

POSSESSIONS: tuple[Rule, ...] = (
    rule("possessions", " ".join(word.split()[-1] for word in THINGS), verb("own|have|'ve\\s+got|bought|got|purchased|drive|(?:'ve|have)\\s+bought", "owns|has|bought|got|purchased|drives") + rf"(?:an?|two|three|some|any)\s+(?P<v>(?:[\w-]+\s+){{0,3}}?{either(THINGS)})\b(?!-|'s|\s+(?:to|for\s+sale|accident|trouble))", "owns", when="never", confidence=0.85),
    rule("possessions", " ".join(word.split()[-1] for word in THINGS), verb("own|have|'ve\\s+got|bought|got|purchased|drive|(?:'ve|have)\\s+bought", "owns|has|bought|got|purchased|drives") + rf"(?:my|our|the|this)\s+(?!wrong\b)(?P<v>(?:[\w-]+\s+){{0,3}}?{either(THINGS)})\b(?!-|'s|\s+(?:to|for\s+sale|accident|trouble))", "owns", when="never", confidence=0.85, affirms=True),
    rule("possessions", "sold", verb("sold|(?:'ve|have)\\s+sold", "sold") + rf"(?:my|our|his|her|the)\s+(?P<v>(?:[\w-]+\s+){{0,3}}?{either(THINGS)})\b", "owns", when="change", denies=True),
    rule("possessions", "drive drives", verb("drive", "drives") + rf"an?\s+(?P<v>{NAME})", "drives", when="never"),
)  # fmt: skip

_LIKED = r"(?!(?:it|that|this|these|those|you|your|him|her|his|them|ya|their|how|when|what|where|the\s+(?:way|idea|sound|look|fact|thought)|to|being|having|seeing|me|us|my\s?self|everything|all)\b)"
PREFERENCES: tuple[Rule, ...] = (
    rule("preferences", "love like enjoy adore loves likes enjoys adores", verb("love|like|enjoy|adore", "loves|likes|enjoys|adores") + _LIKED, "likes", liked, when="never"),
    rule("preferences", "love like loves likes", verb("love|like", "loves|likes") + r"to\s+" , "likes", liked_to, when="never", confidence=0.8),
    rule("preferences", "hate dislike despise loathe stand hates dislikes", verb("hate|dislike|despise|loathe|can't\\s+stand|cannot\\s+stand", "hates|dislikes|despises|can't\\s+stand") + _LIKED + r"(?:to\s+)?", "likes", liked, when="never", denies=True),
    rule("preferences", "fan", be(r"(?:an?\s+)?(?:really\s+|very\s+|huge\s+|big\s+|massive\s+|great\s+)*fan\s+of\s+") , "likes", liked, when="never"),
    rule("preferences", "fond", be(r"(?:really\s+|very\s+|so\s+)?fond\s+of\s+") + _LIKED, "likes", liked, when="never"),
    rule("preferences", "crush", verb("have|had|'ve\\s+got", "has|had") + r"an?\s+(?:huge\s+|big\s+|little\s+)?crush\s+on\s+", "likes", name, when="never", affirms=True),
    rule("preferences", "into", be(r"(?:really\s+|very\s+|so\s+)?into\s+") + _LIKED, "likes", liked, when="never", confidence=0.8),
    rule("preferences", "love crazy", be(r"(?:in\s+love\s+with|crazy\s+about)\s+"), "likes", name, when="never", affirms=True),
    rule("preferences", "prefer prefers", verb("prefer", "prefers") + _LIKED, "prefers", phrase, when="never", follows=r"(?!\s+to\b)"),
    rule("preferences", "vegan vegetarian pescatarian gluten-free keto halal kosher lactose", be(rf"(?:an?\s+)?(?:strict\s+)?(?P<v>{either(DIETS)})(?=\W|$)"), "diet"),
    rule("preferences", "eat drink eats drinks", rf"(?<![\w'])(?P<i>I|[Ww]e){NOT_I.removesuffix('?')}(?:\s+really)?\s+(?:eat|drink)\s+(?!much\b|enough\b|that\b|it\b|at\b|a\s+lot)", "eats", phrase, confidence=0.85, follows=r"(?!\s+(?:on|in|at|before|after|during|until|unless|if|when|every|with|without|that|which)\b)"),
    rule("preferences", "quit stopped gave", verb("quit|stopped|gave\\s+up|(?:'ve|have)\\s+(?:quit|stopped|given\\s+up)", "quit|stopped|gave\\s+up") + r"(?:eating|drinking)\s+", "eats", phrase, when="change", denies=True),
    rule("preferences", "quit stopped gave", verb("quit|stopped|gave\\s+up|(?:'ve|have)\\s+(?:quit|stopped|given\\s+up)", "quit|stopped|gave\\s+up") + r"(?P<v>smoking|drinking|running|gambling|vaping|dancing|swimming|painting|acting|playing\s+\w+)\b(?!\s+(?:the|to|at|for|by|in|out|away|around|it|that|a))", "does", when="change", denies=True, confidence=0.8),
)  # fmt: skip

HEALTH: tuple[Rule, ...] = (
    rule("health", "allergic", be(r"(?:very\s+|severely\s+|highly\s+|deathly\s+)?allergic\s+to\s+"), "allergic_to", phrase, when="never", confidence=0.95),
    rule("health", "allergy allergies", verb("have|'ve\\s+got", "has") + r"an?\s+(?:\w+\s+)?(?P<v>[a-z]+)\s+allergy\b", "allergic_to", when="never"),
    rule("health", "have suffer got has suffers", verb("have|suffer\\s+from|'ve\\s+got|have\\s+had|got", "has|suffers\\s+from|got") + rf"(?:an?\s+|some\s+)?(?:chronic\s+|severe\s+|mild\s+|bad\s+)?(?P<v>(?i:{either(CONDITIONS)}))(?=\W|$)(?!\s+(?:medication|treatment|patient|test|about|attack))", "has_condition", confidence=0.85),
    rule("health", "diagnosed", verb("(?:was|got|(?:'ve|have)\\s+been)\\s+(?:\\w+ly\\s+)?diagnosed\\s+with", "(?:was|got|has\\s+been)\\s+diagnosed\\s+with"), "has_condition", phrase, when="change"),
    rule("health", "broke sprained injured fractured tore twisted dislocated", verb("broke|sprained|injured|fractured|tore|twisted|dislocated|(?:'ve|have)\\s+broken", "broke|sprained|injured|fractured|tore|twisted|dislocated") + r"(?:my|his|her)\s+(?P<v>(?:left\s+|right\s+)?(?:leg|arm|ankle|wrist|foot|hand|knee|shoulder|back|rib|ribs|finger|toe|hip|collarbone|elbow|nose|acl))\b", "injured", when="event"),
    rule("health", "pregnant", be(r"(?:\w+\s+months?\s+)?(?P<v>pregnant)\b(?!\s+with)"), "has_condition", confidence=0.85),
)  # fmt: skip

PLANS: tuple[Rule, ...] = (
    rule("plans", "going flying travelling traveling headed heading driving", be(r"(?:going|flying|travell?ing|headed|heading|driving)\s+(?:back\s+|down\s+|up\s+|over\s+|off\s+)?to\s+"), "travels_to", place, when="event", confidence=0.8),
    rule("plans", "plan plans planning intend intends", verb("plan\\s+(?:to|on)|intend\\s+to", "plans\\s+(?:to|on)|intends\\s+to"), "plans_to", activity, when="event", confidence=0.85),
    rule("plans", "planning", be(r"(?:planning|preparing)\s+(?:to|on)\s+"), "plans_to", activity, when="event", confidence=0.85),
    rule("plans", "going gonna", be(r"(?:going\s+to|gonna)\s+(?!be\b|get\b|have\b|kill\b|die\b|say\b|tell\b|ask\b|need\b|do\b|let\b|miss\b|go\b|just\b|the\b|a\b|my\b|work\b|bed\b|try\b|make\b|take\b|put\b|give\b|lose\b|want\b|call\b|show\b|see\b|keep\b|stay\b|find\b|use\b|turn\b|continue\b|check\b|look\b|come\b|happen\b|meet\b)(?=[a-z])"), "plans_to", activity, when="event", confidence=0.7),
    rule("plans", "went visited traveled travelled flew been", verb("went\\s+to|visited|travell?ed\\s+to|flew\\s+to|(?:'ve|have)\\s+been\\s+to|been\\s+to", "went\\s+to|visited|travell?ed\\s+to|flew\\s+to|has\\s+been\\s+to"), "visited", place, when="event", confidence=0.85),
    rule("plans", "back", verb("(?:got|came|just\\s+got|(?:'ve|have)\\s+come)\\s+back\\s+from|returned\\s+from", "(?:got|came|gets)\\s+back\\s+from|returned\\s+from"), "visited", place, when="event", confidence=0.85),
)  # fmt: skip

_NEW = r"(?:an?|the|this|my\s+first|another|some)\s+(?!bit\b|lot\b|few\b|great\s+time\b|point\b|way\b|end\b|store\b)"
EVENTS: tuple[Rule, ...] = (
    rule("events", "went attended been", verb("went\\s+to|attended|(?:'ve|have)\\s+been\\s+to|got\\s+to\\s+go\\s+to", "went\\s+to|attended|has\\s+been\\s+to") + r"(?=(?:an?|the|this|my)\s)(?!the\s+(?:same|store|bathroom|restroom|toilet|kitchen|door|left|right)\b)", "attended", phrase, when="event", confidence=0.8),
    rule("events", "joined", verb("joined|(?:'ve|have)\\s+joined", "joined|has\\s+joined") + _NEW, "member_of", phrase, when="change", confidence=0.85),
    rule("events", "started began", verb("started|began|(?:'ve|have)\\s+started", "started|began|has\\s+started") + r"(?!being\b|to\b|having\b|getting\b|feeling\b|seeing\b|thinking\b|working\b|out\b|off\b)(?=\w+ing\b|an?\s|my\s+own\s|my\s+new\s)", "started", liked, when="change", confidence=0.8),
    rule("events", "signed enrolled", verb("signed\\s+up\\s+(?:for|to)|enrolled\\s+in|(?:'ve|have)\\s+signed\\s+up\\s+for", "signed\\s+up\\s+for|enrolled\\s+in"), "signed_up_for", phrase, when="change", confidence=0.85),
    rule("events", "bought purchased", verb("bought|purchased|(?:'ve|have)\\s+bought", "bought|purchased") + _NEW + r"(?:new\s+)?", "bought", phrase, when="event", confidence=0.8),
)  # fmt: skip

STATEMENTS: tuple[Rule, ...] = (
    *IDENTITY,
    *RESIDENCE,
    *WORK,
    *STUDY,
    *FAMILY,
    *PETS,
    *POSSESSIONS,
    *PREFERENCES,
    *HEALTH,
    *PLANS,
    *EVENTS,
)

__all__ = ["BE_NOT", "STATEMENTS"]
