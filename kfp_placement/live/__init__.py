"""What the live commands read, show and change; the API server is an argument.

`connection` is the way to it; `fetching`, `releasing` and `following` ask and write, everything
else makes views of plain dicts and text of views.
"""
