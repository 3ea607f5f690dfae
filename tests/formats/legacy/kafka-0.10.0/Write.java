import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import kafka.common.TopicAndPartition;
import kafka.log.Cleaner;
import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.log.LogToClean;
import kafka.log.SkimpyOffsetMap;
import kafka.message.ByteBufferMessageSet;
import kafka.utils.Scheduler;
import kafka.utils.Throttler;
import kafka.utils.Time;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import scala.Function0;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Carries out a plan (README.md) with the log of Kafka 0.10.0.1: message format 1, no time index. */
public class Write {
    static long now;
    static Log log;

    public static void main(String[] args) throws Exception {
        BufferedReader plan = new BufferedReader(new InputStreamReader(System.in));
        for (String line = plan.readLine(); line != null; line = plan.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "clock" -> now = Long.parseLong(words[1]);
                case "open" -> open(words);
                case "append" -> append(words, plan);
                case "roll" -> log.roll();
                case "clean" -> clean();
                case "close" -> log.close();
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.exit(0);  // its metrics keep threads
    }

    static void open(String[] words) {
        Properties settings = new Properties();
        for (int i = 2; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        File dir = new File(words[1]);
        dir.mkdirs();
        log = new Log(dir, new LogConfig(settings), 0L, new AtOnce(), new Clock());
    }

    static void append(String[] words, BufferedReader plan) throws Exception {
        CompressionType codec = CompressionType.forName(words[1]);
        MemoryRecords records = MemoryRecords.emptyRecords(ByteBuffer.allocate(1 << 20), codec);
        int count = Integer.parseInt(words[3]);
        for (int n = 0; n < count; n++) {
            String[] record = plan.readLine().split(" ");
            records.append(n, Long.parseLong(record[0]), bytes(record[1]), bytes(record[2]));
        }
        records.close();
        log.append(new ByteBufferMessageSet(records.buffer()), true);
    }

    static byte[] bytes(String text) {
        return text.equals("null") ? null : HexFormat.of().parseHex(text.substring(1));
    }

    static void clean() {
        Throttler none = new Throttler(1e9, 300, true, "cleaner", "bytes", new Clock());
        var cleaner = new Cleaner(0, new SkimpyOffsetMap(1 << 20, "MD5"), 1 << 16, 1 << 20, 0.9, none, new Clock(),
            new AbstractFunction1<TopicAndPartition, BoxedUnit>() {
                public BoxedUnit apply(TopicAndPartition partition) {
                    return BoxedUnit.UNIT;
                }
            });
        cleaner.clean(new LogToClean(log.topicAndPartition(), log, 0L));
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
    }

    record AtOnce() implements Scheduler {
        public void startup() {
        }

        public void shutdown() {
        }

        public boolean isStarted() {
            return true;
        }

        public void schedule(String name, Function0<BoxedUnit> task, long delay, long period, TimeUnit unit) {
            if (period < 0) task.apply();
        }

        public long schedule$default$3() {
            return 0;
        }

        public long schedule$default$4() {
            return -1;
        }

        public TimeUnit schedule$default$5() {
            return TimeUnit.MILLISECONDS;
        }
    }
}
