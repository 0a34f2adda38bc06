package waybill_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"waybill.dev/go"
)

// A value copied from another lives as long as the copy, not as long as the original.
func TestCopiesLive(t *testing.T) {
	store, policy, clock := copies(t)
	collect()
	errorIf(t, !clock.Now().Equal(time.Unix(1_700_000_000, 0)), "the clock stands at %v", clock.Now())
	errorIf(t, policy.Mode() != waybill.AlwaysVerify || !policy.RequiresVerification("nginx", waybill.OriginPreloaded), "the policy is %v", policy.Mode())
	intend(t, &store, waybill.ImageCopy{Image: image})
	wantReason(t, &store, app, waybill.PodCredentials{}, waybill.ReasonNoEvidence)
	must(t, store.Close())
	wantCode(t, store.Close(), waybill.ErrClosed)
}

// collect runs the cleanups of unreachable values, and lets other allocations take the freed memory.
func collect() {
	for range 3 {
		clean := make(chan struct{})
		runtime.AddCleanup(new([64]byte), func(clean chan struct{}) { close(clean) }, clean)
		for collected := false; !collected; {
			runtime.GC()
			select {
			case <-clean:
				collected = true
			default:
			}
		}
		for range 100 {
			waybill.NewManualClock(time.Unix(7, 0))
		}
	}
}

//go:noinline
func copies(t *testing.T) (waybill.Store, waybill.VerificationPolicy, waybill.ManualClock) {
	policy := value(waybill.NewVerificationPolicy(waybill.AlwaysVerify, nil, waybill.AllowlistAnyImage))
	clock := waybill.NewManualClock(time.Unix(1_700_000_000, 0))
	store := value(waybill.Open(context.Background(), optionsIn(scratch(t))))
	return *store, *policy, *clock
}

// A store keeps the clock that it was opened with, even if the variable changes.
func TestClockOverwritten(t *testing.T) {
	clock := waybill.NewManualClock(time.Unix(1_700_000_000, 0))
	o := optionsIn(scratch(t))
	o.Clock = clock
	store := open(t, o)
	*clock = *waybill.NewManualClock(time.Unix(1_800_000_000, 0))
	collect()
	pull(t, store, image, ref, waybill.ImagePullCredentials{NodePodsAccessible: true})
	record := value(store.GetRecord(waybill.ImageCopy{ImageRef: ref}))
	errorIf(t, !record.LastUpdatedTime.Equal(time.Unix(1_700_000_000, 0)), "recorded at %v", record.LastUpdatedTime)
}
