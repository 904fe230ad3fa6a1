"""The small words that decide whether two statements agree, in the commonest languages.

A missing word costs a recognised pair; a wrong one costs a wrong link. So words that mean
something else in a neighbouring language are left out.
"""

from __future__ import annotations

import re
from typing import Final


def word_set(*lines: str) -> frozenset[str]:
    """The words of all lines, which are split at their blanks."""
    return frozenset(word for line in lines for word in line.split())


# Two of these in a statement cancel each other, or say something else altogether.
SINGLE_NEGATIONS: Final = word_set(
    "not never nobody nothing neither none cannot hardly",
    "nicht nie niemals kein keine keinen keinem keiner keines nichts niemand weder",
    "niet geen nooit inte aldrig ikke ingen değil tidak bukan không",
    "不 没 沒 無 无 未 別 别 勿 ไม่",
)
# Where one denial takes several words.
_JOINED_NEGATIONS: Final = word_set(
    "ne n' pas jamais aucun aucune",
    "no nunca jamás nadie ningún ninguno ninguna tampoco non não nunca nem",
    "не нет никогда ни ничего никто нельзя ні ніколи немає nigdy",
    "δεν δε μην όχι ποτέ नहीं मत لا ليس ليست لم لن לא אין نیست 안 못",
)
NEGATIONS: Final = SINGLE_NEGATIONS | _JOINED_NEGATIONS
# What a denial brings along: "no longer", "nicht mehr", "ne … plus", "ya no", "больше не".
COMPANIONS: Final = word_set("longer any anymore ever mehr plus ya más больше 再 כבר עוד")
# What a denial of its kind leaves out: "always likes", "never likes".
ALWAYS: Final = word_set("always immer toujours siempre всегда sempre altijd 总 總 都")
# Articles and helping verbs, which come and go with a denial.
ANYWAY: Final = word_set(
    "a an do does did some der die das den dem des ein eine einen einem einer eines",
    "le la les l' un une de du d' el los las una unos unas 了",
)
# Right after a denial these take it back: "not only".
ONLY: Final = word_set("only just merely nur bloß allein seulement solo sólo solamente только лишь")
# Last in a statement these are what is said: "she said no".
ANSWERS: Final = word_set("no none nothing nobody non нет nichts nada")
# Some cases, chances and conditions: another statement can be true beside them.
HEDGES: Final = word_set(
    "some many several few sometimes often occasionally usually mostly perhaps maybe might could",
    "would another other if or either unless one either probably used",
    "manche einige manchmal oft vielleicht oder wenn anderer andere anderes anderen könnte",
    "parfois souvent certains certaines ou si autre",
    "algunos algunas veces quizás tal otro otra",
    "иногда часто некоторые может возможно если или другой другая",
)

COPULAS: Final = word_set(
    "is are be am ist sind bin est sont suis es está son están soy estoy è é это",
    "= 是 为 為 は είναι är er",
)
# Verbs of the present whose number or time is the only one: "costs 5", "opens at 9".
STATE_VERBS: Final = word_set(
    "costs cost weighs measures runs starts begins ends opens closes",
    "expires listens has have uses earns kostet wiegt läuft beginnt endet",
    "öffnet schließt hat",
    "coûte pèse ouvre ferme commence finit cuesta pesa abre cierra empieza termina tiene",
    "стоит весит начинается открывается закрывается",
)
# Nouns that stand for one value at a time: "the gate code is 4711", "her name is Ada".
FUNCTIONS: Final = word_set(
    "code password passphrase pin name nickname username hostname birthday address capital port",
    "version number phone deadline email color size height weight age timezone language wife",
    "husband boss manager ceo president dentist doctor landlord employer model url domain ip",
    "password: default favorite salary rent price budget temperature limit title",
    "passwort kennwort name geburtstag adresse hauptstadt nummer telefonnummer frist farbe größe",
    "alter chef chefin preis miete lieblingsfarbe türcode",
    "mot nom adresse numéro anniversaire couleur âge loyer prix capitale",
    "contraseña clave nombre cumpleaños dirección número teléfono edad alquiler precio código",
    "код пароль имя адрес номер возраст цена порт версия столица",
)
# Those whose value may be any word, not only a name or a number.
WORD_FUNCTIONS: Final = word_set(
    "password passphrase pin username nickname hostname domain passwort kennwort contraseña пароль"
)
NOW: Final = word_set("now currently jetzt ahora теперь maintenant")
# Ends of functional nouns where characters stand unspaced.
FUNCTION_ENDS: Final = (
    "密码", "密碼", "号码", "號碼", "名字", "生日", "地址", "电话", "電話", "端口", "版本", "价格",
    "暗証番号", "番号", "名前", "誕生日", "住所", "パスワード", "ポート", "バージョン",
)  # fmt: skip
# May stand between such an opener and its value.
LINKS: Final = word_set(
    "at on in by from to until about around due scheduled set now currently version number no",
    "um am bei auf im jetzt à au le a las el en в на с до 在 現在 现在",
)
# Where more than a value follows: "3 March at 10", "5 mg and a pause".
CONNECTING: Final = LINKS | word_set("and or but with for und oder mit et avec y con и с")
# No values, though they may follow "is".
NO_VALUES: Final = word_set(
    "a an my his her their our your its this that very too still also so quite really not weak",
    "strong long short wrong right good bad unknown old new secret expired important public",
    "private valid invalid correct missing required needed known ready changed hidden",
    "open closed free busy blocked and",
    "ein eine mein sehr zu noch auch un une mon ma trop una mi muy",
)
MONTHS: Final = word_set(
    "january february march april may june july august september october november december",
    "jan feb mar apr jun jul aug sep oct nov dec am pm",
    "januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet",
    "août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto",
    "septiembre octubre noviembre diciembre января февраля марта апреля мая июня июля августа",
    "сентября октября ноября декабря",
)
WEEKDAYS: Final = word_set(
    "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag",
    "freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes",
    "miércoles jueves viernes sábado domingo",
)
NUMBER_WORDS: Final = word_set(
    "two three four five six seven eight nine ten eleven twelve",
    "zwei drei vier fünf sechs sieben acht neun zehn deux trois quatre cinq sept huit neuf dix",
    "dos tres cuatro cinco seis siete ocho nueve diez два две три четыре пять шесть семь восемь",
    "一 二 三 四 五 六 七 八 九 十 两 兩",
)


