"""The rules on ordinary sentences: what is claimed, what is refused and why, and when it holds."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex import EviCortex
from evicortex.errors import InputError
from evicortex.protocols import EvidenceContext
from evicortex.providers.rules import RuleExtractor, RuleOptions
from evicortex.providers.rules.values import NAME
from evicortex.testing import FixedClock, check_extractor
from evicortex.types import Authority, ClaimStatus
from evicortex.validation import CheckedExtractor

MONDAY = datetime(2026, 3, 9, 10, tzinfo=UTC)
RULES = RuleExtractor()


def extract(text, *, actor="Alice", role="user", at=MONDAY, previous=(), extractor=RULES):
    context = EvidenceContext(
        "ev_1",
        text,
        hashlib.sha256(text.encode()).hexdigest(),
        actor,
        role,
        Authority.ASSISTANT if role == "assistant" else Authority.USER,
        at,
        tuple(previous),
    )
    return CheckedExtractor(extractor).extract(context)


def claims(text, **fields):
    """Claims as "subject predicate object", with a leading "not" for a denial."""
    return [
        ("not " if claim.polarity == "negative" else "")
        + f"{claim.subject} {claim.predicate} {claim.object}"
        for claim in extract(text, **fields).claims
    ]


def codes(text, **fields):
    return [each.code for each in extract(text, **fields).diagnostics]


def bounds(text, **fields):
    """The one claim's bounds as ISO dates."""
    (claim,) = extract(text, **fields).claims
    return tuple(
        None if bound is None else bound.date().isoformat()
        for bound in (claim.valid_from, claim.valid_to)
    )


