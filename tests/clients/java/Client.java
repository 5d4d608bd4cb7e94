// Jedis against a server at the port that the first argument says; silent when all is well.

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.timeseries.TSCreateParams;
import redis.clients.jedis.timeseries.TSElement;

public class Client {
    static void equal(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    static void values(JedisPooled r) {
        equal(r.set("greeting", "hello", SetParams.setParams().px(100_000)), "OK");
        equal(r.get("greeting"), "hello");
        equal(r.get("none"), null);
        try {
            r.lpush("greeting", "x");
            throw new AssertionError("passed");
        } catch (JedisDataException error) {
            equal(error.getMessage().startsWith("WRONGTYPE"), true);
        }
        r.hset("h", Map.of("a", "1", "b", "two"));
        equal(r.hgetAll("h"), Map.of("a", "1", "b", "two"));
        r.zadd("z", Map.of("a", 1.0, "b", 2.5));
        equal(r.zrange("z", 0, -1), List.of("a", "b"));
        equal(r.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", List.of("n"), List.of("42")), 42L);
    }

    static void pipelines(JedisPooled r) {
        try (Pipeline pipe = r.pipelined()) {
            for (int n = 0; n < 1000; n++) {
                pipe.set("many:" + n, "" + n);
            }
            Response<String> last = pipe.get("many:999");
            pipe.sync();
            equal(last.get(), "999");
        }
    }

    static void connections(int port) throws Exception {
        try (Jedis one = new Jedis("127.0.0.1", port); Jedis two = new Jedis("127.0.0.1", port)) {
            one.watch("watched");
            two.set("watched", "x");
            Transaction lost = one.multi();
            lost.set("watched", "y");
            equal(lost.exec(), null);
            Transaction kept = one.multi();
            kept.set("watched", "1");
            kept.incr("watched");
            equal(kept.exec(), List.of("OK", 2L));
            var heard = new LinkedBlockingQueue<String>();
            var ready = new CountDownLatch(1);
            var listener = new JedisPubSub() {
                @Override public void onPSubscribe(String pattern, int count) { ready.countDown(); }
                @Override public void onPMessage(String pattern, String channel, String message) {
                    heard.add(pattern + channel + message);
                    punsubscribe();
                }
            };
            var listening = CompletableFuture.runAsync(() -> two.psubscribe(listener, "n*"));
            ready.await();
            equal(one.publish("news", "x"), 1L);
            equal(heard.take(), "n*newsx");
            listening.get();
            var popped = CompletableFuture.supplyAsync(() -> two.blpop(30, "queue"));
            one.rpush("queue", "job");
            equal(popped.get(), List.of("queue", "job"));
        }
    }

    static void series(JedisPooled r) {
        r.tsCreate("t", TSCreateParams.createParams().labels(Map.of("room", "hall")));
        equal(r.tsAdd("t", 10, 1.5), 10L);
        equal(r.tsRange("t", 0, 100), List.of(new TSElement(10, 1.5)));
        equal(r.tsQueryIndex("room=hall"), List.of("t"));
        equal(r.bfAdd("b", "x"), true);
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        for (RedisProtocol protocol : RedisProtocol.values()) {
            var config = DefaultJedisClientConfig.builder().protocol(protocol).build();
            try (JedisPooled r = new JedisPooled(new HostAndPort("127.0.0.1", port), config)) {
                r.flushAll();
                values(r);
                pipelines(r);
                series(r);
            }
        }
        connections(port);
    }
}
