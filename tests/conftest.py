"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A slow machine is no fault of the code. The rest stays as hypothesis chose it for this place.
settings.register_profile("lutum_py", settings(), deadline=None)
settings.load_profile("lutum_py")
