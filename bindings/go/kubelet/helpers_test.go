package kubelet

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

// openTestStore opens a store, and closes it at the end of the test if it is still open.
func openTestStore(tb testing.TB, options store.Options) *store.Store {
	tb.Helper()
	if options.Directory == "" {
		options.Directory = filepath.Join(scratchDir(tb), "store")
	}
	options.LossMarker = store.NoLossMarker
	options.Settings.MapBytes = 64 << 20
	opened, err := store.Open(options)
	must(tb, err)
	tb.Cleanup(func() {
		if err := opened.Close(); err != nil && !errors.Is(err, waybill.ErrClosed) {
			tb.Error(err)
		}
	})
	return opened
}

// opening is what opening the store found.
func opening(tb testing.TB, store *store.Store) waybill.Opening {
	tb.Helper()
	status, err := store.GetStatus(context.Background(), waybill.GetStatus{})
	must(tb, err)
	return *status.Opening
}

// begins and ends a pull that no manager knows of.
func pulledInto(tb testing.TB, store *store.Store, end waybill.EndPull) {
	tb.Helper()
	begun, err := store.BeginPull(context.Background(), waybill.BeginPull{Image: end.Image})
	must(tb, err)
	end.Pull, end.Outcome = begun.Pull, waybill.OutcomePulled
	must(tb, store.EndPull(context.Background(), end))
}

// recordOf returns nil if there is no record.
func recordOf(tb testing.TB, store *store.Store, imageRef string) *waybill.PulledRecord {
	tb.Helper()
	stored, err := store.ListImages(context.Background(), waybill.ListImages{ImageRef: imageRef, Hashes: true})
	must(tb, err)
	if len(stored.Records) == 0 {
		return nil
	}
	return &stored.Records[0]
}

func forgetSecret(tb testing.TB, store *store.Store, namespace, name string) {
	tb.Helper()
	_, err := store.Revoke(context.Background(), waybill.Revoke{Kind: waybill.RevokeSecret, Namespace: namespace, Name: name})
	must(tb, err)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

var imageNames sync.Map // a call into the library each would be most of a judge's time

// imageName is the image name, or "" if the string does not parse.
func imageName(image string) string {
	if name, known := imageNames.Load(image); known {
		return name.(string)
	}
	parsed, err := store.Library.ParseImage(quiet, waybill.ParseImage{Image: image})
	if err != nil && !errors.Is(err, waybill.ErrInvalidArgument) {
		panic(err)
	}
	imageNames.Store(image, parsed.Name)
	return parsed.Name
}
