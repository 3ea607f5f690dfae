"""``python -m pykafka_core``: runs the command ``pykafka-core``."""

from pykafka_core.cli import main

if __name__ == "__main__":
    main()
