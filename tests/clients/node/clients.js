// ioredis and node-redis against a server at the port that the first argument says; silent when all is
// well.
'use strict';

const assert = require('node:assert/strict');
const Redis = require('ioredis');
const { createClient } = require('redis');

const port = Number(process.argv[2]);

async function ioredis() {
  const redis = new Redis({ port });
  assert.equal(await redis.set('greeting', 'hello', 'PX', 100000), 'OK');
  assert.equal(await redis.get('greeting'), 'hello');
  await redis.hset('h', { a: 1, b: 'two' });
  assert.deepEqual(await redis.hgetall('h'), { a: '1', b: 'two' });
  const binary = Buffer.from([0, 255, 13, 10]);
  await redis.set(binary, binary);
  assert.deepEqual(await redis.getBuffer(binary), binary);
  await assert.rejects(redis.lpush('greeting', 'x'), /WRONGTYPE/);
  await assert.rejects(redis.call('FT.SEARCH', 'i', '*'), /unknown command/);

  const results = await redis.pipeline().set('p', 1).incr('p').lpush('p', 1).get('p').exec();
  assert.deepEqual(results.map(([error, value]) => (error ? 'error' : value)), ['OK', 2, 'error', '2']);
  assert.deepEqual(await redis.multi().set('m', 1).incr('m').exec(), [[null, 'OK'], [null, 2]]);
  await redis.watch('m');
  const other = redis.duplicate();
  await other.set('m', 9);
  assert.equal(await redis.multi().incr('m').exec(), null);

  redis.defineCommand('addAll', { numberOfKeys: 1, lua: 'local n = 0 for _, v in ipairs(ARGV) do n = redis.call("INCRBY", KEYS[1], v) end return n' });
  assert.equal(await redis.addAll('sum', 1, 2, 3), 6);
  await redis.script('FLUSH');
  assert.equal(await redis.addAll('sum', 1), 7);

  const heard = new Promise((resolve) => other.on('pmessage', (...args) => resolve(args)));
  await other.psubscribe('n?ws');
  assert.equal(await redis.publish('news', 'x'), 1);
  assert.deepEqual(await heard, ['n?ws', 'news', 'x']);
  await other.quit();

  const blocked = redis.duplicate();
  const popped = blocked.blmove('from', 'to', 'LEFT', 'RIGHT', 30);
  await redis.rpush('from', 'job');
  assert.equal(await popped, 'job');
  assert.deepEqual(await redis.lrange('to', 0, -1), ['job']);
  await blocked.quit();

  const keys = [];
  await Promise.all(Array.from({ length: 500 }, (_, n) => redis.set(`scanned:${n}`, n)));
  for await (const page of redis.scanStream({ match: 'scanned:*', count: 50 })) keys.push(...page);
  assert.equal(new Set(keys).size, 500);
  await redis.quit();
}

async function nodeRedis(RESP) {
  const client = createClient({ RESP, socket: { port, host: '127.0.0.1' } });
  client.on('error', (error) => { throw error; });
  await client.connect();
  await client.flushAll();
  await client.set('k', 'v', { EX: 100 });
  assert.equal(await client.get('k'), 'v');
  await client.hSet('h', { a: '1' });
  assert.deepEqual({ ...(await client.hGetAll('h')) }, { a: '1' });
  await client.zAdd('z', [{ score: 1, value: 'a' }, { score: 2.5, value: 'b' }]);
  assert.deepEqual(await client.zRangeWithScores('z', 0, -1), [{ value: 'a', score: 1 }, { value: 'b', score: 2.5 }]);
  assert.deepEqual(await client.multi().set('n', '1').incr('n').exec(), ['OK', 2]);
  await client.xAdd('x', '1-0', { a: 'b' });
  const [{ messages }] = await client.xRead({ key: 'x', id: '0' });
  assert.equal(messages[0].message.a, 'b');
  const listener = client.duplicate();
  await listener.connect();
  const heard = new Promise((resolve) => listener.subscribe('c', resolve).then(() => client.publish('c', 'm')));
  assert.equal(await heard, 'm');
  await listener.close();
  await client.ts.add('t', 10, 1.5, { LABELS: { room: 'hall' } });
  assert.deepEqual(await client.ts.range('t', '-', '+'), [{ timestamp: 10, value: 1.5 }]);
  assert.deepEqual(await client.ts.queryIndex('room=hall'), ['t']);
  await client.close();
}

(async () => {
  await ioredis();
  await nodeRedis(2);
  await nodeRedis(3);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
