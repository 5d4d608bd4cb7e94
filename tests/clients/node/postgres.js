// node-postgres against a server at the port that the first argument says; silent when all is well.
const assert = require("node:assert");
const { Client, Pool } = require("pg");

async function main() {
  const at = { host: "127.0.0.1", port: Number(process.argv[2]), user: "me", database: "metrics" };
  const client = new Client(at);
  await client.connect();
  const ask = async (text, values) => (await client.query(text, values)).rows;
  const time = new Date("2024-02-29T12:00:00Z");
  assert.deepStrictEqual(await ask("SELECT $1::int AS n, $2 AS t", [1, "x"]), [{ n: 1, t: "x" }]);
  const found = "SELECT time, value, labels FROM metrics WHERE name = $1 AND time >= $2 ORDER BY value LIMIT $3";
  assert.deepStrictEqual(await ask(found, ["up", time, 1]), [{ time, value: 1, labels: { job: "a" } }]);
  const any = "SELECT count(*)::int AS n FROM metrics WHERE labels->>'job' = ANY($1)";
  assert.deepStrictEqual(await ask(any, [["a", "b"]]), [{ n: 2 }]);
  const named = { name: "one", text: "SELECT value FROM metrics WHERE labels @> $1", values: [{ job: "b" }] };
  for (let round = 0; round < 3; round += 1) {
    assert.deepStrictEqual((await client.query(named)).rows, [{ value: 2 }]);
  }
  await assert.rejects(client.query("SELECT * FROM nowhere"), { code: "42P01" });
  assert.deepStrictEqual((await client.query("SELECT 1 AS a; SELECT 2 AS b")).map((one) => one.rows[0]), [{ a: 1 }, { b: 2 }]);
  await client.end();
  const pool = new Pool({ ...at, max: 2 });
  await Promise.all([1, 2, 3, 4].map(() => pool.query("SELECT 1")));
  await pool.end();
}

main();
