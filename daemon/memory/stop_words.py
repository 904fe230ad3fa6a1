"""Words that say how a sentence is built, not what it is about."""

from __future__ import annotations

from typing import Final

from .vocabulary import word_set

# Few on purpose: "go", "get", "before" or "about" tell something apart in a small memory, and in
# a large one the limit on common words leaves them out.
STOP_WORDS: Final = frozenset(
    {
        "a", "am", "an", "and", "are", "as", "at", "be", "been", "being", "by", "can",
        "could", "d", "did", "do", "does", "doing", "done", "for", "from", "had", "has",
        "have", "having", "he", "her", "hers", "him", "his", "how", "i", "in", "is", "it",
        "its", "ll", "m", "may", "me", "might", "must", "my", "of", "on", "or", "our", "re",
        "s", "she", "should", "t", "that", "the", "their", "them", "these", "they", "this",
        "those", "to", "us", "ve", "was", "we", "were", "what", "when", "where", "which",
        "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
    }
)  # fmt: skip

# And those that are left out of questions too, where others remain.
ALSO_LEFT_OUT: Final = word_set(
    "ourselves yours themselves myself yourself himself herself itself theirs but if because until",
    "while about against between into through during before after above below up down out off over",
    "under again further then once here there all any both each few more most other some such no",
    "nor not only own same so than too very just don now o y",
)

# Small words of other kinds, and verbs, adverbs and nouns that may be said of anything: they can
# be searched for, but no text is about them.
_NEVER_TOPICS: Final = word_set(
    "about above absolutely across actually after again against ago ahead all almost alone along",
    "already also although always amazing amount another any anybody anymore anyone anything",
    "anyway apart around aside away awesome back bad basically because become been before begin",
    "began begun behind believe below best better between beyond big bit both bring brought but",
    "call called came cannot cause certain certainly change come comes coming completely cool",
    "course cuz definitely different don doesn didn isn wasn aren weren couldn wouldn shouldn won",
    "down during each early earlier easily easy either else end enough entire especially etc even",
    "ever every everybody everyone everything exactly excellent except excited fairly far feel",
    "feeling feels felt few finally find fine first found forward fun full further gave general",
    "get gets getting give gives giving given glad go goes going gone gonna good got gotta great",
    "guess guys half happen happened happens happy hard hardly haven hasn hear heard hello help",
    "helped helps here herself hey hi himself hmm hold hope hopefully however huge idea if",
    "important indeed inspired instead into issue issues just keep keeps kept kind kinda knew know",
    "known knows large last late lately later latter learn least left less let lets like liked",
    "likely likes little long longer look looked looking looks lot lots love loved lovely loves",
    "made mainly make makes making many matter maybe mean means meant meet mention mentioned mind",
    "mine moment more most mostly much myself name named near nearly need needed needs neither",
    "never new newer next nice no nobody none nope nor normal not note nothing now nowhere number",
    "obviously off often oh ok okay old once one ones only onto other others otherwise ought out",
    "over own part particular perfect perhaps person place plan please plenty point possible",
    "possibly prefer prefers pretty previous probably problem proper put puts quickly quite rather",
    "ready real really reason recent recently remember right said same saw say saying says second",
    "see seem seemed seems seen self set several shall short show showed shows side simple simply",
    "since slowly small so some somebody somehow someone something sometimes somewhat somewhere",
    "soon sorry sort sound sounds special start started starts stay step still stop stuff such",
    "super sure take taken takes taking talk talked talking tell tells thank thanks then there",
    "therefore thing things think thinking third though thought through thus time times today",
    "together told tomorrow tonight too took total totally toward towards tried try trying turn",
    "turned turns two three type under unless unlike until up upon use used useful user uses using",
    "usual usually various very via wait wanna want wanted wants way ways week weeks well went",
    "whatever whenever wherever whether while whole without won wonder wonderful word words work",
    "worked working works worry worse worth wow wrong yeah year years yep yes yesterday yet",
    "agent assistant bot human system yours yourself decided agreed fixed chose selected true",
    "false",
    "day days month months hour hours minute minutes monday tuesday wednesday thursday friday",
    "saturday sunday january february march april june july august september october november",
    "december morning afternoon evening night weekend pm done able follow following",
    "add added allow allowed appreciate ask asked bet blessed care carry chance check chose choose",
    "consider continue couple create created creating cut deal discovered discuss discussed dream",
    "drop ensure expect explain explore face fall fit focus forget forgot grow handle having hit",
    "include involved join joined journey leave leaving lead lift live lived living load loads",
    "lucky",
    "manage met miss move moved moving notice offer open pass pick picked plus provide push",
    "raise ran reach reached realize realized receive refreshes relax run running sat save send",
    "sent",
    "settle share shared sharing spend spent staying stand started starting struggle suggest",
    "switch throughout thrilled totally treat truly trust understand wait waiting walk watch",
    "wish worth write wrote amazed best chase reminder cheer pushing hang hunt ideal",
    "aber alle als also am an auf aus bei bin bis bist das dass dein deine dem den der des dich",
    "die dies diese dir doch du durch ein eine einem einen einer eines er es euch für ganz gegen",
    "habe haben hast hat hatte hier ich ihm ihn ihr ihre im in ins ist ja jetzt kann kein keine",
    "können mal mehr mein meine meinem meinen mich mir mit muss nach nein nicht noch nur ob",
    "oder ohne schon sehr sein seine sich sie sind so soll über um und uns unser unsere unter viel",
    "vom von vor waren warum was weil wenn wer wie wir wird wo wurde zu zum zur heute morgen",
    "gestern wurden worden werden seit heiße heißt wohne wohnt arbeite arbeitet sondern",
    "entschieden beschlossen",
    "à alors après au aussi aux avec avez avons bien car ce cela ces cet cette chez comme dans de",
    "depuis des donc du elle elles en encore est et être eu fait il ils je la là le les leur lui",
    "mais me mes moi mon même ne nos notre nous on ont ou où par pas plus pour qu quand que qui sa",
    "sans se ses si son sont sous suis sur ta te tes toi ton tous tout très tu un une vos votre",
    "vous était aujourd hui demain hier non oui pourquoi avons avez décidé préfère aime",
    "al algo ante así aunque cada casi como con cual cuando del desde donde dos ella ellas ellos",
    "entre era es esa ese eso esta está estaba están este esto estos estoy fue ha han hasta hay la",
    "las lo los más me mi mis mucho muy nada ni nos nosotros nuestra nuestro nunca para pero poco",
    "por porque puede pues que qué quien se sea ser si sí siempre sin sobre son su sus también",
    "tanto tengo tiene todo todos tu un una uno usted ya yo hoy ayer mañana decidido decidimos",
    "prefiero gusta",
    "che chi ci con da dei del della di e è gli ha ho il io l ma mi nel non o per più se si sono",
    "su ti un da das do dos e em foi isso mais mas meu minha na não nas no nos nós o os ou para",
    "pela pelo por sem ser seu sua também tem um uma você",
    "а без бы был была были было быть в вам вас все всё вы где да для до его ее её если есть еще",
    "ещё же за и из или им их к как когда кто ли мне мой моя мы на над не него нее нет но ну о об",
    "он она они от по под при с со так также там тебя то тоже только ты у уже чем что чтобы это",
    "этот эта я сегодня завтра вчера меня был который решили решил",
)
NOT_TOPICS: Final = STOP_WORDS | _NEVER_TOPICS
