#!/usr/bin/env python
"""Palimpsest's commands. Each works on a fresh set-up: see memory_site/command_line.py."""

from memory_site.command_line import main

if __name__ == "__main__":
    main()
