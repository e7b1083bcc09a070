"""Children are confined: output capped, deadline kept, nothing inherited, nothing left running."""

import os
import subprocess
import sys
import time
from pathlib import Path

from grader.sandbox import Limits, run

PYTHON = sys.executable


def test_output_beyond_the_cap_is_dropped_and_does_not_block(tmp_path):
    command = [PYTHON, "-c", "import sys; sys.stdout.write('x' * 3_000_000); sys.stderr.write('e')"]
    done = run(command, cwd=tmp_path, limits=Limits(output=1000))
    assert (done.returncode, len(done.stdout), done.stderr, done.truncated) == (0, 1000, "e", True)


def test_the_deadline_ends_the_whole_process_group(tmp_path):
    command = ["sh", "-c", "trap '' TERM; sleep 60 & echo $! > child; wait"]
    started = time.perf_counter()
    done = run(command, cwd=tmp_path, limits=Limits(wall=0.5))
    assert done.timed_out
    assert time.perf_counter() - started < 5
    child = int((tmp_path / "child").read_text())
    assert ends(child)


def test_a_child_in_a_process_group_of_its_own_ends_with_the_rest(tmp_path):
    code = """
import os, time
if os.fork() == 0:
    os.setpgid(0, 0)
    open("child", "w").write(str(os.getpid()))
time.sleep(60)
"""
    done = run([PYTHON, "-c", code], cwd=tmp_path, limits=Limits(wall=1.0))
    assert done.timed_out
    assert ends(int((tmp_path / "child").read_text()))


def ends(pid):
    """Whether a process that was sent SIGKILL is gone before long."""
    deadline = time.monotonic() + 5
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


def is_running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_grandchild_that_keeps_the_pipe_open_does_not_delay_the_end(tmp_path):
    started = time.perf_counter()
    done = run(["sh", "-c", "sleep 30 & exit 7"], cwd=tmp_path, limits=Limits(wall=20))
    assert done.returncode == 7
    assert time.perf_counter() - started < 5


def test_the_environment_and_the_descriptors_are_our_own(tmp_path, monkeypatch):
    monkeypatch.setenv("MODAL_TOKEN_SECRET", "secret")
    readable, writable = os.pipe()
    os.set_inheritable(writable, True)
    code = "import os; print(sorted(os.environ)); print(sorted(os.listdir('/proc/self/fd')))"
    done = run([PYTHON, "-I", "-c", code], cwd=tmp_path, limits=Limits())
    os.close(readable)
    os.close(writable)
    environment, descriptors = done.stdout.splitlines()
    assert environment == "['HOME', 'LC_ALL', 'PATH', 'TMPDIR']"
    assert descriptors == "['0', '1', '2', '3']"  # 3 is the listing of the folder itself


def test_a_program_that_allocates_without_end_meets_its_limit(tmp_path):
    code = "try:\n    x = bytearray(900_000_000)\nexcept MemoryError:\n    print('refused')"
    done = run([PYTHON, "-c", code], cwd=tmp_path, limits=Limits(data=500_000_000))
    assert done.stdout == "refused\n"


def test_a_file_cannot_grow_beyond_its_limit(tmp_path):
    ignore = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    code = f"{ignore}; open('big', 'wb').write(b'x' * 5_000_000)"
    done = run([PYTHON, "-c", code], cwd=tmp_path, limits=Limits(file_size=1_000_000))
    assert done.returncode != 0
    assert (tmp_path / "big").stat().st_size <= 1_000_000


def test_children_start_while_another_thread_is_inside_a_matrix_product(tmp_path):
    """A fork in that moment deadlocks in OpenBLAS's fork handler; the pipeline is in it in every grade."""
    code = """
import sys, threading
from pathlib import Path
import numpy as np
from grader.sandbox import Limits, run
stop = threading.Event()
matrix = np.ones((300, 300))
def multiply():
    while not stop.is_set():
        matrix @ matrix
thread = threading.Thread(target=multiply)
thread.start()
for _ in range(60):
    run(["true"], cwd=Path(sys.argv[1]), limits=Limits())
stop.set()
thread.join()
"""
    subprocess.run([PYTHON, "-c", code, str(tmp_path)], check=True, timeout=60)
