import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Semaphore;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Appends to one partition with three replicas, acks=all. Argument: bootstrap. Loads: stdin (Window). */
public final class KafkaBench {
    private static final String TOPIC = "bench";

    public static void main(String[] arguments) throws Exception {
        create(arguments[0]);
        Window.serve(load -> run(arguments[0], load));
    }

    private static void run(String bootstrap, Window.Load load) throws Exception {
        // Waiting requests share batches; a single request should not wait for others.
        String lingerMs = load.outstanding() > 1 ? "1" : "0";
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrap,
                "acks", "all",
                "linger.ms", lingerMs,
                "batch.size", "131072",
                "key.serializer", ByteArraySerializer.class,
                "value.serializer", ByteArraySerializer.class);
        byte[] payload = load.payload();
        Semaphore slots = new Semaphore(load.outstanding());
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            Window window = new Window(load);
            while (!window.isOver()) {
                slots.acquire();
                long sentNs = System.nanoTime();
                producer.send(new ProducerRecord<>(TOPIC, payload), (metadata, error) -> {
                    if (error != null) {
                        error.printStackTrace();
                        Runtime.getRuntime().halt(1);
                    }
                    window.acked(sentNs);
                    slots.release();
                });
            }
            slots.acquire(load.outstanding());
        }
    }

    private static void create(String bootstrap) throws Exception {
        NewTopic topic = new NewTopic(TOPIC, Optional.of(1), Optional.of((short) 3));
        topic.configs(Map.of("min.insync.replicas", "2"));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(topic)).all().get();
        } catch (java.util.concurrent.ExecutionException error) {
            if (!(error.getCause() instanceof TopicExistsException)) {
                throw error;
            }
        }
    }
}
