import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.Properties;
import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.utils.Time;

/** Reads a plan (README.md); a subclass for each release carries out its lines. */
abstract class Plan {
    static long now;

    record Row(long timestamp, byte[] key, byte[] value, Header[] headers) { }

    record Producer(long id, short epoch, int sequence, boolean isTransactional) {
        static final Producer NONE = new Producer(-1, (short) -1, -1, false);
    }

    abstract void open(File directory, Properties settings) throws Exception;

    abstract void append(String codec, Producer producer, Row[] rows) throws Exception;

    abstract void marker(long id, short epoch, String type) throws Exception;

    abstract void roll() throws Exception;

    abstract void clean() throws Exception;

    abstract void close() throws Exception;

    void carryOut() throws Exception {
        BufferedReader plan = new BufferedReader(new InputStreamReader(System.in));
        for (String line = plan.readLine(); line != null; line = plan.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "clock" -> now = Long.parseLong(words[1]);
                case "open" -> open(directory(words[1]), settings(words));
                case "append" -> append(words[1], producer(words), rows(Integer.parseInt(words[3]), plan));
                case "marker" -> marker(Long.parseLong(words[1]), Short.parseShort(words[2]), words[3]);
                case "roll" -> roll();
                case "clean" -> clean();
                case "close" -> close();
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.exit(0);  // metrics of old releases keep threads
    }

    private static File directory(String name) {
        File directory = new File(name);
        directory.mkdirs();
        return directory;
    }

    private static Properties settings(String[] words) {
        Properties settings = new Properties();
        for (int i = 2; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        return settings;
    }

    private static Producer producer(String[] words) {
        return words.length == 4 ? Producer.NONE : new Producer(Long.parseLong(words[4]),
            Short.parseShort(words[5]), Integer.parseInt(words[6]), Boolean.parseBoolean(words[7]));
    }

    private static Row[] rows(int count, BufferedReader plan) throws Exception {
        Row[] rows = new Row[count];
        for (int n = 0; n < count; n++) {
            String[] words = plan.readLine().split(" ");
            Header[] headers = new Header[(words.length - 3) / 2];
            for (int i = 0; i < headers.length; i++)
                headers[i] = new RecordHeader(new String(bytes(words[3 + 2 * i])), bytes(words[4 + 2 * i]));
            rows[n] = new Row(Long.parseLong(words[0]), bytes(words[1]), bytes(words[2]), headers);
        }
        return rows;
    }

    private static byte[] bytes(String text) {
        return text.equals("null") ? null : HexFormat.of().parseHex(text.substring(1));
    }

    /** The plan's clock, with the methods of every release's interface. */
    static final class Clock implements Time {
        public long milliseconds() {
            return now;
        }

        public long hiResClockMs() {
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

    /** A task that was run when it was scheduled. */
    static final class Done extends FutureTask<Void> implements ScheduledFuture<Void> {
        Done() {
            super(() -> { }, null);
        }

        public long getDelay(TimeUnit unit) {
            return 0;
        }

        public int compareTo(Delayed other) {
            return 0;
        }
    }
}