STATED = {
    # identity
    "My name is Alice Brown.": ["Alice name Alice Brown"],
    "Hi, I'm Alice Brown!": ["Alice name Alice Brown"],
    "You can call me Al.": ["Alice nickname Al"],
    "I'm 32 years old.": ["Alice age 32"],
    "I just turned 30 last week": ["Alice age 30"],
    "I'm Italian.": ["Alice nationality Italian"],
    "I'm originally from Porto, Portugal.": ["Alice hometown Porto, Portugal"],
    "I grew up in Oslo.": ["Alice hometown Oslo"],
    "I was born in Rome.": ["Alice born_in Rome"],
    "I speak German": ["Alice speaks German"],
    "I'm eleven.": ["Alice age eleven"],
    "Hi, it's Monica Geller.": ["Alice name Monica Geller"],
    "Hello! This is Ann from Acme.": [],
    # residence
    "I live in Paris, Texas.": ["Alice lives_in Paris, Texas"],
    "We're living in Berlin now.": ["Alice lives_in Berlin"],
    "I moved from Berlin to Lisbon.": ["Alice lived_in Berlin", "Alice lives_in Lisbon"],
    "I used to live in Oslo.": ["Alice lived_in Oslo"],
    "I no longer live in Rome.": ["not Alice lives_in Rome"],
    "I don’t live in Rome anymore.": ["not Alice lives_in Rome"],
    "I'm moving to Canada.": ["Alice plans_to_live_in Canada"],
    "Anna doesn't live in Rome anymore.": ["not Anna lives_in Rome"],
    # work and study
    "My brother isn't a nurse.": ["not Alice's brother works_as nurse"],
    "Anna isn't vegan.": ["not Anna diet vegan"],
    "Anna doesn't really like jazz.": ["not Anna likes jazz"],
    "We aren't married.": ["not Alice marital_status married"],
    "Anna no longer works at Google.": ["not Anna works_at Google"],
    "I work at Google.": ["Alice works_at Google"],
    "I work as a software engineer.": ["Alice works_as software engineer"],
    "I'm a nurse.": ["Alice works_as nurse"],
    "I'm the chef at Alessandro's Bar.": ["Alice works_as chef"],
    "I'm a teacher at Lincoln High.": ["Alice works_as teacher", "Alice works_at Lincoln High"],
    "I got a new job at Microsoft.": ["Alice works_at Microsoft"],
    "I used to work for Acme.": ["Alice worked_at Acme"],
    "I work in a small bakery.": ["Alice works_at small bakery"],
    "I study biology.": ["Alice studies biology"],
    "I'm majoring in computer science.": ["Alice major computer science"],
    "I go to Stanford University.": ["Alice studies_at Stanford University"],
    "I graduated from Yale.": ["Alice graduated_from Yale"],
    "I-I'm the head chef.": ["Alice works_as head chef"],
    "I'm an actor, y'know?": ["Alice works_as actor"],
    "I work at Bloomingdale's and I like it.": ["Alice works_at Bloomingdale's"],
    "I worked for Gucci.": ["Alice worked_at Gucci"],
    "I was a chef.": ["Alice worked_as chef"],
    "I was her accountant.": ["Alice worked_as accountant"],
    "I'm his lawyer.": ["Alice works_as lawyer"],
    "I have been a divorce attorney for years.": ["Alice works_as divorce attorney"],
    "My assistant Tag is here.": ["Tag works_as assistant", "Alice manages Tag"],
    "Leon, the manager, is here.": ["Leon works_as manager"],
    "This is Al, Mr. Heckles' attorney.": ["Al works_as attorney"],
    "Her trainer, Ho, is here.": ["Ho works_as trainer"],
    "Call the lawyer, Ann.": [],
    "The doctor Okay left.": [],
    "Sorry, the manager, left.": [],
    # family and pets
    "My Uncle Lenny is here.": ["Alice relative_of Lenny"],
    "Kip, my old roommate, left.": ["Alice lives_with Kip"],
    "Rex is our dog.": ["Alice has_pet Rex"],
    "My fish, Bubbles.": ["Alice has_pet Bubbles"],
    "Joe and his wife, Karen, left.": ["Joe spouse Karen"],
    "Tom and Sue's daughter Jen left.": ["Tom has_child Jen", "Sue has_child Jen"],
    "Joe's my best friend.": ["Alice friend_of Joe"],
    "It's my good friend Ross.": ["Alice friend_of Ross"],
    "I'm a friend of Rachel Green's.": ["Alice friend_of Rachel Green"],
    "Anna's sister Anna left.": [],
    "Bob and Ann are getting married.": ["Ann engaged_to Bob"],
    "Bob and Ann got married.": ["Ann spouse Bob"],
    "I'm seeing Mona.": ["Alice dating Mona"],
    "I'm seeing Mona tonight.": [],
    "I've thought about it... Joe is my cousin.": ["Alice relative_of Joe"],
    "My sister Anna lives in Berlin.": ["Alice has_sibling Anna", "Anna lives_in Berlin"],
    "My mother is a nurse.": ["Alice's mother works_as nurse"],
    "Ross's sister, Monica, is here.": ["Ross has_sibling Monica"],
    "This is my boss, Doug.": ["Alice manager Doug"],
    "Anna is my cousin.": ["Alice relative_of Anna"],
    "I'm Tom's wife.": ["Alice spouse Tom"],
    "I'm married to Tom.": ["Alice spouse Tom"],
    "I have two kids.": ["Alice has_child two kids"],
    "I'm dating Bob.": ["Alice dating Bob"],
    "Me and Bob are engaged.": ["Alice engaged_to Bob"],
    "Bob and I broke up.": ["not Alice dating Bob", "Alice former_partner Bob"],
    "I'm divorced.": ["Alice marital_status divorced"],
    "My dog's name is Rex.": ["Alice has_pet Rex"],
    "I have a cat named Tom.": ["Alice has_pet Tom"],
    "We have two cats.": ["Alice has_pet two cats"],
    # possessions, preferences, health
    "I bought a new electric car.": ["Alice owns new electric car", "Alice bought electric car"],
    "I don't have a car.": ["not Alice owns car"],
    "I have my own car.": ["Alice owns own car"],
    "I sold my old guitar.": ["not Alice owns old guitar"],
    "I love hiking in the mountains.": ["Alice likes hiking in the mountains"],
    "I hate mushrooms.": ["not Alice likes mushrooms"],
    "I don't like spicy food.": ["not Alice likes spicy food"],
    "I don't eat meat any more.": ["not Alice eats meat"],
    "I quit smoking": ["not Alice does smoking"],
    "I'm really fond of jazz.": ["Alice likes jazz"],
    "I have a huge crush on Vince.": ["Alice likes Vince"],
    "I'm a vegetarian.": ["Alice diet vegetarian"],
    "I'm a huge fan of jazz.": ["Alice likes jazz"],
    "I like to play chess.": ["Alice likes play chess"],
    "My favorite movie is Dune.": ["Alice favorite_movie Dune"],
    "Dune is my favourite book.": ["Alice favorite_book Dune"],
    "I'm allergic to peanuts.": ["Alice allergic_to peanuts"],
    "I have asthma.": ["Alice has_condition asthma"],
    "I was diagnosed with celiac disease": ["Alice has_condition celiac disease"],
    "I broke my left ankle.": ["Alice injured left ankle"],
    "I love Ann's cat and I'm into The Witcher.": ["Alice likes Ann's cat", "Alice likes Witcher"],
    "Bob's favorite films are Dune and Up.": ["Bob favorite_film Dune"],
    "I like to play chess, too.": ["Alice likes play chess"],
    # plans and events
    "I plan to run a marathon.": ["Alice plans_to run a marathon"],
    "I'm flying to Rome.": ["Alice travels_to Rome"],
    "I went to Japan.": ["Alice visited Japan"],
    "I've never been to Japan.": [],
    "I joined a chess club.": ["Alice member_of chess club"],
    "I attended a poetry reading.": ["Alice attended poetry reading"],
    "I started learning Dutch.": ["Alice started learning Dutch"],
    "My wedding is on June 12.": ["Alice's wedding scheduled_for June 12"],
    "My birthday is on May 3rd.": ["Alice birthday May 3rd"],
    "The meeting is on Friday.": ["meeting scheduled_for Friday"],
    "My exam is at noon.": ["Alice's exam scheduled_for noon"],
    "Bob's graduation is tomorrow.": ["Bob's graduation scheduled_for tomorrow"],
}


