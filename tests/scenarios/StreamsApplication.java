import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * Counts the records of a topic by key, in a store in memory with a changelog. It prints
 * "read VALUE" of each record that it gets, and "count KEY NUMBER" of each result.
 *
 * Arguments: the topic, then settings as KEY=VALUE.
 */
class StreamsApplication {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("auto.offset.reset", "earliest");
        // Without RocksDB, whose jar has 70 MB; and each result at once.
        settings.put(
            "dsl.store.suppliers.class",
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers");
        settings.put("statestore.cache.max.bytes", "0");
        for (int number = 1; number < arguments.length; number++) {
            String[] setting = arguments[number].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[0])
            .peek((key, value) -> System.out.println("read " + value))
            .groupByKey()
            .count(Materialized.as("counts"))
            .toStream()
            .foreach((key, count) -> System.out.println("count " + key + " " + count));
        KafkaStreams application = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(application::close));
        application.start();
    }
}
