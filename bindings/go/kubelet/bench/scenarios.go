package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/go-logr/logr"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// In the kubelet's own benchmarks (pullmanager/benchmarks_test.go) each ref has a record under one image
// name that is open to the whole node. Here every second record has a Secret instead. Requests are drawn
// from all records.
const requests = 4000

var podSecret = kubeletconfig.ImagePullSecret{
	UID: "0c1e2d3f-0000-4000-8000-00000000000a", Namespace: "default", Name: "pull-secret",
	CredentialHash: strings.Repeat("5e", 32),
}

func imageOf(ref string) string { return "test.repo/org/" + ref }

func newRef(r *rand.Rand) string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.Uint32()>>16, r.Uint32()>>20, r.Uint32()>>20, r.Uint64()>>16)
}

func makeRecords(r *rand.Rand, count int) []*kubeletconfig.ImagePulledRecord {
	records := make([]*kubeletconfig.ImagePulledRecord, count)
	for i := range records {
		ref := newRef(r)
		credentials := kubeletconfig.ImagePullCredentials{NodePodsAccessible: true}
		if i%2 == 1 {
			credentials = kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{podSecret}}
		}
		records[i] = &kubeletconfig.ImagePulledRecord{
			ImageRef:          ref,
			CredentialMapping: map[string]kubeletconfig.ImagePullCredentials{imageOf(ref): credentials},
		}
	}
	return records
}

// scenario is what each goroutine repeats.
type scenario struct {
	name string
	// fixed: a fixed number of steps a measurement, each on its own ref, undone afterwards. Otherwise as
	// many as fit in the time.
	fixed bool
	refs  func(r *rand.Rand, records []*kubeletconfig.ImagePulledRecord) []string
	step  func(p *peer, ref string) error
}

func everyOther(odd int) func(*rand.Rand, []*kubeletconfig.ImagePulledRecord) []string {
	return func(r *rand.Rand, records []*kubeletconfig.ImagePulledRecord) []string {
		refs := make([]string, requests)
		for i := range refs {
			refs[i] = records[2*r.IntN(len(records)/2)+odd].ImageRef
		}
		return refs
	}
}

func unknown(r *rand.Rand, _ []*kubeletconfig.ImagePulledRecord) []string {
	refs := make([]string, requests)
	for i := range refs {
		refs[i] = newRef(r)
	}
	return refs
}

func credentials() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
	return []kubeletconfig.ImagePullSecret{podSecret}, nil, nil
}

func decision(wantPull bool) func(*peer, string) error {
	return func(p *peer, ref string) error {
		pull, err := p.manager.MustAttemptImagePull(quiet, imageOf(ref), ref, credentials)
		if err == nil && pull != wantPull {
			err = fmt.Errorf("pull is %t", pull)
		}
		return err
	}
}

var scenarios = []scenario{
	{name: "decision: hit, node-wide", refs: everyOther(0), step: decision(false)},
	{name: "decision: hit, one secret", refs: everyOther(1), step: decision(false)},
	{name: "decision: miss", refs: unknown, step: decision(true)},
	{name: "write: intent, pull failed", fixed: true, refs: unknown, step: func(p *peer, ref string) error {
		if err := p.manager.RecordPullIntent(logr.Discard(), imageOf(ref)); err != nil {
			return err
		}
		p.manager.RecordImagePullFailed(quiet, imageOf(ref))
		return nil
	}},
	{name: "new pull: intent, record, intent gone", fixed: true, refs: unknown, step: func(p *peer, ref string) error {
		if err := p.manager.RecordPullIntent(logr.Discard(), imageOf(ref)); err != nil {
			return err
		}
		p.manager.RecordImagePulled(quiet, imageOf(ref), ref, &kubeletconfig.ImagePullCredentials{
			KubernetesSecrets: []kubeletconfig.ImagePullSecret{podSecret},
		})
		return nil
	}},
}
