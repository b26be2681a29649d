"""Completion answers the same whatever options its shell has, and leaves them as they were."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import ROOT
from support.shells import Shell, add_command

from svcctl.cli.completion.shells import SHELLS

NAMES = r"""
case "$*" in
*'complete language '*) printf 'status\t\nstartswith\tfunction\n' ;;
*'complete jobs') printf 'night_1\ta b\nnight_2\t\n' ;;
*'complete exports') printf 'nightly\tcsv\n' ;;
*'complete columns '*) printf 'friendlyName\t\n' ;;
*'complete profiles') printf 'prod\tthe real one\nprobe\t\n' ;;
esac
exit
"""
"""A command svcctl that knows names of several kinds."""

BASH = r"""
answer() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMP_TYPE=9
    _svcctl
    printf '%s ' "$@" =
    printf '<%s>' "${COMPREPLY[@]+"${COMPREPLY[@]}"}"
    echo
}
answers() {
    source "$script"
    answer svcctl query --fo
    answer svcctl query -F pl
    answer svcctl query -f ver
    answer svcctl query --format = ver
    answer svcctl query "'from auth.all where st"
    answer svcctl -p PR
    answer svcctl job show night_1 nig
    answer svcctl export verify ''
    answer svcctl api NOTHING --nope
}
script=$1
usual=$(answers 2>&1)
echo "$usual"
compare() { # a change, and the answers after it
    [[ $2 == "$usual"$'\nsame options' ]] || echo "after $1: $2"
}
changed() { # the answers, and whether the options are as before
    shopt -q nocasematch && shopt -s nocasematch || shopt -u nocasematch # BASHOPTS is as of the last shopt
    before=$BASHOPTS:$SHELLOPTS
    answers 2>&1
    [[ $BASHOPTS:$SHELLOPTS == "$before" ]] && echo same options
}
"""
SHOPTS = r"""
while read -r shopt change option; do
    [[ $change == -s ]] && change=-u || change=-s
    compare "shopt $change $option" "$(shopt "$change" "$option"; changed)"
done <<<"$(shopt -p)"
"""
SET = r"""
while read -r set change option; do
    case $option in noexec | onecmd | xtrace | verbose) continue ;; esac # with these, nothing can be completed
    [[ $change == -o ]] && change=+o || change=-o
    compare "set $change $option" "$(set "$change" "$option"; changed)"
done <<<"$(set +o)"
for locale in C C.UTF-8; do
    compare "LC_ALL=$locale" "$(export LC_ALL=$locale; changed)"
