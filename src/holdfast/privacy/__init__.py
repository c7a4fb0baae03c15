"""What is promised: guarantees, conversions between kinds, and calibration."""
