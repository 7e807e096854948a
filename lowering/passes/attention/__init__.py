"""Attention in a graph: products and a softmax between them as calls of attention."""
