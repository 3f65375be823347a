"""Cases of posix-calls.py, by subject."""
