"""What does ``dev.py`` do, and how? Standard library only: it has to run before anything is installed.

``running`` starts programs, ``environments`` makes virtual environments, and the other modules are one command each.
"""
