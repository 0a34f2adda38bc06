// Command bench runs the kubelet's own benchmark scenarios on its pull manager over its files, with
// its cache in front of them, and over waybill, and on waybill's own manager, all in one run, and
// prints how they compare.
//
// The peers take turns, and each figure is the median over the rounds. The kubelet's writes reach only
// the page cache, waybill's reach the disk. On a file system in memory that costs waybill nothing.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

type plan struct {
	before    float64 // the load before the run
	directory string
	records   []int
	perCPU    []int // goroutines; 0: one alone
	rounds    int
	each      time.Duration // of one measurement
	steps     int           // of one measurement of writes
	rows      *[]row        // nil: not wanted
}

// row is what -json writes of one peer in one scenario; see bench/README.md.
type row struct {
	Scenario   string `json:"scenario"`
	Records    int    `json:"records"`
	Goroutines string `json:"goroutines"`
	Over       string `json:"over"`
	Durable    bool   `json:"durable"` // whether its writes are on the disk when they return
	Ns         spread `json:"ns"`
	Ratio      spread `json:"ratio"` // to waybill, round by round
}

// spread is a median with its quartiles.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

func main() {
	quick := flag.Bool("quick", false, "a smoke test: two sizes, one short round")
	directory := flag.String("dir", os.TempDir(), "where the records are kept")
	rounds := flag.Int("rounds", 5, "measurements of each figure")
	each := flag.Duration("each", 100*time.Millisecond, "length of one measurement of decisions")
	jsonFile := flag.String("json", "", "write the figures to this file, too")
	streams := flag.Bool("streams", false, "streaming requests only")
	brief := flag.Bool("brief", false, "one size and one goroutine only")
	flag.Parse()
	p := plan{
		before:    load(),
		directory: *directory, rounds: *rounds, each: *each, steps: 64,
		records: []int{50, 100, 200, 500, cacheSize - 2}, perCPU: []int{0, 1, 2, 8, 16},
		rows: new([]row),
	}
	if *brief {
		p.records, p.perCPU = []int{cacheSize - 2}, []int{0}
	}
	if *quick {
		p.records, p.perCPU, p.rounds, p.each, p.steps = []int{50, 200}, []int{0, 2}, 1, 2*time.Millisecond, 4
	}
	var err error
	if *streams {
		var figures []streamFigure
		if figures, err = p.runStreams(streamSteps, os.Stdout); err == nil && *jsonFile != "" {
			err = writeJSON(*jsonFile, "streams", p, figures)
		}
	} else if err = run(p, os.Stdout); err == nil && *jsonFile != "" {
		err = writeJSON(*jsonFile, "kubelet", p, *p.rows)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// load returns how many threads wanted a CPU in the last minute, or 0.
func load() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	value, _ := strconv.ParseFloat(first, 64)
	return value
}

// writeJSON writes {"name": …, "machine": {…}, "warnings": […], "rows": […]}, a row a line.
func writeJSON[T any](path, name string, p plan, rows []T) error {
	machine, err := json.Marshal(map[string]string{
		"commit": cmp.Or(os.Getenv("WAYBILL_COMMIT"), "not given"), "date": time.Now().UTC().Format(time.DateOnly),
		"go": runtime.Version(), "arch": runtime.GOARCH, "cpus": strconv.Itoa(runtime.NumCPU()),
		"load": fmt.Sprintf("%.1f before the run, %.1f after it", p.before, load()), "rounds": strconv.Itoa(p.rounds),
	})
	if err != nil {
		return err
	}
	warnings := []string{}
	if p.before > float64(runtime.NumCPU())/2 {
		warnings = append(warnings, fmt.Sprintf("the machine is busy (load %.1f on %d CPUs)", p.before, runtime.NumCPU()))
	}
	warned, err := json.Marshal(warnings)
	if err != nil {
		return err
	}
	text := bytes.NewBufferString("{\"name\": \"" + name + "\", \"machine\": " + string(machine) + ", \"warnings\": " + string(warned) + ", \"rows\": [\n")
	for i, r := range rows {
		one, err := json.Marshal(r)
		if err != nil {
			return err
		}
		text.Write(one)
		if i < len(rows)-1 {
			text.WriteByte(',')
		}
		text.WriteByte('\n')
	}
	text.WriteString("]}\n")
	return os.WriteFile(path, text.Bytes(), 0o644)
}

func run(p plan, out io.Writer) error {
	scratch, err := os.MkdirTemp(p.directory, "waybill-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	fmt.Fprintf(out, "%s %s, %d CPUs, records in %s, median of %d\n", runtime.Version(), runtime.GOARCH, runtime.NumCPU(), p.directory, p.rounds)
	fmt.Fprintf(out, "× how many times as long as waybill; \"alone\": one goroutine\n\n")
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range scenarios {
		fmt.Fprintln(out, s.name)
		table := tabwriter.NewWriter(out, 9, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(table, "records\tgoroutines a CPU\tfiles\tcache\taccessor\twaybill\tfiles ×\tcache ×\taccessor ×\t\n")
		for _, count := range p.records {
			if err := p.compare(table, r, s, count, filepath.Join(scratch, s.name+strconv.Itoa(count))); err != nil {
				return fmt.Errorf("%s, %d records: %w", s.name, count, err)
			}
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return nil
}

func (p plan) compare(table io.Writer, r *rand.Rand, s scenario, count int, directory string) error {
	if err := os.Mkdir(directory, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	records := makeRecords(r, count)
	peers, err := makePeers(directory, records)
	if err != nil {
		return err
	}
	defer closeAll(peers)
	for _, perCPU := range p.perCPU {
		taken := make([][]time.Duration, len(peers))
		for range p.rounds {
			refs := s.refs(r, records)
			for i, peer := range peers {
				one, err := p.measure(s, peer, refs, max(1, perCPU*runtime.GOMAXPROCS(0)))
				if err != nil {
					return fmt.Errorf("%s: %w", peer.name, err)
				}
				taken[i] = append(taken[i], one)
			}
		}
		goroutines := "alone"
		if perCPU > 0 {
			goroutines = strconv.Itoa(perCPU)
		}
		fmt.Fprintf(table, "%d\t%s\t", count, goroutines)
		ours := median(taken[len(taken)-1])
		for _, peers := range taken {
			fmt.Fprintf(table, "%v\t", rounded(median(peers)))
		}
		for _, peers := range taken[:len(taken)-1] {
			fmt.Fprintf(table, "%.1f\t", float64(median(peers))/float64(max(1, ours)))
		}
		fmt.Fprintln(table)
		if p.rows != nil {
			*p.rows = append(*p.rows, rowsOf(s, count, goroutines, peers, taken)...)
		}
	}
	return nil
}

// rowsOf is a row for each peer. Waybill is the last.
func rowsOf(s scenario, count int, goroutines string, peers []*peer, taken [][]time.Duration) []row {
	if goroutines != "alone" {
		goroutines += " goroutines a CPU"
	}
	ours := taken[len(taken)-1]
	var rows []row
	for i, peer := range peers {
		var ns, ratios []float64
		for round, one := range taken[i] {
			ns = append(ns, float64(one))
			ratios = append(ratios, float64(one)/float64(max(1, ours[round])))
		}
		rows = append(rows, row{
			Scenario: s.name, Records: count, Goroutines: goroutines, Over: peer.name,
			Durable: peer.name == overAccessor || peer.name == overWaybill,
			Ns:      spreadOf(ns), Ratio: spreadOf(ratios),
		})
	}
	return rows
}

// spreadOf interpolates between neighbours, to four digits.
func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	at := func(part float64) float64 {
		place := part * float64(len(sorted)-1)
		below := int(place)
		above := min(below+1, len(sorted)-1)
		value := sorted[below] + (place-float64(below))*(sorted[above]-sorted[below])
		short, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 4, 64), 64)
		return short
	}
	return spread{Median: at(0.5), Low: at(0.25), High: at(0.75)}
}

func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

func rounded(d time.Duration) time.Duration {
	if d > 10*time.Microsecond {
		return d.Round(100 * time.Nanosecond)
	}
	return d
}

// measure returns the wall-clock time of one step while all goroutines run steps.
func (p plan) measure(s scenario, on *peer, refs []string, goroutines int) (time.Duration, error) {
	var done atomic.Int64
	var failure atomic.Pointer[error]
	steps := len(refs)
	if s.fixed {
		steps = min(len(refs), max(p.steps, 2*goroutines))
	}
	start := time.Now()
	end := start.Add(p.each)
	var workers sync.WaitGroup
	for worker := range goroutines {
		workers.Go(func() {
			for i, own := worker, 0; failure.Load() == nil; i, own = i+goroutines, own+1 {
				// Reading the clock costs as much as a lookup, so not every step does.
				if s.fixed && i >= steps || !s.fixed && own%16 == 0 && time.Now().After(end) {
					return
				}
				if err := s.step(on, refs[i%len(refs)]); err != nil {
					failure.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	taken := time.Since(start)
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	if s.fixed {
		for _, ref := range refs[:steps] {
			if err := on.remove(ref); err != nil {
				return 0, err
			}
		}
	}
	return taken / time.Duration(max(1, done.Load())), nil
}
