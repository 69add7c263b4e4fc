"""When whole runs start; it calls no API, starts no thread and reads no clock."""
