package waybill_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
)

func TestRecordsComeBackAsTheyWent(t *testing.T) {
	random := newRand(t)
	o := optionsIn(scratch(t))
	o.RuntimeHandlers = []waybill.RuntimeHandler{{Name: "runc", IsDefault: true}, {Name: "kata"}}
	s := open(t, o)
	stored := map[string]waybill.ImagePulledRecord{}
	for i := range 200 {
		r := randomRecord(random, fmt.Sprintf("sha256:%d", i))
		must(t, s.PutRecord(r))
		stored[r.ImageRef+"\x00"+r.RuntimeHandler] = r
		got := value(s.GetRecord(waybill.ImageCopy{ImageRef: r.ImageRef, RuntimeHandler: r.RuntimeHandler}))
		compareRecords(t, r, got)
	}
	records := value(s.ListRecords())
	for _, got := range records {
		key := got.ImageRef + "\x00" + got.RuntimeHandler
		compareRecords(t, stored[key], got)
		delete(stored, key)
	}
	errorIf(t, len(stored) != 0, "not listed: %v", maps.Keys(stored))
}

func randomRecord(random *rand.Rand, ref string) waybill.ImagePulledRecord {
	r := waybill.ImagePulledRecord{ImageRef: ref}
	if random.IntN(4) > 0 {
		r.LastUpdatedTime = time.Unix(random.Int64N(1<<32), random.Int64N(1e9)).UTC()
	}
	if random.IntN(3) == 0 {
		r.RuntimeHandler = "kata"
	}
	if random.IntN(3) == 0 {
		r.ManifestDigest = "sha256:" + strings.Repeat("a", 64)
		r.Platform = &waybill.Platform{
			OS: "windows", Architecture: "amd64", OSVersion: "10.0.20348.1970",
			OSFeatures: []string{"win32k", "\xff"}, Variant: "v2",
		}
	}
	for range random.IntN(4) {
		c := waybill.ImagePullCredentials{NodePodsAccessible: random.IntN(2) == 0}
		for i := range random.IntN(5) {
			c.KubernetesSecrets = append(c.KubernetesSecrets, waybill.ImagePullSecret{
				UID: fmt.Sprintf("%03d", i) + randomText(random), Namespace: randomText(random),
				Name: randomText(random), CredentialHash: randomText(random),
			})
		}
		for i := range random.IntN(3) {
			c.KubernetesServiceAccounts = append(c.KubernetesServiceAccounts, waybill.ImagePullServiceAccount{
				UID: fmt.Sprintf("%03d", i) + randomText(random), Namespace: randomText(random), Name: randomText(random),
			})
		}
		if c.NodePodsAccessible {
			c = waybill.ImagePullCredentials{NodePodsAccessible: true}
		}
		if r.CredentialMapping == nil {
			r.CredentialMapping = map[string]waybill.ImagePullCredentials{}
		}
		r.CredentialMapping["registry.example.com/"+randomText(random)] = c
	}
	return r
}

func randomText(random *rand.Rand) string {
	text := make([]byte, random.IntN(80))
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	return string(text)
}

func compareRecords(t testing.TB, want, got waybill.ImagePulledRecord) {
	t.Helper()
	errorIf(t, got.Stamp == 0, "a stored record has no stamp")
	got.Stamp = 0
	errorIf(t, len(got.Proofs) != len(got.CredentialMapping), "%d proofs of %d image names", len(got.Proofs), len(got.CredentialMapping))
	for name, c := range got.CredentialMapping {
		p := got.Proofs[name]
		errorIf(t, len(p.Secrets) != len(c.KubernetesSecrets) || len(p.ServiceAccounts) != len(c.KubernetesServiceAccounts), "%q: %+v of %+v", name, p, c)
	}
	got.Proofs = nil
	errorIf(t, !reflect.DeepEqual(got, want), "put\n%+v\ngot\n%+v", want, got)
}

