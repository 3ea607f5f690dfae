import java.io.File;
import java.nio.ByteBuffer;
import java.util.Properties;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import kafka.log.AppendOrigin;
import kafka.log.Cleaner;
import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.log.LogToClean;
import kafka.log.SkimpyOffsetMap;
import kafka.server.BrokerTopicStats;
import kafka.server.LogDirFailureChannel;
import kafka.utils.Scheduler;
import kafka.utils.Throttler;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import scala.Function0;
import scala.Option;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Carries out a plan with the log of Kafka 2.8. */
public class Write extends Plan {
    static final int DAY_MS = 86_400_000;
    private Log log;

    public static void main(String[] args) throws Exception {
        new Write().carryOut();
    }

    void open(File directory, Properties settings) {
        log = Log.apply(directory, LogConfig.apply(settings, LogConfig.apply$default$2()), 0L, 0L, new AtOnce(),
            new BrokerTopicStats(), new Clock(), DAY_MS, DAY_MS,
            new LogDirFailureChannel(1), true, true);
    }

    void append(String codec, Producer producer, Row[] rows) {
        MemoryRecordsBuilder records = new MemoryRecordsBuilder(ByteBuffer.allocate(1 << 16), RecordBatch.MAGIC_VALUE_V2,
            CompressionType.forName(codec), TimestampType.CREATE_TIME, 0L, RecordBatch.NO_TIMESTAMP, producer.id(),
            producer.epoch(), producer.sequence(), producer.isTransactional(), false,
            RecordBatch.NO_PARTITION_LEADER_EPOCH, 1 << 16);
        for (Row row : rows) records.append(row.timestamp(), row.key(), row.value(), row.headers());
        log.appendAsLeader(records.build(), 0, log.appendAsLeader$default$3(), log.appendAsLeader$default$4());
        log.updateHighWatermark(log.logEndOffset());
    }

    void marker(long id, short epoch, String type) {
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(0L, now, 0, id, epoch,
            new EndTransactionMarker(ControlRecordType.valueOf(type), 0));
        log.appendAsLeader(records, 0, AppendOrigin.Coordinator$.MODULE$, log.appendAsLeader$default$4());
        log.updateHighWatermark(log.logEndOffset());
    }

    void roll() {
        log.roll(Option.empty());
    }

    void clean() {
        Throttler none = new Throttler(1e9, 300, true, "cleaner", "bytes", new Clock());
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(1 << 20, "MD5"), 1 << 16, 1 << 20, 0.9, none, new Clock(),
            new AbstractFunction1<TopicPartition, BoxedUnit>() {
                public BoxedUnit apply(TopicPartition partition) {
                    return BoxedUnit.UNIT;
                }
            });
        cleaner.clean(new LogToClean(log.topicPartition(), log, 0L, log.activeSegment().baseOffset(), false));
    }

    void close() {
        log.flush();
        log.close();
    }

    record AtOnce() implements Scheduler {
        public void startup() {
        }

        public void shutdown() {
        }

        public boolean isStarted() {
            return true;
        }

        public ScheduledFuture<?> schedule(String name, Function0<BoxedUnit> task, long delay, long period, TimeUnit unit) {
            if (period < 0) task.apply();
            return new Done();
        }
    }
}
