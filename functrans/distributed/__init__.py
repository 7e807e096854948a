"""What connects the devices of a mesh: engines, which are imported when they are first used."""
