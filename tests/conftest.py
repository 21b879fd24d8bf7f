"""For all tests."""

from hypothesis import settings

# A busy machine may take a second over what takes a millisecond: time is no property of the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
