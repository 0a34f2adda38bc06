// Command agent is an example of a node agent on waybill: it starts simulated pods of several tenants,
// from many goroutines, as a kubelet does, and prints what a kubelet would log.
//
//	agent -directory /tmp/node -pods 2000
//
// The directory holds the store, the simulated container runtime and the agent's own model of who may
// use which image (model.go). Kill it at any moment and start it again: it recovers, says what it
// found, and goes on. Every answer of the store is checked against the model. An answer that the model
// contradicts is printed as VIOLATION, and the exit code is 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"waybill.dev/go"
)

type agent struct {
	store   *waybill.Store
	runtime *runtime
	model   *model
	log     *logger

	// Only garbage collection locks it for writing: like a kubelet, it collects no image that a pod is
	// about to use.
	collecting sync.RWMutex

	generations [tenants]atomic.Int64 // how often each tenant's secret was rotated
	ranges      sync.Map              // of host IDs, by pod UID
	violations  atomic.Int64
	started     atomic.Int64
}

func main() {
	directory := flag.String("directory", "", "where store, runtime and model are kept; made if missing")
	pods := flag.Int64("pods", 1000, "pods to start; 0: until the duration ends or a signal comes")
	duration := flag.Duration("duration", 0, "how long to start pods; 0: until there were enough")
	workers := flag.Int("goroutines", 16, "pods that start at the same time")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random choices")
	quiet := flag.Bool("quiet", false, "print recovery, violations and the end only")
	flag.Parse()
	if *directory == "" || flag.NArg() > 0 || *workers < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *duration)
		defer cancel()
	}
	a := &agent{log: &logger{quiet: *quiet}}
	if err := a.run(ctx, *directory, *pods, *workers, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (a *agent) run(ctx context.Context, directory string, pods int64, workers int, seed uint64) (err error) {
	if err := a.start(ctx, directory); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.store.Close()) }()
	a.log.always("Starting pods", "seed", seed, "goroutines", workers)

	failures := make(chan error, workers)
	for worker := range workers {
		go func() {
			choices := rand.New(rand.NewPCG(seed, uint64(worker)))
			for ctx.Err() == nil {
				number := a.started.Add(1)
				if pods > 0 && number > pods {
					break
				}
				if err := a.step(choices, number); err != nil {
					failures <- err
					return
				}
			}
			failures <- nil
		}()
	}
	for range workers {
		err = errors.Join(err, <-failures)
	}
	return errors.Join(err, a.finish())
}

// start opens runtime, model and store in this order: recovery judges the runtime's list.
func (a *agent) start(ctx context.Context, directory string) (err error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	if a.runtime, err = openRuntime(filepath.Join(directory, "images")); err != nil {
		return err
	}
	if a.model, err = openModel(filepath.Join(directory, "model.log")); err != nil {
		return err
	}
	a.store, err = waybill.Open(ctx, waybill.Options{
		Directory:       filepath.Join(directory, "store"),
		Witness:         waybill.WitnessAt(filepath.Join(directory, "witness")),
		ImagesOnNode:    a.runtime.list(),
		AllowEmpty:      true, // this runtime always has its list
		RuntimeHandlers: []waybill.RuntimeHandler{{Name: "runc", IsDefault: true, UserNamespaces: true}},
	})
	if err != nil {
		return err
	}
	report := a.store.RecoveryReport()
	a.log.always("Opened the store", "created", report.Created, "records", report.Records,
		"intentsFound", report.IntentsFound, "commitSequence", report.CommitSequence)
	for _, image := range report.Observed.Judged {
		a.log.always("Found an image", "image", image.Name, "preloaded", image.Preloaded, "because", image.Because)
	}
	for _, finding := range report.Findings {
		a.log.always("Recovery", "finding", finding)
	}
	if report.Distrustful || report.SetAside {
		a.violation("a process that was killed cost the store something", "reason", report.DistrustReason)
	}
	if err := a.forgetDeleted(); err != nil {
		return err
	}
	return a.dropRanges()
}

// dropRanges releases the host IDs of an earlier process's pods: none of them runs any more.
func (a *agent) dropRanges() error {
	token, err := a.store.BeginList()
	if err != nil {
		return err
	}
	report, err := a.store.CleanUpUserNamespaces(nil, nil, token, waybill.AllowEmpty)
	if err == nil && report.Released > 0 {
		a.log.always("Released the host IDs of pods that are gone", "pods", report.Released)
	}
	return err
}

func (a *agent) finish() error {
	report, err := a.store.Verify(context.Background())
	if err != nil {
		return err
	}
	if !report.Sound {
		a.violation("the store does not verify", "findings", report.Findings)
	}
	statistics, err := a.store.Statistics()
	if err != nil {
		return err
	}
	checks := a.store.Metrics().MustPullChecks
	a.log.always("Done", "records", statistics.Records, "intents", statistics.Intents,
		"found", checks[waybill.CheckCredentialRecordFound], "mustAuthenticate", checks[waybill.CheckMustAuthenticate],
		"violations", a.violations.Load())
	if n := a.violations.Load(); n > 0 {
		return fmt.Errorf("%d violations", n)
	}
	return nil
}

func (a *agent) violation(what string, pairs ...any) {
	a.violations.Add(1)
	a.log.always("VIOLATION: "+what, pairs...)
}
