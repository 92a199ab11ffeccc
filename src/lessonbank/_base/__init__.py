"""What every room stands on: checks of arguments, files read and written safely, async and sync, plurals."""
