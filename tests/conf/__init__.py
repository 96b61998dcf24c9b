"""Are the settings read as the contract says?"""
