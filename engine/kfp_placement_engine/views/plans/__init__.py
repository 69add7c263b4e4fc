"""Views of a plan: tables, sentences, drawings."""
