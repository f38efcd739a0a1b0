import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;

/**
 * Waiting of every agent for work: a few polls, then short sleeps. Aeron's default backs off to a millisecond, which a
 * single request pays at each hop; agents that never sleep need a core each.
 */
final class Idle {
    private static final long SPINS = 10;
    private static final long YIELDS = 20;
    private static final long PARK_NS_MIN = 1_000;
    private static final long PARK_NS_MAX = 50_000;

    private Idle() {}

    static IdleStrategy strategy() {
        return new BackoffIdleStrategy(SPINS, YIELDS, PARK_NS_MIN, PARK_NS_MAX);
    }
}
