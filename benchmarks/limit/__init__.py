"""How close the adapter comes to the limit of a broker and a connection."""
