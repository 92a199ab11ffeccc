"""`python -m lessonbank.cli`: the same command without the script on the path."""

from . import main

main()
