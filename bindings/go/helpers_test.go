package waybill_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"waybill.dev/go"
)

const (
	image  = "registry.example.com/team-a/app:v1"
	ref    = "sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
	podUID = "0f3ac9c4-6d5b-4a3c-9a0e-4f4fbb0a5d11"
)

var secret = waybill.ImagePullSecret{
	UID:            "b7a3d7f0-1c54-4b51-8d1c-2a6e6f5b7f10",
	Namespace:      "team-a",
	Name:           "registry",
	CredentialHash: "1d03b8b8f9f35bbfb101f2d2d69dccf3f6b313b4aa67dbfab6889fa7bf0fa051",
}

func withSecrets(secrets ...waybill.ImagePullSecret) waybill.PodCredentials {
	return waybill.PodCredentials{Secrets: secrets}
}

// scratch makes a directory, in memory if possible: the tests commit thousands of times.
func scratch(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err != nil {
		return t.TempDir()
	}
	directory, err := os.MkdirTemp("/dev/shm", "waybill-go-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	return directory
}

func optionsIn(directory string) waybill.Options {
	return waybill.Options{
		Directory: filepath.Join(directory, "store"),
		Witness:   waybill.WitnessAt(filepath.Join(directory, "witness")),
		MapBytes:  64 << 20,
	}
}

func open(t testing.TB, o waybill.Options) *waybill.Store {
	t.Helper()
	s, err := waybill.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newStore(t testing.TB) *waybill.Store {
	t.Helper()
	return open(t, optionsIn(scratch(t)))
}

// closedStores are all the ways in which a store is not open.
func closedStores(t *testing.T) map[string]*waybill.Store {
	closed := newStore(t)
	must(t, closed.Close())
	return map[string]*waybill.Store{"nil": nil, "zero": {}, "closed": closed}
}

// pull records that image was pulled.
func pull(t testing.TB, s *waybill.Store, image, ref string, credentials waybill.ImagePullCredentials) {
	t.Helper()
	id := intend(t, s, waybill.ImageCopy{Image: image})
	must(t, s.RecordImagePulled(waybill.PulledImage{
		ImageCopy: waybill.ImageCopy{Image: image, ImageRef: ref}, Credentials: &credentials, Pull: id,
	}))
}

// intend begins a pull.
func intend(t testing.TB, s *waybill.Store, copy waybill.ImageCopy) waybill.PullID {
	t.Helper()
	return value(s.RecordPullIntent(copy))
}

// preload enters an image in the ledger.
func preload(t testing.TB, s *waybill.Store, image, ref string) {
	t.Helper()
	must(t, s.AddToLedger(waybill.ImageOnNode{ID: ref, RepoTags: []string{image}}, "test", "it is the test's"))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// value is of a step that a test takes for granted. An error ends all of them.
func value[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// fatalIf ends a test if what must not be is so.
func fatalIf(t testing.TB, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Fatalf(format, args...)
	}
}

// errorIf reports what it is given if what must not be is so.
func errorIf(t testing.TB, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Errorf(format, args...)
	}
}

func wantCode(t testing.TB, err, sentinel error) {
	t.Helper()
	errorIf(t, !errors.Is(err, sentinel), "want %v, got %v", sentinel, err)
}

func wantEqual[T comparable](t testing.TB, got, want T) {
	t.Helper()
	errorIf(t, got != want, "%v, not %v", got, want)
}

func wantReason(t testing.TB, s *waybill.Store, copy waybill.ImageCopy, pod waybill.PodCredentials, want waybill.Reason) {
	t.Helper()
	d := s.MustAttemptPull(copy, pod)
	errorIf(t, d.Reason != want, "%+v, not %v", d, want)
}

func wantPull(t testing.TB, s *waybill.Store, copy waybill.ImageCopy, pod waybill.PodCredentials, want bool) {
	t.Helper()
	d := s.MustAttemptPull(copy, pod)
	errorIf(t, d.Pull() != want, "%+v", d)
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

func hexSHA256(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
