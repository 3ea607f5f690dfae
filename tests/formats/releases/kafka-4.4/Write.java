import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Carries out a plan with the log of Kafka 4.3 or 4.4. */
public class Write extends Plan {
    static final int DAY_MS = 86_400_000;
    private UnifiedLog log;

    public static void main(String[] args) throws Exception {
        new Write().carryOut();
    }

    void open(File directory, Properties settings) throws IOException {
        settings.setProperty("internal.segment.bytes", (String) settings.remove("segment.bytes"));
        log = UnifiedLog.create(directory, new LogConfig(settings), 0L, 0L, new AtOnce(), new BrokerTopicStats(),
            new Clock(), DAY_MS, new ProducerStateManagerConfig(DAY_MS, false), DAY_MS, new LogDirFailureChannel(1), true,
            Optional.empty());
    }

    void append(String codec, Producer producer, Row[] rows) throws Exception {
        MemoryRecordsBuilder records = new MemoryRecordsBuilder(ByteBuffer.allocate(1 << 16), RecordBatch.MAGIC_VALUE_V2,
            Compression.of(codec).build(), TimestampType.CREATE_TIME, 0L, RecordBatch.NO_TIMESTAMP, producer.id(),
            producer.epoch(), producer.sequence(), producer.isTransactional(), false,
            RecordBatch.NO_PARTITION_LEADER_EPOCH, 1 << 16);
        for (Row row : rows) records.append(row.timestamp(), row.key(), row.value(), row.headers());
        write(records.build(), AppendOrigin.CLIENT);
    }

    void marker(long id, short epoch, String type) throws IOException {
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(0L, now, 0, id, epoch,
            new EndTransactionMarker(ControlRecordType.valueOf(type), 0));
        write(records, AppendOrigin.COORDINATOR);
    }

    private void write(MemoryRecords records, AppendOrigin origin) throws IOException {
        log.appendAsLeader(records, 0, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL,
            TransactionVersion.TV_0.featureLevel());
        log.updateHighWatermark(log.logEndOffset());
    }

    void roll() throws IOException {
        log.roll();
    }

    void clean() throws Exception {
        Throttler none = new Throttler(1e9, 300, "cleaner", "bytes", new Clock());
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(1 << 20, "MD5"), 1 << 16, 1 << 20, 0.9, none, new Clock(),
            partition -> { });
        cleaner.clean(new LogToClean(log, 0L, log.activeSegment().baseOffset(), false));
    }

    void close() {
        log.flush(true);
        log.close();
    }

    record AtOnce() implements Scheduler {
        public void startup() {
        }

        public void shutdown() {
        }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0) task.run();
            return new Done();
        }

        public void resizeThreadPool(int size) {
        }
    }
}
