import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.client.AeronArchive;
import io.aeron.cluster.ClusteredMediaDriver;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.Header;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.NoOpLock;

/**
 * One of three nodes, whose service answers each message with its first eight bytes. Arguments: node folder
 * driver-folder base-port sync. A line "purge" on stdin: take a snapshot and purge the log before it. The node ends with
 * stdin.
 */
public final class AeronNode {
    private static final int MTU_BYTES = 8192;
    private static final int ACK_BYTES = Long.BYTES;
    private static final int PORTS_PER_NODE = 10;
    private static final int LOG_TERM_BYTES = 64 << 20;

    public static void main(String[] arguments) throws Exception {
        int node = Integer.parseInt(arguments[0]);
        File folder = new File(arguments[1]);
        String aeronFolder = arguments[2];
        int basePort = Integer.parseInt(arguments[3]);
        // 1: data is forced to disk; 0: it is left to the page cache.
        int syncLevel = Integer.parseInt(arguments[4]);
        MediaDriver.Context driver = new MediaDriver.Context()
                .aeronDirectoryName(aeronFolder)
                .threadingMode(ThreadingMode.SHARED)
                .sharedIdleStrategy(Idle.strategy())
                .publicationTermBufferLength(16 << 20)
                .ipcMtuLength(MTU_BYTES)
                .mtuLength(MTU_BYTES)
                .dirDeleteOnStart(true);
        Archive.Context archive = new Archive.Context()
                .aeronDirectoryName(aeronFolder)
                .archiveDir(new File(folder, "archive"))
                .controlChannel("aeron:udp?endpoint=localhost:" + port(basePort, node, 5))
                .localControlChannel("aeron:ipc?term-length=64k")
                .replicationChannel("aeron:udp?endpoint=localhost:0")
                .recordingEventsEnabled(false)
                .threadingMode(ArchiveThreadingMode.SHARED)
                .idleStrategySupplier(Idle::strategy)
                .segmentFileLength(LOG_TERM_BYTES)
                .fileSyncLevel(syncLevel)
                .catalogFileSyncLevel(syncLevel);
        AeronArchive.Context archiveClient = new AeronArchive.Context()
                .lock(NoOpLock.INSTANCE)
                .controlRequestChannel(archive.localControlChannel())
                .controlRequestStreamId(archive.localControlStreamId())
                .controlResponseChannel("aeron:ipc?term-length=64k")
                .aeronDirectoryName(aeronFolder);
        ConsensusModule.Context consensus = new ConsensusModule.Context()
                .clusterMemberId(node)
                .clusterMembers(members(basePort))
                .clusterDir(new File(folder, "cluster"))
                .archiveContext(archiveClient.clone())
                .ingressChannel("aeron:udp?term-length=16m")
                .logChannel("aeron:udp?term-length=" + LOG_TERM_BYTES + "|control-mode=manual|control=localhost:" + port(basePort, node, 6))
                .replicationChannel("aeron:udp?endpoint=localhost:0")
                .leaderHeartbeatTimeoutNs(TimeUnit.SECONDS.toNanos(20))
                // The client is silent between loads.
                .sessionTimeoutNs(TimeUnit.MINUTES.toNanos(10))
                .idleStrategySupplier(Idle::strategy)
                .fileSyncLevel(syncLevel);
        ClusteredServiceContainer.Context service = new ClusteredServiceContainer.Context()
                .aeronDirectoryName(aeronFolder)
                .archiveContext(archiveClient.clone())
                .clusterDir(new File(folder, "cluster"))
                .idleStrategySupplier(Idle::strategy)
                .clusteredService(new Echo());
        try (ClusteredMediaDriver cluster = ClusteredMediaDriver.launch(driver, archive, consensus);
                ClusteredServiceContainer container = ClusteredServiceContainer.launch(service)) {
            Retention retention = new Retention(cluster.consensusModule().context(), archiveClient, LOG_TERM_BYTES);
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            String line;
            while ((line = lines.readLine()) != null) {
                if (line.equals("purge")) {
                    System.out.println("{\"event\":\"purged\",\"is_done\":" + retention.purge() + "}");
                    System.out.flush();
                }
            }
        }
    }

    private static int port(int basePort, int node, int use) {
        return basePort + node * PORTS_PER_NODE + use;
    }

    private static String members(int basePort) {
        StringBuilder members = new StringBuilder();
        for (int node = 0; node < 3; node++) {
            members.append(node);
            // Ingress, consensus, log, catch-up, archive.
            for (int use = 1; use <= 5; use++) {
                members.append(",localhost:").append(port(basePort, node, use));
            }
            members.append('|');
        }
        return members.toString();
    }

    private static final class Echo implements ClusteredService {
        private Cluster cluster;

        public void onStart(Cluster cluster, Image snapshot) {
            this.cluster = cluster;
        }

        public void onSessionMessage(
                ClientSession session, long timestamp, DirectBuffer buffer, int offset, int length, Header header) {
            if (session == null) {
                return;
            }
            cluster.idleStrategy().reset();
            while (session.offer(buffer, offset, Math.min(length, ACK_BYTES)) < 0) {
                cluster.idleStrategy().idle();
            }
        }

        public void onSessionOpen(ClientSession session, long timestamp) {}

        public void onSessionClose(ClientSession session, long timestamp, CloseReason reason) {}

        public void onTimerEvent(long correlationId, long timestamp) {}

        public void onTakeSnapshot(ExclusivePublication snapshot) {}

        public void onRoleChange(Cluster.Role role) {}

        public void onTerminate(Cluster cluster) {}
    }
}
