package store_test

import (
	"fmt"
	"testing"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

func benchmarkStore(b *testing.B) *store.Store {
	s := newStore(b)
	for i := range 2000 {
		must(b, s.PutImage(b.Context(), waybill.PutImage{Record: waybill.PulledRecord{
			ImageRef:    fmt.Sprintf("sha256:%064x", i),
			Credentials: map[string]waybill.PulledWith{name: {Secrets: []waybill.Secret{secret}}},
		}}))
	}
	return s
}

var benchmarked = store.ImageCopy{Image: image, ImageRef: fmt.Sprintf("sha256:%064x", 1234)}

func BenchmarkDecide(b *testing.B) {
	s := benchmarkStore(b)
	each := []struct {
		name        string
		credentials store.PodCredentials
		use         bool
	}{
		{"hit/secrets=1", withSecrets(secret), true},
		{"hit/secrets=8", withSecrets(append(many(7), secret)...), true},
		{"miss/secrets=1", withSecrets(many(1)...), false},
		{"miss/secrets=8", withSecrets(many(8)...), false},
	}
	run := func(name string, ok func() bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !ok() {
					b.Fatal("not the answer that was to be measured")
				}
			}
		})
	}
	for _, c := range each {
		run(c.name, func() bool { return s.Decide(benchmarked, c.credentials).Use == c.use })
	}
	run("absent", func() bool { return !s.Decide(store.ImageCopy{Image: image}, each[0].credentials).Use })
	fetch := func() (store.PodCredentials, error) { return each[0].credentials, nil }
	run("hit/lazily", func() bool { d, err := s.DecideLazily(benchmarked, fetch); return d.Use && err == nil })
	run("hit/asCall", func() bool {
		d, err := s.MustPull(b.Context(), waybill.MustPull{Image: image, ImageRef: benchmarked.ImageRef, Secrets: each[0].credentials.Secrets})
		return !d.Pull && err == nil
	})
}
