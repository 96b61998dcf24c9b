"""Which other packages does this app work with? One file and one extra each; none is imported unless you do."""
