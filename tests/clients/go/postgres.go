// Pgx as programs use it, and what Grafana's PostgreSQL source sends by it.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

var noon = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

func postgres(port string) {
	url := fmt.Sprintf("postgres://me@127.0.0.1:%s/metrics?sslmode=disable", port)
	c := must(pgx.Connect(ctx, url))
	defer c.Close(ctx)
	parameters(c)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		var n int64
		must(0, c.QueryRow(ctx, "SELECT count(*) FROM metrics WHERE name = $1", mode, "up").Scan(&n))
		equal(n, int64(2))
	}
	tables(c)
	copies(c)
	batches(c)
	grafana(c)
	cancelled(url)
}

func parameters(c *pgx.Conn) {
	var (
		at     time.Time
		value  float64
		labels map[string]string
	)
	row := c.QueryRow(ctx, "SELECT time, value, labels FROM metrics WHERE name = $1 AND time >= $2 ORDER BY value LIMIT $3", "up", noon, 1)
	must(0, row.Scan(&at, &value, &labels))
	equal(at.UTC(), noon)
	equal(value, 1.0)
	equal(labels, map[string]string{"job": "a"})
	rows := must(c.Query(ctx, "SELECT labels->>'job' FROM metrics WHERE labels->>'job' = ANY($1) ORDER BY 1", []string{"a", "b"}))
	equal(must(pgx.CollectRows(rows, pgx.RowTo[string])), []string{"a", "b"})
	_, err := c.Exec(ctx, "SELECT * FROM nowhere")
	var said *pgconn.PgError
	if !errors.As(err, &said) || said.Code != "42P01" {
		panic(err)
	}
}

type host struct {
	ID    int64
	Name  string
	Cpus  *int32
	Since *time.Time
	Tags  []string
}

func tables(c *pgx.Conn) {
	must(c.Exec(ctx, "CREATE TABLE hosts (id bigint PRIMARY KEY, name text NOT NULL, cpus int, since timestamptz, tags text[])"))
	must(0, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO hosts VALUES ($1, $2, $3, $4, $5)", 1, "a", 4, noon, []string{"x", "y"})
		return err
	}))
	back := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		must(tx.Exec(ctx, "INSERT INTO hosts (id, name) VALUES ($1, $2)", 2, "gone"))
		return errors.New("on purpose")
	})
	equal(back.Error(), "on purpose")
	must(c.Exec(ctx, "INSERT INTO hosts (id, name) VALUES ($1, $2)", 3, "b"))
	rows := must(c.Query(ctx, "SELECT id, name, cpus, since, tags FROM hosts ORDER BY id"))
	found := must(pgx.CollectRows(rows, pgx.RowToStructByPos[host]))
	equal(len(found), 2)
	equal(*found[0].Cpus, int32(4))
	equal(found[0].Since.UTC(), noon)
	equal(found[0].Tags, []string{"x", "y"})
	equal(found[1].Cpus == nil && found[1].Tags == nil, true)
}

// Pgx copies in binary.
func copies(c *pgx.Conn) {
	var rows [][]any
	for n := int64(100); n < 2100; n++ {
		rows = append(rows, []any{n, fmt.Sprint("host ", n), int32(n % 64)})
	}
	equal(must(c.CopyFrom(ctx, pgx.Identifier{"hosts"}, []string{"id", "name", "cpus"}, pgx.CopyFromRows(rows))), int64(2000))
	var sum int64
	must(0, c.QueryRow(ctx, "SELECT sum(cpus) FROM hosts WHERE id >= 100").Scan(&sum))
	want := int64(0)
	for n := int64(100); n < 2100; n++ {
		want += n % 64
	}
	equal(sum, want)
}

func batches(c *pgx.Conn) {
	batch := &pgx.Batch{}
	for n := range 10 {
		batch.Queue("SELECT $1::int * 2", n)
	}
	answers := c.SendBatch(ctx, batch)
	for n := range 10 {
		var twice int
		must(0, answers.QueryRow().Scan(&twice))
		equal(twice, 2*n)
	}
	must(0, answers.Close())
}

// What macros of Grafana's PostgreSQL source become: $__timeFilter, $__timeGroup, $__timeGroupAlias.
func grafana(c *pgx.Conn) {
	text := `SELECT floor(extract(epoch from time)/60)*60 AS "time", labels->>'job' AS metric, avg(value) AS "value"
		FROM metrics WHERE time BETWEEN '2024-02-29T11:00:00Z' AND '2024-02-29T13:00:00Z' AND name = 'up'
		GROUP BY 1, 2 ORDER BY 1, 2`
	rows := must(c.Query(ctx, text, pgx.QueryExecModeSimpleProtocol))
	found := must(pgx.CollectRows(rows, pgx.RowToMap))
	equal(len(found), 2)
	minute, _ := found[0]["time"].(pgtype.Numeric).Float64Value()
	equal(minute.Float64, float64(noon.Unix()))
	equal(fmt.Sprint(found[0]["metric"], " ", found[0]["value"]), "a 1")
	rows = must(c.Query(ctx, `SELECT time_bucket('60.000s', time) AS "time", max(value) FROM metrics
		WHERE name = 'up' AND time BETWEEN '2024-02-29T11:00:00Z' AND '2024-02-29T13:00:00Z' GROUP BY 1 ORDER BY 1`))
	equal(len(must(pgx.CollectRows(rows, pgx.RowToMap))), 1)
	// Its editor looks for tables with a time, and for their columns.
	look := func(text, column string) []string {
		var found []string
		for _, row := range must(pgx.CollectRows(must(c.Query(ctx, text, pgx.QueryExecModeSimpleProtocol)), pgx.RowToMap)) {
			found = append(found, fmt.Sprint(row[column]))
		}
		return found
	}
	schemas := `quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache',
		'_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental')
		AND table_type='BASE TABLE' AND quote_ident(table_schema) IN (
			SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
			FROM generate_series(
				array_lower(string_to_array(current_setting('search_path'),','),1),
				array_upper(string_to_array(current_setting('search_path'),','),1)
			) as i,
			string_to_array(current_setting('search_path'),',') s
		)`
	equal(slices.Contains(look(`select quote_ident(table_name) as "table" from information_schema.tables where `+schemas+` order by table_name`, "table"), "hosts"), true)
	columns := look(`select quote_ident(column_name) as "column", data_type as "type" from information_schema.columns
		where quote_ident(table_name) = 'hosts'`, "column")
	slices.Sort(columns)
	equal(columns, []string{"cpus", "id", "name", "since", "tags"})
}

// A query that takes long ends with its context, and the pool goes on.
func cancelled(url string) {
	pool := must(pgxpool.New(ctx, url))
	defer pool.Close()
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := pool.Exec(short, "SELECT pg_sleep(60)"); err == nil {
		panic("it was not cancelled")
	}
	for range 8 {
		var one int
		must(0, pool.QueryRow(ctx, "SELECT 1").Scan(&one))
	}
}
