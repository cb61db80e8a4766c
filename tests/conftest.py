"""What all tests share."""

from __future__ import annotations

import signal

from hypothesis import settings

# A slow machine is no fault of the code. The rest stays as hypothesis chose it for this place.
settings.register_profile("lutum_py", settings(), deadline=None)
settings.load_profile("lutum_py")

# A shell starts what runs in the background deaf to Ctrl-C, and its children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
