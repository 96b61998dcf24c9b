"""How fast is it, beside the floor below it and the peers next to it? ``python -m benchmarks`` measures and says."""
