"""The table of patterns: words and constructions that plain technical English avoids.

Each pattern was measured on the documentation of other projects, and matches only in contexts in
which it is rare there. ``unless`` lists the ordinary uses of the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "comment", "doc", "sentence", "heading", "test name", "subject", "message"
]

ALL: frozenset[Kind] = frozenset(
    ("comment", "doc", "sentence", "heading", "test name", "subject", "message")
)
_TEXTS: frozenset[Kind] = ALL - {"heading"}
_NAMES: frozenset[Kind] = frozenset(("test name", "subject"))


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, with its ordinary uses and the advice of its findings."""

    name: str
    pattern: re.Pattern[str]
    advice: str
    unless: re.Pattern[str] | None  # a hit inside or next to such a match does not count
    kinds: frozenset[Kind]
    words: frozenset[str]  # a match contains one of them; empty: not known


@dataclass(frozen=True, slots=True)
class Hit:
    """A match of a rule in a text."""

    rule: Rule
    start: int
    end: int  # exclusive


_WORD = re.compile(r"[a-z]+")


def hits(text: str, kind: Kind) -> Iterator[Hit]:
    """Yield the hits in a paragraph, sentence or name, rule by rule.

    Its code must be masked and its lines joined with spaces.
    """
    words = _RULE_WORDS.intersection(_WORD.findall(text.lower()))
    for rule in _RULES_BY_KIND[kind]:
        if not rule.words or not rule.words.isdisjoint(words):
            yield from hits_of(rule, text)


def hits_of(rule: Rule, text: str) -> Iterator[Hit]:
    """Yield the hits of one rule, whatever its kinds and words are."""
    ordinary: list[tuple[int, int]] | None = None
    for match in rule.pattern.finditer(text):
        if ordinary is None:
            ordinary = [usual.span() for usual in rule.unless.finditer(text)] if rule.unless else []
        if not any(start < match.end() and match.start() < end for start, end in ordinary):
            yield Hit(rule, match.start(), match.end())


def _rule(
    name: str,
    pattern: str,
    advice: str,
    unless: str = "",
    *,
    words: str = "",
    kinds: frozenset[Kind] = _TEXTS,
) -> Rule:
    ordinary = re.compile(unless) if unless else None
    return Rule(name, re.compile(pattern), advice, ordinary, kinds, frozenset(words.split()))


_START = r"(?:^|(?<=[.;:!?] )|(?<=[(—])|(?<=[(—] ))"
"""The start of a sentence or clause."""

_END = r"(?=[.,;:)]|$)"

