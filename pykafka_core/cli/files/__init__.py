"""Commands that read or repair the files of a data directory, without a broker."""
