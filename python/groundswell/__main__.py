"""`python -m groundswell` is the program."""

from groundswell._process import main

main()
