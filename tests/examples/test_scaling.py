"""The table of threads: what fails a row, and one small program from end to end."""

import json

import numpy as np
import programs
import pytest
import scaling


def row(**seconds):
    return scaling.ScalingRow("p", "tiny", {int(t[1:]): s for t, s in seconds.items()})


def test_efficiency_is_over_the_fewest_threads():
    assert row(t1=8.0, t4=4.0).efficiency(4) == 0.5
    assert row(t2=8.0, t4=4.0).efficiency(4) == 1.0


def test_more_threads_may_not_be_slower():
    assert row(t1=1.0, t2=0.6, t4=0.62).verdict == "pass"  # within the slack
    assert row(t1=1.0, t2=0.6, t4=0.64).verdict == "FAIL slower on 4 threads"
    assert row(t1=1.0, t2=1.2, t4=1.1).verdict == "FAIL slower on 2, 4 threads"


def test_two_processes_may_not_be_in_each_others_way():
    found = row(t1=1.0, t2=0.6)
    found.beside = 0.95
    assert found.verdict == "pass"
    found.beside = 0.6
    assert found.verdict == "FAIL 0.60 side by side"


def test_sizes_of_a_server_are_those_of_the_programs():
    for title, sizes in scaling.SERVER.items():
        assert sizes.keys() == programs.load(title).SIZES["small"].keys()
    assert set(scaling.SERVER) == set(scaling.PROGRAMS)


def test_bits_may_not_depend_on_threads():
    ones = [np.ones(3, np.float32)]
    assert scaling.same_bits(ones, [np.ones(3, np.float32)])
    assert not scaling.same_bits(ones, [np.nextafter(ones[0], np.float32(2))])
    assert not scaling.same_bits([np.zeros(1)], [-np.zeros(1)])
    found = row(t1=1.0, t2=0.5)
    found.differs.append(2)
    assert found.verdict == "FAIL other bits on 2 threads"


def test_an_error_of_one_process_is_the_rows():
    def lost():
        raise scaling.WorkerError("gone")

    with pytest.raises(scaling.WorkerError, match="gone"):
        scaling.at_once([lambda: 1.0, lost])


def test_programs_are_twenty_that_exist():
    assert len(set(scaling.PROGRAMS)) == 20
    assert set(scaling.PROGRAMS) <= set(programs.names())


def test_programs_that_are_kept_apart_have_all_sizes():
    titles = scaling.titles_of(scaling.options(["--folder", "thread_programs"]))
    sizes = [scaling.folder_at("thread_programs").load(title).SIZES for title in titles]
    assert len(titles) == 10 and all({"tiny", "small", "server"} <= set(each) for each in sizes)


def test_a_program_is_measured_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(scaling, "machine", lambda counts: dict.fromkeys(counts, 1.0))
    out = tmp_path / "scaling.json"
    scaling.run(scaling.options(["--threads", "1", "--size", "tiny", "--only", "kalman",
                                 "--rounds", "1", "--out", str(out)]))  # fmt: skip
    record = json.loads(out.read_text())
    assert record["not_run"] == []
    assert record["rows"][0]["verdict"].startswith(("pass", "FAIL"))  # by the machine's load
    assert record["rows"][0]["efficiency"] == {"1": 1.0} and record["rows"][0]["beside"] > 0
    assert "kalman_smoother" in capsys.readouterr().out


def test_what_is_not_there_is_said():
    with pytest.raises(SystemExit, match="no program has that in its name"):
        scaling.run(scaling.options(["--only", "nothing"]))
