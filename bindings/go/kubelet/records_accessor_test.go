package kubelet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

func newAccessor(t *testing.T, store *store.Store) *RecordsAccessor {
	t.Helper()
	accessor, err := NewRecordsAccessor(store)
	must(t, err)
	return accessor
}

func secretOf(name string) kubeletconfig.ImagePullSecret {
	return kubeletconfig.ImagePullSecret{
		UID: "0c1e2d3f-0000-4000-8000-00000000000a", Namespace: "default", Name: name, CredentialHash: strings.Repeat("a", 64),
	}
}

// Results equal those of the kubelet's file accessor, down to each nil.
func TestAccessorReadsBackWhatTheKubeletsDoes(t *testing.T) {
	files, err := pullmanager.NewFSPullRecordsAccessor(logr.Discard(), scratchDir(t))
	must(t, err)
	ours := newAccessor(t, openTestStore(t, store.Options{Settings: waybill.Settings{Mode: waybill.ModeKubelet}}))
	moment := time.Date(2026, 1, 2, 3, 4, 5, 987_654_321, time.FixedZone("", 3600))
	for i, record := range []*kubeletconfig.ImagePulledRecord{
		{},
		{LastUpdatedTime: metav1.Time{Time: moment}},
		{LastUpdatedTime: metav1.Time{Time: time.Unix(-1, 500)}},
		{CredentialMapping: map[string]kubeletconfig.ImagePullCredentials{}},
		{CredentialMapping: map[string]kubeletconfig.ImagePullCredentials{"nginx": {}}},
		{CredentialMapping: map[string]kubeletconfig.ImagePullCredentials{
			"nginx":      {NodePodsAccessible: true},
			"team/<app>": {KubernetesSecrets: []kubeletconfig.ImagePullSecret{secretOf("b"), secretOf("a")}},
			"é":          {KubernetesSecrets: []kubeletconfig.ImagePullSecret{}, KubernetesServiceAccounts: []kubeletconfig.ImagePullServiceAccount{{UID: "u", Namespace: "n", Name: "builder"}}},
		}},
	} {
		record.ImageRef = fmt.Sprintf("sha256:%064d", i)
		var got [2]*kubeletconfig.ImagePulledRecord
		for j, accessor := range []pullmanager.PullRecordsAccessor{files, ours} {
			must(t, accessor.WriteImagePulledRecord(logr.Discard(), record))
			var exists bool
			if got[j], exists, err = accessor.GetImagePulledRecord(record.ImageRef); err != nil || !exists {
				t.Fatal(exists, err)
			}
		}
		if !reflect.DeepEqual(got[0], got[1]) {
			t.Errorf("kubelet: %#v\nwaybill: %#v", got[0], got[1])
		}
	}
	if record, exists, err := ours.GetImagePulledRecord("absent"); record != nil || exists || err != nil {
		t.Errorf("of an absent record: %v, %t, %v", record, exists, err)
	}
	for range 2 {
		if err := ours.DeleteImagePulledRecord(logr.Discard(), "absent"); err != nil {
			t.Error(err)
		}
		if err := ours.DeleteImagePullIntent(logr.Discard(), "absent"); err != nil {
			t.Error(err)
		}
	}
	if err := ours.DeleteImagePulledRecord(logr.Discard(), ""); err != nil {
		t.Error(err)
	}
}

func writeKubeletFile(t *testing.T, directory, folder, identity, content string) {
	t.Helper()
	path := filepath.Join(directory, "image_manager", folder)
	must(t, os.MkdirAll(path, 0o700))
	name := fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(identity)))
	must(t, os.WriteFile(filepath.Join(path, name), []byte(content), 0o600))
}

