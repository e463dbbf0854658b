"""How close the adapter comes to what a broker can give."""
