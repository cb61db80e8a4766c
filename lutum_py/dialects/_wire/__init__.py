"""What the dialects share in reading and writing: untrusted JSON, ids, names, replay, losses."""
