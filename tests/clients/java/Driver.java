import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
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
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Utils;

/**
 * Kafka's Java client as a child process. One record per line, with fields separated by tabs, byte strings in base64
 * and null as "-": partition (or "-"), timestamp, key, value, then name=value for each header.
 *
 * <pre>
 * produce BOOTSTRAP TOPIC [name=setting ...]      records from stdin; prints "partition offset timestamp" for each
 * consume BOOTSTRAP TOPIC COUNT [name=setting ...] the first COUNT records of all partitions, each with its offset
 * partitions COUNT KEYS OUT                       for each key of a file: murmur2 among COUNT partitions
 * place BOOTSTRAP TOPIC KEYS OUT [name=setting ...] for each key of a file: the partition that the producer chose
 * </pre>
 *
 * A file of keys holds for each: 's' or 'b', a length and a text or bytes; 'i' and 4 bytes; 'l' and 8 bytes. Kafka's
 * serializer of the type creates its bytes. OUT gets an int for each key. All numbers are big-endian.
 */
public final class Driver {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "produce" -> produce(args[1], args[2], settings(args, 3));
            case "consume" -> consume(args[1], args[2], Integer.parseInt(args[3]), settings(args, 4));
            case "partitions" -> partitions(Integer.parseInt(args[1]), Path.of(args[2]), Path.of(args[3]));
            case "place" -> place(args[1], args[2], Path.of(args[3]), Path.of(args[4]), settings(args, 5));
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

    private static void partitions(int count, Path keys, Path out) throws Exception {
        try (DataOutputStream found = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(out)))) {
            for (byte[] key : keys(keys)) {
                found.writeInt(Utils.toPositive(Utils.murmur2(key)) % count);
            }
        }
    }

    private static void place(String bootstrap, String topic, Path keys, Path out, Map<String, Object> settings)
            throws Exception {
        settings.put("bootstrap.servers", bootstrap);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                    new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
                DataOutputStream found = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(out)))) {
            for (byte[] key : keys(keys)) {
                sent.add(producer.send(new ProducerRecord<>(topic, key, null)));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                found.writeInt(one.get().partition());
            }
        }
    }

    private static List<byte[]> keys(Path path) throws Exception {
        List<byte[]> keys = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(path)))) {
            for (int type = in.read(); type >= 0; type = in.read()) {
                keys.add(key(type, in));
            }
        }
        return keys;
    }

    private static byte[] key(int type, DataInputStream in) throws Exception {
        return switch (type) {
            case 's' -> new StringSerializer().serialize("", new String(sized(in), StandardCharsets.UTF_8));
            case 'b' -> sized(in);
            case 'i' -> new IntegerSerializer().serialize("", in.readInt());
            case 'l' -> new LongSerializer().serialize("", in.readLong());
            default -> throw new IllegalArgumentException("type " + type);
        };
    }

    private static byte[] sized(DataInputStream in) throws Exception {
        int size = in.readInt();
        byte[] bytes = in.readNBytes(size);
        if (bytes.length < size) {
            throw new EOFException("a key of " + size + " bytes");
        }
        return bytes;
    }

    private static byte[] bytes(String field) {
        return field.equals("-") ? null : Base64.getDecoder().decode(field);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
    }
}
