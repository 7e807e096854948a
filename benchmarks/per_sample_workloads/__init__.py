"""The models, the quantities and the peers of per_sample.py."""
