"""Where values live: how long, in whose memory, and at which offset of the arena."""
