"""`python -m sage` is the `sage` command."""

from sage.cli import main

if __name__ == "__main__":
    main()
