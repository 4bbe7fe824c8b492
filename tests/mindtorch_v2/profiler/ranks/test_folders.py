"""Folders of recordings as they are found: damaged, doubled, foreign and missing files, in any order, on any engine."""

import json
import shutil
from dataclasses import fields

import numpy as np
import pytest
from synthetic_job import Faults, SyntheticJob

from mindtorch_v2.profiler import load, ranks
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.formats import TraceError
from mindtorch_v2.profiler.ranks import digest_file
from mindtorch_v2.profiler.ranks.mapping import map_file, run_task
from mindtorch_v2.profiler.ranks.sources import find_sources


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A job of eight ranks on one host, rank 3 slower."""
    path = tmp_path_factory.mktemp("job")
    SyntheticJob(8, steps=4, events=300, faults=Faults(slow_rank=(3, 1.06))).save(path)
    return path


@pytest.fixture
def copied(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "job")
    return tmp_path / "job"


def test_digests_merge_in_any_order_and_number_to_the_same_bytes(folder, tmp_path):
    blocks, left_out = ranks.digest(folder, processes=1)
    assert not left_out
    whole = digest_file.write_digests(blocks)
    assert digest_file.write_digests(blocks[::-1]) == whole
    halves = [digest_file.write_digests(part) for part in (blocks[5:], blocks[:6], blocks[2:3])]
    assert digest_file.write_digests([block for half in halves for block in digest_file.read_blocks(half)]) == whole
    (tmp_path / "half1.mtranks").write_bytes(halves[0])
    (tmp_path / "half2.mtranks").write_bytes(halves[1])
    assert ranks.load(tmp_path, processes=1).to_json() == ranks.load(folder, processes=1).to_json()


def test_a_digest_is_the_same_from_columns_and_from_a_whole_recording(folder):
    """A damaged file is read whole; of an intact one only columns are. Both say the same."""
    from mindtorch_v2.profiler.ranks.recorded_rows import read_rows, rows_of_store
    from mindtorch_v2.profiler.results.loaded import load

    path = folder / "rank00002.mtp"
    with open(path, "rb") as file:
        columns = ranks.make_digest(read_rows(file, path.stat().st_size), "rank2.mtp")
    whole = ranks.make_digest(rows_of_store(load(path).store), "rank2.mtp")
    assert digest_file.encode(columns) == digest_file.encode(whole)


def test_what_does_not_fit_is_left_out_by_name(copied):
    (copied / "notes.txt").write_text("not a recording")
    (copied / "empty.mtp").write_bytes(b"")
    (copied / "other.json").write_text('{"traceEvents": []}')
    (copied / "zz_copy_of_rank00002.mtp").write_bytes((copied / "rank00002.mtp").read_bytes())
    whole = (copied / "rank00006.mtp").read_bytes()
    (copied / "rank00006.mtp").write_bytes(b"\x89MTPROF\n" + whole[8:40])
    answers = ranks.load(copied, processes=1)
    reasons = {entry.source: entry.reason for entry in answers.job.left_out}
    assert set(reasons) == {"notes.txt", "empty.mtp", "other.json", "zz_copy_of_rank00002.mtp", "rank00006.mtp"}
    assert reasons["empty.mtp"] == "the file is empty"
    assert reasons["zz_copy_of_rank00002.mtp"] == "rank 2 is there already: rank00002.mtp"
    assert "neither the recording" in reasons["other.json"]
    assert any("1 of 8 ranks are missing: 6" in note for note in answers.job.notes)
    assert [one.rank for one in answers.stragglers.slow] == [3]


def test_a_torn_file_is_read_as_far_as_it_goes_and_that_is_told(copied):
    whole = (copied / "rank00006.mtp").read_bytes()
    (copied / "rank00006.mtp").write_bytes(whole[: len(whole) * 9 // 10])
    answers = ranks.load(copied, processes=1)
    assert 6 in answers.job.ranks
    assert any(note.startswith("rank 6 (rank00006.mtp)") for note in answers.job.notes)


@pytest.mark.parametrize("ending", ["_ascend_pt", "_ascend_ms"])
def test_folders_of_ascend_are_recordings_of_ranks(tmp_path, ending):
    job = SyntheticJob(8, steps=6, events=300, faults=Faults(slow_rank=(3, 1.2)))
    job.save(tmp_path / "saved")
    (tmp_path / "job").mkdir()
    for rank in range(8):
        recording = load(tmp_path / "saved" / f"rank{rank:05d}.mtp")
        recording.export("ascend", tmp_path / "job" / f"host_{rank}{ending}")
    answers = ranks.load(str(tmp_path / "job"), processes=1)
    assert (answers.job.ranks.tolist(), answers.job.left_out) == (list(range(8)), [])
    assert [each.rank for each in answers.stragglers.slow] == [3]
    pattern = ranks.load(str(tmp_path / "job" / f"*{ending}"), processes=1)
    assert [each.rank for each in pattern.stragglers.slow] == [3]


def test_steps_that_do_not_match_are_told(folder):
    blocks, _ = ranks.digest(folder, processes=1)
    short = SyntheticJob(8, steps=3, events=300)
    blocks[5] = digest_file.encode(ranks.make_digest(short.rows(5), "rank00005.mtp"))
    job = ranks.merge(blocks)
    assert job.step_numbers.tolist() == [5, 6, 7]
    assert "steps do not match: 3 are on all ranks" in job.notes[0]


def test_a_recording_of_another_job_is_left_out(folder):
    blocks, _ = ranks.digest(folder, processes=1)
    other = SyntheticJob(16, steps=4, events=100)
    blocks[7] = digest_file.encode(ranks.make_digest(other.rows(9), "old/rank9.mtp"))
    job = ranks.merge(blocks)
    assert [(entry.source, entry.reason) for entry in job.left_out] == [
        ("old/rank9.mtp", "of a job of 16 ranks; the others are of 8")
    ]


def test_nothing_to_read(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(TraceError, match="no recording of a rank; 1 files were left out"):
        ranks.load(tmp_path, processes=1)
    with pytest.raises(FileNotFoundError):
        find_sources([str(tmp_path / "missing")])


def test_damaged_digests(folder, tmp_path):
    blocks, _ = ranks.digest(folder, processes=1)
    whole = bytearray(digest_file.write_digests(blocks))
    whole[-3] ^= 0xFF
    (tmp_path / "job.mtranks").write_bytes(whole)
    assert map_file("job.mtranks", str(tmp_path / "job.mtranks")).reason == "a digest is damaged"
    (tmp_path / "job.mtranks").write_bytes(whole[:-9])
    assert map_file("job.mtranks", str(tmp_path / "job.mtranks")).reason == "the last digest is torn"


def test_workers_of_another_version_are_refused(folder):
    from dataclasses import replace

    from mindtorch_v2.profiler.ranks import engines

    result = replace(run_task([]), version="0/0")
    with pytest.raises(engines.WorkerVersionError, match="install the same one"):
        list(engines._checked([result]))


def test_command(folder, tmp_path, capsys):
    assert main(["ranks", str(folder), "--json", "--processes", "1"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == 1
    assert [one["rank"] for one in answer["slow_ranks"]] == [3]
    assert main(["ranks", str(folder / "rank*.mtp"), "--fail"]) == 1
    assert "Rank 3 on host0000 is slow: computing" in capsys.readouterr().out
    target = tmp_path / "small.mtranks"
    assert main(["ranks", "digest", str(folder), "-o", str(target)]) == 0
    assert main(["ranks", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.partition("\n")[2])["slow_ranks"] == answer["slow_ranks"]
    assert main(["ranks", "diff", str(folder), str(target), "--fail"]) == 0
    assert "no evidence" in capsys.readouterr().out
    assert main(["ranks", str(tmp_path / "nowhere")]) == 3


def test_merged_trace_is_on_one_clock(tmp_path, capsys):
    job = SyntheticJob(16, steps=2, events=120)
    job.save(tmp_path / "job")
    target = tmp_path / "merged.json"
    assert main(["ranks", "merge", str(tmp_path / "job"), "-o", str(target), "--ranks", "0,8,15", "--steps", "6"]) == 0
    trace = json.loads(target.read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {event["pid"] for event in spans} == {0, 8, 15}
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert any(name.startswith("rank 8 on host0001 (clock within") for name in names)
    ends = [
        event["ts"] + event["dur"]
        for event in spans
        if event["args"].get("Process Group Name") == "world0" and event["args"]["Seq"] == 2
    ]
    assert len(ends) == 3
    assert max(ends) - min(ends) < 200  # us: exit jitter, where the clocks are most of a millisecond apart
    assert abs(job.offset[1]) > 5e5


def test_a_merged_trace_is_refused_where_nothing_connects_the_ranks(tmp_path, capsys):
    job = SyntheticJob(128, steps=1, events=20, world=False)
    job.save(tmp_path / "job", range(0, 128, 8))
    target = str(tmp_path / "merged.json")
    assert main(["ranks", "merge", str(tmp_path / "job"), "-o", target]) == 3
    assert "no collective connects these ranks" in capsys.readouterr().err
    assert main(["ranks", "merge", str(tmp_path / "job"), "-o", target, "--ranks", "0-63"]) == 0


def test_a_saved_recording_of_a_rank_tells_its_host(tmp_path):
    """Ranks of one host read one clock: the name says which they are."""
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler.results.loaded import load

    with torch.profiler.profile() as prof:
        torch.ones(2)
    prof.save(tmp_path / "alone.mtp")
    assert "host_name" not in load(tmp_path / "alone.mtp").store.metadata
    prof.add_metadata_json("distributedInfo", '{"rank": 3, "world_size": 8}')
    prof.save(tmp_path / "one.mtp")
    assert load(tmp_path / "one.mtp").store.metadata["host_name"]
    assert digest_file.decode(map_file("one.mtp", str(tmp_path / "one.mtp")).blocks[0]).host


def test_columns_that_ranks_share_are_decoded_once(monkeypatch):
    job = SyntheticJob(16, events=60)
    blocks = [digest_file.encode(ranks.make_digest(job.rows(rank), f"rank{rank}.mtp")) for rank in range(16)]
    columns = sum(len(names) for names in digest_file._COLUMNS.values())
    decoded = []
    decode = digest_file.coding.decode
    monkeypatch.setattr(digest_file.coding, "decode", lambda data, count: decoded.append(count) or decode(data, count))
    reader = digest_file.PartsReader()
    heads = [digest_file.read_head(block) for block in blocks]
    decoded.clear()
    together = [reader.read(block, head.counts) for block, head in zip(blocks, heads, strict=True)]
    assert len(decoded) < 16 * columns * 2 // 3
    for block, parts in zip(blocks, together, strict=True):
        alone = digest_file.decode(block)
        for part, kind in digest_file.PARTS.items():
            for column in fields(kind):
                assert np.array_equal(getattr(parts[part], column.name), getattr(getattr(alone, part), column.name))
