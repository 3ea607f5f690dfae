"""One file per API that Python answers: request → records or commands, and the reply."""
