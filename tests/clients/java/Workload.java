import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.InvalidOffsetException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's Java client under faults, until stdin ends. Prints a line for each event, with fields separated by spaces.
 *
 * <pre>
 * list BOOTSTRAP TOPIC PARTITIONS SEED   an idempotent producer with acks=all numbers its records, a consumer follows:
 *                                        sent PARTITION VALUE; acked PARTITION OFFSET VALUE; failed VALUE ERROR;
 *                                        read PARTITION OFFSET VALUE; refused TEXT
 * copy BOOTSTRAP FROM TO GROUP           transactions that copy records, partition by partition, and commit offsets;
 *                                        ends when all is copied: copied COUNT for each transaction; refused TEXT
 * </pre>
 */
public final class Workload {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final int PATIENCE_MS = 90_000;
    private static final int CALL_MS = 20_000;
    private static volatile boolean isStopping;

    public static void main(String[] args) throws Exception {
        Thread stdin = new Thread(Workload::waitForEnd);
        stdin.setDaemon(true);
        stdin.start();
        switch (args[0]) {
            case "list" -> list(args[1], args[2], Integer.parseInt(args[3]), Long.parseLong(args[4]));
            case "copy" -> new Copier(args[1], args[2], args[3], args[4]).run();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (java.io.IOException ended) {
            // Treated as its end.
        }
        isStopping = true;
    }

    private static Map<String, Object> common(String bootstrap) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("reconnect.backoff.ms", 20);
        settings.put("reconnect.backoff.max.ms", 500);
        settings.put("request.timeout.ms", 5000);
        return settings;
    }

    private static KafkaProducer<String, String> producer(String bootstrap, Map<String, Object> own) {
        Map<String, Object> settings = common(bootstrap);
        settings.put("acks", "all");
        settings.put("linger.ms", 5);
        settings.put("delivery.timeout.ms", PATIENCE_MS);
        settings.putAll(own);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        Map<String, Object> settings = common(bootstrap);
        settings.put("group.id", group);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "none");
        settings.put("isolation.level", "read_committed");
        settings.put("session.timeout.ms", 3000);
        settings.put("heartbeat.interval.ms", 500);
        settings.put("fetch.max.wait.ms", 100);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static void list(String bootstrap, String topic, int partitions, long seed) throws Exception {
        Thread reader = new Thread(() -> follow(bootstrap, topic, partitions));
        reader.start();
        Random choice = new Random(seed);
        for (int life = 0; !isStopping; life++) {
            writeUntilOneFails(bootstrap, topic, partitions, "j." + life, choice);
        }
        reader.join();
    }

    /** After a failed record its successors are in doubt, so another producer, with another name, continues. */
    private static void writeUntilOneFails(String bootstrap, String topic, int partitions, String name, Random choice)
            throws InterruptedException {
        boolean[] hasFailed = new boolean[1];
        try (KafkaProducer<String, String> producer = producer(bootstrap, Map.of("enable.idempotence", "true"))) {
            for (int number = 0; !isStopping && !hasFailed[0]; number++) {
                int partition = choice.nextInt(partitions);
                String value = name + ":" + number;
                OUT.println("sent " + partition + " " + value);
                producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                    if (error == null) {
                        OUT.println("acked " + partition + " " + metadata.offset() + " " + value);
                    } else {
                        hasFailed[0] = true;
                        OUT.println("failed " + value + " " + error);
                    }
                });
                Thread.sleep(2);
            }
        } catch (KafkaException error) {
            OUT.println("failed " + name + " " + error);
        }
    }

    private static void follow(String bootstrap, String topic, int partitions) {
        List<TopicPartition> all = IntStream.range(0, partitions).mapToObj(at -> new TopicPartition(topic, at)).toList();
        try (KafkaConsumer<String, String> consumer = consumer(bootstrap, "java-follower")) {
            consumer.assign(all);
            all.forEach(partition -> consumer.seek(partition, 0));
            while (!isStopping) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    OUT.println("read " + record.partition() + " " + record.offset() + " " + record.value());
                }
            }
        } catch (InvalidOffsetException error) {
            OUT.println("refused " + error);
        }
    }

    /** Reads, copies and commits; after an error it restarts at the end of the last committed transaction. */
    private static final class Copier {
        private final String bootstrap;
        private final String from;
        private final String to;
        private final String group;
        private final KafkaConsumer<String, String> consumer;
        private KafkaProducer<String, String> producer;

        Copier(String bootstrap, String from, String to, String group) {
            this.bootstrap = bootstrap;
            this.from = from;
            this.to = to;
            this.group = group;
            this.consumer = consumer(bootstrap, group);
        }

        void run() {
            consumer.subscribe(List.of(from), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    rewind(partitions);
                }
            });
            while (!(isStopping && hasCopiedAll())) {
                try {
                    if (producer == null) {
                        begin();
                        rewind(consumer.assignment());
                    }
                    copy(consumer.poll(Duration.ofMillis(200)));
                } catch (InvalidOffsetException error) {
                    OUT.println("refused " + error);
                    return;
                } catch (KafkaException error) {
                    end();
                }
            }
            end();
            consumer.close();
        }

        /** Ends the open transaction of its predecessor. */
        private void begin() {
            Map<String, Object> own = Map.of("transactional.id", group, "transaction.timeout.ms", 20_000,
                "max.block.ms", CALL_MS);
            producer = producer(bootstrap, own);
            producer.initTransactions();
        }

        private void end() {
            if (producer != null) {
                producer.close(Duration.ZERO);
                producer = null;
            }
        }

        private void rewind(Collection<TopicPartition> partitions) {
            Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(Set.copyOf(partitions));
            for (TopicPartition partition : partitions) {
                OffsetAndMetadata found = committed.get(partition);
                consumer.seek(partition, found == null ? 0 : found.offset());
            }
        }

        private void copy(ConsumerRecords<String, String> records) {
            if (records.isEmpty()) {
                return;
            }
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
            for (ConsumerRecord<String, String> record : records) {
                producer.send(new ProducerRecord<>(to, record.partition(), null, record.value()));
                read.put(new TopicPartition(from, record.partition()), new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(read, consumer.groupMetadata());
            commit();
            OUT.println("copied " + records.count());
        }

        private void commit() {
            for (long until = System.currentTimeMillis() + PATIENCE_MS;;) {
                try {
                    producer.commitTransaction();
                    return;
                } catch (TimeoutException error) {
                    if (System.currentTimeMillis() > until) {
                        throw error;
                    }
                }
            }
        }

        private boolean hasCopiedAll() {
            try {
                Set<TopicPartition> assigned = consumer.assignment();
                Map<TopicPartition, Long> ends = consumer.endOffsets(assigned);
                return producer != null && !assigned.isEmpty()
                    && assigned.stream().allMatch(one -> consumer.position(one) >= ends.get(one));
            } catch (KafkaException error) {
                return false;
            }
        }
    }
}
