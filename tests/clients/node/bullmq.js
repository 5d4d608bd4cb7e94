// bullmq against a server at the port that the first argument says; silent when all is well.
// "jobs": every feature once. "fill N": N jobs, each said to standard output once it is acknowledged.
// "drain": works off what is there, and prints the numbers of the jobs.
'use strict';

const assert = require('node:assert/strict');
const { FlowProducer, Queue, QueueEvents, Worker } = require('bullmq');

const [port, what, count] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];
const connection = { port, host: '127.0.0.1', maxRetriesPerRequest: null };

// Resolves when that many jobs are done from now on.
function completed(worker, wanted) {
  let done = 0;
  return new Promise((resolve) => {
    if (wanted === 0) resolve();
    worker.on('completed', () => { done += 1; if (done === wanted) resolve(); });
  });
}

// Resolves with the first values of an event that fits.
function first(emitter, name, fits = () => true) {
  return new Promise((resolve) => {
    const listen = (...values) => {
      if (!fits(...values)) return;
      emitter.off(name, listen);
      resolve(values);
    };
    emitter.on(name, listen);
  });
}

async function jobs() {
  const queue = new Queue('jobs', { connection });
  const events = new QueueEvents('jobs', { connection });
  await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
  queue.setMaxListeners(0);
  let failures = 0;
  const order = [];
  const worker = new Worker('jobs', async (job) => {
    if (job.name === 'fails twice' && failures++ < 2) throw new Error('not yet');
    if (job.name === 'fails') throw new Error('never');
    await job.updateProgress(50);
    order.push(job.name);
    return { doubled: job.data.n * 2 };
  }, { connection });
  await worker.waitUntilReady();

  const job = await queue.add('plain', { n: 21 });
  assert.deepEqual(await job.waitUntilFinished(events, 30000), { doubled: 42 });
  const delayed = await queue.add('delayed', { n: 1 }, { delay: 100 });
  assert.equal(await delayed.getState(), 'delayed');
  await delayed.waitUntilFinished(events, 30000);
  const retried = await queue.add('fails twice', { n: 1 }, { attempts: 3, backoff: { type: 'fixed', delay: 10 } });
  await retried.waitUntilFinished(events, 30000);
  assert.equal(failures, 3);
  const failed = await queue.add('fails', {});
  await assert.rejects(failed.waitUntilFinished(events, 30000), /never/);
  assert.equal(await failed.isFailed(), true);
  await queue.pause();
  const last = queue.add('low', { n: 1 }, { priority: 5 });
  await last;
  await queue.add('high', { n: 1 }, { priority: 1 });
  const bulk = await queue.addBulk(Array.from({ length: 50 }, (_, n) => ({ name: 'bulk', data: { n } })));
  order.length = 0;
  await queue.resume();
  await Promise.all(bulk.map((one) => one.waitUntilFinished(events, 30000)));
  await (await last).waitUntilFinished(events, 30000);
  assert.ok(order.indexOf('high') < order.indexOf('low'), String(order));
  await queue.upsertJobScheduler('often', { every: 50 }, { name: 'tick', data: { n: 0 } });
  await first(worker, 'completed', (done) => done.name === 'tick');
  await first(worker, 'completed', (done) => done.name === 'tick');
  assert.equal(await queue.removeJobScheduler('often'), true);
  assert.equal(await queue.getCompletedCount() >= 54, true);
  await worker.close();
  await events.close();
  await queue.obliterate({ force: true });
  await queue.close();
}

async function flows() {
  const flow = new FlowProducer({ connection });
  const worker = new Worker('flow', async (job) => {
    if (job.name !== 'parent') return job.data.n;
    const values = Object.values(await job.getChildrenValues());
    return values.reduce((sum, value) => sum + value, 0);
  }, { connection, concurrency: 4 });
  const child = (n) => ({ name: 'child', queueName: 'flow', data: { n } });
  const finished = first(worker, 'completed', (job) => job.name === 'parent');
  await flow.add({ name: 'parent', queueName: 'flow', data: {}, children: [child(1), child(2), child(3)] });
  const [parent] = await finished;
  assert.equal(parent.returnvalue, 6);
  await worker.close();
  await flow.close();
}

async function limited() {
  const queue = new Queue('limited', { connection });
  await queue.addBulk(Array.from({ length: 6 }, () => ({ name: 'x', data: {} })));
  const start = Date.now();
  const worker = new Worker('limited', async () => {}, { connection, limiter: { max: 2, duration: 100 } });
  await completed(worker, 6);
  assert.ok(180 <= Date.now() - start, 'three windows of two jobs');
  await worker.close();
  await queue.close();
}

async function fill() {
  const queue = new Queue('kept', { connection });
  queue.on('error', () => process.exit(0));
  for (let n = 0; n < count; n += 1) {
    await queue.add('job', { n }, { jobId: `job-${n}` });
    process.stdout.write(`${n}\n`);
  }
}

async function drain() {
  const queue = new Queue('kept', { connection });
  const total = await queue.getJobCountByTypes('waiting');
  const worker = new Worker('kept', async (job) => { process.stdout.write(`${job.data.n}\n`); }, { connection, concurrency: 8 });
  await completed(worker, total);
  await worker.close();
  await queue.close();
}

const parts = { jobs: [jobs, flows, limited], fill: [fill], drain: [drain] };
(async () => {
  for (const part of parts[what]) await part();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
