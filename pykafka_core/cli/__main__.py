"""``python -m pykafka_core.cli`` does the same as the command ``pykafka-core``."""

from pykafka_core.cli import main

if __name__ == "__main__":
    main()
