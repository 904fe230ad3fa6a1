"""The wordings of what people tell: what they did, will do and like, and what is so.

See `signals`, which reads them; the sentences are folded and have 600 characters at most.
"""

from __future__ import annotations

import re
from typing import Final

# Nothing was done "if it was fixed", nor where it was "not fixed".
NOT_IF: Final = r"(?<!if )(?<!whether )(?<!not )(?<!n't )"
_DONE: Final = (
    r"deployed|installed|published|created|completed|finished|migrated|merged|released|shipped"
    r"|launched|upgraded|updated|configured|implemented|refactored|renamed|replaced|added|removed"
    r"|deleted|downloaded|restored|reverted|restarted|enabled|disabled|sent|booked|ordered|bought"
    r"|sold|signed|moved|married|born|hired|started|joined|visited|attended|graduated|won|painted"
    r"|adopted|ran|passed|recovered|confirmed|scheduled|cancell?ed|fixed|resolved|solved|blocked"
    r"|raised|lowered|increased|decreased|reduced|swapped|changed|switched|bumped|pinned|patched"
    r"|rebooted|rebuilt|reinstalled|cleaned|cleared|sealed|repaired|extended|excluded|mounted"
    r"|unplugged|paid|transferred|returned|archived|exported|imported|registered|rescheduled"
    r"|rebooked|postponed|left (?:the (?:company|team|project|band|firm)|us)"
    r"|erledigt|fertig|installiert|veröffentlicht|(?:aus)?getauscht|umgestellt|verschoben"
    r"|geheiratet|gekauft|verkauft|bestellt|gelöscht|geändert|ersetzt|eingerichtet|aktualisiert"
    r"|umgezogen|terminé|installé|publié|remplacé|supprimé|ajouté|déménagé"
    r"|terminado|instalado|publicado|cambiado|actualizado|reparado"
    r"|готово|завершили|установили"
)
# Words that are too common to say without "I" before them that somebody did something.
_DONE_BY_SOMEBODY: Final = (
    r"(?:i|we)(?:'ve| have)? (?:(?:just|now|also|already) )*(?:made|set|ran|put|wrote|rewrote|split"
    r"|reset|built|cut|turned|limited)"
)
REPORT: Final = re.compile(
    rf"{NOT_IF}(?<!to be )\b(?:{_DONE}|{_DONE_BY_SOMEBODY})\b"
    r"|引っ越し|搬到|搬家|完成|部署了|发布了|上线|安装了|完了|リリース(?:しました|した)|완료"
)
# "I'll try my best" binds nobody.
_DOING: Final = (
    r"^(?:(?:ok|okay|so|then|now)[, ]+)?(?:(?:i'm|we're|i am|we are) )?(?:moving|switching"
    r"|migrating|replacing|dropping|changing|selling|cancell?ing)\b"
)
_WELL_MEANT: Final = (
    r"(?! (?:try|never forget|get through|keep (?:going|trying|pushing|it up)|miss|make it"
    r"|be (?:happy|glad))\b)"
)
COMMITMENT: Final = re.compile(
    rf"{_DOING}|\b(?:(?:i|we|he|she|they|team|it|\w+)(?:'ll| will){_WELL_MEANT}"
    rf"|(?:going to|gonna){_WELL_MEANT}|needs? to|must (?!be\b|have\b)|have to|has to|todo|to-do"
    r"|plans? to|planning to|next steps?|by (?:monday|tuesday|wednesday|thursday|friday|tomorrow"
    r"|next)|deadline|due|scheduled|remind me|reminder|(?:don't forget|remember) to"
    r"|(?:not|n't) (?:\w+ ){0,3}yet|still (?:needs?|waiting|missing|open|pending|failing|broken)"
    r"|waiting (?:for|on)|blocked (?:by|on)|pending|werde|werden|muss"
    r"|müssen|doit|devons|va|vais|tengo que|tenemos que|hay que|voy a|нужно|надо|должны)\b"
    r"|需要|计划|必须|打算|予定|つもり|必要"
)
_STRESS: Final = (
    r"(?:(?:so|really|very|such|pretty|just|totally|super|always|also|still|now|all|not|a|an) )*"
)
# "I'm glad" is over tomorrow, "the view was amazing" says nothing of the view.
_PASSING: Final = (
    rf"(?! {_STRESS}(?:sure|glad|happy|sad|over the moon|determined|staying|keeping|here|there"
    r"|ready|off|back|good|fine|okay|ok|bored|tired|excited|proud|grateful|thankful|swamped|busy"
    r"|sorry|amazed|thrilled|stoked|blown|lucky|blessed|up for|hoping|afraid|confident|curious"
    r"|impressed|inspired|pumped|loving|well|great|better|positive|motivated|driven|touched"
    r"|feeling|doing)\b)"
)
_PRAISED: Final = (
    rf"(?! {_STRESS}(?:amazing|awesome|great|cool|nice|beautiful|gorgeous|wonderful|lovely"
    r"|incredible|fantastic|perfect|tough|key|fun|blast|worth it|inspiring|precious|everything"
    r"|important|special|true)\b)"
)
_LIVED: Final = (
    r"(?:i|we) (?:(?:just|finally|recently|even) )?(?:(?!(?:love|like|enjoy|want|need|hope|wonder"
    r"|ask|look|check|note|talk|chat|seem|mention|tri|understand)d?ed\b)\w{2,}ed"
    r"|had (?:a|an|my|our|the)|went|got|did|made|took|ran|met|saw|grew|found|learnt|swam|wrote"
    r"|won|lost|left|drove|flew|spent|gave|built|bought|sold|caught|broke|quit)"
)
_NUMBERED: Final = (
    r"(?:port|version|room|line|channel|pin|gpio|vlan|host|server|node|device|rack|track|gate)"
    r" [\w.:-]{0,20}\d[\w.:-]{0,20} (?:is|belongs|runs|listens|has|uses)"
)
# "The Kepler room is on the third floor", but not "it's so nice" and "your store is great".
_PLAIN: Final = (
    r"^(?!(?:it|this|that|these|those|there|here|you|your|he|she|they|what|who|how|why|so|all|my"
    r"|everything|nothing|something|life|i|we|\w+ing)\b)"
    rf"(?:[\w'/.-]+ ){{1,6}}(?:is|are|was|were){_PRAISED} "
)
CLAIM: Final = re.compile(
    rf"{_PLAIN}|\b(?:{_NUMBERED}|(?:my|his|her|its|our|their) name(?: is|'s)|i'?m called|call me"
    rf"|i(?:'m| am){_PASSING}|{_LIVED}|i've been"
    r"|i (?:live|work|own|have|use|was|come|speak|study|weigh|swim|run|train|ride|teach|sing|paint"
    r"|play|collect|volunteer|coach|just)"
    r"|(?:my|our|the|his|her|their|\w+'s) [\w-]+(?: [\w-]+){0,4}"
    rf" (?:(?:is|are|was|were){_PRAISED}|has|costs?|weighs|runs|listens|lives|works|uses|expires"
    r"|starts|opens|closes|ends)"
    r"|(?:my|our) (?:[\w-]+ ){1,3}\w+s (?=(?:to|in|at|with|on|for|from|an?|the)\b)"
    r"|(?:is|are|was) (?:allergic|lactose|gluten|intolerant|vegan|vegetarian|diabetic|pregnant"
    r"|married|born|located|called|named|based|due|due to|on)"
    r"|(?:lives?|living|based|born) in|works? (?:at|for|as)|birthday|allerg\w+|listens on|costs"
    r"|ich (?:bin|wohne|heiße|arbeite|habe)|heißt (?:jetzt|nun)|je (?:suis|m'appelle|travaille)"
    r"|s'appelle|j'(?:habite|ai)|[ms]e llam[ao]n?|viv[eo] en|trabaj[ao]|soy|tengo|меня зовут|живу"
    r"|работаю|у меня)\b"
    r"|我(?:是|叫|住|在)|我.{0,8}要去|我的|住在|です|は.{1,30}(?:です|ます|だ)"
)
# "What I love", "the people I like": of whom or what is not said here.
_NOT_A_PART: Final = r"(?<!what )(?<!things )(?<!people )(?<!ones )"
PREFERENCE: Final = re.compile(
    rf"{_NOT_A_PART}\b(?:(?:i|we|users?|team|he|she|they)"
    r"(?:'d|'ve| would| have| has| do| does)?"
    r"(?: (?:really|always|also|still|generally|usually|personally|much|strongly|just|kinda"
    r"|absolutely|definitely|both))* (?:prefers?|likes?|loves?|enjoys?|hates?|dislikes?|favou?rs?"
    r"|don'?t like|doesn'?t like|can(?:'t|not) (?:stand|have|eat|drink)|rather|do not like"
    r"|does not like|never (?:eat|drink"
    r"|use|want|work)s?|always (?:use|drink|eat|work|start|want)s?))\b(?! to (?:see|know|hear|help"
    r"|ask|thank)\b)(?! (?:the |your )?(?:idea|sound|it)\b)"
    r"|\bprefer(?:s|red)?\b|\b(?:my|our|his|her|their|\w+'s) (?:all-time )?favou?rites?\b"
    r"|\b(?:loves|hates|dislikes|is a fan of|am a fan of|big fan of)\b"
    r"|^(?:please )?(?:always|never|avoid|(?:don't|do not) (?!worry|quit|forget|give|mention"
    r"|know))\b|\bplease (?:always|never|don'?t|do not"
    r"|stop \w+ing)\b|^use .{3,80}\b(?:every\w*|all)\b|\bfrom now on\b"
    r"|\b(?:bevorzug\w+|am liebsten|(?:ich|er|sie|wir) (?:mag|mögen|liebe|liebt|hasse|hasst)"
    r"|préfère\w*|j'(?:aime|adore)|je (?:n'aime|déteste)|prefiero|prefiere|(?:me|le) gustan?"
    r"|me encantan?|odio|odia|предпочита\w+|люблю|любит|нравится|ненавижу)\b"
    r"|喜欢|喜歡|偏好|讨厌|討厭|爱(?:吃|喝|看)|好き|嫌い|好み|좋아|싫어|선호"
)
