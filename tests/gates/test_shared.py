"""Two workers at one host: what they decoded stands, how fast does not."""

from evidence_for_tests import make_evidence

from analysis.gates import Evidence, check_all, publishable
from analysis.gates.shared import HostNotShared
from factories import make_life, make_run


def life(worker: int, host: int, minutes: tuple[int, int], name: str = "drafted-0"):
    started, ended = (f"2026-01-01T00:{minute:02d}:00+00:00" for minute in minutes)
    return make_life(
        id=name, worker=f"worker-{worker}", host=f"host-{host}", machine="test-2c", started=started, ended=ended
    )


def check(*lives):
    return list(HostNotShared().check(Evidence(run=make_run(), samples=(), lives=lives)))


def test_two_workers_at_one_host_at_once_claim_no_timings():
    (found,) = check(life(1, 1, (0, 10)), life(2, 1, (5, 15)))
    assert (found.level, found.where.kind) == ("refuse", "timing")
    assert found.saw == "host-1 served worker-1, worker-2 at once"


def test_two_hosts_are_two_hosts():
    assert not check(life(1, 1, (0, 10)), life(2, 2, (5, 15)))


def test_the_two_servers_of_one_worker_are_no_second_worker():
    assert not check(life(1, 1, (0, 10), "raw-0"), life(1, 1, (0, 10), "drafted-1"))


def test_a_worker_that_took_the_place_of_one_that_died_shared_nothing_with_it():
    assert not check(life(1, 1, (0, 10)), life(2, 1, (11, 15)))


def test_a_run_that_was_not_dealt_has_no_hosts_to_share():
    assert not check(make_life(), make_life(id="raw-0"))


def test_acceptance_stays_fit_to_publish():
    whole = make_evidence()
    shared = make_evidence(lives=(*whole.lives, life(1, 1, (0, 10), "a-2"), life(2, 1, (0, 10), "a-3")))
    assert "timing" in {found.where.kind for found in check_all(shared) if found.level == "refuse"}
    kept = [publishable(evidence.samples, check_all(evidence)) for evidence in (whole, shared)]
    assert kept[0] == kept[1]
    assert kept[0]
