"""What is text, what is a command to a terminal, and which of the two are svcctl's own."""

from support.hidden import HIDDEN

from svcctl.terminal.escapes import Styled, joined, shown, styled, visible


def test_text_of_strangers_is_shown_and_not_obeyed() -> None:
    assert visible("a\x1b[2Jb\nc\u202ed\u2028e\x85") == "a\\x1b[2Jb\\nc\\u202ed\\u2028e\\x85"
    assert visible("naïve 漢字 😀 [red]") == "naïve 漢字 😀 [red]"


def test_lines_of_text_keep_their_tabs_and_newlines_and_nothing_else_that_is_hidden() -> None:
    assert shown("a\tb\nc\rd\x7f\U000e0041") == "a\tb\nc\\rd\\x7f\\U000e0041"
    assert visible("a\tb\nc\rd\x7f\U000e0041") == "a\\tb\\nc\\rd\\x7f\\U000e0041"


def test_each_code_point_is_shown_as_it_is_or_as_an_escape() -> None:
    for code in range(0x110000):
        character = chr(code)
        assert (shown(character) == character) is (code not in HIDDEN or character in "\t\n"), hex(code)


def test_styles_stay_and_what_is_in_them_is_shown() -> None:
    line = joined("a\x1b[2J", styled(31, "b\x9b"), "\n")
    assert line == "a\\x1b[2J\x1b[31mb\\x9b\x1b[0m\n"
    assert shown(line) is line


def test_a_part_of_styled_text_is_a_strangers() -> None:
    line = styled(1, "heading")
    for text in (line[:4], line + "", line.strip(), f"{line}"):
        assert type(text) is str
        assert shown(text).startswith("\\x1b[1m")
    assert isinstance(line, Styled)
