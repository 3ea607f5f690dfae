//! Kafka's wire protocol: frames, the table-driven codec and the hot messages by hand.
