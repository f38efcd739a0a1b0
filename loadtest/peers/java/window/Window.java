import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.HdrHistogram.Histogram;

/**
 * The window in which a load client counts requests. It writes {"event":"begin"} to stdout when it begins and
 * {"event":"end", …} with its figures when it ends. It is for one thread at a time.
 */
final class Window {
    private static final long LATENCY_MAX_US = 120_000_000;

    private final PrintStream out;
    private final long beginNs;
    private final long endNs;
    private final Histogram latencyUs = new Histogram(1, LATENCY_MAX_US, 3);
    private boolean isOpen;
    private boolean isClosed;
    private long openedNs;
    private long acked;

    Window(Load load) {
        this(load, System.nanoTime(), System.out);
    }

    Window(Load load, long nowNs, PrintStream out) {
        this.out = out;
        beginNs = nowNs + load.warmupNs();
        endNs = beginNs + load.windowNs();
    }

    /** A load to put on the servers. */
    record Load(int sizeBytes, int outstanding, long warmupNs, long windowNs) {
        /** Parses a line: size outstanding warmup_s window_s. */
        static Load of(String line) {
            String[] values = line.trim().split(" ");
            if (values.length != 4) {
                throw new IllegalArgumentException("no load: " + line);
            }
            return new Load(Integer.parseInt(values[0]), Integer.parseInt(values[1]), ns(values[2]), ns(values[3]));
        }

        private static long ns(String seconds) {
            return Math.round(Double.parseDouble(seconds) * 1e9);
        }

        byte[] payload() {
            byte[] payload = new byte[sizeBytes];
            for (int i = 0; i < payload.length; i++) {
                payload[i] = (byte) ('a' + i % 26);
            }
            return payload;
        }
    }

    /** Puts a load on the servers; returns when every request is acknowledged. */
    interface Bench {
        void run(Load load) throws Exception;
    }

    /** Runs the loads on stdin, one after another, in this JVM, until stdin ends. */
    static void serve(Bench bench) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = lines.readLine()) != null) {
            bench.run(Load.of(line));
        }
    }

    synchronized boolean isOver() {
        return isClosed;
    }

    /** Counts one acknowledgement of a request that was sent at {@code sentNs}. */
    void acked(long sentNs) {
        acked(sentNs, System.nanoTime());
    }

    /**
     * The first acknowledgement after its begin opens the window and is counted. The first one after its end closes it
     * and is not counted: the count is the number of spans between them.
     */
    synchronized void acked(long sentNs, long nowNs) {
        if (isClosed || nowNs - beginNs < 0) {
            return;
        }
        if (!isOpen) {
            isOpen = true;
            openedNs = nowNs;
            out.println("{\"event\":\"begin\"}");
            out.flush();
        }
        if (nowNs - endNs >= 0) {
            isClosed = true;
            report(nowNs);
            return;
        }
        acked++;
        latencyUs.recordValue(Math.min(Math.max((nowNs - sentNs) / 1_000, 1), LATENCY_MAX_US));
    }

    private void report(long closedNs) {
        out.printf(
                "{\"event\":\"end\",\"acked\":%d,\"window_s\":%.6f,\"p50_us\":%d,\"p99_us\":%d,\"p999_us\":%d}%n",
                acked, (closedNs - openedNs) / 1e9, latencyUs.getValueAtPercentile(50),
                latencyUs.getValueAtPercentile(99), latencyUs.getValueAtPercentile(99.9));
        out.flush();
    }
}
