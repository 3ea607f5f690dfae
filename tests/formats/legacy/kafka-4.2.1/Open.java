import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.Records;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * For each line `clean DIRECTORY` or `unclean DIRECTORY` of standard input: opens the partition as
 * Kafka 4.2.1 does after such a stop, reads it as the Java consumer does, and prints a line of JSON.
 */
public class Open {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int DAY_MS = 86_400_000;
    static final int FETCH_BYTES = 1 << 20;
    static final int RECORDS_MAX = 100_000;
    static final Map<String, String> SETTINGS = Map.of("internal.segment.bytes", "1000000", "retention.ms", "-1");

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);  // Kafka's own messages
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.split(" ", 2);
            answers.println(JSON.writeValueAsString(answer(new File(words[1]), words[0].equals("clean"))));
        }
        System.exit(0);
    }

    static ObjectNode answer(File directory, boolean isClean) {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode records = answer.putArray("records");
        answer.putNull("error");
        try {
            UnifiedLog log = open(directory, isClean);
            try {
                new Consumer(log, records).run();
            } finally {
                log.close();
            }
        } catch (Throwable error) {
            answer.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
        }
        ObjectNode sizes = answer.putObject("sizes");
        for (File file : files(directory)) sizes.put(file.getName(), file.length());
        return answer;
    }

    static File[] files(File directory) {
        File[] files = directory.listFiles(file -> file.getName().endsWith(".log"));
        Arrays.sort(files);
        return files;
    }

    static UnifiedLog open(File directory, boolean isClean) throws IOException {
        return UnifiedLog.create(directory, new LogConfig(SETTINGS), 0L, 0L, new Idle(), new BrokerTopicStats(),
            Time.SYSTEM, DAY_MS, new ProducerStateManagerConfig(DAY_MS, false), DAY_MS, new LogDirFailureChannel(1),
            isClean, Optional.empty());
    }

    /** The steps of `CompletedFetch`, from the log start offset to the log end offset. */
    static final class Consumer {
        private final UnifiedLog log;
        private final ArrayNode records;
        private long position;

        Consumer(UnifiedLog log, ArrayNode records) {
            this.log = log;
            this.records = records;
            this.position = log.logStartOffset();
        }

        void run() throws Exception {
            while (position < log.logEndOffset()) {
                long before = position;
                for (MutableRecordBatch batch : fetched().batches()) consume(batch);
                if (position == before)
                    throw new IllegalStateException("stuck at " + position + " of " + log.logEndOffset());
                if (records.size() > RECORDS_MAX) throw new IllegalStateException("endless");
            }
        }

        private MemoryRecords fetched() throws IOException {
            Records found = log.read(position, FETCH_BYTES, FetchIsolation.LOG_END, true).records;
            if (found instanceof MemoryRecords memory) return memory;
            ByteBuffer buffer = ByteBuffer.allocate(found.sizeInBytes());
            ((FileRecords) found).readInto(buffer, 0);
            return MemoryRecords.readableRecords(buffer);
        }

        private void consume(RecordBatch batch) throws Exception {
            batch.ensureValid();
            try (CloseableIterator<Record> rows = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
                while (rows.hasNext()) {
                    Record row = rows.next();
                    if (row.offset() < position) continue;
                    row.ensureValid();
                    if (!batch.isControlBatch()) records.addArray().add(row.offset()).add(fingerprint(row));
                    position = row.offset() + 1;
                }
            }
            position = Math.max(position, batch.nextOffset());
        }
    }

    /** The first bytes of the MD5 of timestamp, key and value; null has the length -1. */
    static String fingerprint(Record row) throws Exception {
        MessageDigest md5 = MessageDigest.getInstance("MD5");
        md5.update(ByteBuffer.allocate(8).putLong(0, row.timestamp()));
        for (ByteBuffer part : new ByteBuffer[] {row.key(), row.value()}) {
            md5.update(ByteBuffer.allocate(4).putInt(0, part == null ? -1 : part.remaining()));
            if (part != null) md5.update(part.duplicate());
        }
        return HexFormat.of().formatHex(md5.digest(), 0, 4);
    }

    /** Runs what is due at once, and nothing later. */
    record Idle() implements Scheduler {
        static final ScheduledExecutorService THREAD = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });

        public void startup() {
        }

        public void shutdown() {
        }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0 && delayMs == 0) task.run();
            return THREAD.schedule(() -> { }, 0, TimeUnit.MILLISECONDS);
        }

        public void resizeThreadPool(int size) {
        }
    }
}
