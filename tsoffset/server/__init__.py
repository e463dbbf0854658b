"""What `run` serves over HTTP (`application`): the REST API (`api`), its documentation, the metrics
and the status page, at the addresses of `listeners`; `guard` is what every request passes first."""
