"""`python -m groundswell` runs the program."""

from groundswell._process import main

main()
