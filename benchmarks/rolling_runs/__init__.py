"""Runs that arrive one after another whose steps do not take as long as planned."""
