"""What statements are about that an agent should never lose, told by their wording.

Names, standing wishes, reminders and health in English, German, Spanish and Chinese; and what is
never a fact, whoever says it: instructions to a model, and mere acknowledgements.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .names import is_given_name
from .similarity import fold

_LONGEST: Final = 600

_NAME: Final = r"(?P<{}>[^\W\d_][\w'’-]{{0,40}}(?: [A-ZÀ-Þ][\w'’-]{{1,40}}){{0,2}})"
_NAMED: Final = re.compile(
    r"\b(?i:my name is|my name's|i am called|i'm called|ich heiße|ich heisse|mein name ist"
    rf"|me llamo|mi nombre es|je m'appelle) {_NAME.format('told')}"
    r"|^(?i:(?:hi|hello|hey|hallo|hola)[,!.]? )?(?i:i'm|i am|ich bin|soy) "
    rf"{_NAME.format('met')}(?=[,.!;]|$| (?:and|but|und|y)\b)"
    rf"|\b(?i:(?:intro|introduction|who i am)): (?!(?i:i)\b){_NAME.format('intro')}(?=[,.!;]|$)"
    r"|我(?:的名字)?(?:叫|是叫)(?P<zh>[\u4e00-\u9fff]{2,4}?)(?=[,,。.!!\s]|$)"
)
_CALLED: Final = re.compile(
    r"\b(?i:(?:please )?(?:just )?call me|calls me|i go by|nenn(?:t|en)? mich|llámame|me llaman"
    rf"|appelle-moi) (?i:just |einfach )?{_NAME.format('told')}"
    rf"|^(?i:just|simply|einfach) {_NAME.format('only')} (?i:is|ist) (?i:fine|enough|ok(?:ay)?|gut)"
    r"|叫我(?P<zh>[\u4e00-\u9fff]{2,4}?)(?=就|吧|[,,。.!!\s]|$)"
)
_AGENT: Final = re.compile(
    r"\b(?i:your name is|your name's|i'll call you|i will call you|du heißt|ich nenne dich"
    rf"|te llamas|te llamaré) {_NAME.format('told')}"
    r"|你(?:叫|的名字(?:是|叫))(?P<zh>[\u4e00-\u9fff]{1,4})"
)
_NOT_A_NAME: Final = frozenset({"when", "if", "back", "later", "a", "an", "the", "at", "on"})
_MANNER: Final = (
    r"(?:brief(?:ly)?|short|concise(?:ly)?|terse|formal(?:ly)?|informal(?:ly)?|direct|polite"
    r"|(?:in )?(?:plain )?(?:english|german|spanish|french|italian|chinese|japanese)|bullet\w*)"
)
_STANDING: Final = re.compile(
    rf"\b(?:be|stay|keep (?:it|things|them|your \w+|answers|replies)|answer(?:s|ing)?|repl(?:y|ies)"
    rf"|respond|write|speak|talk|responses?)\b.{{0,30}}\b{_MANNER}\b"
    r"|\b(?:du(?:z|tz)e?n? (?:mich|wir)|sieze?n? (?:mich|sie)|(?:per|beim) du\b|antworte\b"
    r"|(?:fass|halte?) dich kurz)|\bantworten (?:sie )?bitte"
    r"|\b(?:tutéame|háblame|trátame|contéstame|responde(?:me)?|respóndeme|sé breve)\b"
    r"|\brespuestas? (?:cortas?|breves?)\b"
    r"|(?:回答|回复|回覆|说话|解释).{0,8}(?:简短|简洁|短|详细|直接|中文|英文)|(?:请|都|要)?用(?:中文|英文|德文|德语|英语)"
    r"|(?:以后|今后)(?:都|请|不要|别)"
    r"|\b(?:from now on|in future|for future reference|ab jetzt|künftig|de ahora en adelante)\b"
    r"|\bno (?:more )?(?:emojis?|smileys|exclamation marks|bullet (?:point|list)s|jargon)\b"
    r"|^please .{4,80}\b(?:when(?:ever)?|every time|each time) (?:i|you)\b"
    r"|\bin (?:all|every|each) (?:\w+ )?(?:projects?|repos?\w*|cases?|services?)\b"
    r"|\b(?:in|bei) allen projekten\b|\ben todos (?:los|mis|nuestros) \w+|所有(?:的)?项目"
    r"|^(?:\w+ ){0,3}(?:i|we)(?:'d)? (?:always|never)\b"
    r"|\b(?:immer nur|niemals|nie) .{2,60}\b(?:buch|schreib|verwend|benutz|nehm)\w*"
    r"|^(?:nunca|siempre) |我?(?:只|从不|从来不)(?:选|用|坐|喝|吃)"
)
_ANSWERS: Final = re.compile(
    rf"\b{_MANNER}\b|\bdu(?:z|tz)e?n? mich|\bkurz\b|\brespuestas?\b|回答|回复"
)
_REMINDER: Final = re.compile(
    r"\bremind (?:me|us)\b|\bdon't (?:let me )?forget to\b|\berinnere? mich\b|\brecuérdame\b"
    r"|\brappelle-moi\b|提醒我|提醒一下我"
)
_HEALTH: Final = re.compile(
    r"\b(?:allerg\w+|intoleran\w+|(?:celiac|coeliac|diabetic|diabetes|asthma\w*|epilep\w+|pregnant"
    r"|warfarin|insulin|pacemaker)\b"
    r"|(?:can't|cannot|must not|mustn't|may not) (?:eat|drink|have|get)\b"
    r"|schwanger\b|zöliakie|unverträglich\w*|(?:darf|verträgt) kein\w*|herzschrittmacher"
    r"|alérgic[oa]s?|alergia|celíac[oa]s?|diabétic[oa]s?|embarazada)"
    r"|过敏|糖尿病|高血压|哮喘|怀孕|不耐受|不能吃"
)
_WORK: Final = re.compile(
    r"\bi(?:'m| am) an? .{3,60}\b(?:at|for) |\bi (?:work|teach|run) "
    r"|\bich (?:arbeite|bin \w+ bei)\b|\btrabajo\b|我.{0,6}(?:工作|上班)"
)
_INJECTED: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override) (?:all |any |the |your |of |these )*"
    r"(?:previous|prior|above|earlier|preceding|former|system) (?:\w+ )?"
    r"(?:instructions?|prompts?|rules|messages|directions|context)"
    r"|\b(?:new|updated) (?:system )?(?:instructions?|prompt):|\bsystem prompt\b"
    r"|</?(?:system|instructions?)>|\byou are now (?:an? |in )|\bdo not (?:tell|inform) the user\b"
    r"|\b(?:ignoriere?|vergiss) (?:alle |die |deine )*(?:vorherigen|bisherigen|obigen) \w+"
    r"|\b(?:ignora|olvida) (?:todas )?(?:las |tus )?instrucciones"
    r"|(?:忽略|无视|忘记).{0,6}(?:之前|以上|前面|先前).{0,6}(?:指令|指示|说明|提示)"
)
_ACKNOWLEDGED: Final = re.compile(
    r"(?:(?:ok(?:ay)?|great|thanks|right|sure|good)[,.!:]? )?(?:got it|noted|understood|sure"
    r"|ok(?:ay)?|will do|of course|no problem|alles klar|verstanden|notiert|gut zu wissen"
    r"|gerne|entendido"
    r"|de acuerdo|anotado|vale|claro|d'accord|compris|right|exactly|i(?:'ll| will)"
    r" (?:remember|keep|note|look|leave|remind|stick|avoid|put)|i won't|ich (?:merke|werde)"
    r"|den speichere|lo tendré|no guardo|tomo nota)\b"
    r"|好的|明白|收到|知道了|记住了|记下了|我(?:会|不会)|了解"
)
# Where statements go that fit no category of the tree.
_ABOUT: Final[Mapping[str, re.Pattern[str]]] = {
    "health": _HEALTH,
    "travel": re.compile(
        r"\b(?:flights?|fly|flying|hotels?|trips?|trains?|airport|vacation|holidays?|passport|visa"
        r"|flug|fliege\w*|flüge|fähre|reise\w*|urlaub|zug|vuelos?|viaj\w+|trenes|hoteles|maleta)\b"
        r"|机票|航班|酒店|旅行|飞机|出差|火车"
    ),
    "family": re.compile(
        r"\b(?:wife|husband|partner|mother|father|mom|mum|dad|sister|brother|daughters?|sons?"
        r"|kids?|children|grand(?:mother|father|ma|pa)|aunt|uncle|cousin|dog|cat|birthday|wedding"
        r"|frau|mann|mutter|vater|schwester|bruder|tochter|sohn|kinder|oma|opa|schwieger\w+"
        r"|geburtstag|hochzeit\w*|esposa|marido|mujer|madre|padre|hermanas?|hermanos?|hij[oa]s?"
        r"|abuel[oa]s?|tí[oa]|cumpleaños|perr[oa]|gat[oa])\b"
        r"|妈妈|爸爸|太太|老婆|丈夫|老公|女儿|儿子|哥哥|姐姐|弟弟|妹妹|爷爷|奶奶|生日|孩子"
    ),
    "technical": re.compile(
        r"\b(?:code|coding|python|rust|go 1|java\w*|typescript|docker|kubernetes|linux|server|host"
        r"|port|api|database|postgres\w*|mysql|redis|kafka|sql\w*|git\w*|repos?\w*|commits?|tests?"
        r"|pytest|build|ci|deploy\w*|release|branch|frontend|backend|service|pull request|config"
        r"|index|query|cache|library|package|framework|script|firmware|mqtt|dienste?|servicios?"
        r"|proyectos?|esp32|sensor\w*)\b|[\w/-]+\.(?:py|toml|conf|txt|json|rs|ts|js|go|yml|yaml)\b"
        r"|代码|接口|数据库|项目|服务器|测试|部署"
    ),
    "home": re.compile(
        r"\b(?:house|home|flat|kitchen|garden|balcony|room|roof|boiler|heating|wifi|router|bins"
        r"|landlord|rent|washing machine|dishwasher|fridge|plants?|solar|haus|wohnung|küche|garten"
        r"|heizung|waschmaschine|miete|vermieter|beet|gemüse\w*|casa|cocina|jardín|lavadora"
        r"|alquiler|calle|seguro|limpiar)\b|家里|房租|房东|空调|洗衣机|厨房"
    ),
}
_PREFERENCES: Final = "preferences"
_OWNER: Final = "owner"
_TASKS: Final = "tasks"


def names_told(text: str) -> dict[str, str]:
    """What a speaker says that they are called: `name`, `preferred_name`; or the `agent_name`."""
    text = text[:_LONGEST]
    found: dict[str, str] = {}
    if match := _NAMED.search(text):
        name = match["told"] or match["met"] or match["intro"] or match["zh"]
        known = not match["met"] or is_given_name(name.split()[0].casefold())
        if known or (name[0].isupper() and _CALLED.search(text)):
            found["name"] = name
    if (match := _CALLED.search(text)) and not text.rstrip().endswith("?"):
        called = match["told"] or match["only"] or match["zh"]
        if called.casefold() not in _NOT_A_NAME and (match["zh"] or called[0].isupper()):
            found["preferred_name"] = called
    if (match := _AGENT.search(text)) and not text.rstrip().endswith("?"):
        named = match["told"] or match["zh"]
        if match["zh"] or named[0].isupper():
            found["agent_name"] = named
    return found


def is_standing(text: str) -> bool:
    """Whether a statement says how something is always to be done."""
    return _STANDING.search(fold(text[:_LONGEST])) is not None


def is_reminder(text: str) -> bool:
    """Whether somebody wants to be reminded."""
    return _REMINDER.search(fold(text[:_LONGEST])) is not None


def is_health(text: str) -> bool:
    """Whether it would harm somebody if this were forgotten."""
    return _HEALTH.search(fold(text[:_LONGEST])) is not None


def is_injected(text: str) -> bool:
    """Whether a text tells a model to do other than it was told."""
    return _INJECTED.search(fold(text)) is not None


def is_acknowledgement(text: str) -> bool:
    """Whether an answer only says that something was understood."""
    return _ACKNOWLEDGED.match(fold(text[:_LONGEST])) is not None


def matters_of(text: str) -> tuple[str, ...]:
    """Tags for what nobody should forget, in the words of those who ask for it."""
    found = {
        "name": bool(names_told(text)),
        "reminder": is_reminder(text),
        "health": is_health(text),
        "work": _WORK.search(fold(text[:_LONGEST])) is not None,
        "answers": _ANSWERS.search(fold(text[:_LONGEST])) is not None,
    }
    return tuple(name for name, so in found.items() if so)


def category_of(text: str, *, preference: bool) -> str | None:
    """The category of the tree that a statement is about, where its words tell."""
    if names_told(text):
        return _OWNER
    folded = fold(text[:_LONGEST])
    if _REMINDER.search(folded):
        return _TASKS
    if is_standing(text) or (preference and not _HEALTH.search(folded)):
        return _PREFERENCES
    return next((name for name, words in _ABOUT.items() if words.search(folded)), None)
