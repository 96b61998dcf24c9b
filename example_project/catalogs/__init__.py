"""Which catalogs does the example ask? Eight simulated HTTP APIs in one local server, standard library only."""
