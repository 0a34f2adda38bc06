package waybill_test

import (
	"fmt"
	"testing"

	"waybill.dev/go"
)

func benchmarkStore(b *testing.B) *waybill.Store {
	s := newStore(b)
	for i := range 2000 {
		credentials := waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}}
		must(b, s.PutRecord(waybill.ImagePulledRecord{
			ImageRef:          fmt.Sprintf("sha256:%064x", i),
			CredentialMapping: map[string]waybill.ImagePullCredentials{"registry.example.com/team-a/app": credentials},
		}))
	}
	return s
}

var benchmarkRef = fmt.Sprintf("sha256:%064x", 1234)

func BenchmarkMustAttemptPull(b *testing.B) {
	s := benchmarkStore(b)
	each := []struct {
		name        string
		credentials waybill.PodCredentials
		pull        bool
	}{
		{"hit/secrets=1", withSecrets(secret), false},
		{"hit/secrets=8", withSecrets(append(many(7), secret)...), false},
		{"miss/secrets=1", withSecrets(many(1)...), true},
		{"miss/secrets=8", withSecrets(many(8)...), true},
	}
	for _, c := range each {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s.MustAttemptPull(waybill.ImageCopy{Image: image, ImageRef: benchmarkRef}, c.credentials).Pull() != c.pull {
					b.Fatal("not the answer that was to be measured")
				}
			}
		})
	}
	b.Run("absent", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !s.MustAttemptPull(waybill.ImageCopy{Image: image}, each[0].credentials).Pull() {
				b.Fatal("not the answer that was to be measured")
			}
		}
	})
	b.Run("hit/lazily", func(b *testing.B) {
		b.ReportAllocs()
		fetch := func() (waybill.PodCredentials, error) { return each[0].credentials, nil }
		for b.Loop() {
			if d, err := s.MustAttemptPullLazily(waybill.ImageCopy{Image: image, ImageRef: benchmarkRef}, fetch); d.Pull() || err != nil {
				b.Fatal("not the answer that was to be measured")
			}
		}
	})
	b.Run("hit/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if s.MustAttemptPull(waybill.ImageCopy{Image: image, ImageRef: benchmarkRef}, each[0].credentials).Pull() {
					b.Error("not the answer that was to be measured")
				}
			}
		})
	})
}

// A whole new pull: writes the intent, then writes the record and deletes the intent.
func BenchmarkPull(b *testing.B) {
	s := benchmarkStore(b)
	credentials := waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}}
	i := 0
	for b.Loop() {
		pull(b, s, image, fmt.Sprintf("sha256:%064x", 1_000_000+i), credentials)
		i++
	}
}
