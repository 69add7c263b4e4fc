"""Values of any form, for tests of what reads JSON that others have written."""

from hypothesis import strategies as st

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
"""Values that Python's `json` reads and writes, so not-a-number and infinity as well."""

ANY_FORM = st.sampled_from(
    [None, True, 3, -1.5, "", "x", [], [None], {}, {"name": "a"}, {"parameters": [{"name": 3}, 4]}]
)
"""Values of every form; drawn faster than made."""
