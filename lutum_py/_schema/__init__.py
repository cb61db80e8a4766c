"""Functions and models become schemas, arguments become values, outputs become JSON."""
