"""What all tests share."""

from __future__ import annotations

import os
import signal

from tests.profiles import load_profile

# Before the tests are imported: their own numbers of examples go by the profile.
load_profile()

# A shell starts what runs in the background deaf to Ctrl-C, and its children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Coverage is measured in the processes that run tests, not in those that tests start.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
