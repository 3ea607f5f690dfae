from tests.support.postgres import postgres_dsn as postgres_dsn
from tests.support.postgres import postgres_server as postgres_server
