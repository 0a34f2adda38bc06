package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

func copyOf(i int) store.ImageCopy {
	return store.ImageCopy{Image: fmt.Sprintf("registry.example.com/team-a/app-%d:v1", i), ImageRef: fmt.Sprintf("sha256:%064d", i)}
}

// Goroutines do everything at once with one store, which is closed meanwhile. No pod without the secret
// may use the image, and every failed call says that the store is closed.
func TestCloseWhileEverythingRuns(t *testing.T) {
	random := newRand(t)
	for range 3 {
		s := newStore(t)
		const images = 5
		for i := range images {
			pull(t, s, copyOf(i).Image, copyOf(i).ImageRef, waybill.PulledWith{Secrets: []waybill.Secret{secret}})
		}
		var closed atomic.Bool
		var all sync.WaitGroup
		var calls atomic.Int64
		closeAt := random.IntN(2000)
		for worker := range 100 {
			choices := random.Uint64()
			all.Go(func() {
				for step := range 40 {
					if int(calls.Add(1)) == closeAt {
						closed.Store(true)
						err := s.Close()
						errorIf(t, err != nil, "%v", err)
					}
					choices = choices*6364136223846793005 + 1442695040888963407
					wasClosed := closed.Load()
					err := anyCall(t, s, int(choices>>33)%13, copyOf(int(choices>>40)%images), worker*1000+step)
					errorIf(t, err != nil && !(errors.Is(err, waybill.ErrClosed) && (wasClosed || closed.Load())), "closed before: %v, error: %v", wasClosed, err)
				}
			})
		}
		all.Wait()
		if !closed.Load() {
			must(t, s.Close())
		}
		must(t, s.Close())
	}
}

func anyCall(t *testing.T, s *store.Store, what int, copy store.ImageCopy, unique int) error {
	ctx := t.Context()
	switch what {
	case 0, 1, 2, 3:
		d := s.Decide(copy, withSecrets(secret))
		errorIf(t, !d.Use && d.Reason.String() != "storeUnavailable", "the tenant was refused: %v", d)
	case 4:
		d := s.Decide(copy, withSecrets(many(12)...))
		errorIf(t, d.Use, "a stranger was let in: %v", d)
	case 5:
		d, err := s.DecideLazily(copy, func() (store.PodCredentials, error) { return withSecrets(many(1)...), nil })
		errorIf(t, d.Use, "a stranger was let in: %v", d)
		return err
	case 6:
		begun, err := s.BeginPull(ctx, waybill.BeginPull{Image: fmt.Sprintf("other-%d", unique)})
		if err != nil {
			return err
		}
		return s.EndPull(ctx, waybill.EndPull{Image: fmt.Sprintf("other-%d", unique), Pull: begun.Pull, Outcome: waybill.OutcomeFailed})
	case 7:
		known, err := s.ListImages(ctx, waybill.ListImages{ImageRef: copy.ImageRef})
		errorIf(t, err == nil && (len(known.Records) != 1 || known.Records[0].ImageRef != copy.ImageRef), "%+v", known.Records)
		return err
	case 8:
		return second(s.ClaimUserNamespace(ctx, waybill.ClaimUserNamespace{PodUID: fmt.Sprint(unique % 50), HostUsers: new(false)}))
	case 9:
		return errors.Join(second(s.GetStatus(ctx, waybill.GetStatus{Brief: true})), second(s.GetMetrics(ctx)))
	case 10: // of another tenant, who has opened nothing
		return second(s.Revoke(ctx, waybill.Revoke{Kind: waybill.RevokeNamespace, Namespace: "team-z"}))
	case 11:
		return s.Flush(ctx)
	case 12:
		return second(s.Explain(ctx, waybill.Explain{ImageRef: copy.ImageRef, Image: copy.Image}))
	}
	return nil
}
