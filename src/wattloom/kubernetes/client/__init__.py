"""An API server over the wire: connections, credentials, typed calls, watches, events and the election of a leader."""
