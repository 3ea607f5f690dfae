import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's Java client as a child process. One record a line, fields parted by tabs, byte strings in base64 and null as "-":
 * partition (or "-"), timestamp, key, value, then name=value for each header.
 *
 * <pre>
 * produce BOOTSTRAP TOPIC [name=setting ...]      records from stdin; prints "partition offset timestamp" for each
 * consume BOOTSTRAP TOPIC COUNT [name=setting ...] the first COUNT records of all partitions, offset in front
 * </pre>
 */
public final class Driver {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "produce" -> produce(args[1], args[2], settings(args, 3));
            case "consume" -> consume(args[1], args[2], Integer.parseInt(args[3]), settings(args, 4));
            default -> throw new IllegalArgumentException(args[0]);
        }
        OUT.flush();
    }

    private static Map<String, Object> settings(String[] args, int from) {
        Map<String, Object> settings = new HashMap<>();
        for (int i = from; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        return settings;
    }

    private static void produce(String bootstrap, String topic, Map<String, Object> settings) throws Exception {
        settings.put("bootstrap.servers", bootstrap);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                sent.add(producer.send(parse(topic, line.split("\t", -1))));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                RecordMetadata metadata = one.get();
                OUT.println(metadata.partition() + " " + metadata.offset() + " " + metadata.timestamp());
            }
        }
    }

    private static ProducerRecord<byte[], byte[]> parse(String topic, String[] fields) {
        List<Header> headers = new ArrayList<>();
        for (int i = 4; i < fields.length; i++) {
            String[] pair = fields[i].split("=", 2);
            headers.add(new RecordHeader(pair[0], bytes(pair[1])));
        }
        Integer partition = fields[0].equals("-") ? null : Integer.valueOf(fields[0]);
        Long timestamp = fields[1].equals("-") ? null : Long.valueOf(fields[1]);
        return new ProducerRecord<>(topic, partition, timestamp, bytes(fields[2]), bytes(fields[3]), headers);
    }

    private static void consume(String bootstrap, String topic, int count, Map<String, Object> settings) {
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            int seen = 0;
            while (seen < count) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(30))) {
                    print(record);
                    seen++;
                }
            }
        }
    }

    private static void print(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder line = new StringBuilder();
        line.append(record.offset()).append('\t').append(record.partition()).append('\t').append(record.timestamp());
        line.append('\t').append(text(record.key())).append('\t').append(text(record.value()));
        for (Header header : record.headers()) {
            line.append('\t').append(header.key()).append('=').append(text(header.value()));
        }
        OUT.println(line);
    }

    private static byte[] bytes(String field) {
        return field.equals("-") ? null : Base64.getDecoder().decode(field);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
    }
}
