import io.aeron.archive.client.AeronArchive;
import io.aeron.cluster.ClusterControl;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.RecordingLog;
import io.aeron.cluster.service.Cluster;
import java.util.concurrent.locks.ReentrantLock;

/** Purges a node's log up to a new snapshot, which the whole cluster takes at the leader's request. */
final class Retention {
    private static final long PATIENCE_NS = 5_000_000_000L;
    private static final int POLL_MS = 10;

    private final ConsensusModule.Context consensus;
    private final AeronArchive.Context archive;
    private final int segmentBytes;
    private long purgedPosition = -1;

    Retention(ConsensusModule.Context consensus, AeronArchive.Context archive, int segmentBytes) {
        this.consensus = consensus;
        this.archive = archive;
        this.segmentBytes = segmentBytes;
    }

    /** False: no snapshot was taken in time, and the log is kept. */
    boolean purge() throws InterruptedException {
        // A follower may have taken it before this call; the leader asks for another one.
        long known = isLeader() ? snapshotPosition() : purgedPosition;
        boolean isAsked = false;
        long deadlineNs = System.nanoTime() + PATIENCE_NS;
        while (snapshotPosition() <= known) {
            if (System.nanoTime() - deadlineNs > 0) {
                return false;
            }
            // Refused until the leader has finished the last request.
            isAsked = isAsked || isLeader() && ClusterControl.ToggleState.SNAPSHOT.toggle(consensus.controlToggleCounter());
            Thread.sleep(POLL_MS);
        }
        purgedPosition = snapshotPosition();
        try (RecordingLog log = new RecordingLog(consensus.clusterDir(), false);
                AeronArchive client = AeronArchive.connect(archive.clone().lock(new ReentrantLock()))) {
            long recording = log.findLastTermRecordingId();
            long start = client.getStartPosition(recording);
            long kept = AeronArchive.segmentFileBasePosition(start, purgedPosition, segmentBytes, segmentBytes);
            if (kept > start) {
                client.purgeSegments(recording, kept);
            }
        }
        return true;
    }

    private boolean isLeader() {
        return consensus.clusterNodeRoleCounter().get() == Cluster.Role.LEADER.code();
    }

    /** Position of the latest snapshot; -1: there is none. */
    private long snapshotPosition() {
        try (RecordingLog log = new RecordingLog(consensus.clusterDir(), false)) {
            RecordingLog.Entry latest = log.getLatestSnapshot(ConsensusModule.Configuration.SERVICE_ID);
            return latest == null ? -1 : latest.logPosition;
        }
    }
}
