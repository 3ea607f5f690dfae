import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import kafka.server.KafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * What Apache Kafka says of a setting in server.properties. Reads lines `NAME=VALUE`, writes for each `verdict ok` or the reason:
 * a node with both roles makes its `KafkaConfig` and, as `LogManager` does, the topics' defaults of it.
 */
public class StaticVerdicts {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            int at = line.indexOf('=');
            System.out.println("verdict " + verdict(line.substring(0, at), line.substring(at + 1)));
        }
    }

    private static String verdict(String name, String value) {
        Properties given = new Properties();
        given.setProperty("process.roles", "broker,controller");
        given.setProperty("node.id", "1");
        given.setProperty("controller.quorum.voters", "1@localhost:9093");
        given.setProperty("listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093");
        given.setProperty("controller.listener.names", "CONTROLLER");
        given.setProperty("log.dirs", "/tmp/static-verdicts");
        given.setProperty(name, value);
        try {
            KafkaConfig config = new KafkaConfig(given, false);
            LogConfig.validateBrokerLogConfigValues(config.extractLogConfigMap(), false);
            new LogConfig(config.extractLogConfigMap());
            return "ok";
        } catch (Throwable error) {
            return String.valueOf(error.getMessage()).replaceAll("\\s+", " ");
        }
    }
}
