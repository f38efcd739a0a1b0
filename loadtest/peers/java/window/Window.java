import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/**
 * The window in which a load client counts requests. Says {"event":"begin"} on stdout when it begins and
 * {"event":"end", …} with its figures when it ends. For one thread at a time.
 */
final class Window {
    private static final long LATENCY_MAX_US = 120_000_000;

    private final long beginNs;
    private final long endNs;
    private final Histogram latencyUs = new Histogram(1, LATENCY_MAX_US, 3);
    private long openedNs;
    private long closedNs;
    private long acked;

    Window(Load load) {
        beginNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(load.warmupS());
        endNs = beginNs + TimeUnit.SECONDS.toNanos(load.windowS());
    }

    /** What to put on the servers. */
    record Load(int sizeBytes, int outstanding, int warmupS, int windowS) {
        /** From four arguments, beginning at {@code first}. */
        static Load of(String[] arguments, int first) {
            int[] values = new int[4];
            for (int i = 0; i < values.length; i++) {
                values[i] = Integer.parseInt(arguments[first + i]);
            }
            return new Load(values[0], values[1], values[2], values[3]);
        }

        byte[] payload() {
            byte[] payload = new byte[sizeBytes];
            for (int i = 0; i < payload.length; i++) {
                payload[i] = (byte) ('a' + i % 26);
            }
            return payload;
        }
    }

    synchronized boolean isOver() {
        return closedNs != 0;
    }

    /** Counts one acknowledgement of a request that was sent at {@code sentNs}. */
    synchronized void acked(long sentNs) {
        long now = System.nanoTime();
        if (now < beginNs || closedNs != 0) {
            return;
        }
        if (openedNs == 0) {
            openedNs = now;
            System.out.println("{\"event\":\"begin\"}");
            System.out.flush();
        }
        if (now >= endNs) {
            closedNs = now;
            report();
            return;
        }
        acked++;
        latencyUs.recordValue(Math.min(Math.max((now - sentNs) / 1_000, 1), LATENCY_MAX_US));
    }

    private void report() {
        System.out.printf(
                "{\"event\":\"end\",\"acked\":%d,\"window_s\":%.6f,\"p50_us\":%d,\"p99_us\":%d,\"p999_us\":%d}%n",
                acked, (closedNs - openedNs) / 1e9, latencyUs.getValueAtPercentile(50),
                latencyUs.getValueAtPercentile(99), latencyUs.getValueAtPercentile(99.9));
        System.out.flush();
    }
}