@pytest.mark.parametrize(("text", "stated"), STATED.items(), ids=STATED)
def test_what_is_stated_is_claimed(text, stated):
    assert claims(text) == stated


REFUSED = {
    "Do I live in Rome?": "question",
    "I live in Rome?": "question",
    "Do I live in Rome": "question",
    "If I lived in Rome, I'd be happy.": "hypothetical",
    "I wish I lived in Rome.": "hypothetical",
    "Imagine I work at Google.": "hypothetical",
    "She said I live in Rome.": "reported_speech",
    "Bob told me that I work at Google.": "reported_speech",
    "Bob thinks I'm a nurse.": "reported_speech",
    'Bob said, "I live in Rome".': "quoted",
    "Bob said, “I live in Rome.”": "quoted",
    "«I live in Rome», he said.": "quoted",
    "„I live in Rome“, he said.": "quoted",
    "> I live in Rome.\nReally.": "quoted",
    "```\nI live in Rome.\n```": "quoted",
    "Run `I live in Rome.` again.": "quoted",
    "Translate this into French: I live in Rome.": "quoted",
    "Please summarize the following text.\n\nI live in Rome. I work at Google.": "quoted",
    "Can you write me a short story: I live in Rome.": "quoted",
    "Tom: I live in Rome.\nSue: I live in Oslo.": "quoted",
    "According to Ben, I work at Google.": "reported_speech",
    "Rumor has it I'm dating Bob.": "reported_speech",
    "My boss suggested I work at the bank.": "reported_speech",
    "People assume I'm a nurse.": "reported_speech",
    "He mentioned that Sue works at Google.": "reported_speech",
    "She was like, I live in Rome.": "reported_speech",
    "I live in Rome, said no one.": "reported_speech",
    "It's not true that I live in Rome.": "denied",
    "It's a lie that I'm dating Bob.": "denied",
    "I denied that I work for Google.": "denied",
    "I doubt I work for Google.": "denied",
    "I never said I hate cats.": "denied",
    "It isn't that I hate cats.": "denied",
    "It's not like I live in Rome.": "denied",
    "No way I'm a vegetarian.": "denied",
    "Say I work at Google, what then.": "hypothetical",
    "Assuming my sister lives in Rome.": "hypothetical",
}


