"""The configuration of other programs: how Thermocline is entered there, and taken out again."""
