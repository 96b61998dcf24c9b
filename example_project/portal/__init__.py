"""What does a site with django-catalog-fallback look like? One page that looks items up, one that breaks catalogs."""
