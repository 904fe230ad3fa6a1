"""The words that dates are made of: English in full, the commonest German, French and Spanish.

Every key is lower case and without accents, as `tokens.fold` leaves a word.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MONTH_NAMES: Final = (
    "january jan januar janvier enero",
    "february feb februar fevrier febrero",
    "march mar marz maerz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug aout agosto",
    "september sep sept septembre septiembre",
    "october oct oktober okt octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember dez decembre diciembre",
)
MONTHS: Final = {
    name: month for month, names in enumerate(_MONTH_NAMES, 1) for name in names.split()
}
# Months even without context; others may be a name, a verb or a planet.
SURE_MONTHS: Final = _words(
    "january february july september october november december februar oktober dezember janvier"
    " fevrier juillet aout septembre octobre novembre decembre enero febrero septiembre octubre"
    " noviembre diciembre"
)
# After these even a number proves little: "may 7 people come?", "march 3 miles".
VERB_MONTHS: Final = frozenset({"may", "march", "mar"})

_WEEKDAY_NAMES: Final = (
    "monday mon montag lundi lunes",
    "tuesday tue tues dienstag mardi martes",
    "wednesday wed mittwoch mercredi miercoles",
    "thursday thu thur thurs donnerstag jeudi jueves",
    "friday fri freitag vendredi viernes",
    "saturday sat samstag samedi sabado",
    "sunday sun sonntag dimanche domingo",
)
# Monday is 0.
WEEKDAYS: Final = {name: day for day, names in enumerate(_WEEKDAY_NAMES) for name in names.split()}
# Also other words, pronouns or names; a weekday only in "last sun" and the like.
DOUBTFUL_WEEKDAYS: Final = frozenset({"mon", "tue", "wed", "thu", "fri", "sat", "sun"})
# "Black Friday" is an event, "every Friday" many days.
NOT_A_WEEKDAY_AFTER: Final = _words("black good cyber holy every each any most some")

# The first month and the number of months: meteorological seasons of the northern hemisphere.
SEASONS: Final = {
    "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12,
    "fruhling": 3, "fruhjahr": 3, "sommer": 6, "herbst": 9,
    "printemps": 3, "automne": 9, "hiver": 12,
    "primavera": 3, "verano": 6, "otono": 9, "invierno": 12,
}  # fmt: skip

DAYS_FROM_TODAY: Final = {
    "today": 0, "yesterday": -1, "tomorrow": 1, "tonight": 0,
    "heute": 0, "gestern": -1, "vorgestern": -2, "ubermorgen": 2,
    "hoy": 0, "ayer": -1, "anteayer": -2, "manana": 1,
}  # fmt: skip

_UNIT_NAMES: Final = {
    "second": "seconds sekunde sekunden seconde secondes segundo segundos",
    "minute": "minutes minuten minuto minutos",
    "hour": "hours stunde stunden heure heures hora horas",
    "day": "days tag tage tagen jour jours dia dias",
    "week": "weeks woche wochen semaine semaines semana semanas",
    "fortnight": "fortnights",
    "month": "months monat monate monaten mois mes meses",
    "year": "years jahr jahre jahren an ans annee annees ano anos",
    "weekend": "weekends wochenende",
    "quarter": "quartal trimestre",
    "decade": "decades jahrzehnt",
}
UNITS: Final = {
    name: unit for unit, names in _UNIT_NAMES.items() for name in (unit, *names.split())
}

COUNTS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "ein": 1, "eine": 1, "einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "funf": 5,
    "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10,
    "un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "dix": 10,
    "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "diez": 10,
}  # fmt: skip
# The approximate number of vague counts.
VAGUE_COUNTS: Final = {"few": 3, "couple": 2, "several": 4, "paar": 3, "quelques": 3, "unos": 3}

LAST: Final = _words(
    "last previous letzte letzten letzter letztes letztem vorige vorigen voriges vergangene"
    " vergangenen"
)
THIS: Final = _words("this current diese diesen dieser dieses diesem cette ce este esta")
NEXT: Final = _words("next coming upcoming nachste nachsten nachster nachstes")
# Count back from today, while "last week" is the week before this one.
ROLLING: Final = frozenset({"past"})
# Adjectives after the noun: "la semaine dernière", "la semana pasada".
TRAILING_LAST: Final = _words("dernier derniere pasado pasada passe passee")
TRAILING_NEXT: Final = _words("prochain prochaine proximo proxima")

AGO: Final = frozenset({"ago"})
FROM_NOW: Final = frozenset({"hence"})

SINCE: Final = _words("since seit depuis desde")
BEFORE: Final = _words("before avant antes")
AFTER: Final = _words("after nach apres despues")
UNTIL: Final = _words("until till til by bis jusque hasta")
# "vor" is "ago" before a count, and "before" before a date.
GERMAN_VOR: Final = "vor"
BETWEEN: Final = _words("between zwischen entre")
FROM: Final = _words("from von vom de du del desde")
AND: Final = _words("and und et y")
TO: Final = _words("to until till through thru bis au a al hasta")

# Part of the date that follows.
PREPOSITIONS: Final = _words("in on at during around circa im am en le el during within throughout")
ARTICLES: Final = _words("the der den dem das le la l el los las")
OF: Final = _words("of de del d")

EARLY: Final = _words("early beginning start anfang debut")
MIDDLE: Final = _words("mid middle mitte")
LATE: Final = _words("late end ende fin")

NTH: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}

DECADES: Final = {
    "twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60,
    "seventies": 70, "eighties": 80, "nineties": 90,
}  # fmt: skip

# Before these nouns a number is a count, not a year: "in 2000 words".
COUNTED: Final = _words(
    "words steps lines rows users people times ways bytes kb mb gb ms items memories dollars euros"
    " usd eur percent km miles meters metres files tests requests tokens points pieces calories"
    " records messages characters pages hz mhz rpm watts degrees"
) | frozenset(UNITS)

# A word that may follow a date; after "may 7" any other makes the seven a count.
AFTER_A_DATE: Final = _words(
    "at in on and or to with for from by about did do does was were is are what who where when"
    " that this the we i you he she they it of after before if because"
)

# Every word that a date can begin with; any other word takes only one look-up.
STARTERS: Final = (
    frozenset({"day", "hace", "il", GERMAN_VOR})
    | MONTHS.keys() | WEEKDAYS.keys() | SEASONS.keys() | DAYS_FROM_TODAY.keys() | UNITS.keys()
    | COUNTS.keys() | VAGUE_COUNTS.keys() | NTH.keys() | DECADES.keys()
    | LAST | THIS | NEXT | ROLLING | SINCE | BEFORE | AFTER | UNTIL | BETWEEN | FROM
    | PREPOSITIONS | ARTICLES | EARLY | MIDDLE | LATE
)  # fmt: skip
# Words that begin a date but are not a time alone.
_CUES: Final = SINCE | BEFORE | AFTER | UNTIL | BETWEEN | FROM | PREPOSITIONS | ARTICLES
TELLING: Final = STARTERS - _CUES
