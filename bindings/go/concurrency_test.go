package waybill_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"waybill.dev/go"
)

// Goroutines do everything at once with one store, which is closed meanwhile. No pod without the secret
// may use the image, and every failed call says that the store is closed.
func TestCloseWhileEverythingRuns(t *testing.T) {
	random := newRand(t)
	for range 3 {
		s := newStore(t)
		const images = 5
		for i := range images {
			pull(t, s, imageOf(i), refOf(i), waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
		}
		var closed atomic.Bool
		var all sync.WaitGroup
		closeAt := random.IntN(2000)
		var calls atomic.Int64
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
					err := anyCall(t, s, int(choices>>33)%15, int(choices>>40)%images, worker*1000+step)
					if wasClosed && err == nil || err != nil && !errors.Is(err, waybill.ErrClosed) && !errors.Is(err, waybill.ErrNotFound) {
						// Between setting the flag and closing, calls may still succeed.
						errorIf(t, !wasClosed || err != nil, "closed before: %v, error: %v", wasClosed, err)
					}
				}
			})
		}
		all.Wait()
		if !closed.Load() {
			must(t, s.Close())
		}
		wantCode(t, s.Close(), waybill.ErrClosed)
	}
}

func imageOf(i int) string { return fmt.Sprintf("registry.example.com/team-a/app-%d:v1", i) }
func refOf(i int) string   { return fmt.Sprintf("sha256:%064d", i) }

func anyCall(t *testing.T, s *waybill.Store, what, i, unique int) error {
	switch what {
	case 0, 1, 2, 3:
		d := s.MustAttemptPull(waybill.ImageCopy{Image: imageOf(i), ImageRef: refOf(i)}, withSecrets(secret))
		errorIf(t, d.Pull() && d.Reason != waybill.ReasonStoreUnavailable, "the tenant was refused: %+v", d)
	case 4, 5:
		wantPull(t, s, waybill.ImageCopy{Image: imageOf(i), ImageRef: refOf(i)}, withSecrets(many(12)...), true)
	case 6:
		d, err := s.MustAttemptPullLazily(waybill.ImageCopy{Image: imageOf(i), ImageRef: refOf(i)}, func() (waybill.PodCredentials, error) {
			return withSecrets(many(1)...), nil
		})
		errorIf(t, !d.Pull(), "a stranger was let in: %+v", d)
		return err
	case 7:
		_, err := s.EnsureImage(waybill.ImageCopy{Image: imageOf(i), ImageRef: refOf(i)}, waybill.PullIfNotPresent, func() (waybill.PodCredentials, error) {
			return withSecrets(secret), nil
		})
		return err
	case 8:
		name := fmt.Sprintf("other-%d", unique)
		id, err := s.RecordPullIntent(waybill.ImageCopy{Image: name})
		if err != nil {
			return err
		}
		return s.RecordImagePullFailed(waybill.ImageCopy{Image: name}, waybill.PullFailed, id)
	case 9:
		r, err := s.GetRecord(waybill.ImageCopy{ImageRef: refOf(i)})
		errorIf(t, err == nil && (r.ImageRef != refOf(i) || len(r.CredentialMapping) != 1), "%+v", r)
		return err
	case 10:
		return second(s.ListRecords())
	case 11:
		no := false
		_, err := s.GetOrCreateUserNamespace(waybill.UserNamespaceRequest{PodUID: fmt.Sprint(unique), HostUsers: &no})
		if errors.Is(err, waybill.ErrInvalidArgument) { // the default handler does not support them
			return nil
		}
		return err
	case 12:
		s.Metrics()
		return second(s.Statistics())
	case 13:
		// Of another tenant, who has opened nothing.
		if report, err := s.ForgetNamespace("team-z"); err != nil || report.Records != 0 {
			return err
		}
		return second(s.ListRevocations())
	case 14:
		s.RecoveryReport()
		return s.Flush()
	}
	return nil
}

// The first decision that sees a rotated secret writes it back, and no other does.
func TestParallelWriteBacks(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			rotated := secret
			rotated.CredentialHash = fmt.Sprintf("%064d", worker%4)
			for range 50 {
				wantPull(t, s, app, withSecrets(rotated), false)
			}
		})
	}
	all.Wait()
	must(t, s.Flush())
	r := value(s.GetRecord(waybill.ImageCopy{ImageRef: ref}))
	wantEqual(t, len(r.CredentialMapping["registry.example.com/team-a/app"].KubernetesSecrets), 1)
}
