import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Questions as JSON on standard input, answers of Kafka 4.2.1 as JSON on standard output (`answers.py`). */
public class Ask {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Base64.Encoder BASE64 = Base64.getEncoder();
    static String bootstrap;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        JsonNode questions = JSON.readTree(System.in);
        ObjectNode answers = JSON.createObjectNode();
        for (JsonNode file : questions.path("files")) answers.set(file.asText(), batches(new File(file.asText())));
        if (questions.has("bootstrap")) {
            bootstrap = questions.get("bootstrap").asText();
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            create(questions.path("create"));
            for (Map.Entry<String, JsonNode> topic : questions.path("topics").properties())
                answers.set(topic.getKey(), topic(topic.getKey(), topic.getValue()));
            admin.close();
        }
        System.out.println(JSON.writeValueAsString(answers));
    }

    static void create(JsonNode topics) throws Exception {
        for (Map.Entry<String, JsonNode> topic : topics.properties()) {
            Map<String, String> configs = new HashMap<>();
            for (Map.Entry<String, JsonNode> config : topic.getValue().properties())
                configs.put(config.getKey(), config.getValue().asText());
            NewTopic created = new NewTopic(topic.getKey(), 1, (short) 1).configs(configs);
            admin.createTopics(List.of(created)).all().get();
        }
    }

    /** What Kafka's own reader finds in the batches of a segment. */
    static ArrayNode batches(File log) throws Exception {
        ArrayNode out = JSON.createArrayNode();
        try (FileRecords records = FileRecords.open(log, false)) {
            for (FileChannelRecordBatch batch : records.batches()) {
                batch.ensureValid();
                ObjectNode row = out.addObject();
                row.put("position", batch.position()).put("size", batch.sizeInBytes());
                row.put("magic", batch.magic()).put("codec", batch.compressionType().name);
                row.put("base_offset", batch.baseOffset()).put("last_offset", batch.lastOffset());
                row.put("timestamp_type", batch.timestampType().name).put("max_timestamp", batch.maxTimestamp());
                ArrayNode offsets = row.putArray("offsets");
                for (Record record : batch) offsets.add(record.offset());
            }
        }
        return out;
    }

    static ObjectNode topic(String name, JsonNode questions) throws Exception {
        TopicPartition partition = new TopicPartition(name, 0);
        ObjectNode out = JSON.createObjectNode();
        out.set("records", records(partition, "read_uncommitted"));
        if (questions.path("committed").asBoolean()) out.set("committed", records(partition, "read_committed"));
        ArrayNode offsets = out.putArray("list_offsets");
        offsets.add(offset(partition, "earliest", OffsetSpec.earliest()));
        offsets.add(offset(partition, "latest", OffsetSpec.latest()));
        offsets.add(offset(partition, "max_timestamp", OffsetSpec.maxTimestamp()));
        for (JsonNode timestamp : questions.path("timestamps"))
            offsets.add(offset(partition, timestamp, OffsetSpec.forTimestamp(timestamp.asLong())));
        Uuid id = admin.describeTopics(List.of(name)).allTopicNames().get().get(name).topicId();
        ArrayNode fetches = out.putArray("fetches");
        for (JsonNode question : questions.path("fetches")) fetches.add(fetch(partition, id, question));
        return out;
    }

    static ArrayNode offset(TopicPartition partition, Object asked, OffsetSpec spec) throws Exception {
        ListOffsetsResultInfo answer = admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
        ArrayNode row = JSON.createArrayNode().addPOJO(asked).add(answer.offset()).add(answer.timestamp());
        return row.add(answer.leaderEpoch().orElse(-1));
    }

    static ArrayNode records(TopicPartition partition, String isolation) {
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation, "auto.offset.reset", "none"));
        ArrayNode out = JSON.createArrayNode();
        var bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end)
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) out.add(record(record));
        }
        return out;
    }

    static ArrayNode record(ConsumerRecord<byte[], byte[]> record) {
        ArrayNode row = JSON.createArrayNode().add(record.offset()).add(record.timestamp());
        row.add(record.timestampType().name).add(text(record.key())).add(text(record.value()));
        ArrayNode headers = row.addArray();
        for (Header header : record.headers()) headers.addArray().add(header.key()).add(text(header.value()));
        return row;
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : BASE64.encodeToString(bytes);
    }

    /** One Fetch as it is on the wire; `question` is [version, offset, max bytes]. */
    static ObjectNode fetch(TopicPartition partition, Uuid id, JsonNode question) throws Exception {
        short version = (short) question.get(0).asInt();
        int bytesMax = question.get(2).asInt();
        var wanted = new FetchRequest.PartitionData(id, question.get(1).asLong(), -1L, bytesMax, Optional.empty());
        FetchRequest request = FetchRequest.Builder.forConsumer(version, 0, 0, Map.of(partition, wanted)).build(version);
        RequestHeader header = new RequestHeader(ApiKeys.FETCH, version, "ask", 1);
        FetchResponse response = (FetchResponse) call(header, request.serializeWithHeader(header));
        FetchResponseData.PartitionData answer = response.data().responses().get(0).partitions().get(0);
        ObjectNode out = JSON.createObjectNode().put("error", Errors.forCode(answer.errorCode()).name());
        out.put("log_start_offset", answer.logStartOffset()).put("high_watermark", answer.highWatermark());
        ByteBuffer bytes = ((MemoryRecords) FetchResponse.recordsOrFail(answer)).buffer();
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return out.put("bytes", BASE64.encodeToString(copy));
    }

    static AbstractResponse call(RequestHeader header, ByteBuffer frame) throws Exception {
        String[] address = bootstrap.split(":");
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(frame.remaining());
            out.write(frame.array(), frame.arrayOffset() + frame.position(), frame.remaining());
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = new byte[in.readInt()];
            in.readFully(answer);
            return AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header);
        }
    }
}
