"""Do the system checks say what is wrong, and nothing else?"""
