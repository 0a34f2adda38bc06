package store_test

import (
	"fmt"
	"testing"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

// With up to 8 secrets a decision allocates nothing.
func TestDecisionsAllocateNothing(t *testing.T) {
	s := newStore(t)
	pullApp(t, s)
	account := &waybill.ServiceAccount{UID: "sa", Namespace: "team-a", Name: "builder"}
	for _, n := range []int{0, 1, 2, 8} {
		miss := store.PodCredentials{Secrets: many(n), ServiceAccount: account}
		hit := store.PodCredentials{Secrets: append(many(max(n, 1)-1), secret), ServiceAccount: account}
		for name, credentials := range map[string]store.PodCredentials{"hit": hit, "miss": miss} {
			name = fmt.Sprintf("%s, %d secrets", name, n)
			allocates(t, name, func() bool { return s.Decide(app, credentials).CredentialsRead })
			allocates(t, name+", lazily", func() bool {
				d, err := s.DecideLazily(app, func() (store.PodCredentials, error) { return credentials, nil })
				return err == nil && d.CredentialsRead
			})
		}
	}
	allocates(t, "no record", func() bool {
		return s.Decide(store.ImageCopy{Image: "other", ImageRef: "sha256:other"}, withSecrets(secret)).Reason.String() == "noEvidence"
	})
	preloaded := waybill.ListedImage{ID: ref[:70] + "0", RepoTags: []string{"registry.example.com/base:v1"}}
	must(t, second(s.AllowImage(t.Context(), waybill.AllowImage{Image: preloaded, Reason: "it is the test's"})))
	for _, spelling := range []string{preloaded.ID, preloaded.ID[7:]} {
		allocates(t, "preloaded, as "+spelling, func() bool {
			return s.Decide(store.ImageCopy{Image: "other", ImageRef: spelling}, withSecrets(secret)).Use
		})
	}
}

func allocates(t *testing.T, what string, f func() bool) {
	t.Helper()
	ok := true
	n := testing.AllocsPerRun(200, func() { ok = f() && ok })
	errorIf(t, n != 0, "%s: %v allocations", what, n)
	errorIf(t, !ok, "%s: not the answer that was to be measured", what)
}
