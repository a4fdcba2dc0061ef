"""Completion in bash, which takes `a:b=c` for five words.

Owns bash's script and the putting together of its words. For zsh and fish, click's own scripts do.
"""

import os
from typing import Any, Final

from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

SCRIPT: Final = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local response completion type value

    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete $1)
    COMPREPLY=()
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == 'dir' ]]; then
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("$value")
            if [[ $value == *= ]]; then
                compopt -o nospace
            fi
        fi
    done 2> /dev/null
    return 0
}

%(complete_func)s_setup() {
    complete -o nosort -F %(complete_func)s %(prog_name)s
}

%(complete_func)s_setup;
"""


class WholeWords(BashComplete):
    """Words as the user sees them; answers from where bash's last word begins."""

    source_template = SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        words = split_arg_string(os.environ["COMP_WORDS"])
        at = int(os.environ["COMP_CWORD"])
        typed = [*words, ""][: at + 1]
        whole: list[str] = []
        joins = False
        for word in typed[1:]:
            if whole and (joins or _breaks(word)):
                whole[-1] += word
            else:
                whole.append(word)
            joins = _breaks(word)
        incomplete = whole.pop() if whole else ""
        last = "" if _breaks(typed[-1]) else typed[-1]
        self._before = incomplete.removesuffix(last)
        if incomplete.startswith("-"):  # --option=value: click completes the value alone
            self._before = self._before.partition("=")[2]
        return whole, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        value: Any = item.value
        return f"{item.type},{str(value).removeprefix(self._before)}"


def _breaks(word: str) -> bool:
    return word != "" and not word.strip(":=")


add_completion_class(WholeWords, "bash")
