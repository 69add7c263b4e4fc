"""Turns of phrase that a reader of English stumbles over, and what to write instead.

Most are translated word by word, from German above all. Each was found by reading this
repository's own comments, messages and documents.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.prose import passages


@dataclass(frozen=True)
class Turn:
    """A turn of phrase that is not used here.

    Attributes:
        pattern: regular expression that finds it; upper and lower case are the same.
        instead: words to write in its place.
        example: a sentence that has it.
    """

    pattern: str
    instead: str
    example: str


@dataclass(frozen=True)
class Finding:
    """A turn of phrase in a file."""

    path: Path
    line: int
    words: str
    turn: Turn

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: '{self.words}': write {self.turn.instead}"


TURNS = (
    # Negation.
    Turn(
        r"(?<!there )\b(?:is|are|was|were) no "
        r"(?!longer|more than|less than|later than|earlier|worse|better)",
        "'is not a' or 'has no'",
        "4x is no quantity",
    ),
    Turn(
        r"(?<!there )\b(?:is|are|was|were) (?-i:none)\b(?! of)",
        "what it is not: 'is not a time'",
        "InputError: it is none",
    ),
    Turn(r"(?<!there )\b(?:is|are) none of\b", "'is not one of'", "the node is none of ours"),
    Turn(
        r"\b(?:leads?|exists?|waits?|works?|holds?|counts?|fits?|needs?) no longer\b",
        "'no longer' before the verb",
        "this replica leads no longer",
    ),
    Turn(r"\bno more[.,;:)]", "'no longer', 'not ... again'", "then it asks us no more."),
    Turn(
        r"\b(?:know|lead|write|start|watch|note|open|tell|read|answer|begin) "
        r"(?:nothing|nobody)(?: yet)?[.,;:]",
        "'Nothing is started yet'",
        "Start nothing yet.",
    ),
    Turn(r"\bin vain\b", "'without success', 'no ... was found'", "the search was in vain"),
    Turn(r"\bfor nothing\b", "'is ignored'", "a bad value counts for nothing"),
    # Being and standing.
    Turn(
        r"\b(?:stand|stands|stood|standing) (?:in|at|on|there|twice|elsewhere|between|beside"
        r"|behind|under|above|below|outside|inside|alone|side|together|where)\b",
        "'is in', 'appears', 'comes'",
        "the rules stand in the policy",
    ),
    Turn(r"\bas (?:it stands|they stand)\b", "'as it is'", "the text as it stands there"),
    Turn(r"\bthat there (?:is|are)\b(?! no)", "'existing', 'all ...'", "the plans that there are"),
    Turn(
        r"\b(?:what|that|which) (?:is|are) there\b",
        "'exists', 'existing', 'present'",
        "what is there at the start",
    ),
    Turn(r"\bbears?\b", "'has', 'carries'", "the label that the node bears"),
    Turn(r"\b(?:is|are|was) well\b", "'is valid'", "only if the plan itself is well"),
    Turn(
        r"\b(?:has|have|of) (?:another|other) form\b",
        "'is malformed'",
        "InputError: the pod has another form",
    ),
    # Happening.
    Turn(
        r"\b(?:became|become|becomes) of\b(?! it or)",
        "'happened to', 'the outcome of'",
        "what became of the run",
    ),
    Turn(r"\banew\b", "'again'", "the run is planned anew"),
    Turn(r"\bonce more\b", "'again'", "the server checks it once more"),
    Turn(r"\bagain and again\b", "'repeatedly'", "it is read again and again"),
    Turn(r"\bone after the other\b", "'one after another'", "steps run one after the other"),
    Turn(r"\bat the latest so\b", "'at most ... after'", "it ends at the latest so long after"),
    Turn(r"\bceas(?:e|es|ed|ing)\b", "'stop'", "a replica that ceases to lead"),
    Turn(r"\bmend(?:s|ed|ing)?\b", "'fix'", "what only a restart mends"),
    Turn(r"\bsuffic(?:e|es|ed)\b", "'is enough'", "a moment suffices"),
    Turn(
        r"\bpass(?:es|ed|ing)? (?:it |them )?over\b(?! (?:to|the wire))",
        "'skip', 'ignore'",
        "a bad object is passed over",
    ),
    Turn(
        r"\b(?:going|goes?|went|gone) on from\b|\bgoes? out from\b",
        "'continue from', 'is based on'",
        "the plan that it goes on from",
    ),
    Turn(r"\b(?:goes|go|gone|went) by\b", "'uses', 'follows'", "what admission goes by"),
    Turn(
        r"\bby (?:itself|themselves)\b",
        "'on its own', 'automatically', 'separately'",
        "the process ended by itself",
    ),
    Turn(r"\b(?:is|are|be|was) won\b", "'gained'", "nothing is won by waiting"),
    Turn(r"\bwant of\b", "'lack of', 'because there is not enough'", "refused for want of room"),
    Turn(r"\bin earnest\b", "'actually', 'really'", "whether it runs in earnest"),
    Turn(r"\bin truth\b", "'actually'", "what the pod requests in truth"),
    Turn(r"\b(?:are|is|no|for|has) news\b", "'new', 'a change'", "logged when the reason is news"),
    # Saying and knowing.
    Turn(
        r"\b(?:is|are|was|were|be) told\b(?! apart)",
        "'is notified of', 'is called with', 'is given'",
        "the guard is told of every change",
    ),
    Turn(r"\btold of\b", "'notified of', 'reported'", "what the guard is being told of"),
    Turn(
        r"\bspeaks? (?:of|against)\b",
        "'refers to', 'is about', 'rules out'",
        "nothing speaks against the node",
    ),
    Turn(r"\bit is said\b|\bsay so is\b", "'reports', 'states'", "it is said in the log"),
    Turn(
        r"\b(?:look|looks|looked|looking|see|seen) whether\b",
        "'check whether'",
        "every second it is looked whether",
    ),
    Turn(
        r"\b(?:keep|keeps|kept) of\b(?! the order)",
        "'kept from', 'the part of ... that is kept'",
        "what is kept of a pod",
    ),
    Turn(
        r"\bwhere (?:nobody|nothing|it) (?:says|tells|is said)\b",
        "'unless specified'",
        "assumed where nobody says",
    ),
    Turn(r"\bcalled like\b", "'named like', 'has the same name as'", "a label called like a place"),
    Turn(r"\ba text\b", "'text', 'a string'", "the value must be a text"),
    # Who, whose, ours.
    Turn(
        r"(?:[.;] |\bfor )who (?:\w+s|has|must|may|can|could|does)\b"
        r"(?![^.]*\?)",
        "'whoever', 'anyone who', 'a step that'",
        "Runs wait; who comes first waits least",
    ),
    Turn(r"\bwhomever\b", "'anyone'", "submitted by whomever"),
    Turn(r": whose\b", "the noun: 'of which process'", "kind: whose."),
    Turn(r"\bof ours\b", "'our', 'one of our'", "a defect of ours"),
    Turn(r"\bof us\b", "'of our processes'", "whatever else of us is dead"),
    Turn(r"\bnobody's\b", "'that belongs to nobody'", "the epoch is nobody's"),
    # Measure and comparison.
    Turn(
        r"\b(?:an)?other (?:[\w'-]+ ){1,4}than\b",
        "'a node other than', 'not the'",
        "on another node than the planned one",
    ),
    Turn(
        r"(?<!for )\b(?:for|lasted|waited|longer|after) so long\b(?! as)",
        "'for this long', 'for that time'",
        "nothing has changed for so long",
    ),
    Turn(
        r"\bso (?:many|much)\b(?! (?:that|as|\w+ that))",
        "'this many', 'that much'",
        "so many nodes",
    ),
    Turn(r"\bcalled so\b", "'of that name'", "where no other step is called so"),
    Turn(r"\b(?:nested|lies|nests) (?:so|too|that) deep\b", "'deeply'", "nested too deep"),
    Turn(r"\bin all[.,;)]", "'in total'", "half a second in all."),
    Turn(r"\bbut for\b", "'except for'", "all nodes but for those that are full"),
    Turn(r"\bfor ever\b", "'forever'", "the pod waits for ever"),
    Turn(r"\bas (?:\w+) as may be\b", "'as ... as possible'", "as near as may be"),
    # Conditions and duties.
    Turn(r"\bbe it\b|\bbe they\b", "'even if', 'whether'", "be it empty"),
    Turn(
        r"\b(?:is|are|was|were) to be\b",
        "'must be', 'will be', 'should be'",
        "pods to go where it is to be",
    ),
    Turn(r"\bshall\b", "'must', 'should'", "what it shall compile for"),
    Turn(r"\bhad better\b", "'should', 'prefers'", "where the pod had better go"),
    Turn(r"\bwill not do\b", "'is not sufficient'", "the cluster or our rights will not do"),
    Turn(
        r"\b(?:so it is|that is so|not so) (?:too|where|when|if)\b",
        "'this also applies'",
        "so it is too where",
    ),
    Turn(r"\ball the same\b", "'anyway', 'still'", "the pod starts all the same"),
    Turn(r"\bgo(?:es)? before\b", "'takes precedence over'", "the policy's value goes before it"),
    Turn(
        r"\b(?:default|defaults|limits?|rule|tolerance|policy's) holds?\b(?! back)",
        "'applies', 'is in effect'",
        "without a policy the defaults hold",
    ),
    Turn(r"\bbelongs? into\b", "'must be in'", "the Secret belongs into the namespace"),
    Turn(r"\btakes? (?:\w+ ){1,5}along\b", "'also removes', 'brings'", "it takes the kinds along"),
    Turn(r"\bmeanwhile[.,;:)]", "'in the meantime'", "pods wait meanwhile."),
    Turn(r"\blacks?(?: there)?[.,;:)]", "'is missing', 'is not enough'", "what lacks there."),
)

_ALL = re.compile(
    "|".join(f"(?P<t{n}>{turn.pattern})" for n, turn in enumerate(TURNS)), re.IGNORECASE
)


def findings(path: Path) -> Iterator[Finding]:
    """The turns in the text of a file."""
    for passage in passages(path):
        for match in _ALL.finditer(passage.text):
            turn = TURNS[int(match.lastgroup[1:])]  # type: ignore[index]
            yield Finding(path, passage.line_at(match.start()), match[0].strip(), turn)
