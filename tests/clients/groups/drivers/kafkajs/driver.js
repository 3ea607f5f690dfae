// kafkajs as a member of a group; commands and events are those of drivers/loop.py.
const { Kafka, logLevel } = require("kafkajs");
const readline = require("readline");

const given = JSON.parse(process.argv[2]);
const { topic, group } = given;
const kafka = new Kafka({ brokers: [given.bootstrap], logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({ groupId: group, sessionTimeout: given.session_ms, heartbeatInterval: 500, maxWaitTimeInMs: 500 });
const admin = kafka.admin();
const next = {}; // offsets to commit, by partition

function tell(event, fields = {}) {
  process.stdout.write(JSON.stringify({ event, ...fields }) + "\n");
}

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  tell("assigned", { partitions: payload.memberAssignment[topic] || [], generation: null });
});
// Emitted before the member rejoins: from then on it does not fetch from its old partitions.
consumer.on(consumer.events.REBALANCING, () => {
  for (const partition of Object.keys(next)) delete next[partition];
  tell("revoked", { partitions: [], generation: null });
});

async function lag() {
  const ends = await admin.fetchTopicOffsets(topic);
  const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
  const committed = Object.fromEntries(partitions.map((one) => [one.partition, Math.max(Number(one.offset), 0)]));
  return Object.fromEntries(ends.map((end) => [end.partition, Number(end.high) - (committed[end.partition] || 0)]));
}

const answers = {
  async commit() {
    const offsets = Object.entries(next).map(([partition, offset]) => ({ topic, partition: Number(partition), offset }));
    await consumer.commitOffsets(offsets);
    tell("committed");
  },
  async seek({ partition, offset }) {
    consumer.seek({ topic, partition, offset: String(offset) });
    tell("sought");
  },
  async pause({ partition }) {
    consumer.pause([{ topic, partitions: [partition] }]);
    tell("paused");
  },
  async resume({ partition }) {
    consumer.resume([{ topic, partitions: [partition] }]);
    tell("resumed");
  },
  async lag() {
    tell("lag", { lag: await lag() });
  },
  async close() {
    tell("revoked", { partitions: [], generation: null });
    await consumer.disconnect();
    await admin.disconnect();
    tell("closed");
    process.exit(0);
  },
};

async function main() {
  await admin.connect();
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      next[partition] = String(Number(message.offset) + 1);
      tell("record", { partition, offset: Number(message.offset), value: message.value.toString() });
    },
  });
  const lines = readline.createInterface({ input: process.stdin });
  for await (const line of lines) {
    const command = JSON.parse(line);
    await answers[command.do](command);
  }
  await answers.close();
}

main().catch((error) => {
  tell("error", { text: String(error.stack) });
  process.exit(1);
});
