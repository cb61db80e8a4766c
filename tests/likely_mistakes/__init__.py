"""The mistakes that a new user is most likely to make, each with the exact text that answers it.

This is the one place where these texts are tested: read them here, and fix them here.
"""
