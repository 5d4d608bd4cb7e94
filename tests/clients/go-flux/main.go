// flux-engine answers pipelines with InfluxData's own engine of Flux.
//
// Each line of the input is a query as a JSON string; each line of the output is {"csv": ..} or
// {"error": ..}. A query reads its data by csv.from(file: ..).
//
// Its types are in Rust, in the folder libflux of the module, and cgo finds them by a flux.pc:
//
//	cp -r $(go list -m -f '{{.Dir}}' github.com/influxdata/flux) FLUX; chmod -R u+w FLUX
//	rm FLUX/rust-toolchain.toml
//	(cd FLUX/libflux; RUSTFLAGS='--cap-lints allow' cargo build --package flux --lib --locked)
//	mkdir LIB; cp FLUX/libflux/target/debug/libflux.a LIB
//	LIB/flux.pc: Name, Description and Version: any
//	             Cflags: -I FLUX/libflux/include
//	             Libs: -L LIB -lflux -ldl -lm -lpthread
//	PKG_CONFIG_PATH=LIB go build -o flux-engine .
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/influxdata/flux"
	"github.com/influxdata/flux/csv"
	"github.com/influxdata/flux/dependencies/filesystem"
	"github.com/influxdata/flux/lang"
	"github.com/influxdata/flux/memory"
	"github.com/influxdata/flux/runtime"
	"github.com/influxdata/flux/values"

	// Only what pipelines use: all packages would bring the drivers of a dozen databases.
	_ "github.com/influxdata/flux/stdlib/array"
	_ "github.com/influxdata/flux/stdlib/csv"
	_ "github.com/influxdata/flux/stdlib/date"
	_ "github.com/influxdata/flux/stdlib/experimental"
	_ "github.com/influxdata/flux/stdlib/experimental/table"
	_ "github.com/influxdata/flux/stdlib/influxdata/influxdb"
	_ "github.com/influxdata/flux/stdlib/influxdata/influxdb/schema"
	_ "github.com/influxdata/flux/stdlib/math"
	_ "github.com/influxdata/flux/stdlib/regexp"
	_ "github.com/influxdata/flux/stdlib/strings"
	_ "github.com/influxdata/flux/stdlib/system"
	_ "github.com/influxdata/flux/stdlib/timezone"
	_ "github.com/influxdata/flux/stdlib/types"
	_ "github.com/influxdata/flux/stdlib/universe"
)

// memoryMax is what one query may take.
const memoryMax int64 = 1 << 30

type answer struct {
	CSV   string `json:"csv"`
	Error string `json:"error,omitempty"`
}

// run evaluates a query; a panic of the engine is an error, too.
func run(ctx context.Context, text string, out *bytes.Buffer) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	program, err := lang.FluxCompiler{Query: text, Now: time.Unix(1600000000, 0)}.Compile(ctx, runtime.Default)
	if err != nil {
		return err
	}
	limit := int64(memoryMax)
	query, err := program.Start(ctx, &memory.ResourceAllocator{Limit: &limit})
	if err != nil {
		return err
	}
	results := flux.NewResultIteratorFromQuery(query)
	defer results.Release()
	if _, err := csv.NewMultiResultEncoder(csv.DefaultEncoderConfig()).Encode(out, results); err != nil {
		return err
	}
	results.Release()
	return results.Err()
}

func main() {
	// The package of these two is internal to the engine.
	runtime.RegisterPackageValue("internal/boolean", "true", values.NewBool(true))
	runtime.RegisterPackageValue("internal/boolean", "false", values.NewBool(false))
	runtime.FinalizeBuiltIns()
	deps := flux.NewDefaultDependencies()
	deps.Deps.FilesystemService = filesystem.SystemFS
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			log.Fatal(err)
		}
		var out bytes.Buffer
		said := answer{}
		if err := run(deps.Inject(context.Background()), text, &out); err != nil {
			said.Error = err.Error()
		}
		said.CSV = out.String()
		if err := answers.Encode(said); err != nil {
			log.Fatal(err)
		}
	}
}
