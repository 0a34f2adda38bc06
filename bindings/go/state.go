package waybill

// #include "shim.h"
import "C"

import (
	"context"
	"unsafe"
)

// StoreCounters is what the owner of a store counts, since it opened the store.
type StoreCounters struct {
	Decisions           [32]uint64 // by Reason, those that are counted
	MustPullChecks      [5]uint64  // by CheckResult
	EnsureImageRequests [3][3][3]uint64
	CommitFailures      uint64 // changes that were refused, or may not be on disk
	WriteBackFailures   uint64 // rotated credentials that could not be written back
	WriteBacksDropped   uint64 // likewise, since too many waited
	IDRangeFailures     uint64 // requests for a pod in a user namespace that got no mapping
	// By how they ended (0 succeeded, 1 failed, 2 it is not known), and by PullErrorClass.
	Pulls           [3][8]uint64
	PullNanoseconds uint64 // how long they took, as far as it is known
	PullCount       uint64 // how many that is of
	// KEP-2535's service level indicator, 0 to 1. -1: there was no request.
	ReverificationRatio float64
}

// Metrics returns what the store counts and holds. If the store can't be read, gauges are 0; if it is
// closed, everything is.
func (s *Store) Metrics() Metrics {
	var metrics *C.waybill_metrics
	_ = s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_get_metrics(h, &metrics, e) })
	return take(metrics, goMetrics)
}

func goStoreCounters(c *C.waybill_store_counters) StoreCounters {
	return StoreCounters{
		Decisions:           *(*[32]uint64)(unsafe.Pointer(&c.decisions)),
		MustPullChecks:      *(*[5]uint64)(unsafe.Pointer(&c.mustpull_checks)),
		EnsureImageRequests: *(*[3][3][3]uint64)(unsafe.Pointer(&c.ensure_image_requests)),
		CommitFailures:      uint64(c.commit_failures),
		WriteBackFailures:   uint64(c.write_back_failures),
		WriteBacksDropped:   uint64(c.write_backs_dropped),
		IDRangeFailures:     uint64(c.id_range_failures),
		Pulls:               *(*[3][8]uint64)(unsafe.Pointer(&c.pulls)),
		PullNanoseconds:     uint64(c.pull_nanoseconds),
		PullCount:           uint64(c.pull_count),
		ReverificationRatio: float64(c.reverification_ratio),
	}
}

// MetricsText returns the metrics in Prometheus' text exposition format, version 0.0.4: those of
// waybill (waybill_…), and from an owner those under the kubelet's names. Every series, zeros included.
func (s *Store) MetricsText() (string, error) {
	var text *C.waybill_string
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_metrics_text(h, &text, e) })
	return takeString(text), err
}

// Verify walks the raw pages, reads every value and recomputes the digests. Damage is not an
// error; the report lists it. Verify blocks the commits of this process meanwhile. Beside a busy
// owner it may have to start over, and is ErrIO after several tries. ErrNotFound, ErrIO: the file
// can't be read. The end of ctx stops it: ErrInterrupted, with the context's cause.
func (s *Store) Verify(ctx context.Context) (VerifyReport, error) {
	stop, err := watch(ctx)
	if err != nil {
		return VerifyReport{}, err
	}
	defer stop.end()
	progress, context := stop.progress()
	var report *C.waybill_verify_report
	err = s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_verify_with_progress(h, progress, context, &report, e)
	})
	return take(report, goVerifyReport), stop.because(err)
}
