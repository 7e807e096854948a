"""What each primitive is in the loop language: tables from primitives to tensors."""
