"""Adapters of kopf, which follows Kueue's kinds while a RunQueue asks for Kueue."""
