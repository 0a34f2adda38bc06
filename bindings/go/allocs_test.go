package waybill_test

import (
	"fmt"
	"testing"

	"waybill.dev/go"
)

// With up to 8 secrets a decision allocates nothing.
func TestDecisionsAllocateNothing(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	account := &waybill.ImagePullServiceAccount{UID: "sa", Namespace: "team-a", Name: "builder"}
	for _, n := range []int{0, 1, 2, 8} {
		miss := waybill.PodCredentials{Secrets: many(n), ServiceAccount: account}
		hit := waybill.PodCredentials{Secrets: append(many(max(n, 1)-1), secret), ServiceAccount: account}
		for name, credentials := range map[string]waybill.PodCredentials{"hit": hit, "miss": miss} {
			name = fmt.Sprintf("%s, %d secrets", name, n)
			allocates(t, name, func() bool {
				return s.MustAttemptPull(app, credentials).CredentialsRead
			})
			allocates(t, name+", lazily", func() bool {
				d, err := s.MustAttemptPullLazily(app, func() (waybill.PodCredentials, error) {
					return credentials, nil
				})
				return err == nil && d.CredentialsRead
			})
		}
	}
	allocates(t, "no record", func() bool {
		return s.MustAttemptPull(waybill.ImageCopy{Image: "other", ImageRef: "sha256:other"}, withSecrets(secret)).Reason == waybill.ReasonNoEvidence
	})
	hex := hexSHA256("preloaded")
	preload(t, s, "registry.example.com/base/preloaded:v1", "sha256:"+hex)
	for _, spelling := range []string{"sha256:" + hex, hex} {
		allocates(t, "preloaded, as "+spelling, func() bool {
			return !s.MustAttemptPull(waybill.ImageCopy{Image: "other", ImageRef: spelling}, withSecrets(secret)).Pull()
		})
	}
	allocates(t, "parsing", func() bool {
		_, ok := waybill.ParseImage(image)
		return ok
	})
}

func allocates(t *testing.T, what string, f func() bool) {
	t.Helper()
	ok := true
	n := testing.AllocsPerRun(200, func() { ok = ok && f() })
	errorIf(t, n != 0, "%s: %v allocations", what, n)
	errorIf(t, !ok, "%s: not the answer that was to be measured", what)
}
