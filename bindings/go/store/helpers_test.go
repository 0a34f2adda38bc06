package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

const (
	image  = "registry.example.com/team-a/app:v1"
	name   = "registry.example.com/team-a/app"
	ref    = "sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
	podUID = "0f3ac9c4-6d5b-4a3c-9a0e-4f4fbb0a5d11"
)

var (
	app    = store.ImageCopy{Image: image, ImageRef: ref}
	secret = waybill.Secret{
		UID:       "b7a3d7f0-1c54-4b51-8d1c-2a6e6f5b7f10",
		Namespace: "team-a",
		Name:      "registry",
		Hash:      "1d03b8b8f9f35bbfb101f2d2d69dccf3f6b313b4aa67dbfab6889fa7bf0fa051",
	}
)

func withSecrets(secrets ...waybill.Secret) store.PodCredentials {
	return store.PodCredentials{Secrets: secrets}
}

// many are n secrets that have opened nothing.
func many(n int) []waybill.Secret {
	secrets := make([]waybill.Secret, n)
	for i := range secrets {
		secrets[i] = waybill.Secret{UID: fmt.Sprintf("uid-%d", i), Namespace: "team-b", Name: fmt.Sprintf("secret-%d", i), Hash: fmt.Sprintf("%064d", i)}
	}
	return secrets
}

// scratch makes a directory, in memory if possible: the tests commit thousands of times.
func scratch(t testing.TB) string {
	t.Helper()
	directory, err := os.MkdirTemp("/dev/shm", "waybill-go-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	return directory
}

func optionsIn(directory string) store.Options {
	return store.Options{
		Directory:  filepath.Join(directory, "store"),
		LossMarker: filepath.Join(directory, "marker"),
		Settings:   waybill.Settings{MapBytes: 64 << 20},
		Runtimes:   []waybill.RuntimeHandler{{Name: "runc", IsDefault: true, UserNamespaces: true}, {Name: "kata"}},
	}
}

func open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func newStore(t testing.TB) *store.Store {
	t.Helper()
	return open(t, optionsIn(scratch(t)))
}

// pull records that image was pulled.
func pull(t testing.TB, s *store.Store, image, ref string, credentials waybill.PulledWith) {
	t.Helper()
	begun, err := s.BeginPull(t.Context(), waybill.BeginPull{Image: image})
	must(t, err)
	must(t, s.EndPull(t.Context(), waybill.EndPull{
		Image: image, ImageRef: ref, Pull: begun.Pull, Outcome: waybill.OutcomePulled, Credentials: &credentials}))
}

func pullApp(t testing.TB, s *store.Store) {
	t.Helper()
	pull(t, s, image, ref, waybill.PulledWith{Secrets: []waybill.Secret{secret}})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorIf reports what it is given if what must not be is so.
func errorIf(t testing.TB, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Errorf(format, args...)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	errorIf(t, !errors.Is(err, want), "want %v, got %#v", want, err)
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }

func wantReason(t testing.TB, s *store.Store, copy store.ImageCopy, pod store.PodCredentials, use bool, reason string) {
	t.Helper()
	d := s.Decide(copy, pod)
	errorIf(t, d.Use != use || d.Reason.String() != reason, "%v, not %t by %s", d, use, reason)
}

// newRand prints its seed if the test fails.
func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}
