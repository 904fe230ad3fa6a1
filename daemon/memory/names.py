"""Which words of a text are names of people.

A capital letter proves nothing: sentences begin with one, and so do products, towns and months.
A word is taken for a name when it is a common given name, when it is known from elsewhere, or
when the words around it speak of a person.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from .stop_words import NOT_TOPICS
from .vocabulary import MONTHS, word_set

# Names that are words of every day as well; written small, they are the words.
ALSO_WORDS: Final = frozenset(
    {
        "angel", "art", "bill", "chance", "chase", "daisy", "dawn", "drew", "faith", "frank",
        "grace", "grant", "guy", "holly", "hope", "iris", "ivy", "jack", "joy", "lily", "mark",
        "miles", "pat", "penny", "pierce", "ray", "rich", "rob", "rose", "ruby", "sky", "sue",
        "summer", "victor", "wade", "ward", "will",
    }
)  # fmt: skip
# The commonest, without those that are words, towns or products too.
GIVEN_NAMES: Final = word_set(
    "aaron abigail ada adam adrian ahmed aisha akira alan albert alejandro alex alexander",
    "alexandra",
    "alexis alfred ali alice alicia alison amanda amelia amina amy ana anastasia andrea andreas",
    "andrew andrey angela anita anja ann anna anne annika anthony anton antonio anya arjun arthur",
    "astrid audrey barbara beatrice ben benjamin bernd bernhard beth betty björn bob boris brandon",
    "brenda brian bruno camila carl carla carlos carmen carol carolina caroline catherine charles",
    "chen chiara chloe chris christian christina christine christopher claire claudia clara colin",
    "connor cynthia dan daniel daniela david deborah denise dennis diana diego dieter dimitri",
    "dmitri dmitry dominic donald donna dorothy doug douglas edith eduardo edward elena eli elias",
    "elise elizabeth ella ellen elsa emil emily emma enrique eric erica erik erin ethan eva evan",
    "evelyn fatima felix fernando fiona florian francesca francesco francois françois frank",
    "franz fred frederick friedrich gabriel gabriela gareth gary george georg gerald gerard gina",
    "giulia giuseppe gloria greg gregor gustav hanna hannah hans haruto hassan heather heidi",
    "heinz helen helena helga henrik henry hiroshi hugo ian ibrahim igor ingrid irene irina isaac",
    "isabel isabella ivan jacob jake jakob james jamie jan jane janet jason javier jean jeff",
    "jeffrey jennifer jenny jeremy jerry jesse jessica jessie jim jimmy joachim joan joanna joao",
    "joel johan johann johanna john johnny jon jonas jonathan jorge josef joseph joshua josé juan",
    "judith judy julia julian juliana julie jürgen kai karen karin karl karla kate katharina",
    "katherine kathleen katja katrin kelly kenji kevin khalid klaus kofi krishna kristin kumar",
    "kyle lara larry lars laura lauren lea leila lena leo leon leonie li liam linda lindsay lisa",
    "lorenzo louis louise luca lucas lucia lucy luis luisa lukas luke maja manuel marc marco",
    "marcus margaret maria marie marina mario marion marta martha martin martina mary masha",
    "mateo matt matteo matthew matthias max maya mehmet mei melanie melissa mia michael michel",
    "michelle miguel mike mikhail miriam mohamed mohammed monica monika muhammad nadia nancy",
    "natalia natalie natasha nathan nicholas nick nicola nicolas niklas nikolai nina noah nora",
    "olaf oleg olga oliver olivia omar oscar otto pablo pamela paolo patricia patrick paul paula",
    "pedro peter petra philip philipp pierre priya rachel rafael raj rajesh ralph ramon raphael",
    "raquel rebecca renate rené ricardo richard rita robert roberto robin rodrigo roger roland",
    "ronald rosa roy rui ruth ryan sabine salma sam samantha samir samuel sandra santiago sara",
    "sarah sascha scott sean sebastian selma serge sergei sergey sergio sharon shreya silvia",
    "simon simone sofia sonja sophia sophie stefan stefanie stella stephanie stephen steve steven",
    "susan susanne svetlana sven sylvia takeshi tamara tanja tanya tatiana ted teresa thea theo",
    "theresa thomas tim timothy tina tobias todd tom tomas tommy tony tyler ulrich ursula uwe",
    "valentina vanessa vera veronica vincent vladimir walter wang wei wendy wilhelm william",
    "wolfgang xavier yasmin yuki yuri yusuf yvonne zara zoe",
    "анна алексей андрей борис виктор владимир дмитрий екатерина елена иван ирина мария михаил",
    "наталья николай ольга павел пётр сергей татьяна юлия",
)
_TITLES: Final = word_set(
    "mr mrs ms dr prof professor doctor sir herr frau monsieur madame mme señor señora don doña",
    "uncle aunt onkel tante tía tío г-н господин",
)
# Right before a name: "my sister Ada", "named Rex", "met Bo".
_BEFORE: Final = word_set(
    "sister brother mother father mom dad mum wife husband son daughter friend",
    "colleague coworker boss manager partner girlfriend boyfriend cousin niece nephew neighbor",
    "neighbour roommate grandma grandpa fiancé fiancée met told asked thanked invited hired",
    "emailed texted messaged phoned visited married ceo cto engineer teammate client landlord",
    "teacher dentist schwester bruder mutter vater freund freundin kollege kollegin",
    "mari fils fille sœur frère mère père amie ami collègue hijo hija hermana hermano amigo amiga",
    "sohn tochter chef chefin jefe jefa hola hi hello hey dear thanks",
)
# A thing may be named as well: the word counts only if a person is mentioned.
_NAMING: Final = word_set("named called heißt heisst llama appelle")
_OF_PERSONS: Final = word_set(
    "he she who his her him sister brother mother father mom dad wife husband son daughter friend",
    "colleague coworker boss manager partner girlfriend boyfriend cousin niece nephew neighbor",
    "neighbour roommate grandma grandpa hire guy man woman boy girl baby kid child doctor nurse",
    "teacher dentist lawyer plumber landlord client intern engineer lead person someone somebody",
    "schwester bruder mutter vater freund freundin kollege kollegin chef chefin sohn tochter frau",
    "mann nachbar nachbarin er sœur frère mère père amie ami collègue hermana hermano madre padre",
    "amigo amiga hijo hija jefe jefa",
)
# Right after one: only people do or are these.
_AFTER: Final = word_set(
    "said says told tells asked asks likes loves prefers hates dislikes wants thinks believes",
    "knows",
    "agreed agrees decided decides promised suggested replied answered lives moved married",
    "wrote explained mentioned complained apologized laughed smiled cried joined resigned",
    "wohnt sagt sagte meint mag möchte bevorzugt habite dit préfère aime vive dice dijo prefiere",
    "любит сказал сказала живёт живет",
)
# What also begins sentences, and things do at times: people within a sentence.
_ACTS: Final = word_set("presents brings arrives joins sits cooks drives pays teaches sings speaks")
_PERSONAL: Final = re.compile(
    r"\s+(?:is (?:my|our|allergic|married|pregnant|vegan|vegetarian)|works? (?:at|for|as)"
    r"|was born|and (?:i|me)\b)|['’]s (?:birthday|wife|husband|mother|father|sister|brother|phone"
    r"|email|boss|daughter|son|favou?rite|family)\b",
    re.IGNORECASE,
)
_NO_NAMES: Final = (
    MONTHS
    | (NOT_TOPICS - ALSO_WORDS)
    | word_set(
        "english german french spanish russian chinese japanese korean italian portuguese dutch",
        "american british european christmas easter internet linux windows docker python java rust",
        "postgres sqlite redis android google github amazon apple microsoft decision error warning",
    )
)
_OWN: Final = re.compile(
    r"\b(?:(?:my|his|her|their) name(?: is|['’]s)|i(?:['’]| a)m called|call me|mein name ist"
    r"|ich heiße|me llamo|je m['’]appelle|mi nombre es) $",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]{2,})*")
_CONTRACTED: Final = re.compile(r"\w+['’](?:ve|ll|re|nt)")
_HONORED: Final = re.compile(
    "([\u4e00-\u9fff]{1,4}|[\u30a0-\u30ff]{2,8})(?:さん|さま|くん|ちゃん|先生|女士|小姐)"
)
_LONGEST: Final = 3


def people(text: str, known: Collection[str] = ()) -> tuple[str, ...]:
    """The names of people in `text`, as they are written there, each once, in its order.

    Args:
        text: any text; a part of a longer one will do.
        known: names that are people's for certain, such as those of the speakers.
    """
    found = dict.fromkeys(_names(text, frozenset(name.casefold() for name in known)))
    found.update(dict.fromkeys(match[1] for match in _HONORED.finditer(text)))
    return tuple(name for name in found if not _part_of_another(name, found))


def is_given_name(word: str) -> bool:
    """Whether `word` is a common given name, or begins with one before a hyphen."""
    return word.casefold().split("-", 1)[0] in GIVEN_NAMES


def _part_of_another(name: str, names: Collection[str]) -> bool:
    return any(name != other and name in other.split() for other in names)


def _names(text: str, known: frozenset[str]) -> Iterator[str]:
    words = list(_WORD.finditer(text))
    at = 0
    while at < len(words):
        length = _run(text, words, at)
        if length and _is_person(text, words, at, length, known):
            yield text[words[at].start() : words[at + length - 1].end()]
        at += max(1, length)


def _run(text: str, words: Sequence[re.Match[str]], at: int) -> int:
    """How many words from `at` on could be one name; 0 where none begins."""
    length = 0
    while length < _LONGEST and at + length < len(words):
        word = words[at + length]
        if length and text[words[at + length - 1].end() : word.start()] not in {" ", ". "}:
            break
        if not _may_name(word.group()) or (length and text[word.start() - 2] == "."):
            break
        length += 1
    return length


def _may_name(word: str) -> bool:
    key = word.casefold()
    if not word[0].isupper() or len(word) < 2 or key in _NO_NAMES or key in _TITLES:
        return False
    if _CONTRACTED.fullmatch(key):
        return False
    return word[1:].islower() or "-" in word or "'" in word or word[1:2] in "'’"


def _is_person(
    text: str, words: Sequence[re.Match[str]], at: int, length: int, known: frozenset[str]
) -> bool:
    first = words[at].group().casefold()
    full = text[words[at].start() : words[at + length - 1].end()].casefold()
    if is_given_name(first) or first in known or full in known:
        return first not in ALSO_WORDS or _within_sentence(text, words[at].start())
    before = words[at - 1].group().casefold() if at else ""
    if before in _TITLES or (before in _BEFORE and first not in _BEFORE):
        return True
    if _is_named(text, words, at, length):
        return True
    end = words[at + length - 1].end()
    if _PERSONAL.match(text, end):
        return True
    after = words[at + length].group().casefold() if at + length < len(words) else ""
    if text[end : end + 1] != " ":
        return False
    return after in _AFTER or (after in _ACTS and _within_sentence(text, words[at].start()))


def _is_named(text: str, words: Sequence[re.Match[str]], at: int, length: int) -> bool:
    """Whether somebody is said to have the name: "my name is", "my boss is called"."""
    if _OWN.search(text, max(0, words[at].start() - 20), words[at].start()):
        return True
    around = words[max(0, at - 7) : at + length + 3]
    naming = at > 0 and words[at - 1].group().casefold() in _NAMING
    return naming and any(word.group().casefold() in _OF_PERSONS for word in around)


def _within_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 8) : start].rstrip()
    return bool(before) and before[-1] not in ".!?…:\n"
