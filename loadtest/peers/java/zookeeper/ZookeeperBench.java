import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** Sets one node's data, asynchronously. Arguments: connect-string size outstanding warmup_s window_s. */
public final class ZookeeperBench {
    private static final String NODE = "/bench";
    private static final int SESSION_TIMEOUT_MS = 30_000;

    public static void main(String[] arguments) throws Exception {
        Window.Load load = Window.Load.of(arguments, 1);
        byte[] payload = load.payload();
        CountDownLatch connected = new CountDownLatch(1);
        try (ZooKeeper client = new ZooKeeper(arguments[0], SESSION_TIMEOUT_MS, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        })) {
            connected.await();
            try {
                client.create(NODE, payload, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException error) {
                // From the run before.
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
}