func TestRecordErrors(t *testing.T) {
	s := newStore(t)
	wantCode(t, second(s.GetRecord(waybill.ImageCopy{ImageRef: "sha256:none"})), waybill.ErrNotFound)
	wantCode(t, s.PutRecord(waybill.ImagePulledRecord{}), waybill.ErrInvalidArgument)
	huge := strings.Repeat("x", 1<<20)
	for what, err := range map[string]error{
		"put":     s.PutRecord(waybill.ImagePulledRecord{ImageRef: huge}),
		"in it":   s.PutRecord(waybill.ImagePulledRecord{ImageRef: ref, CredentialMapping: map[string]waybill.ImagePullCredentials{huge: {}}}),
		"secret":  s.PutRecord(waybill.ImagePulledRecord{ImageRef: ref, CredentialMapping: map[string]waybill.ImagePullCredentials{"a": {KubernetesSecrets: []waybill.ImagePullSecret{{UID: huge}}}}}),
		"intent":  second(s.RecordPullIntent(waybill.ImageCopy{Image: huge})),
		"pulled":  s.RecordImagePulled(waybill.PulledImage{ImageCopy: waybill.ImageCopy{Image: image, ImageRef: huge}}),
		"missing": second(s.GetRecord(waybill.ImageCopy{ImageRef: huge})),
	} {
		errorIf(t, err == nil, "%s: 1 MiB went through", what)
	}
	records, err := s.ListRecords()
	errorIf(t, len(records) != 0 || err != nil, "%v, %v", records, err)
}

func TestIntents(t *testing.T) {
	s := newStore(t)
	for _, text := range []string{"b:v1", "a:v1", "\xff\x00 is no image"} {
		must(t, s.PutIntent(waybill.ImageCopy{Image: text}))
	}
	intents, err := s.ListIntents()
	want := []waybill.ImagePullIntent{{Image: "a:v1"}, {Image: "b:v1"}, {Image: "\xff\x00 is no image"}}
	errorIf(t, err != nil || !reflect.DeepEqual(intents, want), "%q, %v", intents, err)
	must(t, s.DeleteIntent(waybill.ImageCopy{Image: "a:v1"}))
	for text, want := range map[string]bool{"a:v1": false, "b:v1": true} {
		got, err := s.HasIntent(waybill.ImageCopy{Image: text})
		errorIf(t, got != want || err != nil, "%s: %v, %v", text, got, err)
	}
	wantCode(t, s.RecordImagePullFailed(waybill.ImageCopy{Image: "c:v1"}, 5, 0), waybill.ErrInvalidArgument)
}

func TestPrune(t *testing.T) {
	o := optionsIn(scratch(t))
	o.Clock = waybill.NewManualClock(time.Unix(1_000_000_000, 0))
	o.Evidence.Remember = -1
	s := open(t, o)
	for i := range 4 {
		pull(t, s, imageOf(i), refOf(i), waybill.ImagePullCredentials{NodePodsAccessible: true})
	}
	token := value(s.BeginList())
	pull(t, s, imageOf(3), refOf(3), waybill.ImagePullCredentials{NodePodsAccessible: true})
	want := waybill.PruneReport{Examined: 4, Removed: 2, KeptInList: 1, KeptNewer: 1}
	// A dry run reports what the real run then does.
	for _, options := range [][]waybill.ChangeOption{{waybill.DryRun}, {}} {
		report, err := s.Prune([]waybill.ImageOnNode{{ID: refOf(0)}}, token, options...)
		errorIf(t, err != nil || report != want, "%v: %+v, %v", options, report, err)
	}
	wantCode(t, second(s.GetRecord(waybill.ImageCopy{ImageRef: refOf(1)})), waybill.ErrNotFound) // not remembered
	wantCode(t, second(s.Prune(nil, token)), waybill.ErrInvalidArgument)
	wantCode(t, second(s.PruneBefore(nil, time.Unix(1_000_000_000, 0))), waybill.ErrInvalidArgument)
	report, err := s.PruneBefore(nil, time.Unix(1_000_000_002, 0), waybill.AllowEmpty)
	errorIf(t, err != nil || report.Removed != 2, "%+v, %v", report, err)
}
