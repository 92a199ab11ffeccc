"""Which commands weaken a check, destroy, or fetch and run: no lesson with one is shown before a person says yes."""

from __future__ import annotations

import re
from typing import Final

from lessonbank._base.patterns import compiled
from lessonbank.text.shell_commands import TELLS, unwrapped, words_of

CHECKS_LESS: Final = "it may check less"
"""What a cure says of itself that gave a check more words, where they may be why it passes."""
OUTPUT: Final = "the output"
"""What a cure rests on that the output of the failed command named: it is told where two runs had to find it out."""
RESULT: Final = "the result"
"""What a cure rests on where something else may have helped: it is told where it helped in a second run, too."""
_PATTERNS: Final = (
    # Destroys, or cannot be undone.
    r"\b(?:rm|rmdir|shred|unlink|mkfs\S*|dd|truncate|killall|pkill|kill|taskkill|reboot|shutdown|uninstall|"
    r"del|erase|rd|ri|Remove-Item\S*|Clear-\w+|Stop-(?:Process|Service|Computer))\s|"
    # Moves out of the way.
    r"\bmv\s[^`\n]*(?:\s(?:(?:/var)?/tmp|/dev/null|~|\$\{?(?:HOME|TMPDIR)\b)|"
    r"\.(?:bak|old|off|orig|disabled|skip\w*)\b)",
    r"\bgit\s.*(?:\breset\b|\bclean\b|\brestore\b|\bcheckout\s+(?:--\s|\.)|\bstash\s+(?:drop|clear)|\bbranch\s+-D|"
    r"\bpush\b.*(?:\s\+\S|--delete|--mirror)|\bfilter-branch\b|(?<!-)\brebase\b(?!\s+--continue)|\breflog\s+expire|\bgc\b|\brevert\b|"
    r"\badd\s+(?:-A\b|--all\b|\.(?=[\s`]|$)))",  # whatever lies there
    r"\b(?:drop|truncate)\s+(?:table|database|schema|index)\b|\bdelete\s+from\b|\b(?:dropdb|flushall|flushdb)\b",
    r"\b(?:docker|podman)\s.*(?:\bprune\b|\brm\b|\brmi\b|\bdown\b)|\bkubectl\s+delete\b|"
    r"\bterraform\s+destroy\b|\b(?:migrate|db)[:\s]+(?:reset|drop|rollback|fresh)\b|\bnpm\s+unpublish\b",
    # Forces, or takes rights.
    r"\boutside of the sandbox\b|"
    r"\s-force\b|\bforce-\w|(?:^|[\s`])(?:sudo|su|doas|chmod|chown|chgrp|setfacl|setenforce|icacls|takeown|runas)\s|"
    r"-ExecutionPolicy\b|\bRunAs\b|\s--(?:\w+-)*force(?:-\w+)*\b|"
    r"\bgit\b.*\s-\w*f\w*\b|\b(?:npm|pnpm|yarn|cargo|gem|pip)\b.*\s-f\b|\bln\s+-\w*f|\b(?:cp|mv)\s+-\w*f|"
    r"--(?:legacy-peer-deps|break-system-packages|privileged|unsafe-perm|allow-root|admin|yes-i-know\S*)\b",
    # Goes round a check.
    r"--no-(?:verify|check\S*|lint|test\S*|strict|audit|sandbox|gpg-sign|hooks?|fail\S*|error\S*|cov\S*|typecheck)\b|"
    r"\bgit\s+commit\b.*\s-\w*n\w*\b|--(?:skip|deselect|ignore|exclude|disable|omit|allow|bypass|suppress)(?:-\w+)*\b|"
    r"-DskipTests|-Dmaven\.test\.skip|\s-x\s+test\b|\bSKIP\w*=|\bHUSKY=0|\bNO_VERIFY=|\bCI=(?:0|false|\w+ git)\b|"
    r"--(?:insecure|no-warnings|force-exclude|continue-on-error|keep-going|pass-with-no-tests|passWithNoTests|lf|"
    r"last-failed|update-snapshots?|snapshot-update|accept|maxfail|warn-only|exit-zero|quiet-errors)\b|"
    r"\bpytest\b.*\s-(?:k|m)\b|\bjest\b.*\s-(?:u|t)\b|\bpre-commit\s+uninstall|\bset\s+\+e\b|\|\|\s*(?:true|:|exit\s+0)|"
    r"\bcurl\b.*\s-\w*k\b|\b(?:strict-ssl|sslVerify|http\.sslVerify|NODE_TLS_REJECT_UNAUTHORIZED|PYTHONHTTPSVERIFY)\b|"
    # Switches something off that checks, by a value or a word.
    r"--?[\w.-]+=(?:false|off|no|none|never|disabled?|warn|0)\b|"
    r"\b\w*(?:CHECK|VERIFY|STRICT|LINT|TEST|SSL|HOOK)\w*=(?:0|false|off|no)\b|"
    r"(?:^|[\s=:._-])ignore\b|\bbaseline\b|\b(?:alembic|flask db|db)\s+stamp\b|--fake\b|--applied\b|"
    r"--filter[\s=]\S*!|\s-A\s*clippy|"
    rf"{CHECKS_LESS}|"
    r"--(?:trusted-host|no-check-certificate)\b|\bgit\s+config\b|\bxfail\b|\bnoqa\b|@ts-ignore|\bas\s+any\b",
    # Fetches what the repository does not hold, or runs what it fetched.
    r"\w://(?!localhost\b|127\.0\.0\.1\b)|\bgit@|\|\s*(?:\S*/)?(?:ba|z|da|k|c)?sh\b|\|\s*(?:python|perl|ruby|node)|\beval\s|\bbase64\s|\bnc\s|"
    r"\b(?:curl|wget|ssh|scp|rsync|iwr|irm|iex|Invoke-(?:WebRequest|RestMethod|Expression))\s|\bprintenv\s+\w*(?:TOKEN|SECRET|KEY|PASSWORD)|\b\w*(?:TOKEN|SECRET|KEY|PASSWORD)=\S",
)
_HAZARD: Final = "|".join(f"(?:{pattern})" for pattern in _PATTERNS)
_MOST: Final = 2_000
_ADDS_TO_A_CHECK: Final = re.compile(
    r"-{1,2}(?:tags|features|all-features|import-mode|config|rootdir|workspace|project|filter|package|profile|env|"
    r"target|cwd|dir|prefix|no-cache|file|jobs|parallel|timeout|port|with|group|extra|python|[CfFjpvn])(?:[=\s].*)?"
)
"""Options with which a check looks at more, or elsewhere. Another one may be what makes it pass."""
_GUARDS: Final = re.compile(
    r"--?(?:[\w-]*-)?(?:lock|frozen|immutable|strict|verify|safe|error|deny|hash|gpg-sign|signoff|ff-only|audit)[\w=-]*|-[DW].*"
)
"""Options without which a command looks at less, or dares more."""
_OPTION: Final = re.compile(r"-(?!m$|-?(?:check|diff|dry-run)\b)")
"""An option; not one with which a program only tells what it would change."""
_SETS_A_PLACE: Final = re.compile(r"(?:TZ|LANG|LC_\w+|\w*(?:HOME|URL|PATH|HOST|PORT|CONFIG))=\S*")
_CHECKS_SOMETHING: Final = re.compile(
    r"\b(?:test|check(?!out)|lint|vet|audit|verify|validate|analy[sz]e|plan|diff|cov)"
)


def is_hazard(text: str, /) -> bool:
    """Whether a command, or a lesson that holds one, is of a kind that only a person may let out."""
    return len(text) > _MOST or bool(compiled(_HAZARD, re.IGNORECASE).search(text))


def may_loosen(failed: str, cure: str, /, *, is_check: bool) -> bool:
    """Whether other words for a command, such as for a check, may be what makes it pass."""
    known, before = words_of(failed), ""
    left_out = list(filter(_OPTION.match, {*known} - {*words_of(cure)}))
    if any(map(_GUARDS.fullmatch, left_out)):
        return True
    if not (is_check or (_CHECKS_SOMETHING.search(failed) and not TELLS.match(failed))):
        return False
    if not {*known} <= {*words_of(cure)}:
        return bool(left_out)
    for word in words_of(unwrapped(cure)):
        adds = _ADDS_TO_A_CHECK.fullmatch(word) or _ADDS_TO_A_CHECK.fullmatch(before)
        is_fine = word in known or _SETS_A_PLACE.fullmatch(word) or adds
        if not is_fine or (word not in known and "filter" in word and not cure.startswith("pnpm ")):
            return True
        before = "" if word in known else word
    return False