def _pairs(*lines: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(pair.split("/")) for line in lines for pair in line.split())


# Verbs and the like that exclude each other wherever they stand.
OPPOSITE_VERBS: Final = _pairs(
    "likes/dislikes likes/hates loves/hates like/dislike like/hate love/hate",
    "enabled/disabled enables/disables allows/forbids accepts/rejects accepted/rejected",
    "succeeded/failed passed/failed with/without trusts/distrusts remembers/forgets",
    "mag/hasst liebt/hasst mit/ohne aime/déteste adore/déteste",
    "avec/sans ama/odia con/sin любит/ненавидит",
    "喜欢/讨厌 喜歡/討厭 爱/恨 打开/关闭 好き/嫌い 좋아해요/싫어해요",
)
# Adjectives that exclude each other where they are what is said: "is open", "prefers dark".
OPPOSITE_STATES: Final = _pairs(
    "open/closed open/shut on/off true/false alive/dead empty/full allowed/forbidden hot/cold",
    "allowed/prohibited married/single married/divorced locked/unlocked online/offline up/down",
    "available/unavailable possible/impossible dark/light tabs/spaces early/late morning/evening",
    "safe/unsafe legal/illegal vegetarian/carnivore required/optional public/private",
    "offen/geschlossen an/aus wahr/falsch erlaubt/verboten voll/leer dunkles/helles",
    "ouvert/fermé ouverte/fermée vrai/faux permis/interdit plein/vide sombre/clair",
    "abierto/cerrado abierta/cerrada verdadero/falso permitido/prohibido lleno/vacío oscuro/claro",
    "открыт/закрыт открыта/закрыта включен/выключен жив/мёртв",
)
# With more after them they tell where: "on the desk".
PLACING: Final = word_set("on off up down an aus")
OPPOSITES: Final = frozenset[str]().union(*OPPOSITE_VERBS, *OPPOSITE_STATES)
# Those of several characters in scripts that are read one by one.
UNSPACED_OPPOSITES: Final = re.compile("喜 [欢歡]|讨 厌|討 厭|打 开|关 闭|好 き|嫌 い|爱|恨")

SPELLINGS: Final = {
    "cannot": ("can", "not"),
    "colour": ("color",),
    "favourite": ("favorite",),
    "centre": ("center",),
    "grey": ("gray",),
    "e-mail": ("email",),
    "okay": ("ok",),
    "organise": ("organize",),
    "organises": ("organizes",),
}
WITH_PRONOUN: Final = {
    "i'm": ("i", "am"),
    "you're": ("you", "are"),
    "we're": ("we", "are"),
    "they're": ("they", "are"),
    "it's": ("it", "is"),
    "he's": ("he", "is"),
    "she's": ("she", "is"),
    "that's": ("that", "is"),
    "there's": ("there", "is"),
    "what's": ("what", "is"),
    "i've": ("i", "have"),
    "we've": ("we", "have"),
    "they've": ("they", "have"),
    "i'll": ("i", "will"),
    "we'll": ("we", "will"),
}
