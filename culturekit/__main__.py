"""`python -m culturekit` is the same as `culturekit`."""

from culturekit.cli import main

if __name__ == "__main__":
    main()