@pytest.mark.parametrize(("text", "code"), REFUSED.items(), ids=REFUSED)
def test_what_is_not_the_speakers_statement_is_refused_with_its_place(text, code):
    result = extract(text)
    assert result.abstained
    told, *_ = [each for each in result.diagnostics if each.code == code]
    start, end = told.details["span"]
    assert 0 <= start < end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n ",
        "Thanks, that's great!",
        "I love it. I like you. I hate this.",
        "We don't hate Emily.",
        "I'm fine. I'm OK. I'm here.",
        "I'm 20 minutes late.",
        "Monday I'm busy.",
        "I'm not in love with Ross.",
        "I'm a fast runner and a good cook.",
        "I had a great time.",
        "I work hard for my money.",
        "I'd like to live in Rome.",
        "You live in Rome.",
        "He lives in Rome.",
        "I went to bed.",
        "Our teacher lives next door.",
        "My dear, Rex is gone.",
        "I don't like you going out with my sister, Ross.",
        "I live in New.",
        "I live in X.",
        "I live in Wow Okay.",
        "I went to High School.",
        "I work at Ann's desk.",
        "I love a lot.",
        "I like it when it rains.",
        "I love getting.",
        "I like to go.",
        "I plan to go.",
        "I'm gonna stand in the way of that.",
        "I went to the bathroom.",
        "I didn't have my camera.",
        "I got the wrong apartment.",
        "I prefer Bob's friends to help us all.",
        "I can't stand the thought of it.",
        "I plan to: sleep.",
        "I plan to one two three four five six seven eight nine ten eleven.",
        "I love walking one two three four five six seven eight.",
        "I like to walk one two three four five six seven eight.",
        "I'm a good teacher.",
        "My exam is whenever.",
        "My favorite one is this.",
        "Her favorite film is it.",
        "It and I broke up.",
        "Me and You are engaged.",
        "Ok is my sister.",
        "I'm Okay's wife.",
        "Sorry, never mind.",
        "Actually, it's never too late.",
        "Actually Rome has seven hills.",
        "I mean, Rome, wow, so many hills.",
        "My sister Okay lives in Rome.",
        "Anna's sister, Bob!",
        "Dune is my favourite.",
        "I live in Great of Monday.",
        "I like to: sleep.",
        "I plan to what it takes.",
        "I love painting the",
        "I plan to (sleep) now.",
        "My sister in Rome works at Google.",
        "I haven't worked at Google since 2020.",
        "Unless Sue lives in Oslo, fine.",
        "I have a dog walker.",
        "I have a job offer as a nurse.",
        "I got a job offer at Google.",
        "I live in Harry Styles' head.",
        "I study hard.",
        "I'm single-handedly doing it.",
        "I don't drink coffee after six.",
        "I work at Siemens' desk.",
    ],
)
def test_what_says_nothing_is_an_abstention_with_a_reason(text):
    result = extract(text)
    assert claims(text) == []
    assert result.abstained
    assert result.diagnostics


@pytest.mark.parametrize(
    "text",
    [
        "I think I live in Rome.",
        "I probably live in Rome.",
        "Maybe I live in Rome.",
        "I live in Rome, I think.",
        "I live in Rome. Just kidding!",
    ],
)
def test_a_hedge_halves_the_confidence(text):
    (plain,) = extract("I live in Rome.").claims
    (hedged,) = extract(text).claims
    assert hedged.confidence == pytest.approx(plain.confidence / 2)


def test_what_is_too_uncertain_is_left_out_and_said():
    strict = RuleExtractor(RuleOptions(least_confidence=0.6))
    assert claims("I think I live in Rome.", extractor=strict) == []
    assert "hedged" in codes("I think I live in Rome.", extractor=strict)


def test_a_question_after_a_statement_does_not_question_it():
    assert claims("I'm from Spain, what about you?") == ["Alice hometown Spain"]
    assert claims("Do you remember my roommate Chandler Bing?") == [
        "Alice lives_with Chandler Bing"
    ]


