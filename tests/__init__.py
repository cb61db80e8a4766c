"""The tests of lutum_py."""
