"""Programs for a GPU as flat lists of steps, and as text."""