done
compare all "$(shopt -s nocasematch nullglob failglob dotglob nocaseglob extglob; set -euf -o posix -C; changed)"
"""
BASH_ANSWERS = """\
svcctl query --fo = <--format><--force><--follow>
svcctl query -F pl = <plain.q>
svcctl query -f ver = <vertical>
svcctl query --format = ver = <vertical>
svcctl query 'from auth.all where st = <from auth.all where status><from auth.all where startswith>
svcctl -p PR = <prod  (the real one)><probe>
svcctl job show night_1 nig = <night_2>
svcctl export verify  = <nightly  (csv)><a b.csv><plain.q>
svcctl api NOTHING --nope = <>
"""

ZSH = r"""
autoload -U compinit
compinit -u -D
# The parts of zsh that only work on a command line.
_describe() {
    local name
    local -a entries
    for name in "$@"; do
        [[ $name == (ending|going_on) ]] || continue
        entries=("${(@P)name}")
        entries=(${(M)entries:#${(b)PREFIX}*})
        print -rn -- "<${(j:><:)${entries[@]%%:*}}>"
    done
}
_files() { print -rn -- "<files${1:+ }$*>" }
compset() {
    local pattern=$argv[-1]
    [[ $PREFIX == ${~pattern}* ]] || return 1
    if (($# == 3)); then PREFIX=${PREFIX#${~pattern}}; else PREFIX=${PREFIX##${~pattern}}; fi
}
complete() {
    eval "$_comp_setup"
    local -A compstate=(quote "$quote")
    _svcctl || :
}
answer() {
    typeset -g words=("$@") CURRENT=$# PREFIX=${argv[-1]#\'} quote=${(M)argv[-1]#\'}
    print -rn -- "$* = "
    complete
    print
}
answers() {
    answer svcctl query --fo
    answer svcctl query -F pl
    answer svcctl query --format=ver
    answer svcctl query "'from auth.all where st"
    answer svcctl job show night_1 nig
    answer svcctl export verify ''
    answer svcctl api GET /dom
}
script=$1
source $script
usual=$(answers 2>&1)
print -r -- $usual
compare() { [[ $2 == $usual ]] || print -r -- "after $1: $2" }
for option in ${(ok)options}; do
    case $option in
    exec | singlecommand | onecmd | xtrace | verbose | sourcetrace) continue ;; # with these, nothing can be completed
    interactive | shinstdin | stdin | restricted | privileged | login | monitor | zle) continue ;; # these cannot change
    warncreateglobal | warnnestedvar) continue ;; # they concern this test
    esac
    [[ $options[$option] == on ]] && change=unsetopt || change=setopt
    compare "$change $option" "$($change $option; answers 2>&1)"
    compare "$change $option, read again" "$(
        unfunction -m '_svcctl*'
        $change $option
        source $script 2>&1
        emulate zsh
        answers 2>&1
    )"
done
compare LC_ALL=C "$(export LC_ALL=C; answers 2>&1)"
"""
ZSH_ANSWERS = """\
svcctl query --fo = <--format><--force><--follow>
svcctl query -F pl = <files>
svcctl query --format=ver = <vertical>
svcctl query 'from auth.all where st = <status><startswith>
svcctl job show night_1 nig = <night_2>
svcctl export verify  = <nightly><files -F (*/|).*.export>
svcctl api GET /dom = </domain></domain/>
"""

FISH = r"""
source $argv[1]
for line in 'query --fo' 'query -F pl' 'query --format=ver' 'job show night_1 nig' 'api GET /dom'
    echo "$line =" (complete -C "svcctl $line" | string split -f 1 \t)
end
"""
FISH_ANSWERS = """\
query --fo = --follow --force --format
query -F pl = plain.q
query --format=ver = --format=vertical
job show night_1 nig = night_2
api GET /dom = /domain /domain/
"""


@pytest.fixture
def folder(shell: Shell) -> Path:
    """A folder with two files, a command svcctl and nothing else."""
    (shell.home / "files").mkdir()
    for name in ("a b.csv", "plain.q"):
        (shell.home / "files" / name).touch()
    add_command(shell.home, NAMES)
    return shell.home


def answers(shell: str, folder: Path, *command: str, **variables: str) -> str:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    environment = {"HOME": str(folder), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
    script = str(ROOT / "completions" / SHELLS[shell].file_name)
    done = subprocess.run(
        [shell, *command, script],
        cwd=folder / "files",
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("options", [SHOPTS, SET], ids=["shopt", "set"])
def test_bash_completes_the_same_with_every_option_changed(folder: Path, options: str) -> None:
    assert answers("bash", folder, "-c", BASH + options, "bash") == BASH_ANSWERS


@pytest.mark.slow
def test_zsh_completes_the_same_with_every_option_changed(folder: Path) -> None:
    assert answers("zsh", folder, "-f", "-c", ZSH, "zsh") == ZSH_ANSWERS


@pytest.mark.parametrize("features", ["all", "no-regex-easyesc", "qmark-noglob"])
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_fish_completes_the_same_with_other_features_and_locales(folder: Path, features: str, locale: str) -> None:
    command = ("--no-config", f"--features={features}", "-c", FISH)
    assert answers("fish", folder, *command, LC_ALL=locale) == FISH_ANSWERS
