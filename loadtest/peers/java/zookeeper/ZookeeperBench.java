import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** Sets one node's data, asynchronously. Argument: addresses, with commas between. Loads: stdin (Window). */
public final class ZookeeperBench {
    private static final String NODE = "/bench";
    private static final int SESSION_TIMEOUT_MS = 30_000;
    private static final int ASK_TIMEOUT_MS = 2_000;
    private static final long ELECTION_NS = 30_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        String[] servers = arguments[0].split(",");
        // To the leader alone: the others would pass each request on, and cost a hop.
        Window.serve(load -> run(leaderOf(servers), load));
    }

    private static void run(String server, Window.Load load) throws Exception {
        byte[] payload = load.payload();
        CountDownLatch connected = new CountDownLatch(1);
        try (ZooKeeper client = new ZooKeeper(server, SESSION_TIMEOUT_MS, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        })) {
            connected.await();
            try {
                client.create(NODE, payload, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException error) {
                // Left by the load before.
            }
            Semaphore slots = new Semaphore(load.outstanding());
            Window window = new Window(load);
            while (!window.isOver()) {
                slots.acquire();
                long sentNs = System.nanoTime();
                client.setData(NODE, payload, -1, (code, path, context, stat) -> {
                    if (code != KeeperException.Code.OK.intValue()) {
                        System.err.println("setData: " + KeeperException.Code.get(code));
                        Runtime.getRuntime().halt(1);
                    }
                    window.acked(sentNs);
                    slots.release();
                }, null);
            }
            slots.acquire(load.outstanding());
        }
    }

    private static String leaderOf(String[] servers) throws InterruptedException {
        long deadlineNs = System.nanoTime() + ELECTION_NS;
        while (System.nanoTime() - deadlineNs < 0) {
            for (String server : servers) {
                if (says(server).contains("Mode: leader")) {
                    return server;
                }
            }
            Thread.sleep(200);
        }
        throw new IllegalStateException("no leader within 30 s at " + String.join(", ", servers));
    }

    /** A server's answer to `srvr`; empty while it does not serve. */
    private static String says(String server) {
        int colon = server.lastIndexOf(':');
        try (Socket socket = new Socket()) {
            int port = Integer.parseInt(server.substring(colon + 1));
            socket.connect(new InetSocketAddress(server.substring(0, colon), port), ASK_TIMEOUT_MS);
            socket.setSoTimeout(ASK_TIMEOUT_MS);
            socket.getOutputStream().write("srvr".getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        } catch (IOException error) {
            return "";
        }
    }
}
