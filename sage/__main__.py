"""`python -m sage` is the `sage` command."""

import sys


def main() -> None:
    """Run the command line. A hook runs on every prompt: it does not pay for the other commands."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
        from sage.hooks.command import main as hook

        hook(sys.argv[2:])
    else:
        from sage.cli.main import main as command

        command()


if __name__ == "__main__":
    main()
