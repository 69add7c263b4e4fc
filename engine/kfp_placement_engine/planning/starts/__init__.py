"""Which steps of a planned run may start now, while others wait for room kept for them."""
