"""Contraction algebra: reductions of products that are never materialised."""
