// Makes the two blocks that stand beside this file, and what Thanos itself reads of them: 36 hours of a
// counter with resets, a gauge and a native histogram, downsampled to five minutes and to an hour.
//
// It was run within the sources of Thanos v0.39.2, as cmd/x/main.go: go run ./cmd/x OUT
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"

	gokitlog "github.com/go-kit/log"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/thanos-io/thanos/pkg/block/metadata"
	"github.com/thanos-io/thanos/pkg/compact/downsample"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

const start = int64(1788048000000)

func main() {
	dir := os.Args[1]
	ctx := context.Background()
	opts := tsdb.DefaultHeadOptions()
	opts.ChunkDirRoot = filepath.Join(dir, "head")
	opts.ChunkRange = 48 * 3600 * 1000
	opts.EnableNativeHistograms.Store(true)
	head, err := tsdb.NewHead(nil, slog.Default(), nil, nil, opts, nil)
	must(err)
	app := head.Appender(ctx)
	for i := int64(0); i < 36*60*2; i++ {
		t := start + i*30000
		c := float64(i%1500) * 3 // resets twice
		_, err = app.Append(0, labels.FromStrings("__name__", "requests_total", "job", "a"), t, c)
		must(err)
		_, err = app.Append(0, labels.FromStrings("__name__", "temperature", "job", "a"), t, math.Sin(float64(i)/100)*20)
		must(err)
		if i%20 == 0 {
			_, err = app.AppendHistogram(0, labels.FromStrings("__name__", "latency", "job", "a"), t, tsdbutil.GenerateTestHistogram(i), nil)
			must(err)
		}
	}
	must(app.Commit())
	comp, err := tsdb.NewLeveledCompactor(ctx, nil, slog.Default(), []int64{48 * 3600 * 1000}, nil, nil)
	must(err)
	ids, err := comp.Write(dir, head, head.MinTime(), head.MaxTime()+1, nil)
	must(err)
	bdir := filepath.Join(dir, ids[0].String())
	logger := gokitlog.NewNopLogger()
	meta, err := metadata.InjectThanos(logger, bdir, metadata.Thanos{
		Labels:     map[string]string{"cluster": "eu", "replica": "r1"},
		Downsample: metadata.ThanosDownsample{Resolution: 0},
		Source:     metadata.TestSource,
	}, nil)
	must(err)
	for _, res := range []int64{300000, 3600000} {
		b, err := tsdb.OpenBlock(slog.Default(), bdir, downsample.NewPool(), nil)
		must(err)
		id, err := downsample.Downsample(ctx, logger, meta, b, dir, res)
		must(err)
		must(b.Close())
		show(dir, id, res)
		bdir = filepath.Join(dir, id.String())
		meta, err = metadata.ReadFromDir(bdir)
		must(err)
	}
}

func show(dir string, id ulid.ULID, res int64) {
	bdir := filepath.Join(dir, id.String())
	b, err := tsdb.OpenBlock(slog.Default(), bdir, downsample.NewPool(), nil)
	must(err)
	ir, err := b.Index()
	must(err)
	cr, err := b.Chunks()
	must(err)
	defer ir.Close()
	defer cr.Close()
	name, value := index.AllPostingsKey()
	p, err := ir.Postings(context.Background(), name, value)
	must(err)
	var builder labels.ScratchBuilder
	out := map[string][][2]string{}
	for p.Next() {
		var chks []chunks.Meta
		must(ir.Series(p.At(), &builder, &chks))
		lset := builder.Labels()
		metric := lset.Get("__name__")
		if metric == "latency" {
			continue
		}
		var counters []chunkenc.Iterator
		add := func(it chunkenc.Iterator) {
			for it.Next() != chunkenc.ValNone {
				t, v := it.At()
				out[metric] = append(out[metric], [2]string{strconv.FormatInt(t, 10), strconv.FormatFloat(v, 'g', -1, 64)})
			}
		}
		for _, c := range chks {
			chk, _, err := cr.ChunkOrIterable(c)
			must(err)
			a := chk.(*downsample.AggrChunk)
			if metric == "requests_total" {
				x, err := a.Get(downsample.AggrCounter)
				must(err)
				counters = append(counters, x.Iterator(nil))
				continue
			}
			cnt, err := a.Get(downsample.AggrCount)
			must(err)
			sum, err := a.Get(downsample.AggrSum)
			must(err)
			add(downsample.NewAverageChunkIterator(cnt.Iterator(nil), sum.Iterator(nil)))
		}
		if metric == "requests_total" {
			add(downsample.NewApplyCounterResetsIterator(counters...))
		}
	}
	text, err := json.MarshalIndent(out, "", " ")
	must(err)
	must(os.WriteFile(filepath.Join(dir, fmt.Sprintf("expected-%d.json", res)), text, 0o644))
	fmt.Println(id, res, len(out["requests_total"]), len(out["temperature"]))
}
