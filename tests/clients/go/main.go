// Go-redis, or pgx if the second argument is `postgres`, against a server at the port that the first
// argument says; silent when all is well.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func equal(got, want any) {
	if !reflect.DeepEqual(got, want) {
		panic(fmt.Sprintf("got %#v, want %#v", got, want))
	}
}

func values(r *redis.Client) {
	equal(must(r.Set(ctx, "greeting", "hello", time.Minute).Result()), "OK")
	equal(must(r.Get(ctx, "greeting").Result()), "hello")
	if _, err := r.Get(ctx, "none").Result(); !errors.Is(err, redis.Nil) {
		panic(err)
	}
	if err := r.LPush(ctx, "greeting", 1).Err(); err == nil || !redis.HasErrorPrefix(err, "WRONGTYPE") {
		panic(err)
	}
	must(r.HSet(ctx, "h", "a", 1, "b", "two").Result())
	var h struct {
		A int    `redis:"a"`
		B string `redis:"b"`
	}
	if err := r.HGetAll(ctx, "h").Scan(&h); err != nil || h.A != 1 || h.B != "two" {
		panic(fmt.Sprint(err, h))
	}
	must(r.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "a"}, redis.Z{Score: 2.5, Member: "b"}).Result())
	equal(must(r.ZRangeWithScores(ctx, "z", 0, -1).Result()), []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}})
	for n := range 300 {
		must(r.SAdd(ctx, "s", n).Result())
	}
	seen := map[string]bool{}
	iterator := r.SScan(ctx, "s", 0, "", 20).Iterator()
	for iterator.Next(ctx) {
		seen[iterator.Val()] = true
	}
	equal(len(seen), 300)
}

func transactions(r *redis.Client) {
	cmds := must(r.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range 1000 {
			p.Set(ctx, fmt.Sprint("many:", n), n, 0)
		}
		p.Get(ctx, "many:7")
		return nil
	}))
	equal(cmds[1000].(*redis.StringCmd).Val(), "7")
	err := r.Watch(ctx, func(tx *redis.Tx) error {
		must(r.Set(ctx, "watched", 1, 0).Result())
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "watched", 2, 0).Err() })
		return err
	}, "watched")
	equal(err, redis.TxFailedErr)
	script := redis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
	equal(must(script.Run(ctx, r, []string{"counted"}, 42).Int()), 42)
	must(r.ScriptFlush(ctx).Result())
	equal(must(script.Run(ctx, r, []string{"counted"}, 1).Int()), 43)
}

func channels(r *redis.Client) {
	listener := r.PSubscribe(ctx, "n*")
	defer listener.Close()
	must(listener.Receive(ctx))
	must(r.Publish(ctx, "news", "x").Result())
	message := <-listener.Channel()
	equal([]string{message.Pattern, message.Channel, message.Payload}, []string{"n*", "news", "x"})
}

func streams(r *redis.Client) {
	must(r.XAdd(ctx, &redis.XAddArgs{Stream: "x", ID: "1-0", Values: []string{"a", "b"}}).Result())
	must(r.XGroupCreate(ctx, "x", "g", "0").Result())
	got := must(r.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"x", ">"}}).Result())
	equal(got[0].Messages[0].Values["a"], "b")
	equal(must(r.XAck(ctx, "x", "g", "1-0").Result()), int64(1))
	done := make(chan []string)
	go func() { done <- must(r.BLPop(ctx, 30*time.Second, "queue").Result()) }()
	must(r.RPush(ctx, "queue", "job").Result())
	equal(<-done, []string{"queue", "job"})
}

func series(r *redis.Client) {
	must(r.TSAdd(ctx, "t", 10, 1.5).Result())
	must(r.TSAddWithArgs(ctx, "u", 10, 2, &redis.TSOptions{Labels: map[string]string{"room": "hall"}}).Result())
	equal(must(r.TSRange(ctx, "t", 0, 100).Result()), []redis.TSTimestampValue{{Timestamp: 10, Value: 1.5}})
	equal(must(r.TSQueryIndex(ctx, []string{"room=hall"}).Result()), []string{"u"})
	equal(must(r.BFAdd(ctx, "b", "x").Result()), true)
}

func main() {
	port := os.Args[1]
	if len(os.Args) == 3 && os.Args[2] == "postgres" {
		postgres(port)
		return
	}
	for _, protocol := range []int{2, 3} {
		r := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: protocol})
		must(r.FlushAll(ctx).Result())
		for _, part := range []func(*redis.Client){values, transactions, channels, streams, series} {
			part(r)
		}
		r.Close()
	}
}
