"""Capture of array programs: record Python while it runs, compile, replay behind guards."""
