package kubelet

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"waybill.dev/go"
)

// openTestStore opens a store, and closes it at the end of the test if it is still open.
func openTestStore(tb testing.TB, options waybill.Options) *waybill.Store {
	tb.Helper()
	if options.Directory == "" {
		options.Directory = filepath.Join(scratchDir(tb), "store")
	}
	options.Witness = waybill.WitnessNone()
	options.MapBytes = 64 << 20
	store, err := waybill.Open(context.Background(), options)
	must(tb, err)
	tb.Cleanup(func() {
		if err := store.Close(); err != nil && !errors.Is(err, waybill.ErrClosed) {
			tb.Error(err)
		}
	})
	return store
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
