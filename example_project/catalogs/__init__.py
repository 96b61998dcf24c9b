"""Which catalogs does the example ask? Four simulated HTTP APIs in one local server, standard library only."""
