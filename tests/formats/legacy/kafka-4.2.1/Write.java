import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.RecordVersion;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Carries out a plan (README.md) with the log of Kafka 4.2.1: message format 2, 1 or 0. */
public class Write {
    static final int DAY_MS = 86_400_000;
    static long now;
    static UnifiedLog log;

    public static void main(String[] args) throws Exception {
        BufferedReader plan = new BufferedReader(new InputStreamReader(System.in));
        for (String line = plan.readLine(); line != null; line = plan.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "clock" -> now = Long.parseLong(words[1]);
                case "open" -> open(words);
                case "append" -> append(words, plan);
                case "marker" -> marker(words);
                case "roll" -> log.roll();
                case "close" -> close();
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.exit(0);
    }

    static void open(String[] words) throws IOException {
        Properties settings = new Properties();
        for (int i = 2; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            String name = pair[0].equals("segment.bytes") ? "internal.segment.bytes" : pair[0];
            if (!name.equals("message.format.version")) settings.put(name, pair[1]);
        }
        File dir = new File(words[1]);
        dir.mkdirs();
        log = UnifiedLog.create(dir, new LogConfig(settings), 0L, Long.MAX_VALUE, new AtOnce(),
            new BrokerTopicStats(), new Clock(), DAY_MS, new ProducerStateManagerConfig(DAY_MS, false), DAY_MS,
            new LogDirFailureChannel(1), true, Optional.empty());
    }

    /** append CODEC MAGIC COUNT [PRODUCER-ID EPOCH SEQUENCE TRANSACTIONAL], then COUNT records. */
    static void append(String[] words, BufferedReader plan) throws Exception {
        byte magic = Byte.parseByte(words[2]);
        boolean idempotent = words.length > 4;
        MemoryRecordsBuilder records = new MemoryRecordsBuilder(new ByteBufferOutputStream(1 << 20), magic,
            Compression.of(words[1]).build(), magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME,
            0L, RecordBatch.NO_TIMESTAMP,
            idempotent ? Long.parseLong(words[4]) : RecordBatch.NO_PRODUCER_ID,
            idempotent ? Short.parseShort(words[5]) : RecordBatch.NO_PRODUCER_EPOCH,
            idempotent ? Integer.parseInt(words[6]) : RecordBatch.NO_SEQUENCE,
            idempotent && Boolean.parseBoolean(words[7]), false, RecordBatch.NO_PARTITION_LEADER_EPOCH, 1 << 20);
        int count = Integer.parseInt(words[3]);
        for (int n = 0; n < count; n++) {
            String[] record = plan.readLine().split(" ");
            long timestamp = magic == 0 ? RecordBatch.NO_TIMESTAMP : Long.parseLong(record[0]);
            records.append(timestamp, bytes(record[1]), bytes(record[2]));
        }
        log.appendAsLeaderWithRecordVersion(records.build(), 0, RecordVersion.lookup(magic));
        log.updateHighWatermark(log.logEndOffset());
    }

    static void marker(String[] words) throws IOException {
        ControlRecordType type = ControlRecordType.valueOf(words[3]);
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(0L, now, 0, Long.parseLong(words[1]),
            Short.parseShort(words[2]), new EndTransactionMarker(type, 0));
        log.appendAsLeader(records, 0, AppendOrigin.COORDINATOR, RequestLocal.noCaching(), VerificationGuard.SENTINEL,
            TransactionVersion.TV_0.featureLevel());
        log.updateHighWatermark(log.logEndOffset());
    }

    static byte[] bytes(String text) {
        return text.equals("null") ? null : HexFormat.of().parseHex(text.substring(1));
    }

    static void close() {
        log.flush(true);
        log.close();
    }

    record Clock() implements Time {
        public long milliseconds() {
            return now;
        }

        public long nanoseconds() {
            return now * 1_000_000;
        }

        public void sleep(long ms) {
            now += ms;
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    record AtOnce() implements Scheduler {
        static final ScheduledExecutorService IDLE = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });

        public void startup() {
        }

        public void shutdown() {
        }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0) task.run();
            return IDLE.schedule(() -> { }, 0, TimeUnit.MILLISECONDS);
        }

        public void resizeThreadPool(int size) {
        }
    }
}
