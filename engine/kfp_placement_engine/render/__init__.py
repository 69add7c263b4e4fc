"""Renderers of documents: text for terminals, HTML for pages and notebooks, SVG for drawings."""