RULES: tuple[Rule, ...] = (
    _rule(
        "told",
        r"\b(?:[Tt]old|[Tt]ells?(?! (?:you|us|me)\b)|[Tt]elling)\b",
        "Name the act: notifies, reports, returns, fails with.",
        r"\b(?:can|can't|cannot|could|couldn't|to|not) tell (?:if|whether|that|which|from"
        r"|it from|how|when)\b"
        r"|\b[Tt]ell(?:s|ing)? (?:the (?:compiler|type checker|linter|interpreter)|`|apart)"
        r"|\b(?:[Tt]ell(?:s|ing)?|[Tt]old) (?:(?:the|an?|your|our|its) )?(?:users?|readers?|callers?"
        r"|operators?|administrators?|developers?|people|you|us|me)\b"
        r"|\b[Tt]ell(?:s|ing)? (?:pip|git|pytest|cargo|make|\W*[A-Z]\w+\W*) (?:to|that|which|how|where"
        r"|when|about)\b",
        words="told tell tells telling",
    ),
    _rule(
        "who",
        _START + r"[Ww]ho(?:m|ever|mever)? (?!should|is this|can use|may use)\w+"
        r"|\b(?:and|or|by|to|of|for|from|with|that|as|at|on|but|so|if|fails|wakes?|lets?|tells?"
        r"|knows|says|notes"
        r"|have|has|refuses?) who \w+|\b[Ww]ho(?:ever|m|mever)\b",
        "Name the subject: the client, the caller, the thread that ...",
        r"\b(?:and|or|but) who (?:is|are|has|have) (?:allowed|responsible)",
        words="who whom whoever whomever",
    ),
    _rule(
        "What ... as a subject",
        r"(?:^|(?<=[.;:] ))What (?![^.]*\?)(?!happens)\w[^?]*?(?:[.;:]|$)",
        "Start with a noun: the records that, the settings of, the bytes after.",
        r"What[’']s [Nn]ew",
        words="what",
    ),
    _rule(
        "what ... inside a sentence",
        r"\bwhat (?:is|was|are|were|has|had|comes?|came|waits?|follows?|remains|befalls?|others?"
        r"|one|no|may|must|clients?)\b"
        r"|(?<!\w)(?:in|of|by|from|with|than|behind|after|before|as|and|or) what \w+ (?:is|was"
        r"|has|had|did|does)\b",
        "Use a noun and a relative clause: the records that wait, the error that follows.",
        r"(?:see|know|knows|decide|decides|determine|determines|guess|check|clear|out|exactly|of"
        r"|say|specify|show|shows|tell|about) what (?:is|are|was|were)\b"
        r"|what (?:is|are|was|were) (?:the|this|going|called|happening|needed|expected"
        r"|allowed)\b|what [^.;]*\?",
        words="what",
    ),
    _rule(
        "of whom, behind which",
        r"\b(?:of|in|by|with|from|behind|to|at|on|for) whom\b|\bbehind which\b|\b(?:one|ones"
        r"|that|those) of which\b"
        r"|\bof which (?:a|an|no|nobody|somebody|nothing)\b",
        "Make two sentences, or use 'whose' or 'that' with a plain verb.",
        words="whom which",
    ),
    _rule(
        "of its own",
        r"\bof (?:its|their|his|one's|our|your|whose) own\b",
        "Write 'its own X' or 'a separate X'.",
        words="own",
    ),
    _rule(
        "is no X",
        r"\b(?:is|are|was|were|be|been|being) (?:no (?!\W)|none\b(?! of| other)|nobody\b"
        r"|nothing\b)",
        "Negate the verb: 'is not an X', 'is invalid', 'does not exist'.",
        r"\b[Tt]here(?: \w+){0,2} (?:is|are|was|were|be|been|being) (?:no|none|nothing)\b"
        r"|\b(?:Is|is|are|Are|was|were) there (?:no|nothing)\b"
        r"|\bno (?:longer|more than|less|fewer|better|worse|greater|larger|smaller|higher|lower|bigger|later"
        r"|earlier|limit|timeout|different|matter|way|guarantee|need|point|harm|exception|such)\b"
        r"|\b(?:is|are|was|were) nothing (?:to|left|more|but|wrong|in|else)\b"
        r"|\bif none\b",
        words="no none nobody nothing",
    ),
    _rule(
        "nobody, somebody",
        r"\b(?:[Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody)\b",
        "Name the component, or use the passive: 'is not awaited', 'another process'.",
        words="nobody somebody anybody everybody",
    ),
    _rule(
        "comes again, goes on",
        r"\b(?:comes? again|came again|goes on|go on|went on|comes? back|came back|comes? too early"
        r"|go(?:es)? away|went away|gone away)\b",
        "Write retries, continues, returns, disconnects, is deleted.",
        words="come comes came go goes went gone",
    ),
    _rule(
        "meanwhile",
        r"\b[Mm]eanwhile\b",
        "Write 'during X', 'concurrently' or 'until then', or leave it out.",
        words="meanwhile",
    ),
    _rule(
        "Has X do",
        r"(?:^|(?<=[.;] ))(?:Has|Have|Lets|Let) (?:(?:it|them|this|these|each|all|the|an?"
        r"|another|its|one|those)\b|`|\[)"
        r"[^.;]{0,40}? (?:\w+ed|written|taken|begun|run|done|made|put|read|sent|go|wait|join"
        r"|take|begin|write|give|leave"
        r"|know|do|be|have)\b",
        "Use a direct verb: 'Writes X', 'Waits for X', 'Allows X to ...'.",
        r"\bLet (?:`|us|me|the (?:user|caller))",
        words="has have let lets",
    ),
    _rule(
        "takes note, is given up",
        r"\b(?:[Tt]akes?|took|taken|taking) (?:note\b|in\b(?! (?:account|to account))|(?:it|them"
        r"|this|that|one|`\S+`) for\b)"
        r"|\b(?:is|are|was|were|be|been) taken for\b(?! granted)|\b(?:is|are|was|were|be"
        r"|been) given up\b"
        r"|\bgives? (?:it|them|those|`\S+`) up\b|\b[Gg]ives? up (?:all|the|its|what|those|an?|it"
        r"|records)\b",
        "Write records, accepts, treats as, is cancelled, is released.",
        r"\btakes? in (?:a|an|the|two|three|one|as) |\btakes? in `|\btime (?:it|they|this"
        r"|that) takes? (?:in|for)\b",
        words="take takes took taken taking given give gives",
    ),
    _rule(
        "beside",
        r"\b[Bb]eside\b",
        "Write 'next to', 'alongside' or 'in addition to'.",
        words="beside",
    ),
    _rule(
        "behind",
        r"\b[Bb]ehind\b",
        "Write 'after' for order; keep 'behind' for lag, as in 'lags behind the leader'.",
        r"\b[Bb]ehind (?:the scenes?|a (?:feature|flag|load|reverse|lock|reference|pointer|mutex|`)"
        r"|an? \w+ flag)"
        r"|\b[Bb]ehind (?:[\w*-]+ ){0,4}(?:\W*(?:prox(?:y|ies)|firewalls?|(?:load )?balancers?|gateways?"
        r"|routers?|poolers?|NAT|VPN|CDN|[Nn]ginx|NGINX|HAProxy|Envoy|Traefik|Caddy|Cloudflare"
        r"|PgBouncer)\b)"
        r"|\b(?:idea|ideas|rationale|reason|reasons|reasoning|motivation|logic|concept|intuition"
        r"|theory|math|magic) behind\b"
        r"|\b(?:leaves?|left|leaving|falls?|fell|fallen|falling|lags?|lagging|hidden|hides?|hide"
        r"|far|gated|guarded|live|lives|lie|lies)"
        r" (?:\w+ )?behind\b|\b(?:records?|messages?|offsets?|entries|seconds?|ms"
        r"|milliseconds) behind the leader\b",
        words="behind",
    ),
    _rule(
        "archaic phrase",
        r"\bbut for (?:the|what|its|an?|one|those|that|this|two|where|these|at|in|each|all"
        r"|`)[^.,;:]*(?:[.;]|$)"
        r"|\bsave for (?:the|what|its|one|those|that)\b|\b(?:may|might|can|could|is"
        r"|are) all the same (?:be|in|have)\b"
        r"|\b(?:order|committed|it|done|here|there|them|so|fails?|ends?|waits?) all the same"
        + _END
        + r"|\bfor good"
        + _END
        + r"|(?<!task )(?<!problem )(?<!one )\bat hand\b|\bas (?:it|they) stands?\b"
        r"|\bunder way\b|\bin vain\b|\bof late\b"
        r"|\banew\b|\bbefalls?\b|\bno more[.;:]|\bmay it be\b|\bbe it (?:that|a|the)\b"
        r"|\bsees? to it\b",
        "Use the common word: except, still, permanently, running, again, happens to.",
        words="but save same good hand stands stand way vain late anew befall befalls more be see sees",
    ),
    _rule(
        "is to do",
        r"\b(?:that|which|what|who|it|they|one|ones|nothing|`\S+`) (?:is|are|was"
        r"|were) to (?!\d)\w+",
        "Write 'must', 'should' or 'will'.",
        r"\b(?:is|are|was|were) to be (?:used|passed|called|taken|interpreted|treated|expected"
        r"|considered)\b"
        r"|\b(?:[Aa]ll|important|possible|easy|hard|do|does|how|likely|better|only"
        r"|thing) (?:\w+ )?(?:that|it|which|one) (?:is|was) to\b"
        r"|\bwhich is to (?:say|make|use)\b",
        words="to",
    ),
    _rule(
        "stands, lies",
        r"\b(?:stands?|stood)\b|\b(?:lies|lie|lay)\b",
        "Write 'is', or the fact: 'is stored in', 'is at offset N'.",
        r"\bstands? (?:for|out|up|in)\b|\bunderstands?\b|\b(?:lies?|lay|lying) (?:in|within"
        r"|between|outside|inside|on|along|above"
        r"|below|close|exactly|strictly|completely|entirely)\b|\blay(?:s|ing)? (?:out|the)\b"
        r"|\bstand-\w+|\bto stand\b",
        words="stand stands stood lie lies lay",
    ),
    _rule(
        "room",
        r"\b[Rr]ooms?\b",
        "Write capacity, space, memory or budget; a part of the code is a module.",
        r"\b(?:makes?|making|leaves?|leaving|enough|no|more|the) room (?:for|to|in|at|left)\b"
        r"|\b(?:chat|meeting|waiting) rooms?\b|\broom for\b",
        words="room rooms",
    ),
    _rule("begun", r"\b[Bb]egun\b", "Write 'started'.", words="begun"),
    _rule(
        "made of, comes to",
        r"\bwhat (?:\w+ ){0,4}(?:makes?|made|comes?|came|becomes?|became) of\b|\bbec(?:omes?"
        r"|ame) of (?:it|them|what|one|an?|the)\b"
        r"|\b(?:[Cc]omes?|came) to (?:no|nothing|the same|an end|another)\b|\b(?:goes|go) by\b(?! the name)"
        r"|\bsays? so\b|\bsaid so\b",
        "Write the result or the effect: the outcome of X, X becomes Y.",
        words="of to by so",
    ),
    _rule(
        "one that is not",
        r"\b(?:that|which|who|it) (?:is|are|was|were) (?:not (?:one|any)|another one|elsewhere"
        r"|none)\b"
        r"|\bone that is (?:there|gone|known|left|new|not)\b|\b(?:one|ones|those|that) (?:with"
        r"|without)"
        + _END
        + r"|\b(?:ones?|those|all|first|last|\w+s) there (?:is|are|was|were)"
        + _END,
        "Repeat the noun: 'an invalid batch', 'the current members'.",
        words="that which who it one ones those there",
    ),
    _rule(
        "none as a clause",
        r"[;,:] (?:none|nothing)\b(?: (?:if|of|for|where|in|once|while|without|at|until|before"
        r"|after)\b|[.,;]|$)"
        r"|[;:] none (?!of\b|taken\b)\w+|\b(?:for|with|by|from|to) none\b(?! of)",
        "Name what is missing, and the value: 'empty if there are no records', 'None without a leader'.",
        words="none nothing",
        kinds=_TEXTS - {"test name"},  # where it is a value
    ),
    _rule(
        "things that speak",
        r"\bthat (?:says?|said|knows?|asks?|asked) (?:what|how|who|which|whether|so|it)\b"
        r"|\b(?:lines?|records?|files?|logs?|tables?|settings?|answers?|errors?) (?:says?|knows?"
        r"|speaks?)\b"
        r"|\b(?:is|are|was|were|be|been) heard\b|\bwithout a word\b|\bno news\b"
        r"|\bthat lives?[.,;:]?(?= (?:knows?|asks?)|$)",
        "Give the action to code or to a person: logs, contains, describes.",
        words="say says said know knows ask asks asked speak speaks heard word news live lives",
    ),
    _rule(
        "what comes",
        r"[,;] (?:and|or|but) what\b(?! to\b)|\bof what (?!\w*(?:is|was|are|were|kind|type)\b)\w+"
        r"|[:;,] what (?:comes?|came|waits?|follows?|goes|went|others?|is|was|it|they|a|the)\b",
        "Name it: the requests that arrive, the records that follow.",
        r"what [^.;]*\?",
        words="what",
    ),
    _rule(
        "of ... after a colon",
        r": of (?:the|an?|its|one|those|each|all)\b",
        "Repeat the noun that 'of' belongs to.",
        words="of",
    ),
    _rule(
        "doc without a noun",
        r"^(?:As \[?`|The same\b(?! as)|Likewise\b|As (?:it|in|there|above"
        r"|given)\b[^.]{0,30}\.?$|Of (?!course)|See the module\b"
        r"|Whether (?:who|what|somebody|nobody|anybody|those|it is (?:there|none|one|so))\b"
        r"|Only in this\b|Itself\b)",
        "Start with the thing or the verb: 'Offset of', 'Returns', 'True if'.",
        kinds=frozenset(("doc",)),
    ),
    _rule(
        "who or what in a name",
        r"\b(?:what|who(?:m|ever)?)\b|^(?:one|ones|those) (?:that|who|which)\b",
        "Name the thing under test, then what it does: test_former_controller_does_not_retry.",
        words="what who whom whoever one ones those",
        kinds=frozenset(("test name",)),
    ),
    _rule(
        "stranded preposition",
        r"\b(?:of|for|from|by|to|at|about|behind|upon|than)[.]?$",
        "End with the object: 'disable fetch-ahead for slow logs'.",
        r"\b(?:opt|log|sign)\w* (?:in|out) to$",
        kinds=_NAMES,
    ),
    _rule(
        "possessive s",
        r"\b[a-z]+ s(?: |$)",
        "Name it without a possessive: session_belongs_to_its_owner.",
        kinds=frozenset(("test name",)),
    ),
)

_RULES_BY_KIND = {kind: tuple(rule for rule in RULES if kind in rule.kinds) for kind in ALL}
_RULE_WORDS = frozenset(word for rule in RULES for word in rule.words)
