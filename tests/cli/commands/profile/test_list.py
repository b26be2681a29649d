"""`svcctl profile list`."""

from __future__ import annotations

from support.shells import Shell


def test_lists_are_selected_and_ordered_too(shell: Shell) -> None:
    for name in ("b", "a", "c"):
        shell("profile", "set", name, f"base_url=https://{name}.example")
    done = shell("profile", "list", "--sort", "base_url:desc", "--top", "2", "--columns", "name,base_url")
    assert (done.stdout, done.stderr) == ("name,base_url\nc,https://c.example\nb,https://b.example\n", "")
    done = shell("profile", "list", "--columns", "nam", "-f", "table")
    assert (done.returncode, "'name'? columns are: name, used, auth, base_url" in done.stderr) == (2, True)
