"""What the SDK, the engine and the controller agree on: keys, hints, quantities.

Parts that are upgraded at different times talk through these names and values only, so nothing
here is ever renamed; fields are only added.
"""
