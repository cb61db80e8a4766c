"""The lock file: the tool schemas that a project has agreed on."""
