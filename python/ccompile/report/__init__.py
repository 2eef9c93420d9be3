"""What explain() returns: dataclasses (model) and their page (html)."""
