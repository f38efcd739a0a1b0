"""The rules for one sentence: its opening and its length.

A *headless* sentence opens with a relative clause or with a pronoun that stands for a noun left out.
The rules read words only. They know no grammar beyond the lists below.
"""

from __future__ import annotations

import re

WORDS_MAX = 30
WORDS_AIM = 25

# A word has a letter or a digit. Hyphens, apostrophes, dots and slashes join parts of one word.
WORD = re.compile(r"[^\W_](?:[\w'’./,:%-]*[\w%])?")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LEADING = _words("and but or so yet also only just even not")
_RELATIVE = _words("what who whom whose whoever whomever whosever whatever whichever which")
_PREPOSITIONS = _words(
    "about above after against among at before behind below beneath beside between beyond by during for from in "
    "inside into near of off on onto out outside over per since than through to toward towards under until up upon "
    "with within without"
)
# A pronoun before one of these is the whole subject: "Those that came late", "All who asked".
_RELATIVE_STARTS = _words("that who whom whose which")
_PRONOUNS = _words("those that they he she all any none some each many few most both neither either one ones")
_THAT_PRONOUN_STARTS = _words("which who of")  # "That who" is rare, "that that" and "that one" are determiners
# "Those in doubt" leaves its noun out; "Those servers" and "Those are" do not.
_THOSE_STARTS = _RELATIVE_STARTS | _PREPOSITIONS | _words("not still already yet it they we you")
# After a comma these words go on with the clause before it; a main clause does not open with them.
_CONTINUES = _words(
    "and or but nor that which who whom whose where when while as if though although because so than such unless "
    "until like whether how whatever whoever whichever too having being including"
)
# After a comma and a preposition, one of these shows a main clause: "When it fails, in most cases it tries again".
_CLAUSE_WORDS = _words(
    "it they he she we you i this these is are was were be been has have had does do did can cannot could may might "
    "must will would shall should"
)
_PARENTHESES = re.compile(r"\([^()]*\)")
_QUOTED = re.compile(r"\s*[\"“‘']")
_TASK = re.compile(r"(?:(?:what|who|whom|where|which \w+) to \w|when )", re.IGNORECASE)  # in headings


def is_headless(sentence: str, is_heading: bool = False) -> bool:
    """`sentence` has its code spans masked. A question is never headless, nor is a sentence about a quoted word.

    A heading may name a task or a case: "Where to look", "When the disk is full".
    """
    is_question = sentence.rstrip(" \"')]*_”’").endswith("?")
    if is_question or _QUOTED.match(sentence) or (is_heading and _TASK.match(sentence)):
        return False
    words = [word.lower().replace("’", "'") for word in WORD.findall(sentence)]
    if len(words) > 1 and words[0] in _LEADING:
        words = words[1:]
    if not words:
        return False
    return _opens_headless(words) or (words[0] in ("where", "when") and _is_noun_clause(sentence))


def _opens_headless(words: list[str]) -> bool:
    first, second = words[0].rstrip(",:"), words[1] if len(words) > 1 else ""
    if first in _RELATIVE or first in ("what's", "who's"):
        return True
    if first == "of":
        return second not in ("", "course")
    if first in _PREPOSITIONS and second in _RELATIVE:
        return True
    if first == "those":
        return second in _THOSE_STARTS
    if first == "that":
        return second in _THAT_PRONOUN_STARTS
    return first in _PRONOUNS and second in _RELATIVE_STARTS


def _is_noun_clause(sentence: str) -> bool:
    """Whether a clause with "where" or "when" stands alone, or is itself the subject.

    "When the disk is full, the server stops" has a main clause after its comma; "Where the next byte goes" has none.
    """
    clause = re.split(r";\s|:\s(?!then\b)", _PARENTHESES.sub("", sentence))[0]
    return not any(_is_main_clause(part) for part in re.split(r",\s|\s[—–]\s|:\s", clause)[1:])


def _is_main_clause(part: str) -> bool:
    words = [word.lower() for word in WORD.findall(part)]
    if not words or words[0] in _CONTINUES:
        return False
    if words[0] not in _PREPOSITIONS:
        return True
    return words[1:2] != [] and words[1] not in _RELATIVE and any(word in _CLAUSE_WORDS for word in words)


def length(sentence: str) -> int:
    """Words of a sentence whose code spans are masked: each span is one word."""
    return len(WORD.findall(sentence))