def test_a_title_in_quotes_hides_nothing_around_it():
    text = 'I read "I live in Rome" by Bob, and I live in Oslo.'
    assert claims(text) == ["Alice lives_in Oslo"]
    (told,) = extract(text).diagnostics
    assert (told.code, told.details) == ("quoted", {"span": [7, 23]})


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("I moved to Lisbon last Saturday.", "2026-03-07", None),
        ("Last year I moved to Lisbon.", "2025-01-01", None),
        ("I've lived in Porto since 2019.", "2019-01-01", None),
        ("I live in Porto until June 2027.", None, "2027-06-01"),
        ("I live in Porto.", None, None),
        ("I went to Japan last summer.", "2025-06-01", "2025-09-01"),
        ("I'm moving to Canada next month.", "2026-04-01", "2026-05-01"),
        ("I was diagnosed with asthma in 2019.", "2019-01-01", None),
        ("In 2019, I live in Porto.", None, None),
        ("I live in Porto, 2019 or not.", None, None),
        (f"In 2019 {'and so on ' * 8}I moved to Lisbon.", None, None),
    ],
)
def test_times_become_bounds(text, begins, ends):
    assert bounds(text) == (begins, ends)


def test_how_a_time_was_read_is_kept_with_its_granularity():
    (told,) = extract("I went to Japan last summer.").diagnostics
    assert told.code == "resolved_time"
    assert told.details == {
        "span": [16, 27],
        "start": "2025-06-01T00:00:00+00:00",
        "end": "2025-09-01T00:00:00+00:00",
        "granularity": "season",
        "relative": True,
    }


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("My wedding is on June 12.", "2026-06-12"),
        ("My wedding is on January 12.", "2027-01-12"),
        ("My exam is on Friday.", "2026-03-13"),
        ("My exam is on the 5th.", "2026-04-05"),
        ("My exam is tomorrow.", "2026-03-10"),
        ("My exam is on 12 June 2020.", None),
        ("My exam is last week.", None),
    ],
)
def test_a_schedule_looks_ahead(text, day):
    days = [
        each.details["start"][:10]
        for each in extract(text).diagnostics
        if each.code == "resolved_time"
    ]
    assert days == ([] if day is None else [day])


def test_without_a_moment_only_full_dates_are_placed():
    assert bounds("I moved to Lisbon last Saturday.", at=None) == (None, None)
    assert bounds("I moved to Lisbon on 7 March 2026.", at=None) == ("2026-03-07", None)
    assert codes("My exam is on 7 March 2026.", at=None) == ["resolved_time"]
    assert codes("My exam is tomorrow.", at=None) == []


def test_speech_is_reported_only_by_what_stands_right_before_it():
    assert claims("She said nothing of it, I live in Rome.") == ["Alice lives_in Rome"]
    assert claims("She said, I live in Rome.") == []


def test_a_correction_to_the_same_value_corrects_nothing():
    previous = [("Alice", "I live in Lisbon."), ("Alice", "I love tea.")]
    assert claims("Actually it's Lisbon.", previous=previous) == []
    assert codes("Actually it's Lisbon.", previous=previous) == ["unresolved_reference"]


def test_the_31st_of_a_month_without_one_is_in_the_next():
    late = datetime(2026, 4, 2, 10, tzinfo=UTC)
    (told,) = extract("My exam is on the 31st.", at=late).diagnostics
    assert told.details["start"][:10] == "2026-05-31"


def test_a_correction_takes_the_place_of_what_was_said_before():
    text = "My wedding is on June 12. Actually it's the 14th."
    assert claims(text) == [
        "Alice's wedding scheduled_for June 12",
        "Alice's wedding scheduled_for the 14th",
    ]
    previous = [("Alice", "My wedding is on June 12."), ("Bob", "My exam is on May 2.")]
    assert claims("Sorry, I meant June 14.", previous=previous) == [
        "Alice's wedding scheduled_for June 14"
    ]
    assert claims("No, it's Porto.", previous=[("Alice", "I live in Lisbon.")]) == [
        "Alice lives_in Porto"
    ]