// The same broken files, read by the kubelet's accessor and taken over by ours.
func TestAccessorKeepsWhatCantBeDecoded(t *testing.T) {
	directory, taken := scratchDir(t), scratchDir(t)
	const sound = `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2026-01-02T03:04:05Z","imageRef":"sound"}`
	for _, to := range []string{directory, taken} {
		writeKubeletFile(t, to, "pulled", "sound", sound)
		writeKubeletFile(t, to, "pulled", "broken", sound[:40])
		writeKubeletFile(t, to, "pulling", "broken:1", `{"kind":"Imag`)
		writeKubeletFile(t, to, "pulling", "nginx:1", `{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"nginx:1"}`)
	}
	files, err := pullmanager.NewFSPullRecordsAccessor(logr.Discard(), directory)
	must(t, err)
	ours := newAccessor(t, openTestStore(t, store.Options{Settings: waybill.Settings{Mode: waybill.ModeKubelet}, KubeletDirectory: taken, Unrecorded: "no"}))
	for name, accessor := range map[string]pullmanager.PullRecordsAccessor{"kubelet": files, "waybill": ours} {
		if records, err := accessor.ListImagePulledRecords(); len(records) != 1 || err == nil {
			t.Errorf("%s lists %d records, error %v", name, len(records), err)
		}
		if intents, err := accessor.ListImagePullIntents(); len(intents) != 1 || err == nil {
			t.Errorf("%s lists %d intents, error %v", name, len(intents), err)
		}
		if record, exists, err := accessor.GetImagePulledRecord("broken"); record != nil || !exists || err == nil {
			t.Errorf("%s: %v, %t, %v", name, record, exists, err)
		}
		if there, err := accessor.ImagePullIntentExists("broken:1"); there || err == nil {
			t.Errorf("%s: %t, %v", name, there, err)
		}
		if there, err := accessor.ImagePullIntentExists("nginx:1"); !there || err != nil {
			t.Errorf("%s: %t, %v", name, there, err)
		}
		if err := accessor.WriteImagePulledRecord(logr.Discard(), &kubeletconfig.ImagePulledRecord{ImageRef: "broken"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, exists, err := accessor.GetImagePulledRecord("broken"); !exists || err != nil {
			t.Errorf("%s after it was written anew: %t, %v", name, exists, err)
		}
	}
	if _, _, err := ours.GetImagePulledRecord("sound"); err != nil {
		t.Error(err)
	}
	if _, err := ours.ImagePullIntentExists("broken:1"); !errors.Is(err, waybill.ErrDamaged) {
		t.Errorf("an intent in quarantine: %v", err)
	}
}

// A lost record must not make an image look preloaded, whichever manager uses the accessor.
func TestAccessorOfADistrustfulStore(t *testing.T) {
	directory := scratchDir(t)
	store := openTestStore(t, store.Options{Settings: waybill.Settings{Mode: waybill.ModeKubelet}, Directory: filepath.Join(directory, "store"), KubeletDirectory: directory, Unrecorded: "yes"})
	accessor := newAccessor(t, store)
	record, exists, err := accessor.GetImagePulledRecord("ref")
	if err != nil || !exists || len(record.CredentialMapping) != 0 {
		t.Errorf("of a store that lost something: %v, %t, %v", record, exists, err)
	}
	if _, err := store.AcceptLoss(quiet, waybill.AcceptLoss{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, exists, err := accessor.GetImagePulledRecord("ref"); exists || err != nil {
		t.Errorf("of a store that is trusted again: %t, %v", exists, err)
	}
}

func TestAccessorKnowsOfOtherHandlers(t *testing.T) {
	store := openTestStore(t, store.Options{Settings: waybill.Settings{Mode: waybill.ModeKubelet}, Runtimes: []waybill.RuntimeHandler{{Name: "runc", IsDefault: true}, {Name: "kata"}}})
	must(t, store.EndPull(quiet, waybill.EndPull{Image: "nginx", ImageRef: "ref", RuntimeHandler: "kata", Outcome: waybill.OutcomePulled}))
	if _, err := store.BeginPull(quiet, waybill.BeginPull{Image: "nginx", RuntimeHandler: "kata"}); err != nil {
		t.Fatal(err)
	}
	accessor := newAccessor(t, store)
	if record, exists, err := accessor.GetImagePulledRecord("ref"); err != nil || !exists || record.CredentialMapping != nil {
		t.Errorf("pulled for another handler: %v, %t, %v", record, exists, err)
	}
	if _, exists, err := accessor.GetImagePulledRecord("other"); exists || err != nil {
		t.Errorf("never pulled: %t, %v", exists, err)
	}
	records, err := accessor.ListImagePulledRecords()
	if len(records) != 0 || err != nil {
		t.Errorf("%v, %v", records, err)
	}
	if intents, err := accessor.ListImagePullIntents(); len(intents) != 0 || err != nil {
		t.Errorf("%v, %v", intents, err)
	}
	// As in the store's own decision: an image that is being pulled for any handler is not preloaded.
	for image, want := range map[string]bool{"nginx": true, "ngin": false, "nginx:1": false} {
		if exists, err := accessor.ImagePullIntentExists(image); exists != want || err != nil {
			t.Errorf("the intent of %s: %t, %v", image, exists, err)
		}
	}
}

func TestAccessorWrongUse(t *testing.T) {
	if _, err := NewRecordsAccessor(nil); err == nil {
		t.Error("a nil store was taken")
	}
	closed := openTestStore(t, store.Options{Settings: waybill.Settings{Mode: waybill.ModeStrict}})
	if _, err := NewRecordsAccessor(closed); err == nil || !strings.Contains(err.Error(), "mode kubelet") {
		t.Errorf("a store with the closed rules: %v", err)
	}
	store := openTestStore(t, store.Options{Settings: waybill.Settings{Mode: waybill.ModeKubelet}})
	accessor := newAccessor(t, store)
	if err := accessor.WriteImagePulledRecord(logr.Discard(), nil); err == nil {
		t.Error("a nil record was written")
	}
	if err := accessor.WriteImagePulledRecord(logr.Discard(), &kubeletconfig.ImagePulledRecord{}); !errors.Is(err, waybill.ErrInvalidArgument) {
		t.Errorf("a record without a ref: %v", err)
	}
	if err := accessor.WriteImagePullIntent(logr.Discard(), strings.Repeat("a", 1<<20)); !errors.Is(err, waybill.ErrLimitExceeded) {
		t.Errorf("an image of 1 MiB: %v", err)
	}
	must(t, store.Close())
	if _, err := NewRecordsAccessor(store); !errors.Is(err, waybill.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
	_, listed := accessor.ListImagePulledRecords()
	_, intents := accessor.ListImagePullIntents()
	_, exists := accessor.ImagePullIntentExists("nginx")
	_, _, got := accessor.GetImagePulledRecord("ref")
	for i, err := range []error{
		listed, intents, exists, got,
		accessor.WriteImagePulledRecord(logr.Discard(), &kubeletconfig.ImagePulledRecord{ImageRef: "ref"}),
		accessor.WriteImagePullIntent(logr.Discard(), "nginx"),
		accessor.DeleteImagePulledRecord(logr.Discard(), "ref"),
		accessor.DeleteImagePullIntent(logr.Discard(), "nginx"),
	} {
		if !errors.Is(err, waybill.ErrClosed) {
			t.Errorf("call %d after closing: %v", i+1, err)
		}
	}
}

// The kubelet's own manager pulls again what was proven too long ago; what it then records is young.
func TestTheKubeletsManagerPullsWhatIsTooOld(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	options := store.Options{Settings: waybill.Settings{Mode: waybill.ModeKubelet, MaxAgeSeconds: 10 * 3600}}
	options.ManualClock, options.UnixNs, options.BootNs = true, now.UnixNano(), 1
	store := openTestStore(t, options)
	accessor := newAccessor(t, store)
	manager, err := pullmanager.NewImagePullManager(quiet, accessor, pullmanager.NeverVerifyPreloadedPullPolicy(), &runtimeImages{}, 5)
	must(t, err)
	const image, ref, public = "registry.example/team/app:1", "sha256:1f", "sha256:2e"
	mustPull := func(ref string) bool {
		t.Helper()
		pull, err := manager.MustAttemptImagePull(quiet, image, ref, credentialsOf(secretOf("a")))
		must(t, err)
		return pull
	}
	pull := func(ref string, credentials kubeletconfig.ImagePullCredentials) {
		t.Helper()
		must(t, manager.RecordPullIntent(logr.Discard(), image))
		manager.RecordImagePulled(quiet, image, ref, &credentials)
	}
	ours := kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{secretOf("a")}}
	forAll := kubeletconfig.ImagePullCredentials{NodePodsAccessible: true}
	pull(ref, ours)
	pull(public, forAll)
	for _, step := range []struct {
		what          string
		wait          time.Duration
		ours, forAll  bool // to be pulled
		pulled, given bool // after that
	}{
		{what: "young"},
		{what: "an hour later", wait: time.Hour},
		{what: "as old as may be", wait: 9 * time.Hour},
		{what: "too old", wait: time.Second, ours: true, forAll: true, pulled: true},
		{what: "pulled again", given: true, forAll: true},
		{what: "for all again"},
		{what: "ten hours later", wait: 10 * time.Hour},
		{what: "too old again", wait: time.Second, ours: true, forAll: true},
	} {
		now = now.Add(step.wait)
		must(t, store.SetTime(now, 1))
		same(t, step.what+", ours", mustPull(ref), step.ours)
		same(t, step.what+", for all", mustPull(public), step.forAll)
		// A credential that no longer counts is in no record, but there is one: the image is not preloaded.
		record, exists, err := accessor.GetImagePulledRecord(ref)
		if err != nil || !exists || (len(record.CredentialMapping) == 0) != step.ours {
			t.Errorf("%s: %+v, %t, %v", step.what, record, exists, err)
		}
		if step.pulled {
			pull(ref, ours)
		}
		if step.given {
			pull(public, forAll)
		}
	}
	forgetSecret(t, store, "default", "a")
	pull(ref, ours)
	same(t, "proven after it was forgotten", mustPull(ref), false)
	if _, err := store.Revoke(quiet, waybill.Revoke{Kind: waybill.RevokeNamespace, Namespace: "default"}); err != nil {
		t.Fatal(err)
	}
	same(t, "forgotten", mustPull(ref), true)
	// Without an intent nobody knows when the pull began.
	manager.RecordImagePulled(quiet, image, ref, &ours)
	same(t, "recorded without an intent", mustPull(ref), true)
}
