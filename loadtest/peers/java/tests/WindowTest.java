import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.concurrent.TimeUnit;

/** Tests the events of the Java clients' window, moment by moment. A wrong event ends it with code 1 and a reason. */
public final class WindowTest {
    private static final long START_NS = Long.MAX_VALUE - TimeUnit.SECONDS.toNanos(2); // nanoTime may overflow

    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private final Window window = new Window(Window.Load.of("64 1024 1 2"), START_NS, new PrintStream(said, true));

    public static void main(String[] arguments) {
        countsWhatIsAcknowledgedBetweenOpeningAndClosing();
        readsLoads();
        System.out.println("ok");
    }

    private static void countsWhatIsAcknowledgedBetweenOpeningAndClosing() {
        WindowTest test = new WindowTest();
        test.acked(900, 999);
        test.expect("", "it warms up");
        test.acked(1_045, 1_050);
        test.expect("{\"event\":\"begin\"}\n", "the first after its begin opens it");
        test.acked(1_060, 1_070);
        test.acked(1_080, 1_100);
        test.acked(2_000, 2_999);
        require(!test.window.isOver(), "it is over before its time");
        test.acked(3_010, 3_050);
        require(test.window.isOver(), "it is not over");
        String end = test.said.toString();
        test.acked(3_020, 3_060);
        test.expect(end, "what is acknowledged after it says nothing");
        require(end.contains("\"acked\":4,\"window_s\":2.000000,"), "counted wrongly: " + end);
        // Latencies of 5, 10, 20 and 999 ms, as exact as the histogram is.
        require(end.matches("(?s).*\"p50_us\":100[0-9]{2},\"p99_us\":99[89][0-9]{3},.*"), "wrong latencies: " + end);
    }

    private static void readsLoads() {
        Window.Load load = Window.Load.of("16384 128 0.5 5");
        require(load.equals(new Window.Load(16_384, 128, 500_000_000L, 5_000_000_000L)), "read " + load);
        require(load.payload().length == 16_384, "a payload of another size");
        for (String line : new String[] {"", "64 1 1", "a b c d"}) {
            try {
                Window.Load.of(line);
            } catch (IllegalArgumentException expected) {
                continue;
            }
            require(false, "taken for a load: " + line);
        }
    }

    private void acked(long sentMs, long nowMs) {
        window.acked(START_NS + TimeUnit.MILLISECONDS.toNanos(sentMs), START_NS + TimeUnit.MILLISECONDS.toNanos(nowMs));
    }

    private void expect(String wanted, String why) {
        require(said.toString().equals(wanted), why + ", but it said: " + said);
    }

    private static void require(boolean isSo, String otherwise) {
        if (!isSo) {
            System.err.println(otherwise);
            System.exit(1);
        }
    }
}