@pytest.mark.parametrize(
    ("text", "previous"),
    [
        ("No, that's Microsoft.", [("Alice", "I live in Lisbon.")]),
        ("I mean, it's London, so what.", [("Alice", "I live in Lisbon.")]),
        ("Actually, it's Tom.", [("Alice", "I live in Lisbon."), ("Bo", "Who is your boss?")]),
        ("Actually, it's Porto.", [("Alice", "I live in Lisbon."), ("Alice", "I'm 30 years old.")]),
    ],
)
def test_a_name_that_may_belong_to_something_else_corrects_nothing(text, previous):
    assert claims(text, previous=previous) == []


@pytest.mark.parametrize(
    "before",
    [
        "> I work at Google.\n",
        "```\nI work at Google.\n```\n",
        "I want to write a story about my life.\n",
        "I had to translate a lot today.\n",
    ],
)
def test_what_follows_a_citation_or_a_mention_of_a_task_is_the_speakers(before):
    assert claims(f"{before}I live in Rome.") == ["Alice lives_in Rome"]


def test_in_a_pasted_dialogue_only_the_speakers_own_lines_are_theirs():
    text = "Tom: I live in Rome.\nAlice: I live in Oslo."
    assert claims(text) == ["Alice lives_in Oslo"]
    assert claims("Note: I live in Rome.") == ["Alice lives_in Rome"]


def test_a_relative_belongs_to_a_person_and_not_to_a_firm():
    text = "Joe works at Siemens and her husband Tom is here."
    assert claims(text) == ["Joe works_at Siemens"]


@pytest.mark.parametrize(
    "text", ["A" * 20_000, "'A" * 10_000, "A.b-" * 5_000, "A at " * 4_000, "Tom and " * 2_500]
)
def test_every_pattern_reads_a_hostile_run_of_letters_in_bounded_steps(text):
    longest = max(len(match) for match in re.findall(NAME, text)) if re.search(NAME, text) else 0
    assert longest <= 400
    assert not extract(text).claims


def test_a_correction_of_nothing_is_a_diagnostic():
    assert claims("Actually it's the 14th.") == []
    assert codes("Actually it's the 14th.") == ["unresolved_reference"]
    assert claims("Actually it's Porto.", previous=[("Bob", "I live in Lisbon.")]) == []


def test_an_ending_ends_what_was_said_before():
    previous = [("Alice", "I'm dating Bob."), ("Bo", "Nice!"), ("Alice", "I work at Acme.")]
    assert claims("We broke up.", previous=previous) == [
        "Alice relationship_status We broke up",
        "not Alice dating Bob",
    ]
    assert "not Alice works_at Acme" in claims("I quit my job.", previous=previous)
    assert claims("I don't work there any more.", previous=previous) == ["not Alice works_at Acme"]
    lived = [("Alice", "I live in Lisbon."), ("Bo", "Nice!")]
    assert claims("I no longer live there.", previous=lived) == ["not Alice lives_in Lisbon"]
    assert codes("I no longer live there.") == ["unresolved_reference"]
    assert codes("We broke up.") == ["unresolved_reference"]


def test_previous_turns_are_never_cited():
    previous = [("Alice", "I live in Lisbon and I love tea.")]
    assert claims("It rains.", previous=previous) == []


def test_others_than_users_say_nothing_of_themselves():
    text = "I live in Rome. Anna lives in Oslo."
    assert claims(text, role="assistant") == ["Anna lives_in Oslo"]
    assert claims(text, role=None, actor=None) == ["user lives_in Rome", "Anna lives_in Oslo"]
    named = RuleExtractor(RuleOptions(speaker="me"))
    assert claims("I live in Rome.", actor=None, extractor=named) == ["me lives_in Rome"]


def test_topics_can_be_chosen():
    pets = RuleExtractor(RuleOptions(topics=("pets",)))
    assert claims("I live in Rome. My dog Rex barks.", extractor=pets) == ["Alice has_pet Rex"]
    assert pets.revision != RULES.revision
    assert RuleExtractor().revision == RULES.revision
    work = RuleExtractor(RuleOptions(topics=("work",)))
    assert claims("My dog Rex barks. Leon, the manager, left.", extractor=work) == [
        "Leon works_as manager"
    ]


