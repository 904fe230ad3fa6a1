"""The configuration of other programs: entering Thermocline there, and removing it again."""
