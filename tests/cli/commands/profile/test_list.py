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


def test_a_list_marks_the_profile_in_use_and_says_how_each_authorizes(shell: Shell) -> None:
    shell("profile", "set", "prod", "base_url=https://events.example.com", "token_file=t")
    shell("profile", "use", "prod")
    assert shell("profile", "list").stdout == (
        "name,used,auth,base_url\n"
        "prod,true,token,https://events.example.com\n"
        "local,false,signature,\n"
        "local-reseller,false,signature,\n"
    )
    assert shell("profile", "list", "-f", "table").stdout.split("\n")[2:4] == [
        "prod            *     token      https://events.example.com",
        "local                 signature  -",
    ]


def test_a_profiles_file_that_is_not_there_stops_only_what_needs_a_profile(shell: Shell) -> None:
    missing = str(shell.home / "none.yaml")
    listed = shell("profile", "list", SVCCTL_CONFIG=missing)
    note = f"svcctl: profiles file {missing} (SVCCTL_CONFIG) does not exist\n"
    assert (listed.returncode, listed.stdout.split("\n")[1]) == (0, "local,true,signature,")
    assert listed.stderr.startswith(note)
    (shell.home / "roles.yaml").write_text("{name: Watch, policies: [Search]}\n")
    linted = shell("role", "lint", "roles.yaml", SVCCTL_CONFIG=missing)
    assert (linted.returncode, "does not exist" in linted.stderr) == (0, True)
    asked = shell("--config", missing, "job", "list")
    assert (asked.returncode, missing in asked.stderr, "--config" in asked.stderr) == (2, True, True)
