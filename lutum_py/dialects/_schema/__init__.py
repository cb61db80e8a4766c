"""The schema compiler: what of a JSON schema each provider takes, and what is lost."""
