from analysis.launch.arrivals import HELD, Arrivals


def lines(arrivals, **how):
    return [line for _, line in arrivals.lines(**how)]


def test_a_line_may_come_in_pieces_even_of_a_character():
    arrivals = Arrivals()
    whole = "data: café\r\n\ndata: 2".encode()
    for byte in whole:
        assert not arrivals.add(bytes([byte]))
    assert lines(arrivals) == ["data: café\r", ""]
    arrivals.add(b"3")
    assert lines(arrivals) == []
    assert lines(arrivals, last=True) == ["data: 23"]
    assert lines(arrivals, last=True) == []


def test_a_line_has_the_moment_its_end_came(monkeypatch):
    moments = iter((1.0, 2.0, 3.0))
    monkeypatch.setattr("time.perf_counter", lambda: next(moments))
    arrivals = Arrivals()
    for chunk in (b"a", b"b\nc", b"\nd"):
        arrivals.add(chunk)
    assert list(arrivals.lines()) == [(2.0, "ab"), (3.0, "c")]


def test_more_than_is_held_is_to_be_read():
    arrivals = Arrivals()
    assert not arrivals.add(b"x" * HELD)
    assert arrivals.add(b"\n")
    assert lines(arrivals) == ["x" * HELD]
    assert not arrivals.add(b"y")
