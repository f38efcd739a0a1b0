import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/** Sends to the cluster and waits for its echoes. Arguments: folder base-port. Loads: stdin (Window). */
public final class AeronBench implements EgressListener {
    private static final int MTU_BYTES = 8192;
    private static final int PORTS_PER_NODE = 10;
    private static final long PATIENCE_NS = 30_000_000_000L;

    private Window window;
    private int outstanding;

    public static void main(String[] arguments) throws Exception {
        int basePort = Integer.parseInt(arguments[1]);
        MediaDriver.Context driver = new MediaDriver.Context()
                .aeronDirectoryName(arguments[0])
                .threadingMode(ThreadingMode.SHARED)
                .sharedIdleStrategy(Idle.strategy())
                .publicationTermBufferLength(16 << 20)
                .mtuLength(MTU_BYTES)
                .dirDeleteOnStart(true)
                .dirDeleteOnShutdown(true);
        StringBuilder endpoints = new StringBuilder();
        for (int node = 0; node < 3; node++) {
            endpoints.append(node == 0 ? "" : ",").append(node).append("=localhost:").append(basePort + node * PORTS_PER_NODE + 1);
        }
        try (MediaDriver media = MediaDriver.launch(driver)) {
            AeronBench bench = new AeronBench();
            AeronCluster.Context context = new AeronCluster.Context()
                    .aeronDirectoryName(arguments[0])
                    .egressListener(bench)
                    .egressChannel("aeron:udp?endpoint=localhost:0")
                    .ingressChannel("aeron:udp?term-length=16m")
                    .messageTimeoutNs(PATIENCE_NS)
                    .ingressEndpoints(endpoints.toString());
            try (AeronCluster cluster = AeronCluster.connect(context)) {
                Window.serve(load -> bench.run(cluster, load));
            }
        }
    }

    private void run(AeronCluster cluster, Window.Load load) {
        window = new Window(load);
        UnsafeBuffer message = new UnsafeBuffer(load.payload());
        IdleStrategy idle = Idle.strategy();
        long progressNs = System.nanoTime();
        while (!window.isOver() || outstanding > 0) {
            int work = cluster.pollEgress();
            while (!window.isOver() && outstanding < load.outstanding()) {
                message.putLong(0, System.nanoTime());
                if (cluster.offer(message, 0, load.sizeBytes()) < 0) {
                    break;
                }
                outstanding++;
                work++;
            }
            long now = System.nanoTime();
            if (work > 0) {
                progressNs = now;
            } else if (now - progressNs > PATIENCE_NS) {
                throw new IllegalStateException("no progress for 30 s");
            }
            idle.idle(work);
        }
    }

    @Override
    public void onMessage(long session, long timestamp, DirectBuffer buffer, int offset, int length, Header header) {
        outstanding--;
        window.acked(buffer.getLong(offset));
    }
}
