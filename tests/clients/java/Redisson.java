// Redisson against a server at the port that the first argument says; silent when all is well. All that
// it does is scripts in Lua, and channels that tell who waits for a lock.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RBucket;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RMapCache;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.RSemaphore;
import org.redisson.api.RTopic;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

public class RedissonClients {
    static void equal(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    static RedissonClient client(String port) {
        Config config = new Config().setCodec(StringCodec.INSTANCE).setThreads(4).setNettyThreads(4);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port)
            .setConnectionMinimumIdleSize(2).setConnectionPoolSize(8).setSubscriptionConnectionMinimumIdleSize(1);
        return Redisson.create(config);
    }

    /** Who waits for a lock is told by a channel; two clients never have it at once. */
    static void locks(RedissonClient one, RedissonClient two) throws Exception {
        AtomicInteger holders = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        LinkedBlockingQueue<Throwable> failures = new LinkedBlockingQueue<>();
        RAtomicLong count = one.getAtomicLong("locked:count");
        for (int n = 0; n < 6; n++) {
            RedissonClient client = n % 2 == 0 ? one : two;
            Thread thread = new Thread(() -> {
                try {
                    RLock lock = client.getLock("lock");
                    for (int round = 0; round < 20; round++) {
                        lock.lock();
                        equal(holders.incrementAndGet(), 1);
                        count.set(count.get() + 1);
                        holders.decrementAndGet();
                        lock.unlock();
                    }
                } catch (Throwable failure) {
                    failures.add(failure);
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (!failures.isEmpty()) {
            throw new AssertionError(failures.peek());
        }
        equal(count.get(), 120L);
        RLock fair = one.getFairLock("fair");
        equal(fair.tryLock(1, 30, TimeUnit.SECONDS), true);
        equal(fair.isHeldByCurrentThread(), true);
        equal(two.getFairLock("fair").tryLock(), false);
        fair.lock();
        equal(fair.getHoldCount(), 2);
        fair.unlock();
        fair.unlock();
        RReadWriteLock both = one.getReadWriteLock("both");
        both.readLock().lock();
        equal(two.getReadWriteLock("both").readLock().tryLock(), true);
        equal(two.getReadWriteLock("both").writeLock().tryLock(), false);
        two.getReadWriteLock("both").readLock().unlock();
        both.readLock().unlock();
        RLock held = one.getMultiLock(one.getLock("m1"), one.getLock("m2"));
        held.lock();
        held.unlock();
    }

    static void values(RedissonClient one, RedissonClient two) {
        RBucket<String> bucket = one.getBucket("bucket");
        bucket.set("a");
        equal(bucket.compareAndSet("a", "b"), true);
        equal(two.getBucket("bucket").get(), "b");
        RMap<String, String> map = one.getMap("map");
        equal(map.put("k", "1"), null);
        equal(map.put("k", "2"), "1");
        equal(map.putIfAbsent("k", "3"), "2");
        equal(map.replace("k", "2", "4"), true);
        equal(String.valueOf(map.addAndGet("n", 5)), "5");
        equal(map.readAllMap(), Map.of("k", "4", "n", "5"));
        equal(map.fastRemove("k", "none"), 1L);
        RMapCache<String, String> cache = one.getMapCache("cache");
        cache.put("short", "x", 100, TimeUnit.SECONDS);
        cache.put("long", "y");
        equal(cache.get("short"), "x");
        equal(cache.remainTimeToLive("short") > 0, true);
        equal(cache.size(), 2);
        RScoredSortedSet<String> ranks = one.getScoredSortedSet("ranks");
        ranks.add(1.5, "a");
        ranks.addScore("a", 1);
        ranks.add(2, "b");
        equal(ranks.valueRange(0, -1), List.of("b", "a"));
        equal(ranks.pollFirst(), "b");
    }

    static void waits(RedissonClient one, RedissonClient two) throws Exception {
        RTopic topic = two.getTopic("news");
        LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
        int id = topic.addListener(String.class, (channel, message) -> heard.add(channel + " " + message));
        equal(one.getTopic("news").publish("hello"), 1L);
        equal(heard.poll(30, TimeUnit.SECONDS), "news hello");
        topic.removeListener(id);
        RCountDownLatch latch = one.getCountDownLatch("latch");
        equal(latch.trySetCount(1), true);
        CountDownLatch passed = new CountDownLatch(1);
        Thread waiter = new Thread(() -> {
            try {
                two.getCountDownLatch("latch").await();
                passed.countDown();
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        });
        waiter.start();
        latch.countDown();
        equal(passed.await(30, TimeUnit.SECONDS), true);
        RSemaphore semaphore = one.getSemaphore("semaphore");
        equal(semaphore.trySetPermits(1), true);
        semaphore.acquire();
        equal(two.getSemaphore("semaphore").tryAcquire(), false);
        semaphore.release();
        equal(two.getSemaphore("semaphore").tryAcquire(), true);
        RBlockingQueue<String> queue = two.getBlockingQueue("queue");
        RDelayedQueue<String> delayed = one.getDelayedQueue(one.getBlockingQueue("queue"));
        delayed.offer("late", 50, TimeUnit.MILLISECONDS);
        one.getQueue("queue").add("soon");
        equal(queue.poll(30, TimeUnit.SECONDS), "soon");
        equal(queue.poll(30, TimeUnit.SECONDS), "late");
        delayed.destroy();
    }

    static void limits(RedissonClient one, RedissonClient two) {
        RRateLimiter limiter = one.getRateLimiter("limiter");
        equal(limiter.trySetRate(RateType.OVERALL, 3, Duration.ofHours(1)), true);
        equal(limiter.tryAcquire(2), true);
        equal(two.getRateLimiter("limiter").tryAcquire(1), true);
        equal(two.getRateLimiter("limiter").tryAcquire(1), false);
        equal(limiter.availablePermits(), 0L);
    }

    public static void main(String[] args) throws Exception {
        RedissonClient one = client(args[0]), two = client(args[0]);
        try {
            one.getKeys().flushall();
            locks(one, two);
            values(one, two);
            waits(one, two);
            limits(one, two);
            one.getKeys().flushall();
        } finally {
            one.shutdown();
            two.shutdown();
        }
    }
}
