"""How are the databases emptied between two tests? An app whose ``flush`` leaves what migrating has made."""
