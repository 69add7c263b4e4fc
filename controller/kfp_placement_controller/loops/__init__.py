"""The threads that let others decide and act, again and again."""
