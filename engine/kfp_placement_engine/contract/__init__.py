"""Names and forms that the SDK, the engine and the controller share: keys, hints, custom resources.

Parts that are upgraded at different times talk through these names and values only, so nothing
here is ever renamed; fields are only added.
"""