@pytest.mark.parametrize(
    "options",
    [{"topics": ("weather",)}, {"least_confidence": 1.5}, {"hedged": -1}, {"speaker": " "}],
)
def test_options_that_cannot_be_used_are_refused(options):
    with pytest.raises(InputError):
        RuleOptions(**options)


def test_a_long_document_is_read_in_part_and_said():
    text = "I live in Rome. " + "Nothing happens. " * 2000 + "I live in Oslo."
    result = extract(text)
    assert [claim.object for claim in result.claims] == ["Rome"]
    assert "text_cut" in [each.code for each in result.diagnostics]


def test_spans_are_exact_code_points():
    text = "😀 Ça va? I live in São Paulo, and I love crème brûlée."
    found = extract(text).claims
    assert [text[c.span.start : c.span.end] for c in found] == ["São Paulo", "crème brûlée"]


def test_it_keeps_the_contract_of_an_extractor():
    check_extractor(RuleExtractor())


_WORDS = [
    *(word for text in STATED for word in text.split()),
    *"if said \" “ ” ' ? ! , . actually it's the 14th We broke up from to in".split(),
]


def check_places(text, result):
    """Spans are exact (the checked extractor compares quotes), and so are those of diagnostics."""
    for claim in result.claims:
        assert claim.quote == text[claim.span.start : claim.span.end]
        assert claim.quote.strip()
        if claim.predicate not in ("dating", "spouse", "engaged_to", "works_at"):
            assert claim.object == " ".join(claim.quote.split())
    for told in result.diagnostics:
        if "span" in told.details:
            start, end = told.details["span"]
            assert 0 <= start < end <= len(text)


@given(st.lists(st.sampled_from(_WORDS), max_size=30).map(" ".join), st.booleans())
def test_any_words_in_any_order_keep_every_rule(text, known):
    previous = [("Alice", text), ("Bo", text + "?")]
    check_places(text, extract(text, at=MONDAY if known else None, previous=previous))


@given(st.text(max_size=60), st.sampled_from(sorted(STATED)))
def test_any_text_keeps_every_rule_and_hides_no_statement_behind_it(text, stated):
    check_places(text, extract(text, previous=[("Bo", text)]))
    both = f"{stated} {text}"
    check_places(both, extract(both))


REQUESTS = frozenset(
    "plans_in plans_venue plans_kind plans_on plans_at_time travels_from travels_to travels_on "
    "returns_on".split()
)


@given(
    st.sampled_from(sorted(STATED)),
    st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join),
    st.sampled_from(["Bo", None]),
)
def test_what_others_said_before_changes_nothing_but_the_details_of_requests(text, hostile, who):
    alone = extract(text).claims
    after = extract(text, previous=[(who, hostile), (who, f"Which city? {hostile}")]).claims
    assert [c for c in after if c.predicate not in REQUESTS] == [
        c for c in alone if c.predicate not in REQUESTS
    ]


def test_changes_supersede_in_a_memory(tmp_path):
    with EviCortex.open(
        tmp_path / "m.db", embedder=None, extractor=RULES, clock=FixedClock(MONDAY)
    ) as cortex:
        for day, text in (
            (1, "I live in Berlin."),
            (2, "My wedding is on June 12."),
            (3, "I moved to Lisbon on March 2nd."),
            (4, "I love tea."),
            (5, "I don't like tea any more."),
            (6, "Actually, my wedding is on June 14."),
        ):
            at = datetime(2026, 3, day, tzinfo=UTC)
            cortex.remember_extracted("ns", text, actor="Alice", role="user", occurred_at=at)
        held = {(c.predicate, c.object, str(c.polarity)) for c in cortex.claims("ns")}
        assert held == {
            ("lives_in", "Lisbon", "positive"),
            ("likes", "tea", "negative"),
            ("scheduled_for", "June 14", "positive"),
        }
        berlin = cortex.history("ns", "Alice", "lives_in")[0]
        assert berlin.status is ClaimStatus.SUPERSEDED
        assert berlin.valid_to == datetime(2026, 3, 2, tzinfo=UTC)
        assert cortex.verify().ok
