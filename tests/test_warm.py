"""`vaiphy warm`: all methods are covered, what is compiled is told and kept, failures are explained."""

import pytest
from click.testing import CliRunner

from vaiphy import cli, warm
from vaiphy.errors import FailedError
from vaiphy.methods import METHODS


def test_every_method_has_its_tiny_analysis():
    assert {arguments.get("method") for arguments in warm.TASKS.values()} - {None} == set(METHODS)


@pytest.mark.slow
def test_cold_then_warm(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    heard = []
    (first,) = warm.warm(heard.append, 1, ("score",))
    assert first.number == len(heard) - 1 > 5
    assert [news.number for news in heard[:-1]] == list(range(1, len(heard)))
    assert all(news.number <= news.at_most for news in heard)
    assert "edges.optimise" in {news.kernel for news in heard}
    assert first.seconds > 0
    assert str(tmp_path) in first.cache
    (second,) = warm.warm(heard.append, 1, ("score",))
    assert (second.number, second.seconds) == (0, 0.0)


def test_a_failure_is_explained():
    with pytest.raises(FailedError, match="the tiny analysis 'nonsense' failed: KeyError: 'nonsense'"):
        warm.warm(lambda news: None, 1, ("nonsense",))


@pytest.fixture
def followed(monkeypatch):
    """Tasks that say a few words instead of working."""

    def follow(task, tell):
        for k in (1, 2):
            tell(warm.News(task, f"room.kernel{k}", k, 5))
        last = warm.News(task, "", 2, 2, True, 0.5, cache)
        tell(last)
        return last

    cache = "/somewhere"
    monkeypatch.setattr(warm, "_follow", follow)
    return follow


def test_what_the_command_says(followed):
    done = CliRunner().invoke(cli.main, ["warm", "-T", "1"])
    assert done.exit_code == 0
    assert "posterior: kernel 1 of at most 5: room.kernel1" in done.stderr
    assert "score: done, 2 kernels" in done.stderr
    assert f"compiled {2 * len(warm.TASKS)} kernels" in done.stderr
    assert "kept in /somewhere" in done.stderr
    assert CliRunner().invoke(cli.main, ["warm", "-q"]).stderr == ""


def test_no_place_to_keep_compiled_code(monkeypatch):
    monkeypatch.setattr(warm, "_follow", lambda task, tell: warm.News(task, "", 0, 0, True))
    done = CliRunner().invoke(cli.main, ["warm"])
    assert done.exit_code == 1
    assert "NUMBA_CACHE_DIR" in done.stderr
