"""What counts as left behind and what does not; what must be caught is planted in ``tests/soundness/faults``."""

from __future__ import annotations

import os
import tempfile
import threading
import types
import warnings
from functools import cache
from pathlib import Path

from discreet.audit.files_left import watched_outside
from discreet.audit.fingerprints import fingerprint
from discreet.audit.left_behind import watched
from discreet.audit.module_globals import ModuleGlobals, own_modules
from tests.contracts.cases import make


def test_scratch_files_that_are_gone_and_files_that_are_read_have_told_nobody() -> None:
    Path("read.txt").write_text("public")
    with watched_outside() as outside:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "scratch").write_text("private")
        Path("read.txt").read_text()
        with open(os.devnull, "w") as nowhere:
            nowhere.write("private")
    assert outside.faults("fit") == []
    Path("later.txt").write_text("after the fit")
    assert outside.faults("fit") == []


def test_a_file_is_seen_under_the_name_that_it_has_in_the_end() -> None:
    with watched_outside() as outside:
        Path("half-written").write_text("private")
        os.replace("half-written", "whole")
    assert outside.faults("fit") == ["a fit left a file, which no release lists: whole"]


def test_threads_of_others_may_write_and_those_that_a_fit_starts_may_not() -> None:
    begin, done = threading.Event(), threading.Event()

    def other() -> None:
        begin.wait()
        Path("log of the program").write_text("public")
        done.set()

    threading.Thread(target=other).start()
    with watched_outside() as outside:
        begin.set()
        done.wait()
        own = threading.Thread(target=Path("by a thread").write_text, args=("private",))
        own.start()
        own.join()
    assert outside.faults("fit") == ["a fit left a file, which no release lists: by a thread"]


def test_what_modules_change_while_they_are_loaded_counts_the_second_time_alone() -> None:
    for again, faults in ((False, 0), (True, 1)):
        with watched("fit", make("gap", "edge"), again=again) as seen:
            warnings.filterwarnings("ignore", "a sentence")  # undone at the end: nobody else is to miss it
        assert len(seen.faults) == faults


def test_globals_of_modules_by_object_content_and_size_of_caches() -> None:
    module = types.ModuleType("somebodys")
    module.table, module.number, module.twice = {"rows": [1]}, 1, cache(lambda number: 2 * number)
    read = lambda: ModuleGlobals([module])  # noqa: E731
    assert read().apart_from(read()) == []
    for change in (
        lambda: module.table["rows"].append(2),
        lambda: setattr(module, "number", 2),
        lambda: module.twice(1),
        lambda: setattr(module, "fresh", None),
    ):
        before = read()
        change()
        assert len(read().apart_from(before)) == 1


def test_the_modules_of_a_method() -> None:
    names = [module.__name__ for module in own_modules([make("gap", "edge")])]
    assert {"builtins", "discreet.methods.gap.estimator", "discreet.methods.base"} <= set(names)
    assert not any(name.startswith("sklearn") for name in names)


def test_functions_are_the_same_where_they_close_over_the_same() -> None:
    def knowing(count: int) -> object:
        return lambda: count

    assert fingerprint(knowing(1)) == fingerprint(knowing(1))
    assert fingerprint(knowing(1)) != fingerprint(knowing(2))
