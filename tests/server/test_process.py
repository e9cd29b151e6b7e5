"""Long-running servers and the C library's allocator."""

import platform
import subprocess
import sys

import pytest

# Every thread keeps a block that is too large for Python's own allocator; the C library says in
# how many arenas they lie.
PROGRAM = """
import ctypes, sys, threading
from sage.server.process import keep_one_arena

if "limited" in sys.argv:
    assert keep_one_arena()
together, done = threading.Barrier(9), threading.Event()

def hold():
    block = bytearray(2_000)
    together.wait()
    done.wait()

threads = [threading.Thread(target=hold) for _ in range(8)]
for thread in threads:
    thread.start()
together.wait()
ctypes.CDLL(None).malloc_stats()
done.set()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="UNTESTED: not the GNU C library")
@pytest.mark.parametrize(("mode", "one"), [("limited", True), ("as it comes", False)])
def test_threads_share_one_arena(mode: str, one: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode], capture_output=True, check=True, text=True
    )
    assert (done.stderr.count("Arena ") == 1) is one


# Blocks between others that stay: the C library cannot give them back from the end of its heap.
FREED = """
from pathlib import Path
from sage.server.process import give_back_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

blocks = [bytearray(9_000) for _ in range(6_000)]
kept = blocks[::500]
del blocks
before = resident()
assert give_back_memory()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="UNTESTED: not the GNU C library")
def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, check=True, text=True)
    assert int(done.stdout) > 5_000  # pages, of about 13,000
