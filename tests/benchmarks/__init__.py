"""What the library costs, against the same work by hand on pydantic alone."""
